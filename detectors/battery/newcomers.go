package battery

import (
	"math"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Units arrive when they end. If agents begin together, as after a release, the short episodes therefore come first and
// would look like a drift to shorter ones. The units of a new agent are not judged until a long episode of the baseline
// would have had time to end.

// Newcomers are tracked only if there are at most maxAgents. The rule ends if more units in a row are left out than
// newcomerRun plus three for each agent of the baseline: agents have then become short-lived, which no release
// explains.
const (
	maxAgents   = 10_000
	newcomerRun = 100
)

// Newcomers tracks how long agents have existed. Exported fields are saved.
type Newcomers struct {
	Patience float64            // steps for which the units of a new agent are not judged, 0 if all are judged
	Steps    map[string]float64 // by agent, the steps in the units that it has ended
	Crowd    bool               // whether there are too many agents to track
	Agents   int                // of the baseline
	Row      int                // units in a row that were left out
}

// Early reports whether a unit comes too early in the life of its agent to be judged, and counts its steps.
func (n *Newcomers) Early(u *ingest.Unit) bool {
	if n.Crowd || joined(u) {
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
	agent := u.Agent
	if !known {
		agent = strings.Clone(agent) // the string may share its memory with many others
	}
	n.Steps[agent] = before + float64(u.Length)
	if !n.WasEarly(u) {
		n.Row = 0
		return false
	}
	if n.Row++; n.Row > newcomerRun+3*n.Agents {
		n.Patience = 0
		return false
	}
	return true
}

// joined reports whether a unit is a block, which may contain steps of many agents.
func joined(u *ingest.Unit) bool { return u.End == ingest.EndBlock || u.Decisions != nil }

// WasEarly reports whether the last unit of its agent came too early to be judged.
func (n *Newcomers) WasEarly(u *ingest.Unit) bool {
	return !n.Crowd && !joined(u) && n.Steps[u.Agent] < n.Patience
}

// Age returns the number of steps in the units that an agent has ended, or +Inf if agents are not tracked.
func (n *Newcomers) Age(agent string) float64 {
	if n.Crowd {
		return math.Inf(1)
	}
	return n.Steps[agent]
}

// Wait sets the number of steps for which the units of a new agent are not judged, learned from a baseline of the
// given number of agents.
func (n *Newcomers) Wait(steps float64, agents int) { n.Patience, n.Agents, n.Row = steps, agents, 0 }
