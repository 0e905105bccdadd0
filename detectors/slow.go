package detectors

import "math"

// The score of a decision under a law moves slowly while a policy learns, as it chooses other actions where the law errs.
// So what is tolerated of it is how far scores had moved until lately, in that direction, and a part of the standard error.
const (
	latelyUnits = 60  // the newest units, which do not tell what is tolerated: what has changed among them is to be found
	slowUnits   = 400 // the units before these
	leastSlow   = 100 // of these with a value; with fewer, all is tolerated that may be
	slowError   = .5  // standard errors that are tolerated in addition
	slowEvery   = 20  // units after which it is computed again
)

// Slow is by how much the mean of a quantity may be higher or lower than the baseline's without an alarm. It is computed
// from the values of earlier units, and need not be saved.
type Slow struct {
	Higher, Lower float64
	to            int64 // ordinal of the unit after those that it is computed from, if that is above 0
}

// Within returns that so much is tolerated on either side.
func Within(tolerated float64) Slow { return Slow{Higher: tolerated, Lower: tolerated} }

// At returns what is tolerated of a unit, at most so much. valueOf returns the value of a unit, NaN if there is none; mean is
// that of the baseline, and f the dependence factor.
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
