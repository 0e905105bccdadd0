package bank

import (
	"github.com/rewardwatch/rewardwatch/detectors/baseline"
)

// leaveEarly drops newcomers from the warm-up if there are many, and reports whether it did; as many units are
// collected again. If agents begin at the same time, or were already running when the telemetry began, their first
// finished episodes are shorter than the rest, and would bias the baseline towards short episodes.
func (g *group) leaveEarly() bool {
	w := &g.Warmup
	if g.Blocks.Size > 0 || !w.LivesOn() {
		return false
	}
	least := w.LongEpisode()
	early := w.Younger(least)
	if float64(early) <= baseline.NewcomerShare*float64(w.Units) || w.Early+early >= g.cfg.Baseline.Units {
		return false
	}
	w.Early += early
	g.leaveOut(func(i int) bool { return w.Each[i].Age < least })
	return true
}
