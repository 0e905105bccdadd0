package engine

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/names"
)

// From manyCalibrations baselines on that wait for their calibration, the log says so, once in queueToldEvery until none
// waits.
const (
	manyCalibrations = 100
	queueToldEvery   = 30 * time.Second
)

// calibrationQueue shows how many baselines wait for their calibration, and how many are being calibrated.
type calibrationQueue struct {
	queue func() (waiting, running int)
	log   zerolog.Logger

	mu   sync.Mutex
	told time.Time // zero while few wait
}

func newCalibrationQueue(queue func() (waiting, running int), log zerolog.Logger, reg prometheus.Registerer) *calibrationQueue {
	q := &calibrationQueue{queue: queue, log: log}
	for state, count := range map[string]func() int{
		"waiting": func() int { n, _ := queue(); return n },
		"running": func() int { _, n := queue(); return n },
	} {
		reg.MustRegister(prometheus.NewGaugeFunc(
			prometheus.GaugeOpts{
				Name: names.MetricCalibrations, Help: "Baselines that wait for their calibration, or are being calibrated.",
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
		q.log.Info().Msg("no baseline waits for its calibration any longer")
	case now.Sub(q.told) >= queueToldEvery && (waiting >= manyCalibrations || !q.told.IsZero()):
		q.told = now
		q.log.Info().Int("waiting", waiting).Int("running", running).Msg("many baselines wait for their calibration")
	}
}
