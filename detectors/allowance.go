package detectors

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
)

// The settings of the bootstrap of the allowance: the number of baselines drawn, the share of them that must keep the
// budget, and the range of the allowance.
const (
	bootstrapDraws   = 50
	keptShare        = .9
	leastAllowance   = .5
	largestAllowance = 2.25
)

// BaselineSample is the baseline of one quantity and its armed test: exactly one of Rank and Frequency is set.
// Values has one element per unit, NaN for a unit without a value. For a frequency test, the value is the number of
// events in the unit's Steps.
type BaselineSample struct {
	Values, Steps []float64
	Strata        []int // by unit, for a frequency test with strata; else nil
	Rank          *RankTest
	Frequency     *FrequencyTest
}

// walks returns the branches of the test.
func (s *BaselineSample) walks() *Walks {
	if s.Rank != nil {
		return &s.Rank.Walks
	}
	return &s.Frequency.Walks
}

// Bootstrapped is the result of the bootstrap for a set of armed tests.
type Bootstrapped struct {
	Allowance float64 // C
	Confirmed bool    // whether some allowance in its range keeps the budget for nine baselines in ten
	// ARL0 is the mean number of units between false alarms of all branches together with that allowance: the median
	// over baselines. Low and High are its 10% and 90% points.
	ARL0, Low, High float64
	Weakest         Weakest // the branch with the largest share of the false alarms
}

// Weakest names a branch of a sample.
type Weakest struct {
	Sample int
	Branch Branch
	Part   float64 // share of the false alarms of all branches, the mean over baselines
}

// Bootstrap finds the smallest allowance with which the armed branches of all samples together meet their
// false-alarm rate, for nine out of ten baselines that could have been drawn instead of this one. It draws whole
// units with replacement, all quantities together. Against each drawn baseline the real one represents the truth.
// With Lambda(theta) = log mean exp(theta (g - C)) over the real units in the ranks of the drawn ones, the false
// alarm rate of a branch is A exp(-theta h), where Lambda(theta)/theta = kappa (Cramer & Lundberg's adjustment
// coefficient). The draws depend only on the seed, not on the number of cores. spent is the false alarm rate of
// tests that need no allowance. overlap is the factor by which the alarms of all branches together are rarer than
// the sum of their rates, see Overlap. The allowance assumes that the caller lowers the thresholds by the logarithm
// of overlap.
func Bootstrap(samples []BaselineSample, units int, spent, overlap float64, seed uint64, cores int) Bootstrapped {
	return bootstrapViews(viewsOf(samples, math.Log(overlap)), units, spent, overlap, seed, cores)
}

func bootstrapViews(views []view, units int, spent, overlap float64, seed uint64, cores int) Bootstrapped {
	granted := 0.0
	for _, v := range views {
		granted += armedRate(v.armed)
	}
	draws := drawAll(views, units, seed, cores)
	needed := make([]float64, len(draws))
	for i, d := range draws {
		needed[i] = d.allowance(granted)
	}
	c := Quantiles(needed, keptShare)[0]
	out := Bootstrapped{Confirmed: c <= largestAllowance}
	out.Allowance = max(leastAllowance, min(largestAllowance, c))
	out.describe(views, draws, spent, overlap)
	return out
}

func (out *Bootstrapped) describe(views []view, draws []draw, spent, overlap float64) {
	arl := make([]float64, len(draws))
	parts := make([]float64, len(draws[0]))
	for i, d := range draws {
		total := spent // tests that need no allowance do not overlap
		for k := range d {
			total += d[k].rate(out.Allowance) / overlap
		}
		arl[i] = 1 / total
		for k := range d {
			parts[k] += d[k].rate(out.Allowance) / overlap / total / float64(len(draws))
		}
	}
	q := Quantiles(arl, .1, .5, .9)
	out.Low, out.ARL0, out.High = q[0], q[1], q[2]
	k := 0
	for _, v := range views {
		for _, b := range v.armed {
			if parts[k] > out.Weakest.Part {
				out.Weakest = Weakest{Sample: v.sample, Branch: b.Branch(), Part: parts[k]}
			}
			k++
		}
	}
}

// drawAll draws the baselines. Each has its own generator, so that the result does not depend on the number of cores.
func drawAll(views []view, units int, seed uint64, cores int) []draw {
	branches := 0
	for _, v := range views {
		branches += len(v.armed)
	}
	draws := make([]draw, bootstrapDraws)
	onCores(cores, func(first int) {
		s, times := &scratch{}, make([]int32, units)
		for i := first; i < len(draws); i += cores {
			drawUnits(times, rand.New(rand.NewPCG(seed, uint64(i))))
			draws[i] = make(draw, 0, branches)
			for k := range views {
				draws[i] = views[k].draw(draws[i], times, s)
			}
			runtime.Gosched() // give way to goroutines that read telemetry
		}
	})
	return draws
}

// onCores calls work once for each of the given number of cores, concurrently, and returns when all calls have
// ended.
func onCores(cores int, work func(core int)) {
	var wg sync.WaitGroup
	for core := 1; core < cores; core++ {
		wg.Go(func() { work(core) })
	}
	work(0)
	wg.Wait()
}

// drawUnits draws as many units as there are, with replacement, and counts how often each was drawn.
func drawUnits(times []int32, rng *rand.Rand) {
	clear(times)
	for range times {
		times[rng.IntN(len(times))]++
	}
}

// view is a sample as the bootstrap needs it: its distinct values, and which of them each unit has.
type view struct {
	sample int
	armed  []CUSUM
	place  []int32   // by unit, the index of its value among the distinct values; -1 without a value
	weight []float64 // share of each distinct value in the real baseline
	laws   laws
	twin   int // 1 + the index in a draw of the first branch of an earlier view with the same laws; 0 if there is none
}

// laws prepares the laws of the armed branches under a drawn baseline of m points, in which each distinct value
// occurs the given number of times. The function that it returns computes the law of a branch by its index. It uses
// the scratch memory, which must not be reused before its last call.
type laws func(times []float64, m float64, s *scratch) func(branch int) law

// law describes a branch's increments over the real units, normalized on a drawn baseline.
type law struct {
	chi    float64              // the standard error of the normalization is chi/sqrt(m)
	slopes [len(thetas)]float64 // Lambda(theta)/theta
}

// scratch is the memory of one goroutine for the sums of one draw.
type scratch struct {
	times, g, byHit, byStep []float64
	twice                   []int32
}

// ofLength returns n elements with arbitrary contents. It reuses the memory of buffer if that is large enough.
func ofLength[T any](buffer *[]T, n int) []T {
	*buffer = slices.Grow((*buffer)[:0], n)[:n]
	return *buffer
}

func viewsOf(samples []BaselineSample, lowered float64) []view {
	var views []view
	var whole *rankedDraws // shared by all samples without gaps
	for i, s := range samples {
		v := view{sample: i, armed: armedOf(*s.walks(), lowered)}
		switch {
		case len(v.armed) == 0:
			continue
		case s.Rank == nil && s.Strata != nil:
			v.frequencyWithin(s.Values, s.Steps, s.Strata)
		case s.Rank == nil:
			v.frequency(s.Values, s.Steps)
		case !slices.ContainsFunc(s.Values, math.IsNaN):
			if whole == nil {
				whole = newRankedDraws(len(s.Values))
			}
			v.rank(s.Values, s.Rank.ranks)
			v.laws = whole.laws(v.armed, v.weight)
			v.twin = v.twinAmong(views)
		default:
			v.rank(s.Values, s.Rank.ranks)
			v.laws = lawsWithGaps(v.armed, v.weight)
		}
		views = append(views, v)
	}
	return views
}

// armedOf returns the armed branches with thresholds lowered by the given number of nats.
func armedOf(w Walks, lowered float64) []CUSUM {
	w.Branches = slices.DeleteFunc(slices.Clone(w.Branches), func(c CUSUM) bool { return c.Height == 0 })
	w.Lower(lowered)
	return w.Branches
}

func (v *view) rank(values []float64, ranks *Ranks) {
	v.place = make([]int32, len(values))
	for i, x := range values {
		if v.place[i] = -1; !math.IsNaN(x) {
			v.place[i] = int32(searchPoints(ranks.Points, x))
		}
	}
	v.weight = ranks.shares()
}

func (v *view) frequency(hits, steps []float64) {
	var e episodes
	e, v.weight, v.place = episodes{hits, steps}.distinct()
	v.laws = newCountGrid(e).laws(v.armed, v.weight)
}

// twinAmong returns 1 + the index of the first branch of an earlier view with the same branches and the same rank
// for each unit, or 0 if there is none. The return and the reward of episodes of one step are such a pair.
func (v *view) twinAmong(views []view) int {
	at := 0
	for i := range views {
		other := &views[i]
		if slices.Equal(other.place, v.place) && slices.Equal(other.weight, v.weight) &&
			slices.EqualFunc(other.armed, v.armed, func(a, b CUSUM) bool { return a.Branch() == b.Branch() && a.Family < Frequency }) {
			return 1 + at
		}
		at += len(other.armed)
	}
	return 0
}

// draw is one drawn baseline with its effect on each armed branch.
type draw []drawnBranch

// drawnBranch is one branch under one drawn baseline.
type drawnBranch struct {
	unit         float64 // kappa = allowance * unit
	slopes       [len(thetas)]float64
	logA, height float64
}

// thetas are the points at which Lambda is tabulated. They are multiples of thetaStep, from which powersOf
// computes them.
var thetas = [...]float64{.1, .25, .4, .55, .7, .85, 1, 1.2, 1.5}

// thetaStep is the common divisor of thetas.
const thetaStep = .05

// The range of theta.
const (
	leastTheta   = .05
	largestTheta = 3
)

// draw appends the effect of a drawn baseline on each armed branch.
func (v *view) draw(out []drawnBranch, times []int32, s *scratch) []drawnBranch {
	if v.twin > 0 {
		for i := range v.armed {
			d := out[v.twin-1+i]
			d.logA, d.height = v.armed[i].LogA, v.armed[i].Height
			out = append(out, d)
		}
		return out
	}
	counts, m := ofLength(&s.times, len(v.weight)), 0.0
	clear(counts)
	for unit, at := range v.place {
		if at >= 0 {
			counts[at] += float64(times[unit])
			m += float64(times[unit])
		}
	}
	under := v.laws(counts, m, s)
	for i := range v.armed {
		b, l := &v.armed[i], under(i)
		out = append(out, drawnBranch{unit: l.chi / math.Sqrt(m), slopes: l.slopes, logA: b.LogA, height: b.Height})
	}
	return out
}

// powersOf returns x to the power of theta/thetaStep for all thetas.
func powersOf(x float64) [len(thetas)]float64 {
	p2 := x * x
	p3 := p2 * x
	p5 := p2 * p3
	p8 := p5 * p3
	p11 := p8 * p3
	p14 := p11 * p3
	p17 := p14 * p3
	p20 := p17 * p3
	p24 := p20 * p2 * p2
	p30 := p24 * p3 * p3
	return [...]float64{p2, p5, p8, p11, p14, p17, p20, p24, p30}
}

// slopeSums are the means of exp(theta g) at all thetas.
type slopeSums [len(thetas)]float64

// add adds an increment g, given as exp(thetaStep g), with its weight.
func (s *slopeSums) add(x, weight float64) {
	for k, p := range powersOf(x) {
		s[k] += weight * p
	}
}

// slopes returns Lambda(theta)/theta, which rises with theta.
func (s *slopeSums) slopes() (out [len(thetas)]float64) {
	for k, theta := range thetas {
		out[k] = math.Log(s[k]) / theta
	}
	return out
}

// lambdaSlopes tabulates Lambda(theta)/theta for increments with the given weights.
func lambdaSlopes(g, weight []float64) [len(thetas)]float64 {
	sums := slopeSums{}
	for i, x := range g {
		sums.add(math.Exp(thetaStep*x), weight[i])
	}
	return sums.slopes()
}

// theta solves Lambda(theta)/theta = kappa by linear interpolation.
func (d *drawnBranch) theta(kappa float64) float64 {
	k := 1
	for k < len(thetas)-1 && d.slopes[k] < kappa {
		k++
	}
	rise := d.slopes[k] - d.slopes[k-1]
	if !(rise > 0) {
		return largestTheta
	}
	theta := thetas[k-1] + (kappa-d.slopes[k-1])/rise*(thetas[k]-thetas[k-1])
	return max(leastTheta, min(largestTheta, theta))
}

// rate returns the branch's false alarm rate per unit with the given allowance.
func (d *drawnBranch) rate(allowance float64) float64 {
	return min(1, math.Exp(d.logA-d.theta(allowance*d.unit)*d.height))
}

// allowance returns the smallest allowance with which the false alarms of all branches stay within a budget.
func (d draw) allowance(budget float64) float64 {
	low, high := -1.0, 8.0
	for high-low > .01 {
		c := (low + high) / 2
		total := 0.0
		for i := range d {
			total += d[i].rate(c)
		}
		if total <= budget {
			high = c
		} else {
			low = c
		}
	}
	return high
}
