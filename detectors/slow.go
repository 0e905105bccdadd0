package detectors

import "math"

// While a policy learns, its scores under a law move slowly, because it chooses other actions, and visits other situations,
// where the law errs. The tolerated shift is therefore the shift of earlier scores, in its direction, plus a part of its
// standard error.
const (
	latelyUnits = 60  // newest units, which are left out: a change among them must be found
	slowUnits   = 400 // units before these, from which the tolerated shift is computed
	leastSlow   = 100 // least number of these with a value; with fewer, the largest shift is tolerated
	slowError   = .5  // standard errors that are added
	slowEvery   = 20  // units between two computations
)

// Slow holds by how much the mean of a quantity may lie above or below that of the baseline without an alarm. It is computed
// from the values of earlier units, so it need not be saved.
type Slow struct {
	Higher, Lower float64
	to            int64 // ordinal of the unit after those that it is computed from, if that is above 0
}

// Within returns a Slow that tolerates the same shift in both directions.
func Within(tolerated float64) Slow { return Slow{Higher: tolerated, Lower: tolerated} }

// At returns the shift that is tolerated at a unit, which is at most most. valueOf returns the value of an earlier
// unit, or NaN if it has none. mean is the mean of the baseline, and f its dependence factor.
func (s Slow) At(ordinal int64, valueOf func(int64) float64, mean, f, most float64) Slow {
	to := (ordinal - latelyUnits) / slowEvery * slowEvery
	if s.to == to && to > 0 {
		return s
	}
	n, moved, m2 := 0., 0., 0.
	for i := max(0, to-slowUnits); i < to; i++ {
		if x := valueOf(i) - mean; !math.IsNaN(x) {
			n++
			d := x - moved
			moved += d / n
			m2 += d * (x - moved)
		}
	}
	if n < leastSlow {
		return Slow{most, most, to}
	}
	more := slowError * math.Sqrt(f*m2/(n-1)/n)
	return Slow{min(most, max(0, more+moved)), min(most, max(0, more-moved)), to}
}
