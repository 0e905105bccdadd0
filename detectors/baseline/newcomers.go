package baseline

import (
	"github.com/rewardwatch/rewardwatch/detectors"
)

// Newcomers are units of agents that have taken fewer steps than a long episode has: the quantile longLength of the
// lengths. If more than NewcomerShare of the units are newcomers, they are left out of the baseline; fewer shift its
// mean by about a hundredth of a standard deviation. This requires that agents persist: at most movingOn of the newer
// half of the units are the first of their agent. It also requires that fewer units are left out than the baseline is
// to have. If more than NewcomerShare of the accepted baseline are newcomers nevertheless, agents do not live long
// enough, and the rule does not apply after the baseline.
const (
	longLength    = .99
	NewcomerShare = .1
	movingOn      = .25
)

// LongEpisode returns the length of a long episode of the warm-up: until an agent has taken as many steps, its units
// are newcomers.
func (w *Warmup) LongEpisode() float64 {
	lengths := make([]float64, len(w.Each))
	for i := range w.Each {
		lengths[i] = w.Each[i].Length
	}
	return detectors.Quantiles(lengths, longLength)[0]
}

// Patience returns the number of steps for which the units of a new agent are not judged, 0 for none, and the number of
// agents.
func (w *Warmup) Patience() (steps float64, agents int) {
	steps = w.LongEpisode()
	early, seen := 0, map[string]bool{}
	for i := range w.Each {
		seen[w.Each[i].Agent] = true
		if w.Each[i].Age < steps {
			early++
		}
	}
	if float64(early) > NewcomerShare*float64(len(w.Each)) {
		steps = 0
	}
	return steps, len(seen)
}

// LivesOn reports whether agents persist: few units of the newer half are the first of their agent.
func (w *Warmup) LivesOn() bool {
	newer := w.Each[len(w.Each)/2:]
	first := 0
	for i := range newer {
		if newer[i].Age <= newer[i].Length {
			first++
		}
	}
	return float64(first) <= movingOn*float64(len(newer))
}

// Younger returns the number of units whose agents had taken fewer than least steps.
func (w *Warmup) Younger(least float64) (n int) {
	for i := range w.Each {
		if w.Each[i].Age < least {
			n++
		}
	}
	return n
}
