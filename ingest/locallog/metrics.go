package locallog

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Names of the metrics that this package exports. All have the label log.
const (
	MetricBytes    = "rewardwatch_log_bytes"               // {kind="all|held|max"}
	MetricRefused  = "rewardwatch_log_refused_total"       // {reason="full|queue|disk"}
	MetricRemoved  = "rewardwatch_log_removed_bytes_total" // by retention
	MetricDuration = "rewardwatch_log_write_duration_seconds"
)

type metrics struct {
	full, queue, disk prometheus.Counter
	removed           prometheus.Counter
	duration          prometheus.Histogram
}

func newMetrics(l *Log) *metrics {
	f := promauto.With(prometheus.WrapRegistererWith(prometheus.Labels{"log": l.o.Name}, l.o.Registerer))
	for kind, size := range map[string]func() int64{"all": l.bytes, "held": l.held, "max": func() int64 { return l.o.MaxSize }} {
		f.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        MetricBytes,
			Help:        "Size of the local log: total, the part retained until two checkpoints cover it, and the limit.",
			ConstLabels: prometheus.Labels{"kind": kind},
		}, func() float64 { return float64(size()) })
	}
	refused := f.NewCounterVec(prometheus.CounterOpts{
		Name: MetricRefused,
		Help: "Writes rejected by the local log, by reason: log full of unjudged records, too many pending writes, or disk failure.",
	}, []string{"reason"})
	return &metrics{
		full: refused.WithLabelValues("full"), queue: refused.WithLabelValues("queue"), disk: refused.WithLabelValues("disk"),
		removed: f.NewCounter(prometheus.CounterOpts{
			Name: MetricRemoved, Help: "Bytes removed from the local log because of its size and age limits.",
		}),
		duration: f.NewHistogram(prometheus.HistogramOpts{
			Name: MetricDuration, Help: "Time until a write to the local log was durable. A write contains the records of all waiting requests.",
			Buckets: []float64{.0005, .001, .002, .005, .01, .02, .05, .1, .5, 2},
		}),
	}
}

func (l *Log) bytes() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.size
}

// held returns the size in bytes of the segments that must not be removed.
func (l *Log) held() (bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, s := range l.segments {
		if i == len(l.segments)-1 || l.segments[i+1].first > l.released {
			bytes += s.size
		}
	}
	return bytes
}
