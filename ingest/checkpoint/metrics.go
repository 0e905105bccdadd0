package checkpoint

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/rewardwatch/rewardwatch/ingest"
)

type metrics struct {
	bytes    *prometheus.GaugeVec
	failures *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		bytes: promauto.With(reg).NewGaugeVec(prometheus.GaugeOpts{
			Name: ingest.MetricCheckpointBytes,
			Help: "Size of the checkpoint written last, by kind.",
		}, []string{"kind"}),
		failures: promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
			Name: ingest.MetricCheckpointFailure,
			Help: "Checkpoints that could not be written, or were refused when read, by kind.",
		}, []string{"kind"}),
	}
	for _, kind := range kinds() {
		m.failures.WithLabelValues(kind)
	}
	return m
}

func kinds() []string { return []string{"partition", "bank"} }

// kindOf is the first word of a name: "partition-topic-3" is of the kind "partition". Names of no known kind share
// "other", so that no name can add to the series.
func kindOf(name string) string {
	kind, _, _ := strings.Cut(name, "-")
	if !slices.Contains(kinds(), kind) {
		return "other"
	}
	return kind
}
