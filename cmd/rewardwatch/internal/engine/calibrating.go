package engine

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/names"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// If at least manyCalibrations baselines wait for their calibration, the log reports this once every queueToldEvery
// until none is waiting.
const (
	manyCalibrations = 100
	queueToldEvery   = 30 * time.Second
)

// calibrationQueue shows how many baselines are waiting for calibration, how many are being calibrated, and the
// progress of the fleet.
type calibrationQueue struct {
	queue func() (waiting, running int)
	fleet func() finding.Progress
	log   zerolog.Logger

	mu   sync.Mutex
	told time.Time // when the log last reported the queue; zero while few wait
}

func newCalibrationQueue(
	queue func() (waiting, running int), fleet func() finding.Progress, log zerolog.Logger, reg prometheus.Registerer,
) *calibrationQueue {
	q := &calibrationQueue{queue: queue, fleet: fleet, log: log}
	reg.MustRegister(groupsByBaseline{prometheus.NewDesc(names.MetricGroups, "Groups, by kind of baseline.", []string{"baseline"}, nil), fleet})
	for state, count := range map[string]func() int{
		"waiting": func() int { n, _ := queue(); return n },
		"running": func() int { _, n := queue(); return n },
	} {
		reg.MustRegister(prometheus.NewGaugeFunc(
			prometheus.GaugeOpts{
				Name: names.MetricCalibrations, Help: "Baselines waiting for calibration or being calibrated, by state.",
				ConstLabels: prometheus.Labels{"state": state},
			},
			func() float64 { return float64(count()) }))
	}
	return q
}

// groupsByBaseline is a metric that looks at all groups once per scrape, instead of once per label.
type groupsByBaseline struct {
	desc  *prometheus.Desc
	fleet func() finding.Progress
}

// Describe implements prometheus.Collector.
func (g groupsByBaseline) Describe(out chan<- *prometheus.Desc) { out <- g.desc }

// Collect implements prometheus.Collector.
func (g groupsByBaseline) Collect(out chan<- prometheus.Metric) {
	of := g.fleet()
	put := func(n int, baseline string) {
		out <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, float64(n), baseline)
	}
	put(of.Groups-of.Provisional-of.Accepted, "none")
	put(of.Provisional, "provisional")
	put(of.Accepted, "accepted")
}

// at logs the progress of a long queue.
func (q *calibrationQueue) at(now time.Time) {
	waiting, running := q.queue()
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case waiting == 0 && !q.told.IsZero():
		q.told = time.Time{}
		q.progress().Msg("all baselines are calibrated")
	case now.Sub(q.told) >= queueToldEvery && (waiting >= manyCalibrations || !q.told.IsZero()):
		q.told = now
		q.progress().Int("waiting", waiting).Int("running", running).Msg("many baselines are waiting for calibration")
	}
}

// progress begins a log line with the progress of the fleet.
func (q *calibrationQueue) progress() *zerolog.Event {
	of := q.fleet()
	return q.log.Info().Int("accepted", of.Accepted).Int("provisional", of.Provisional).Int("groups", of.Groups)
}
