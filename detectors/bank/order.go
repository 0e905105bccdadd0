package bank

import (
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Units come when they end. Of agents that begin together, as after a release, the short episodes therefore come first,
// and would pass for a drift to shorter ones: units of an agent are not judged before a long episode of the baseline
// would have had the time to end.

// The rule of newcomers takes longLength of the baseline's lengths for a long episode. It does not apply where it would
// have left out more than newcomerShare of the baseline, as agents do not live long enough, nor with more than maxAgents;
// and it ends where more units in a row are left out than newcomerRun, and three for each agent of the baseline: that is
// no release, agents have become short-lived.
const (
	longLength    = .99
	newcomerShare = .1
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

// freeze learns from a baseline how long to wait.
func (n *newcomers) freeze(units []warmUnit) {
	lengths := make([]float64, len(units))
	for i := range units {
		lengths[i] = units[i].Length
	}
	n.Patience = detectors.Quantiles(slices.Clone(lengths), longLength)[0]
	early, steps := 0, map[string]float64{}
	for i := range units {
		agent := units[i].Agent
		if steps[agent] += lengths[i]; steps[agent] < n.Patience {
			early++
		}
	}
	n.Agents, n.Row = len(steps), 0
	if float64(early) > newcomerShare*float64(len(units)) {
		n.Patience = 0
	}
}
