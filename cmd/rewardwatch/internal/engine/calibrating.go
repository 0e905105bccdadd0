package engine

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/names"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// From manyCalibrations baselines on that wait for their calibration, the log says so, once in queueToldEvery until none
// waits.
const (
	manyCalibrations = 100
	queueToldEvery   = 30 * time.Second
)

// calibrationQueue shows how many baselines are waiting for calibration, how many are being calibrated, and how far the
// fleet is.
type calibrationQueue struct {
	queue func() (waiting, running int)
	fleet func() finding.Progress
	log   zerolog.Logger

	mu   sync.Mutex
	told time.Time // zero while few wait
}

func newCalibrationQueue(
	queue func() (waiting, running int), fleet func() finding.Progress, log zerolog.Logger, reg prometheus.Registerer,
) *calibrationQueue {
	q := &calibrationQueue{queue: queue, fleet: fleet, log: log}
	for baseline, count := range map[string]func(finding.Progress) int{
		"none":        func(of finding.Progress) int { return of.Groups - of.Provisional - of.Accepted },
		"provisional": func(of finding.Progress) int { return of.Provisional },
		"accepted":    func(of finding.Progress) int { return of.Accepted },
	} {
		reg.MustRegister(prometheus.NewGaugeFunc(
			prometheus.GaugeOpts{
				Name: names.MetricGroups, Help: "Groups, by the kind of their baseline.",
				ConstLabels: prometheus.Labels{"baseline": baseline},
			},
			func() float64 { return float64(count(fleet())) }))
	}
	for state, count := range map[string]func() int{
		"waiting": func() int { n, _ := queue(); return n },
		"running": func() int { _, n := queue(); return n },
	} {
		reg.MustRegister(prometheus.NewGaugeFunc(
			prometheus.GaugeOpts{
				Name: names.MetricCalibrations, Help: "Baselines that wait for calibration or are being calibrated.",
				ConstLabels: prometheus.Labels{"state": state},
			},
			func() float64 { return float64(count()) }))
	}
	return q
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

// progress begins a line of the log that says how far the fleet is.
func (q *calibrationQueue) progress() *zerolog.Event {
	of := q.fleet()
	return q.log.Info().Int("accepted", of.Accepted).Int("provisional", of.Provisional).Int("groups", of.Groups)
}
