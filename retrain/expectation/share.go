package expectation

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// share reports whether the statistic is a quantile, and returns its probability.
func (c Condition) share() (p float64, is bool) {
	switch c.Statistic {
	case "q10":
		return .1, true
	case "median":
		return .5, true
	case "q90":
		return .9, true
	}
	return 0, false
}

// atMost reports whether values equal to that of the condition count as below it. The q quantile is the least x with
// P(X <= x) >= q. So it is above a value if P(X <= value) < q. It is at least that value if P(X < value) < q or, except
// for distributions with a gap at that point, if P(X < value) = q.
func (c Condition) atMost() bool { return c.Comparison == ">" || c.Comparison == "<=" }

// decideShare decides whether the share of units below the value is certainly smaller than the quantile's probability,
// which puts the quantile above the value, or certainly larger.
func (c *Check) decideShare(p float64) Verdict {
	smaller, larger := Met, Missed
	if !c.Condition.upward() {
		smaller, larger = Missed, Met
	}
	below := float64(c.Below) < p*float64(c.Values.N) // the only side for which there can be evidence
	switch {
	case c.evidence(p, p, below) < enough():
		return Open
	case below:
		return smaller
	}
	return larger
}

// enough returns the evidence at which a side is decided. By Ville's inequality, it occurs with probability alpha/2 at
// most if the truth is at the value or on the other side of it.
func enough() float64 { return math.Log(2 / alpha) }

// evidence returns the logarithm of the likelihood ratio of the units between a mixture of shares on one side of q,
// below or above it, and q itself. The mixture is the beta-binomial one (Robbins 1970; Howard & Ramdas 2022,
// "Sequential estimation of quantiles with applications to A/B testing and best-arm identification"), with its beta
// distribution, centred at p, truncated at q. If units are independent and the share is q or on the other side, the
// exponential of the evidence is a nonnegative supermartingale that begins at 1. n units count as n/f.
func (c *Check) evidence(p, q float64, below bool) float64 {
	precision := max(2, float64(c.Condition.Over)/c.Factor/spread()-1)
	a, b := precision*p, precision*(1-p)
	hits, others := float64(c.Below)/c.Factor, float64(c.Values.N-c.Below)/c.Factor
	before, after := mathext.RegIncBeta(a, b, q), mathext.RegIncBeta(a+hits, b+others, q)
	if !below {
		before, after = 1-before, 1-after
	}
	if after <= 0 {
		return math.Inf(-1)
	}
	return mathext.Lbeta(a+hits, b+others) - mathext.Lbeta(a, b) + math.Log(after/before) - times(hits, math.Log(q)) - times(others, math.Log1p(-q))
}

// times returns n*x, or 0 if n is 0.
func times(n, x float64) float64 {
	if n == 0 {
		return 0
	}
	return n * x
}

// shareInterval returns the set of shares with too little evidence on either side.
func (c *Check) shareInterval(p float64) (low, high float64) {
	if c.Values.N == 0 {
		return 0, 1
	}
	seen := float64(c.Below) / float64(c.Values.N)
	low = bisect(seen, 0, func(q float64) bool { return c.evidence(p, q, false) >= enough() })
	high = bisect(seen, 1, func(q float64) bool { return c.evidence(p, q, true) >= enough() })
	return low, high
}

// bisect returns where a predicate that is false at from becomes true on the way to end, where it counts as true.
func bisect(from, end float64, holds func(float64) bool) float64 {
	for range 50 {
		middle := (from + end) / 2
		if holds(middle) {
			end = middle
		} else {
			from = middle
		}
	}
	return end
}
