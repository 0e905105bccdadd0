package detectors

import (
	"math"
	"slices"
)

// countGrid is a set of distinct episodes. They have few distinct numbers of hits and of steps, so that
//
//	exp(a s - k n) = exp(a (s - s')) * exp(a s' - k n),   s' the mean number of hits
//
// needs few exponentials.
type countGrid struct {
	episodes
	hits, steps []float64 // the distinct numbers, ascending
	hit, step   []int32   // by episode, the indices of its numbers
	center      float64   // s'
}

func newCountGrid(e episodes) *countGrid {
	g := &countGrid{episodes: e, center: meanOf(e.hits)}
	g.hits, g.hit = indexed(e.hits)
	g.steps, g.step = indexed(e.steps)
	return g
}

// indexed returns the distinct values, ascending, and the index of each value among them.
func indexed(values []float64) (distinct []float64, index []int32) {
	distinct = slices.Clone(values)
	slices.Sort(distinct)
	distinct = slices.Compact(distinct)
	index = make([]int32, len(values))
	for i, x := range values {
		index[i] = int32(searchPoints(distinct, x))
	}
	return distinct, index
}

// laws returns the laws of branches on a quantity whose distinct episodes have the given weights.
func (g *countGrid) laws(branches []CUSUM, weight []float64) laws {
	return func(times []float64, m float64, s *scratch) func(int) law {
		for i := range times {
			times[i] /= m
		}
		sd := g.weightedSD(times)
		return func(branch int) law {
			f := newFrequencyBranch(branches[branch].Branch(), sd)
			if !g.fits(f) {
				return g.episodes.law(f, sd, times, weight, s)
			}
			return g.law(f, sd, times, weight, s)
		}
	}
}

// law returns the law of a branch that does not fit a grid: it computes each exponential separately.
func (e episodes) law(f frequencyBranch, sd float64, drawn, weight []float64, s *scratch) law {
	k, second := f.offset(e, drawn, sd), 0.0
	inc := ofLength(&s.g, len(drawn))
	for i, w := range drawn {
		inc[i] = f.increment(e.hits[i], e.steps[i], k)
		if w > 0 {
			second += w * math.Exp(2*inc[i])
		}
	}
	return law{math.Sqrt(max(0, second-1)), lambdaSlopes(inc, weight)}
}

// mostExponent bounds the exponents of hits: above it, a factor could overflow although the product does not.
const mostExponent = 600

func (g *countGrid) fits(f frequencyBranch) bool {
	return math.Abs(f.slope)*max(g.hits[len(g.hits)-1]-g.center, g.center-g.hits[0]) < mostExponent
}

// law returns the law of a branch for which fits is true.
func (g *countGrid) law(f frequencyBranch, sd float64, drawn, weight []float64, s *scratch) law {
	byHit, byStep := g.ofHits(f, 1, s), ofLength(&s.byStep, len(g.steps))
	most := math.Exp(f.cap)
	k := solveOffset(f.firstOffset(g.episodes, drawn, sd), func(k float64) (sum, slope float64) {
		g.ofSteps(byStep, f, k, 1)
		for i, w := range drawn {
			switch x := byHit[g.hit[i]] * byStep[g.step[i]]; {
			case x >= most:
				sum += w * most
			default:
				sum += w * x
				slope -= w * x * g.episodes.steps[i]
			}
		}
		return sum, slope
	})
	g.ofSteps(byStep, f, k, 1)
	second := 0.0
	for i, w := range drawn {
		x := min(most, byHit[g.hit[i]]*byStep[g.step[i]])
		second += w * x * x
	}
	byHit, most = g.ofHits(f, thetaStep, s), math.Exp(thetaStep*f.cap)
	g.ofSteps(byStep, f, k, thetaStep)
	sums := slopeSums{}
	for i, w := range weight {
		sums.add(min(most, byHit[g.hit[i]]*byStep[g.step[i]]), w)
	}
	return law{math.Sqrt(max(0, second-1)), sums.slopes()}
}

// ofHits returns exp(theta a (s - s')) for each number of hits.
func (g *countGrid) ofHits(f frequencyBranch, theta float64, s *scratch) []float64 {
	byHit := ofLength(&s.byHit, len(g.hits))
	for i, hits := range g.hits {
		byHit[i] = math.Exp(theta * f.slope * (hits - g.center))
	}
	return byHit
}

// ofSteps computes exp(theta (a s' - k n)) for each number of steps.
func (g *countGrid) ofSteps(byStep []float64, f frequencyBranch, k, theta float64) {
	for i, steps := range g.steps {
		byStep[i] = math.Exp(theta * (f.slope*g.center - k*steps))
	}
}
