package ingest

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics are the counters of a consumer. What it knows of each partition is collected from the partitions themselves.
type metrics struct {
	gap                *prometheus.CounterVec
	reconnects         *prometheus.CounterVec
	assigned, existing prometheus.Gauge
	clockJumps         prometheus.Counter
}

// ofTopic gives all metrics that are registered with it the label of a topic.
func ofTopic(topic string, reg prometheus.Registerer) prometheus.Registerer {
	return prometheus.WrapRegistererWith(prometheus.Labels{"topic": topic}, reg)
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	partitions := f.NewGaugeVec(prometheus.GaugeOpts{
		Name: MetricPartitions, Help: "Partitions of the topic: assigned to this process, and existing.",
	}, []string{"kind"})
	m := &metrics{
		assigned: partitions.WithLabelValues("assigned"),
		existing: partitions.WithLabelValues("existing"),
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
	for _, r := range disconnections() {
		m.reconnects.WithLabelValues(string(r))
	}
	return m
}

// eventMetrics are the counters of the intakes of events. They do not name the topic: telemetry has one.
type eventMetrics struct {
	accepted, refused  prometheus.Counter
	tombstone, control prometheus.Counter
	deadLetters        *prometheus.CounterVec
	lost               atomic.Int64 // dead letters that could not be kept
}

// lossy is a DeadLetters that loses letters after Keep has returned.
type lossy interface{ Lost() int64 }

func newEventMetrics(letters DeadLetters, reg prometheus.Registerer) *eventMetrics {
	f := promauto.With(reg)
	events := f.NewCounterVec(prometheus.CounterOpts{
		Name: MetricEvents, Help: "Records read from Kafka, by result.",
	}, []string{"result"})
	skipped := f.NewCounterVec(prometheus.CounterOpts{
		Name: MetricMessagesSkipped, Help: "Messages that are not telemetry: null values and transaction markers.",
	}, []string{"reason"})
	m := &eventMetrics{
		accepted:  events.WithLabelValues("accepted"),
		refused:   events.WithLabelValues("refused"),
		tombstone: skipped.WithLabelValues("tombstone"),
		control:   skipped.WithLabelValues("control"),
		deadLetters: f.NewCounterVec(prometheus.CounterOpts{
			Name: MetricDeadLetters, Help: "Records refused, by reason.",
		}, []string{"reason"}),
	}
	for _, r := range Reasons() {
		m.deadLetters.WithLabelValues(string(r))
	}
	f.NewCounterFunc(prometheus.CounterOpts{
		Name: MetricDeadLettersLost, Help: "Refused records that could not be kept as dead letters.",
	}, func() float64 {
		lost := m.lost.Load()
		if l, ok := letters.(lossy); ok {
			lost += l.Lost()
		}
		return float64(lost)
	})
	return m
}
