package expectation

import (
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Before makes a check of the same units against the level that the statistic had in a sample of units before: missed says that
// it is worse now than it was then. The level has an error of its own, with a variance of f/m over m units where that of the
// units at hand comes to be f/N: their factor is raised to f (1 + N/m). nil where the sample is too small to tell.
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

// of is the statistic of a sample, which is not empty.
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
