package receive

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Names of the metrics that this package exports.
const (
	MetricRecords  = "rewardwatch_received_records_total" // {result="accepted|refused"}
	MetricBatches  = "rewardwatch_received_batches_total" // {result="written|refused|busy|unavailable"}
	MetricDuration = "rewardwatch_receive_duration_seconds"
)

// Metrics contains the metrics of this package.
type Metrics struct {
	records, batches *prometheus.CounterVec
	duration         prometheus.Histogram
}

// NewMetrics registers the metrics of this package.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		records: promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
			Name: MetricRecords,
			Help: "Telemetry records received over HTTP and written.",
		}, []string{"result"}),
		batches: promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
			Name: MetricBatches,
			Help: "Telemetry batches received over HTTP, by result.",
		}, []string{"result"}),
		duration: promauto.With(reg).NewHistogram(prometheus.HistogramOpts{
			Name:    MetricDuration,
			Help:    "Time from the start of receiving a batch until it was durable.",
			Buckets: []float64{.005, .02, .1, .5, 2, 10, 30},
		}),
	}
	for _, result := range []string{"accepted", "refused"} {
		m.records.WithLabelValues(result)
	}
	for _, result := range []string{"written", "refused", "busy", "unavailable"} {
		m.batches.WithLabelValues(result)
	}
	return m
}
