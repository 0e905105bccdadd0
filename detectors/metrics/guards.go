package metrics

import (
	"math"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rewardwatch/rewardwatch/detectors/guard"
)

// Guards exports the guards of all policies.
type Guards struct {
	summaries                       func() []*guard.Summary
	limit                           int
	limitHits                       *atomic.Uint64
	state, evidence, share, invalid *prometheus.Desc
}

// seriesOfGuard is the number of series of a guard.
const seriesOfGuard = 4

// Guards returns the collector of the guards whose summaries the function returns. Guards and streams share the
// limit, which guards use first. Beyond it, guards that are ok lose their series; the others never do.
func (c *Collector) Guards(summaries func() []*guard.Summary) *Guards {
	labels := []string{"policy", "guard"}
	c.reserved = func() (series int) {
		for _, s := range summaries() {
			series += seriesOfGuard * len(s.Guards)
		}
		return series
	}
	return &Guards{
		summaries: summaries, limit: c.limit, limitHits: &c.limitHits,
		state:    prometheus.NewDesc(MetricGuardState, "State of the guard: 0 ok, 1 warn, 2 hold, 3 fallback.", labels, nil),
		evidence: prometheus.NewDesc(MetricGuardEvidence, "Logarithm of the evidence that the limit is exceeded, divided by the value that trips the guard.", labels, nil),
		share:    prometheus.NewDesc(MetricGuardMean, "Mean of the values counted by the guard since it last started, tripped or was released.", labels, nil),
		invalid:  prometheus.NewDesc(MetricGuardInvalid, "Number of values ignored by the guard, such as outcomes outside the range 0 to 1.", labels, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *Guards) Describe(out chan<- *prometheus.Desc) {
	out <- c.state
	out <- c.evidence
	out <- c.share
	out <- c.invalid
}

// Collect implements prometheus.Collector.
func (c *Guards) Collect(out chan<- prometheus.Metric) {
	summaries, room := c.summaries(), c.limit
	for _, urgent := range []bool{true, false} {
		for _, s := range summaries {
			for i := range s.Guards {
				g := &s.Guards[i]
				if (g.State != guard.OK) != urgent {
					continue
				}
				if room -= seriesOfGuard; room < 0 && !urgent {
					c.limitHits.Add(1)
					continue
				}
				c.collect(s.Policy, g, out)
			}
		}
	}
}

func (c *Guards) collect(policy string, g *guard.Verdict, out chan<- prometheus.Metric) {
	add := func(d *prometheus.Desc, kind prometheus.ValueType, x float64) {
		out <- prometheus.MustNewConstMetric(d, kind, x, policy, g.Name)
	}
	add(c.state, prometheus.GaugeValue, float64(g.State))
	add(c.evidence, prometheus.GaugeValue, max(0, math.Log(g.Evidence)/-math.Log(g.Alpha)))
	add(c.share, prometheus.GaugeValue, g.Mean)
	add(c.invalid, prometheus.CounterValue, float64(g.Invalid))
}
