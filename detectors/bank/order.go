package bank

import (
	"math"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Units come when they end. Of agents that begin together, as after a release, the short episodes therefore come first,
// and would pass for a drift to shorter ones: units of an agent are not judged before a long episode of the baseline
// would have had the time to end. Nor do they belong into a baseline where they are many, as its law would be too short;
// of agents that were under way when the telemetry began, the first episodes are cut short too.

// The rule of newcomers takes longLength of the lengths for a long episode. Of a baseline it leaves out units where more
// than newcomerShare came too early: fewer shift its mean by about a hundredth of a standard deviation. It does so only where
// agents live on, as few as movingOn of the newer half of the units being the first of their agent, and fewer units in all
// than the baseline is to have. After the baseline it does not apply where more than newcomerShare of it came too early nevertheless,
// as agents do not live long enough, nor with more than maxAgents; and it ends where more units in a row are left out than
// newcomerRun, and three for each agent of the baseline: that is no release, agents have become short-lived.
const (
	longLength    = .99
	newcomerShare = .1
	movingOn      = .25
	maxAgents     = 10_000
	newcomerRun   = 100
)

// newcomers follows how long agents have been there. Exported fields are its snapshot.
type newcomers struct {
	Patience float64            // steps for which the units of a new agent are not judged, 0 where all are
	Steps    map[string]float64 // by agent, of the units that it has ended
	Crowd    bool               // there are too many agents to follow
	Agents   int                // of the baseline
	Row      int                // units in a row that were left out
}

// early reports whether a unit of an agent comes too early to be judged, and counts its steps.
func (n *newcomers) early(u *ingest.Unit) bool {
	if n.Crowd || u.End == ingest.EndBlock {
		return false
	}
	if n.Steps == nil {
		n.Steps = map[string]float64{}
	}
	before, known := n.Steps[u.Agent]
	if !known && len(n.Steps) >= maxAgents {
		n.Steps, n.Crowd = nil, true
		return false
	}
	n.Steps[u.Agent] = before + float64(u.Length)
	if !n.wasEarly(u) {
		n.Row = 0
		return false
	}
	if n.Row++; n.Row > newcomerRun+3*n.Agents {
		n.Patience = 0
		return false
	}
	return true
}

// wasEarly reports whether the last unit of its agent came too early to be judged.
func (n *newcomers) wasEarly(u *ingest.Unit) bool {
	return !n.Crowd && u.End != ingest.EndBlock && n.Steps[u.Agent] < n.Patience
}

// age is how many steps an agent has ended; without end where agents are not followed.
func (n *newcomers) age(agent string) float64 {
	if n.Crowd {
		return math.Inf(1)
	}
	return n.Steps[agent]
}

// freeze learns from a baseline how long to wait.
func (n *newcomers) freeze(units []warmUnit) {
	n.Patience = patience(units)
	early, agents := 0, map[string]bool{}
	for i := range units {
		agents[units[i].Agent] = true
		if units[i].Age < n.Patience {
			early++
		}
	}
	n.Agents, n.Row = len(agents), 0
	if float64(early) > newcomerShare*float64(len(units)) {
		n.Patience = 0
	}
}

// patience is for how many steps the units of an agent come too early.
func patience(units []warmUnit) float64 {
	lengths := make([]float64, len(units))
	for i := range units {
		lengths[i] = units[i].Length
	}
	return detectors.Quantiles(lengths, longLength)[0]
}

// leaveEarly leaves units that came too early out of the warm-up, where they are many, and reports whether it has: as many
// are collected anew.
func (g *group) leaveEarly() bool {
	w := &g.Warmup
	if g.Blocks.Size > 0 || !w.livesOn() {
		return false
	}
	least, early := patience(w.Each), 0
	for i := range w.Each {
		if w.Each[i].Age < least {
			early++
		}
	}
	if float64(early) <= newcomerShare*float64(w.Units) || w.Early+early >= g.cfg.Baseline.Units {
		return false
	}
	w.Early += early
	g.leaveOut(func(i int) bool { return w.Each[i].Age < least })
	return true
}

// livesOn reports whether the agents of the newer half of the units are those of the older.
func (w *warmup) livesOn() bool {
	newer := w.Each[len(w.Each)/2:]
	first := 0
	for i := range newer {
		if newer[i].Age <= newer[i].Length {
			first++
		}
	}
	return float64(first) <= movingOn*float64(len(newer))
}
