package consumer

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/deadletter"
)

// metrics contains the counters of a consumer. A collector computes the per-partition metrics from the partitions.
type metrics struct {
	gap                *prometheus.CounterVec
	reconnects         *prometheus.CounterVec
	assigned, existing prometheus.Gauge
	clockJumps         prometheus.Counter
}

// ofTopic returns a registerer that adds the label topic to all metrics.
func ofTopic(topic string, reg prometheus.Registerer) prometheus.Registerer {
	return prometheus.WrapRegistererWith(prometheus.Labels{"topic": topic}, reg)
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	partitions := f.NewGaugeVec(prometheus.GaugeOpts{
		Name: ingest.MetricPartitions, Help: "Partitions of the topic: assigned to this process, and in total.",
	}, []string{"kind"})
	m := &metrics{
		assigned: partitions.WithLabelValues("assigned"),
		existing: partitions.WithLabelValues("existing"),
		gap: f.NewCounterVec(prometheus.CounterOpts{
			Name: ingest.MetricOffsetGap, Help: "Records removed by retention or compaction before they were read.",
		}, []string{"partition"}),
		clockJumps: f.NewCounter(prometheus.CounterOpts{
			Name: ingest.MetricClockJumps, Help: "Changes to the system clock of at least two seconds.",
		}),
		reconnects: f.NewCounterVec(prometheus.CounterOpts{
			Name: ingest.MetricReconnects, Help: "Lost connections to partition leaders, by reason.",
		}, []string{"reason"}),
	}
	for _, r := range disconnections() {
		m.reconnects.WithLabelValues(string(r))
	}
	return m
}

// eventMetrics contains the counters of the event intakes. They have no topic label.
type eventMetrics struct {
	accepted, refused  prometheus.Counter
	tombstone, control prometheus.Counter
	aborted, notTaken  prometheus.Counter
	repeated           prometheus.Counter
	deadLetters        *prometheus.CounterVec
	notKept            prometheus.Counter
	lost               atomic.Int64 // dead letters that could not be stored
}

// lossy is a Keeper that can lose letters after Keep has returned.
type lossy interface{ Lost() int64 }

func newEventMetrics(letters deadletter.Keeper, reg prometheus.Registerer) *eventMetrics {
	f := promauto.With(reg)
	events := f.NewCounterVec(prometheus.CounterOpts{
		Name: ingest.MetricEvents, Help: "Records read from Kafka, by result.",
	}, []string{"result"})
	skipped := f.NewCounterVec(prometheus.CounterOpts{
		Name: ingest.MetricMessagesSkipped, Help: "Records that are not telemetry: null values, transaction markers, records of aborted transactions, retransmitted messages, and records that a mapping skips.",
	}, []string{"reason"})
	m := &eventMetrics{
		accepted:  events.WithLabelValues("accepted"),
		refused:   events.WithLabelValues("refused"),
		tombstone: skipped.WithLabelValues("tombstone"),
		control:   skipped.WithLabelValues("control"),
		aborted:   skipped.WithLabelValues("aborted"),
		notTaken:  skipped.WithLabelValues("not_taken"),
		repeated:  skipped.WithLabelValues("repeated"),
		deadLetters: f.NewCounterVec(prometheus.CounterOpts{
			Name: ingest.MetricDeadLetters, Help: "Rejected records, by reason.",
		}, []string{"reason"}),
	}
	m.notKept = f.NewCounter(prometheus.CounterOpts{
		Name: ingest.MetricDeadLettersCapped, Help: "Rejected records that were not stored as dead letters because their message contained too many rejected records.",
	})
	for _, r := range ingest.Reasons() {
		m.deadLetters.WithLabelValues(string(r))
	}
	f.NewCounterFunc(prometheus.CounterOpts{
		Name: ingest.MetricDeadLettersLost, Help: "Rejected records that could not be stored as dead letters.",
	}, func() float64 {
		lost := m.lost.Load()
		if l, ok := letters.(lossy); ok {
			lost += l.Lost()
		}
		return float64(lost)
	})
	return m
}
