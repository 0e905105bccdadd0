package reach

import (
	"math"
	"math/rand/v2"
	"sync"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/kernel"
	"github.com/rewardwatch/rewardwatch/detectors/rarity"
)

// halvedWithin is the number of rare values that are expected, without a change, in the units within which a fall
// to half their rate is to be found.
const halvedWithin = 200

// ofRare returns the smallest falls of the rate of rare values that are found, with the baseline alone, and the
// number of units from which the rate must be known so that a fall to half of it is found. Until then, half the
// rate cannot be distinguished from the rate of an unlucky baseline. share is the share of the units that have a
// value.
func ofRare(t *rarity.Test, share float64) []finding.Reach {
	if t.Spend == 0 {
		return nil
	}
	runs := newRuns()
	rate := float64(t.Novel) / float64(t.Units)
	now := t.Grown(0, 0)
	out := ofRate(smallest(1, func(lost float64) finder { return seldom{newRarer(now, rate*(1-lost), runs), share} }))
	half := finding.Reach{Units: twoDigits(halvedWithin / rate / share), Size: math.NaN(), OfRate: true}
	for doublings := range t.Doublings + 1 {
		if findsHalf(t, doublings, int(share*float64(half.Units)), runs) < finding.ReachProbability {
			continue
		}
		half.Size = .5
		if doublings > 0 {
			half.Known = int32(min(math.MaxInt32, float64(t.Units<<doublings)/share))
		}
		break
	}
	return append(out, half)
}

// seldom is a test of values that only a share of the units has.
type seldom struct {
	rarer
	share float64
}

// finds implements finder.
func (s seldom) finds(n float64) bool { return s.rarer.finds(s.share * n) }

// findsHalf returns the probability that half the rate is found within the given number of units, after the units
// of the test have doubled the given number of times. The number of rare values among these varies: it takes the
// three values of Gauss-Hermite quadrature.
func findsHalf(t *rarity.Test, doublings, within int, runs *runs) float64 {
	rate := float64(t.Novel) / float64(t.Units)
	more := rate * float64(t.Units<<doublings-t.Units)
	sd := math.Sqrt(more * (1 - rate) * t.Factor)
	sum := 0.0
	for _, at := range [...]struct{ by, weight float64 }{{-math.Sqrt(3), 1. / 6}, {0, 2. / 3}, {math.Sqrt(3), 1. / 6}} {
		novel := max(0, int(math.Round(more+at.by*sd)))
		sum += at.weight * newRarer(t.Grown(doublings, novel), rate/2, runs).findsWithin(float64(within))
	}
	return sum
}

// rarer is a test whose rare values occur at a lower rate.
type rarer struct {
	falls [2]fall
	rate  float64
	runs  *runs
}

// fall is the walk of an alternative with fewer rare values.
type fall struct{ walk, usual, rare, height int }

// newRarer takes the armed walks for a fall, of which a test has at most two. A missing walk never moves.
func newRarer(test *rarity.Test, rate float64, runs *runs) rarer {
	r, n := rarer{[2]fall{{height: math.MaxInt}, {height: math.MaxInt}}, rate, runs}, 0
	for _, w := range test.Walks {
		if w.Param < 0 && w.Height > 0 {
			r.falls[n] = fall{w.Walk, w.Usual, w.Rare, w.Height}
			n++
		}
	}
	return r
}

// rarerRuns is the number of simulated runs from which the probability of finding a change is estimated. The random
// numbers are the same each time, so that a smaller rate is found no later.
const rarerRuns = 500

// A row is a number of runs that are simulated together.
const (
	lanes = kernel.Runs
	rows  = rarerRuns / lanes
)

// finds implements finder. It stops as soon as enough runs have found the change, or too many have not. Rows with a run
// that missed the previous change come first, because most miss this one too.
func (r rarer) finds(n float64) bool {
	found, missed, first, order, c := 0, 0, 0, &r.runs.order, r.course(int(n))
	for i, row := range order {
		in := r.foundInRow(int(row), &c)
		found += in
		missed += lanes - in
		if in < lanes {
			order[i], order[first] = order[first], row
			first++
		}
		if float64(rarerRuns-missed)/rarerRuns < finding.ReachProbability {
			return false
		}
		if float64(found)/rarerRuns >= finding.ReachProbability {
			return true
		}
	}
	return false
}

// findsWithin returns the probability that the change is found within n units.
func (r rarer) findsWithin(n float64) float64 {
	found, c := 0, r.course(int(n))
	for row := range rows {
		found += r.foundInRow(row, &c)
	}
	return float64(found) / rarerRuns
}

// foundInRow returns how many runs of a row find the change.
func (r *rarer) foundInRow(row int, c *kernel.Course) (found int) {
	if r.rate > 0 {
		if found = kernel.Found(c, r.runs.shared.logs[row]); found >= 0 {
			return found
		}
		found = 0
	}
	for lane := range lanes {
		if r.foundIn(lanes*row+lane, int(c.Within), c.Each) {
			found++
		}
	}
	return found
}

// foundIn reports whether a run finds the change. The walks begin at 0, and the limits of the rate stay as they are, so
// that the change is found at least as often. It jumps from one rare value to the next; each is log(1-rate).
func (r *rarer) foundIn(run, within int, each float64) (found bool) {
	one, other := r.falls[0], r.falls[1]
	for units, jump := 0, 0; units < within; units++ {
		usual := within - units // values before the next rare one
		if r.rate > 0 {
			if next := r.runs.log(run, jump) / each; next < float64(usual) {
				usual = int(next)
			}
			jump++
		}
		one.walk += usual * one.usual
		other.walk += usual * other.usual
		if one.walk >= one.height || other.walk >= other.height {
			return true
		}
		one.walk, other.walk = max(0, one.walk+one.rare), max(0, other.walk+other.rare)
		units += usual
	}
	return false
}

// course returns what the runs have in common.
func (r *rarer) course(within int) kernel.Course {
	return kernel.Course{Each: math.Log1p(-r.rate), Within: float64(within), One: r.falls[0].floats(), Other: r.falls[1].floats()}
}

func (f fall) floats() kernel.Fall {
	out := kernel.Fall{Walk: float64(f.walk), Usual: float64(f.usual), Rare: float64(f.rare), Height: float64(f.height)}
	if f.height == math.MaxInt {
		out.Height = math.Inf(1)
	}
	return out
}

// runs holds the random numbers of all runs: by run, the logarithms of 1 minus a uniform number. Divided by the
// logarithm of 1 minus a rate, each is the number of values before the next rare one. One calibration uses them at
// a time.
type runs struct {
	shared *firstLogs
	own    [rarerRuns][]float64 // the numbers of a run after the shared ones
	next   [rarerRuns]rand.PCG  // generators of further numbers
	order  [rows]int16          // in which the rows are tried; it does not change the result
}

// firstLogs holds the first numbers of all runs: by row, the first number of each run, then the second of each.
type firstLogs struct{ logs [rows][]float64 }

// firstNumbers is the length of the part of each run that all calibrations share. 2,000 units have fewer rare
// values even if a third of the values is rare (rarity.MostShare), so hardly any calibration draws more.
const firstNumbers = 768

// firstRuns returns the first numbers of all runs, which do not depend on the baseline. They take three megabytes and are
// never written again, so calibrations may share them.
var firstRuns = sync.OnceValue(func() *runs {
	rng, out := rand.New(rand.NewPCG(1, 0)), &runs{shared: &firstLogs{}}
	for i := range out.order {
		out.order[i] = int16(i)
		out.shared.logs[i] = make([]float64, lanes*firstNumbers)
	}
	for i := range out.next {
		out.next[i].Seed(rng.Uint64(), 0)
		for k, log := range drawn(nil, &out.next[i], firstNumbers) {
			out.shared.logs[i/lanes][lanes*k+i%lanes] = log
		}
	}
	return out
})

// newRuns returns runs that no other calibration uses.
func newRuns() *runs {
	out := *firstRuns()
	return &out
}

// log returns a number of a run.
func (s *runs) log(run, at int) float64 {
	if at < firstNumbers {
		return s.shared.logs[run/lanes][lanes*at+run%lanes]
	}
	for at-firstNumbers >= len(s.own[run]) {
		s.own[run] = drawn(s.own[run], &s.next[run], firstNumbers/2)
	}
	return s.own[run][at-firstNumbers]
}

// drawn appends n numbers of a run.
func drawn(logs []float64, of *rand.PCG, n int) []float64 {
	rng := rand.New(of)
	for range n {
		logs = append(logs, math.Log(1-rng.Float64()))
	}
	return logs
}

// twoDigits rounds a number up to two significant digits.
func twoDigits(x float64) int {
	unit := math.Pow(10, math.Floor(math.Log10(x))-1)
	return int(math.Ceil(x/unit) * unit)
}
