// Package expectation decides whether what a retraining was to show has come true, from one unit of the new version after the
// other, and may be asked after every one of them.
package expectation

import (
	"math"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Condition is what is to be shown: that a statistic of the values of units compares so to a value.
type Condition struct {
	Statistic  string // mean, median, sd, q10 or q90
	Comparison string // >, >=, < or <=
	Value      float64
	Over       int // units after which there is no more to come
}

// Verdict says where a check stands.
type Verdict string

// The verdicts. All but Open are final.
const (
	Open         Verdict = ""
	Met          Verdict = "met"          // the condition holds, but for one case in forty
	Missed       Verdict = "missed"       // it does not, but for one case in forty
	Inconclusive Verdict = "inconclusive" // all units have come, and neither can be said
)

const (
	alpha      = .05 // the probability that a true value ever leaves its interval, half of it on each side
	leastUnits = 20  // before which means, whose intervals are approximate, decide nothing
)

// Check holds the units of a new version against a condition. It takes a confidence sequence for the statistic: intervals
// that include the true one after all units together with probability 95 %, so that it may be looked at after each of them.
// Exported fields are its state, whose size does not depend on the number of units. It is owned by one goroutine.
type Check struct {
	Condition Condition
	Verdict   Verdict

	// Of the reference that the policy was held to before: how much units depend on those before (1 for not at all), and
	// between which values they lay. See Refer.
	Factor    float64
	Low, High float64

	Values  ingest.Moments // of the units
	Squares ingest.Moments // of the squared deviations of the units, for their sd
	Below   int64          // values below that of the condition; at most it, where Condition.atMost says so
	Other   bool           // whether a value came that is neither 0 nor 1
}

// New makes a check without a unit.
func New(c Condition) *Check {
	return &Check{Condition: c, Factor: 1, Low: math.Inf(1), High: math.Inf(-1)}
}

// Refer has the check allow for what is known of the units before: the dependence factor f by which the variance of their
// mean is larger than if they were independent, and the lowest and the highest value that they had. Of several references
// it keeps the worst.
func (c *Check) Refer(f, low, high float64) {
	c.Factor, c.Low, c.High = max(c.Factor, f), min(c.Low, low), max(c.High, high)
}

// Units is how many units have been folded in.
func (c *Check) Units() int { return int(c.Values.N) }

// Add folds the value of a unit in, and gives the verdict. Values that are not finite, and those after a verdict, are left
// out.
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
	} else if low, high := c.Interval(); low < high || last { // values that never differed may yet
		v = c.Condition.place(low, high)
	}
	if v == Open && last {
		return Inconclusive
	}
	return v
}

// place says on which side an interval of the statistic lies.
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

// upward reports whether the statistic is to be large.
func (c Condition) upward() bool { return c.Comparison == ">" || c.Comparison == ">=" }

// Interval gives the confidence sequence as it stands: of the mean or the sd, of quantiles for the share of units below the
// value of the condition. It is without bounds where nothing can be said yet.
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
