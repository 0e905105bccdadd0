package feedback

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Names of the metrics that this package exports.
const (
	MetricOpenDecisions = "rewardwatch_open_decisions"
	MetricOpenBytes     = "rewardwatch_open_decisions_bytes"
	MetricDecisions     = "rewardwatch_decisions_total"        // {result="final|dropped|repeated|no_time"}
	MetricFeedback      = "rewardwatch_feedback_total"         // {result="matched|late|without_decision|repeated|no_key"}
	MetricFeedbackDelay = "rewardwatch_feedback_delay_seconds" // histogram
	MetricFeedbackLost  = "rewardwatch_feedback_lost_total"    // {decision="other_partition|unknown"}
)

// Metrics contains the metrics of this package. The joiners of all partitions share them.
type Metrics struct {
	open            prometheus.Gauge
	bytes           atomic.Int64 // memory of the open decisions
	final, dropped  prometheus.Counter
	repeated        prometheus.Counter
	noKey, noTime   prometheus.Counter
	matched, late   prometheus.Counter
	unmatched       prometheus.Counter
	repeatedRecords prometheus.Counter
	delay           prometheus.Histogram

	apart                      *apart
	elsewhere, nowhere         prometheus.Counter
	lostElsewhere, lostSampled atomic.Int64 // same as elsewhere and the whole sample, for Apart
}

// NewMetrics registers the metrics of this package.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	decisions := promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
		Name: MetricDecisions,
		Help: "Decisions with delayed feedback, by result.",
	}, []string{"result"})
	records := promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
		Name: MetricFeedback,
		Help: "Feedback records, by whether they were joined with their decision.",
	}, []string{"result"})
	lost := promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
		Name: MetricFeedbackLost,
		Help: "Feedback records whose decision is not in the same partition, for a sample of keys, by location of the decision.",
	}, []string{"decision"})
	m := &Metrics{
		apart: newApart(), elsewhere: lost.WithLabelValues("other_partition"), nowhere: lost.WithLabelValues("unknown"),
		open: promauto.With(reg).NewGauge(prometheus.GaugeOpts{
			Name: MetricOpenDecisions,
			Help: "Decisions waiting for feedback, and feedback waiting for its decision.",
		}),
		final:           decisions.WithLabelValues("final"),
		dropped:         decisions.WithLabelValues("dropped"),
		repeated:        decisions.WithLabelValues("repeated"),
		noKey:           records.WithLabelValues("no_key"),
		noTime:          decisions.WithLabelValues("no_time"),
		matched:         records.WithLabelValues("matched"),
		late:            records.WithLabelValues("late"),
		unmatched:       records.WithLabelValues("without_decision"),
		repeatedRecords: records.WithLabelValues("repeated"),
		delay: promauto.With(reg).NewHistogram(prometheus.HistogramOpts{
			Name:    MetricFeedbackDelay,
			Help:    "Time from a decision to each of its feedback records.",
			Buckets: []float64{1, 5, 30, 60, 300, 900, 3600, 4 * 3600, 24 * 3600, 7 * 24 * 3600, 30 * 24 * 3600},
		}),
	}
	promauto.With(reg).NewGaugeFunc(prometheus.GaugeOpts{
		Name: MetricOpenBytes,
		Help: "Memory allocated for decisions waiting for feedback.",
	}, func() float64 { return float64(m.Bytes()) })
	return m
}

// Bytes returns the memory of the open decisions of all joiners. It contains no pointers.
func (m *Metrics) Bytes() int64 { return m.bytes.Load() }

// decided records the partition of a decision, and counts feedback for it that was given up in another partition.
func (m *Metrics) decided(key uint64, partition int32, ts int64, window time.Duration) {
	if elsewhere := m.apart.decided(key, partition, ts, window); elsewhere > 0 {
		m.elsewhere.Add(float64(elsewhere))
		m.lostElsewhere.Add(elsewhere) // lostSampled already includes these records
	}
}

// lost counts feedback that is given up because its decision has not arrived.
func (m *Metrics) lost(key uint64, partition int32, records int64) {
	m.unmatched.Add(float64(records))
	switch sampled, elsewhere := m.apart.lost(key, partition, records); {
	case elsewhere:
		m.elsewhere.Add(float64(records))
		m.lostElsewhere.Add(records)
		m.lostSampled.Add(records)
	case sampled:
		m.nowhere.Add(float64(records))
		m.lostSampled.Add(records)
	}
}

// Apart returns the number of sampled feedback records that had no decision in their partition, and how many of these
// had one in another partition that this instance reads.
func (m *Metrics) Apart() (elsewhere, of int64) { return m.lostElsewhere.Load(), m.lostSampled.Load() }
