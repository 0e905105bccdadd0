package metrics

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rewardwatch/rewardwatch/detectors/guard"
)

// Guards exports the guards of all policies.
type Guards struct {
	summaries              func() []*guard.Summary
	state, evidence, share *prometheus.Desc
}

// NewGuards returns the collector of the guards whose summaries the function returns.
func NewGuards(summaries func() []*guard.Summary) *Guards {
	labels := []string{"policy", "guard"}
	return &Guards{
		summaries: summaries,
		state:     prometheus.NewDesc(MetricGuardState, "State of the guard: 0 ok, 1 warn, 2 hold, 3 fallback.", labels, nil),
		evidence:  prometheus.NewDesc(MetricGuardEvidence, "Logarithm of the evidence against the limit, relative to that which trips the guard.", labels, nil),
		share:     prometheus.NewDesc(MetricGuardMean, "Mean of what the guard counts, since it began, tripped or was released.", labels, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *Guards) Describe(out chan<- *prometheus.Desc) {
	out <- c.state
	out <- c.evidence
	out <- c.share
}

// Collect implements prometheus.Collector.
func (c *Guards) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, x float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, x, labels...)
	}
	for _, s := range c.summaries() {
		for i := range s.Guards {
			g := &s.Guards[i]
			gauge(c.state, float64(g.State), s.Policy, g.Name)
			gauge(c.evidence, max(0, math.Log(g.Evidence)/-math.Log(g.Alpha)), s.Policy, g.Name)
			gauge(c.share, g.Mean, s.Policy, g.Name)
		}
	}
}
