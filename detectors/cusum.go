package detectors

import (
	"math"
	"slices"
)

// MaxFactor is the largest dependence factor with which a test makes a promise. Above it, the units depend too much
// on each other.
const MaxFactor = 4

// CUSUM is one branch of a test and its walk over the units,
//
//	S = max(0, S + (g - C - Kappa - slack)/f),   alarm: S >= Height,   Height = log A - log r
//
// where g is the branch's increment of a unit, C normalizes it over the baseline, Kappa allows for the sampling error
// of the baseline, f is the dependence factor, A the prefactor of the walk's false alarm rate and r the rate that it
// may spend, in false alarms per unit. All but the counts are in nats. Exported fields are saved.
type CUSUM struct {
	Walk      float64 // S
	StartedAt int64   // ordinal of the unit at which S last left 0
	Height    float64 // threshold, 0 if the branch is not armed
	Zeroed    bool    // whether S has been at 0 since it was last held
	Carries   bool    // whether the baseline holds enough information to arm the branch
	Family    Family  // Family and Param identify the branch

	// Set by prepare: the term of a rank that the increment uses, its coefficient and the constant subtracted from it,
	// both divided by f.
	term     uint8
	on, toll float64

	Param float64
	Calibration
	Kappa float64
}

// Branch returns the branch of the walk, whose parts are stored separately to save memory.
func (c *CUSUM) Branch() Branch { return Branch{c.Family, c.Param} }

// Score returns the walk as a share of its threshold, or 0 if the branch is not armed.
func (c *CUSUM) Score() float64 {
	if c.Height == 0 {
		return 0
	}
	return c.Walk / c.Height
}

// step adds the increment of a unit, which is not NaN, to the walk and reports whether the walk has reached its
// threshold. It does not branch on whether a walk is at 0, which the processor would often mispredict.
func (c *CUSUM) step(inc float64, ordinal int64) (reached bool) {
	before, after := int64(math.Float64bits(c.Walk)), int64(math.Float64bits(c.Walk+inc))
	after &^= after >> 63                    // 0 if the sign bit is set
	started := ((before - 1) & -after) >> 63 // all bits set if it was 0 and is above it
	c.StartedAt += (ordinal - c.StartedAt) & started
	c.Zeroed = c.Zeroed || after == 0
	c.Walk = math.Float64frombits(uint64(after))
	return c.Walk >= c.Height && c.Height > 0
}

// Walks are the branches of one quantity, calibrated on the same baseline. Exported fields are their snapshot.
type Walks struct {
	Units    int     // m, values in the baseline
	Factor   float64 // dependence factor of the baseline
	Branches []CUSUM

	weight float64 // of the evidence of the units that follow, 1 after prepare
}

// Weigh sets what the evidence of the units that follow is multiplied by, which is 1 at first and not saved. At most 1, it makes
// no false alarm more likely: the mean of exp(weight (g - C)) is then at most that of exp(g - C).
func (w *Walks) Weigh(weight float64) { w.weight = weight }

// DefaultAllowance returns the constant C of the allowance for the baseline's own error if it is not bootstrapped,
// based on measurements over baselines: 1.75 from 500 units and 2.1 below.
func DefaultAllowance(m int) float64 {
	if m >= 500 {
		return 1.75
	}
	return 2.1
}

// add adds a branch with its increments over the baseline. It overwrites them.
func (w *Walks) add(b Branch, increments, weights []float64) {
	cal := calibrate(increments, weights)
	carries := w.Factor <= MaxFactor && cal.carries(w.Units, w.Factor)
	if carries {
		for i := range increments {
			increments[i] -= cal.C
		}
		cal.LogA = prefactor(increments, weights)
	}
	w.Branches = append(w.Branches, CUSUM{Family: b.Family, Param: b.Param, Calibration: cal, Carries: carries, Zeroed: true})
}

// Allow sets the allowance for the baseline's own error, Kappa = allowance * chi * sqrt(f/m).
func (w *Walks) Allow(allowance float64) {
	for i := range w.Branches {
		b := &w.Branches[i]
		b.Kappa = allowance * b.Chi * math.Sqrt(w.Factor/float64(w.Units))
	}
	w.prepare()
}

// Arm sets the false alarm rate per unit that every carrying branch may spend.
func (w *Walks) Arm(rate float64) {
	for i := range w.Branches {
		if b := &w.Branches[i]; b.Carries {
			b.Height = max(1, b.LogA-math.Log(rate))
		}
	}
	w.prepare()
}

// Lower lowers all thresholds by the given number of nats.
func (w *Walks) Lower(by float64) {
	for i := range w.Branches {
		if b := &w.Branches[i]; b.Height > 0 {
			b.Height = max(1, b.Height-by)
		}
	}
	w.prepare()
}

// prepare includes the allowance, the normalization and the dependence factor in the increments, so that a unit costs
// one multiplication per branch. A branch that is not armed never leaves 0.
func (w *Walks) prepare() {
	w.weight = 1
	for i := range w.Branches {
		b := &w.Branches[i]
		b.term, b.on = b.Branch().onTerm()
		b.on /= w.Factor
		b.toll = (b.C + b.Kappa) / w.Factor
		if b.Height == 0 {
			b.toll = math.Inf(1)
		}
	}
}

// Keep drops all branches except those for which keep returns true.
func (w *Walks) Keep(keep func(Branch) bool) {
	w.Branches = slices.DeleteFunc(w.Branches, func(c CUSUM) bool { return !keep(c.Branch()) })
}

// Carrying returns the number of branches for which the baseline contains enough information.
func (w *Walks) Carrying() int {
	n := 0
	for i := range w.Branches {
		if w.Branches[i].Carries {
			n++
		}
	}
	return n
}

// Armed returns the number of branches that can raise an alarm.
func (w *Walks) Armed() int {
	n := 0
	for i := range w.Branches {
		if w.Branches[i].Height > 0 {
			n++
		}
	}
	return n
}

// TooDependent reports whether the dependence factor is too large for a promise.
func (w *Walks) TooDependent() bool { return w.Factor > MaxFactor }

// armedRate returns the sum of the false alarm rates of the armed branches, per unit.
func armedRate(branches []CUSUM) float64 {
	rate := 0.0
	for i := range branches {
		if b := &branches[i]; b.Height > 0 {
			rate += math.Exp(b.LogA - b.Height)
		}
	}
	return rate
}

// Reached reports whether an armed walk has reached its threshold.
func (w *Walks) Reached() bool {
	for i := range w.Branches {
		if b := &w.Branches[i]; b.Height > 0 && b.Walk >= b.Height {
			return true
		}
	}
	return false
}

// Hold records for each walk whether it is at 0 now, and lowers walks that exceed their thresholds to the threshold.
// Call it when an alarm is raised. The alarm ends once all walks have been at 0.
func (w *Walks) Hold() {
	for i := range w.Branches {
		b := &w.Branches[i]
		b.Zeroed = b.Walk == 0
	}
	w.cut()
}

// cut lowers walks that exceed their thresholds to the threshold.
func (w *Walks) cut() {
	for i := range w.Branches {
		b := &w.Branches[i]
		b.Walk = min(b.Walk, b.Height)
	}
}

// Reset sets every walk back to 0.
func (w *Walks) Reset() {
	for i := range w.Branches {
		w.Branches[i].Walk, w.Branches[i].Zeroed = 0, true
	}
}
