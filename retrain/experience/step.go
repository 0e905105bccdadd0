package experience

import (
	"errors"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Step is one step of one agent, and its place in the data set.
type Step struct {
	Data     string // name of the part of the data set
	Episode  int64  // number of the episode in the data set, from 0
	Complete bool   // the episode began and ended within the range that was read
	Index    int64  // index of the step among the episode's existing steps, from 0
	Record
}

// Record is what the telemetry says about a step.
type Record struct {
	_                  struct{} `cbor:",toarray"`
	Pos                ingest.Position
	TS                 int64 // Unix nanoseconds, 0 without a clock
	Step               int64 // -1 if the telemetry does not number steps
	Policy, Env        string
	AgentID, EpisodeID string
	Versions           ingest.Versions
	Labels             []ingest.Label
	Category           string    // "" for a numeric action
	Values             []float64 // of an action that is a number or an array
	Reward             *float64
	RewardComponents   []ingest.Value
	Outcomes           []ingest.Value
	Terminated         bool
	Truncated          bool
	ingest.AsRecorded
}

// recordOf returns the record of an event, whose memory it shares.
func recordOf(e *ingest.Event) Record {
	r := Record{
		Pos: e.Pos, TS: e.TS, Step: e.Step, Policy: e.Policy, Env: e.Env, AgentID: e.AgentID, EpisodeID: e.EpisodeID,
		Versions: e.Versions, Labels: e.Labels, Category: e.Action.Category, Values: e.Action.Values,
		RewardComponents: e.RewardComponents, Outcomes: e.Outcomes, Terminated: e.Terminated, Truncated: e.Truncated,
		AsRecorded: *e.AsRecorded,
	}
	if e.HasReward {
		r.Reward = &e.Reward
	}
	return r
}

// isStep distinguishes a step from a record that only adds to the previous step: its end, its outcomes.
func (r *Record) isStep() bool {
	return r.Action != nil || r.Reward != nil || r.Observation != nil
}

// add merges a record of the same episode that is not a step.
func (r *Record) add(more *Record) {
	r.Terminated = r.Terminated || more.Terminated
	r.Truncated = r.Truncated || more.Truncated
	r.Outcomes = append(r.Outcomes, more.Outcomes...)
	r.RewardComponents = append(r.RewardComponents, more.RewardComponents...)
}

// errNoStep means that the data set would be empty.
var errNoStep = errors.New("the offsets contain no steps of the group")
