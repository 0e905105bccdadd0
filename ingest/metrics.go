package ingest

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics are the counters of a consumer. What it knows of each partition is collected from the partitions themselves.
type metrics struct {
	accepted, refused  prometheus.Counter
	deadLetters        *prometheus.CounterVec
	tombstone, control prometheus.Counter
	gap                *prometheus.CounterVec
	reconnects         *prometheus.CounterVec
	assigned, existing prometheus.Gauge
	clockJumps         prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	events := f.NewCounterVec(prometheus.CounterOpts{
		Name: MetricEvents, Help: "Records read from Kafka, by result.",
	}, []string{"result"})
	skipped := f.NewCounterVec(prometheus.CounterOpts{
		Name: MetricMessagesSkipped, Help: "Messages that are not telemetry: null values and transaction markers.",
	}, []string{"reason"})
	partitions := f.NewGaugeVec(prometheus.GaugeOpts{
		Name: MetricPartitions, Help: "Partitions of the topic: assigned to this process, and existing.",
	}, []string{"kind"})
	m := &metrics{
		accepted:  events.WithLabelValues("accepted"),
		refused:   events.WithLabelValues("refused"),
		tombstone: skipped.WithLabelValues("tombstone"),
		control:   skipped.WithLabelValues("control"),
		assigned:  partitions.WithLabelValues("assigned"),
		existing:  partitions.WithLabelValues("existing"),
		deadLetters: f.NewCounterVec(prometheus.CounterOpts{
			Name: MetricDeadLetters, Help: "Records refused, by reason.",
		}, []string{"reason"}),
		gap: f.NewCounterVec(prometheus.CounterOpts{
			Name: MetricOffsetGap, Help: "Records that retention removed before they were read.",
		}, []string{"partition"}),
		clockJumps: f.NewCounter(prometheus.CounterOpts{
			Name: MetricClockJumps, Help: "Times that the machine's clock was set by two seconds or more.",
		}),
		reconnects: f.NewCounterVec(prometheus.CounterOpts{
			Name: MetricReconnects, Help: "Connections to partitions that ended before they were meant to, by reason.",
		}, []string{"reason"}),
	}
	for _, r := range Reasons() {
		m.deadLetters.WithLabelValues(string(r))
	}
	for _, r := range disconnections() {
		m.reconnects.WithLabelValues(string(r))
	}
	return m
}
