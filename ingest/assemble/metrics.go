package assemble

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Metrics contains the metrics of this package. The assemblers of all partitions share them.
type Metrics struct {
	ends                            [ingest.EndBlock + 1]prometheus.Counter
	abandoned, dropped              prometheus.Counter
	lateSummary, duplicate, noGroup prometheus.Counter
	late                            prometheus.Counter
	unmatched, rest, expired        prometheus.Counter
	noSignal                        prometheus.Counter
	open                            prometheus.Gauge
}

// NewMetrics registers the metrics of this package.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	episodes := promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
		Name: MetricEpisodes,
		Help: "Episodes by how they ended, and blocks of steps if no episode ends.",
	}, []string{"end"})
	ignored := promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
		Name: MetricEventsIgnored,
		Help: "Valid events that do not belong to an episode, by reason.",
	}, []string{"reason"})
	m := &Metrics{
		abandoned:   episodes.WithLabelValues("abandoned"),
		dropped:     episodes.WithLabelValues("dropped"),
		lateSummary: ignored.WithLabelValues("late_summary"),
		duplicate:   ignored.WithLabelValues("duplicate"),
		late:        ignored.WithLabelValues("late"),
		noGroup:     ignored.WithLabelValues("group_limit"),
		unmatched:   ignored.WithLabelValues("unmatched"),
		rest:        ignored.WithLabelValues("dropped_episode"),
		expired: promauto.With(reg).NewCounter(prometheus.CounterOpts{
			Name: MetricGroupsExpired,
			Help: "Groups that the reader dropped because the maximum number of groups was reached.",
		}),
		noSignal: promauto.With(reg).NewCounter(prometheus.CounterOpts{
			Name: MetricSignalsIgnored,
			Help: "Values ignored because the episode or block already has the maximum number of signals.",
		}),
		open: promauto.With(reg).NewGauge(prometheus.GaugeOpts{
			Name: MetricOpenEpisodes,
			Help: "Episodes that have not ended yet.",
		}),
	}
	for end := range m.ends {
		m.ends[end] = episodes.WithLabelValues(ingest.End(end).String())
	}
	return m
}
