package assemble

import "github.com/rewardwatch/rewardwatch/ingest"

// Excerpt determines which units of an excerpt of a partition are complete. A unit that began before the first end of
// its agent may lack its beginning. It is complete only if its first record can begin an episode: a summary alone, a
// step 0, or a step 1 of a policy that has not counted from 0 so far. A decision with its feedback is always complete,
// because it begins with a separate record. Excerpt keeps state for every agent.
type Excerpt struct {
	ended    map[agentKey]ingest.Position // first end of each agent
	begun    map[ingest.Position]int64    // steps of records that may begin an episode, for agents without an end
	fromZero map[string]bool              // policies that have had a step 0
}

type agentKey struct{ policy, agent string }

// NewExcerpt returns an empty Excerpt.
func NewExcerpt() *Excerpt {
	return &Excerpt{ended: map[agentKey]ingest.Position{}, begun: map[ingest.Position]int64{}, fromZero: map[string]bool{}}
}

// Read records an event. Call it before the assembler processes the event.
func (x *Excerpt) Read(e *ingest.Event) {
	if e.Step == 0 {
		x.fromZero[e.Policy] = true
	}
	if _, ended := x.ended[agentKey{e.Policy, e.AgentID}]; !ended && begins(e) {
		x.begun[e.Pos] = e.Step
	}
}

func begins(e *ingest.Event) bool {
	return e.Step == 0 || e.Step == 1 || e.Step < 0 && e.HasEpisode
}

// Whole reports whether a unit is complete. Call it for every unit, in the order in which units end.
func (x *Excerpt) Whole(u *ingest.Unit) bool {
	if u.End == ingest.EndWindow {
		return true
	}
	key := agentKey{u.Group.Policy, u.Agent}
	first, ended := x.ended[key]
	if !ended {
		first = u.Pos
		x.ended[key] = first
	}
	step, begun := x.begun[u.First]
	return first.Before(u.First) || begun && (step != 1 || !x.fromZero[key.policy])
}
