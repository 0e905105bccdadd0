// Package expectation decides whether the new version of a retraining meets its expectation. It takes the version's
// units one by one and can decide after each of them.
package expectation

import (
	"math"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Condition is the expectation: how a statistic of the values of units must compare to a value.
type Condition struct {
	Statistic  string // mean, median, sd, q10 or q90
	Comparison string // >, >=, < or <=
	Value      float64
	Over       int // number of units after which the check must decide
}

// Verdict is the state of a check.
type Verdict string

// The verdicts. All but Open are final.
const (
	Open         Verdict = ""
	Met          Verdict = "met"          // the condition is true, with an error in one case of forty
	Missed       Verdict = "missed"       // the condition is false, with an error in one case of forty
	Inconclusive Verdict = "inconclusive" // all units have arrived, and neither is certain
)

const (
	alpha      = .05 // the probability that a true value ever leaves its interval, half of it on each side
	leastUnits = 20  // units below which means, whose intervals are approximate, decide nothing
)

// Least returns the least number of units with which a statistic can decide.
func Least(statistic string) int {
	if statistic == "mean" || statistic == "sd" {
		return leastUnits
	}
	return 1
}

// Check tests the units of a new version against a condition. It uses a confidence sequence for the statistic:
// intervals that together include the true value after all units with probability 95 %, so that it may be read after
// each of them. The exported fields are its state, whose size does not depend on the number of units. A Check is owned
// by one goroutine.
type Check struct {
	Condition Condition
	Verdict   Verdict

	// From the reference that the policy was compared with before: how much units depend on previous ones (1 if
	// they do not), and the range of their values. See Refer.
	Factor    float64
	Low, High float64

	Values  ingest.Moments // of the units
	Squares ingest.Moments // of the squared deviations of the units, for their sd
	Below   int64          // values below that of the condition, or equal to it if Condition.atMost is true
	Other   bool           // whether a value was neither 0 nor 1
}

// New returns a check without units.
func New(c Condition) *Check {
	return &Check{Condition: c, Factor: 1, Low: math.Inf(1), High: math.Inf(-1)}
}

// Refer makes the check allow for the known earlier units: the dependence factor f by which the variance of their mean
// is larger than if they were independent, and their lowest and highest values. Of several references it keeps the
// worst.
func (c *Check) Refer(f, low, high float64) {
	c.Factor, c.Low, c.High = max(c.Factor, f), min(c.Low, low), max(c.High, high)
}

// Units returns the number of units that Add has counted.
func (c *Check) Units() int { return int(c.Values.N) }

// Add adds the value of a unit, and returns the verdict. It ignores values that are not finite, and all values after a
// verdict.
func (c *Check) Add(x float64) Verdict {
	if c.Verdict != Open || math.IsNaN(x) || math.IsInf(x, 0) {
		return c.Verdict
	}
	before := c.Values.M2
	c.Values.Add(x)
	if c.Values.N > 1 {
		c.Squares.Add(c.Values.M2 - before)
	}
	if x < c.Condition.Value || x == c.Condition.Value && c.Condition.atMost() {
		c.Below++
	}
	c.Other = c.Other || x != 0 && x != 1
	c.Verdict = c.decide()
	return c.Verdict
}

func (c *Check) decide() Verdict {
	last := c.Units() >= c.Condition.Over
	var v Verdict
	if p, is := c.Condition.share(); is {
		v = c.decideShare(p)
	} else if low, high := c.Interval(); low < high || last { // values that were all equal may still differ
		v = c.Condition.place(low, high)
	}
	if v == Open && last {
		return Inconclusive
	}
	return v
}

// place returns the verdict for an interval of the statistic.
func (c Condition) place(low, high float64) Verdict {
	met, missed := false, false
	switch c.Comparison {
	case ">":
		met, missed = low > c.Value, high <= c.Value
	case ">=":
		met, missed = low >= c.Value, high < c.Value
	case "<":
		met, missed = high < c.Value, low >= c.Value
	case "<=":
		met, missed = high <= c.Value, low > c.Value
	}
	switch {
	case met:
		return Met
	case missed:
		return Missed
	}
	return Open
}

// Estimate returns the mean or the sd of the units. It is unknown without units, and for quantiles, of which the check
// counts only the units below the value of the condition.
func (c *Check) Estimate() (estimate float64, known bool) {
	_, quantile := c.Condition.share()
	if quantile || c.Units() == 0 {
		return 0, false
	}
	if c.Condition.Statistic == "sd" {
		return math.Sqrt(c.Squares.Mean), true
	}
	return c.Values.Mean, true
}

// upward reports whether the statistic should be large.
func (c Condition) upward() bool { return c.Comparison == ">" || c.Comparison == ">=" }

// Interval returns the current confidence sequence: of the mean or the sd, or, for quantiles, of the share of units
// below the value of the condition. It is unbounded while nothing can be said.
func (c *Check) Interval() (low, high float64) {
	if p, is := c.Condition.share(); is {
		return c.shareInterval(p)
	}
	if c.Condition.Statistic == "sd" {
		return c.sdInterval()
	}
	low, high = min(c.Low, c.Values.Min), max(c.High, c.Values.Max)
	if !c.Other {
		low, high = min(0, low), max(1, high)
	}
	return c.meanInterval(&c.Values, low, high)
}
