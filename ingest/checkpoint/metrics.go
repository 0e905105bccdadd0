package checkpoint

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/rewardwatch/rewardwatch/ingest"
)

type metrics struct {
	bytes     *prometheus.GaugeVec
	failures  *prometheus.CounterVec
	fallbacks *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		bytes: promauto.With(reg).NewGaugeVec(prometheus.GaugeOpts{
			Name: ingest.MetricCheckpointBytes,
			Help: "Size of the last checkpoint in bytes, by kind.",
		}, []string{"kind"}),
		failures: promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
			Name: ingest.MetricCheckpointFailure,
			Help: "Checkpoints that could not be written or read, by kind.",
		}, []string{"kind"}),
	}
	m.fallbacks = promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
		Name: ingest.MetricCheckpointFallbacks,
		Help: "Damaged checkpoints replaced by the previous one, by kind.",
	}, []string{"kind"})
	m.failures.WithLabelValues(kindOther)
	for _, kind := range kinds() {
		m.failures.WithLabelValues(kind)
		m.fallbacks.WithLabelValues(kind)
	}
	return m
}
