package expectation

import (
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Before returns a check of the same units against the level of the statistic in a sample of earlier units: Missed
// means that it is worse now than then. The level has a separate error, with a variance of f/m over m units where
// that of the current units amounts to f/N, so the factor is raised to f (1 + N/m). Before returns nil if the sample is
// too small.
func (c *Check) Before(sample []float64) *Check {
	if len(sample) < leastUnits {
		return nil
	}
	condition := c.Condition
	condition.Value = condition.of(sample)
	b := New(condition)
	b.Refer(c.Factor*(1+float64(condition.Over)/float64(len(sample))), c.Low, c.High)
	return b
}

// of returns the statistic of a sample, which must not be empty.
func (c Condition) of(sample []float64) float64 {
	if p, is := c.share(); is {
		sorted := slices.Sorted(slices.Values(sample))
		return sorted[max(0, int(math.Ceil(p*float64(len(sorted))))-1)]
	}
	var m ingest.Moments
	for _, x := range sample {
		m.Add(x)
	}
	if c.Statistic == "sd" {
		return math.Sqrt(m.M2 / float64(m.N-1))
	}
	return m.Mean
}
