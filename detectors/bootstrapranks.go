package detectors

import (
	"math"

	"github.com/rewardwatch/rewardwatch/detectors/kernel"
)

// rankedDraws ranks the distinct values of quantities in drawn baselines of m points. The terms of the sums depend
// only on a value's rank, so all draws of all quantities read them from the same tables. The index is twice the
// rank: twice the number of points below a value, plus the number equal to it.
type rankedDraws struct {
	own, fresh []rank
	tables     map[Branch][]rankTerm
}

// rankTerm is what a rank adds to the sums of a branch: exp(g) as a point of the drawn baseline, and exp(theta g) as a
// new value.
type rankTerm = kernel.Term

func newRankedDraws(m int) *rankedDraws {
	d := &rankedDraws{own: make([]rank, 2*m+1), fresh: make([]rank, 2*m+1), tables: map[Branch][]rankTerm{}}
	for twice := range d.own {
		d.own[twice], d.fresh[twice] = drawnRank(float64(twice), float64(m))
	}
	return d
}

// drawnRank returns the rank of a value in a drawn baseline of m points: as one of them, and as a new value.
func drawnRank(twice, m float64) (own, fresh rank) {
	own.u, fresh.u = twice/2/m, (twice+1)/2/(m+1)
	own.z, fresh.z = NormalScore(own.u), NormalScore(fresh.u)
	return own, fresh
}

// table returns the terms of a branch by twice the rank.
func (d *rankedDraws) table(b Branch) []rankTerm {
	if have := d.tables[b]; have != nil {
		return have
	}
	terms := make([]rankTerm, len(d.own))
	for i := range terms {
		terms[i] = rankTerm{Own: math.Exp(b.increment(d.own[i])), Fresh: powersOf(math.Exp(thetaStep * b.increment(d.fresh[i])))}
	}
	d.tables[b] = terms
	return terms
}

// laws returns the laws of branches on a quantity that has a value in every unit. Its distinct values have the
// given weights.
func (d *rankedDraws) laws(branches []CUSUM, weight []float64) laws {
	tables := make([][]rankTerm, len(branches))
	for i := range branches {
		tables[i] = d.table(branches[i].Branch())
	}
	return func(times []float64, m float64, s *scratch) func(int) law {
		twice, below := ofLength(&s.twice, len(times)), 0
		for i, n := range times {
			twice[i] = int32(below) + int32(n)
			below += 2 * int(n)
		}
		return func(branch int) law { return lawOfRanks(tables[branch], twice, times, weight, m) }
	}
}

// lawOfRanks returns the law of a branch from the terms of the ranks of the distinct values.
func lawOfRanks(table []rankTerm, twice []int32, times, weight []float64, m float64) law {
	sums := kernel.SumsOf(table, twice, times[:len(twice)], weight[:len(twice)])
	fresh := slopeSums(sums.Fresh)
	out := law{math.Sqrt(max(0, sums.Second*m/sums.First/sums.First-1)), fresh.slopes()}
	c := math.Log(sums.First / m)
	for k := range out.slopes {
		out.slopes[k] -= c
	}
	return out
}

// lawsWithGaps returns the laws of branches on a quantity without a value in some units, so that the size of the
// drawn baselines varies.
func lawsWithGaps(branches []CUSUM, weight []float64) laws {
	return func(times []float64, m float64, s *scratch) func(int) law {
		own, fresh := make([]rank, len(times)), make([]rank, len(times))
		below := 0.0
		for i, n := range times {
			own[i], fresh[i] = drawnRank(2*below+n, m)
			below += n
		}
		return func(branch int) law {
			b, g := branches[branch].Branch(), ofLength(&s.g, len(times))
			first, second := 0.0, 0.0
			for i, n := range times {
				if n > 0 {
					e := math.Exp(b.increment(own[i]))
					first += n / m * e
					second += n / m * e * e
				}
				g[i] = b.increment(fresh[i])
			}
			c := math.Log(first)
			for i := range g {
				g[i] -= c
			}
			return law{math.Sqrt(max(0, second/first/first-1)), lambdaSlopes(g, weight)}
		}
	}
}
