package experience

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Step is one step of one agent, and its place in the data set.
type Step struct {
	Data     string // name of the part of the data set
	Episode  int64  // counts the episodes of the data set from 0
	Complete bool   // the episode began and ended within the range that was read
	Index    int64  // counts the steps of the episode that are there from 0
	Record
}

// Record is what the telemetry says of a step.
type Record struct {
	_                  struct{} `cbor:",toarray"`
	Pos                ingest.Position
	TS                 int64 // Unix nanoseconds, 0 without a clock
	Step               int64 // -1 where the telemetry does not count
	Policy, Env        string
	AgentID, EpisodeID string
	Versions           ingest.Versions
	Labels             []ingest.Label
	Category           string    // "" of an action that is numeric
	Values             []float64 // of an action that is a number or an array
	Reward             *float64
	RewardComponents   []ingest.Value
	Outcomes           []ingest.Value
	Terminated         bool
	Truncated          bool
	AsRecorded
}

// AsRecorded are the members of a record that an event has no part of, or not all, as JSON: nil where they are absent. Words
// for NaN and infinities are in quotes.
type AsRecorded struct {
	Action          json.RawMessage
	ActionProb      json.RawMessage
	Observation     json.RawMessage
	NextObservation json.RawMessage
}

// recordOf shares the memory of the event.
func recordOf(e *ingest.Event, text []byte) (Record, error) {
	members, err := membersOf(text)
	if err != nil {
		return Record{}, fmt.Errorf("reading the record at %s once more: %w", e.Pos, err)
	}
	r := Record{
		Pos: e.Pos, TS: e.TS, Step: e.Step, Policy: e.Policy, Env: e.Env, AgentID: e.AgentID, EpisodeID: e.EpisodeID,
		Versions: e.Versions, Labels: e.Labels, Category: e.Action.Category, Values: e.Action.Values,
		RewardComponents: e.RewardComponents, Outcomes: e.Outcomes, Terminated: e.Terminated, Truncated: e.Truncated,
		AsRecorded: members,
	}
	if e.HasReward {
		r.Reward = &e.Reward
	}
	return r, nil
}

// isStep tells a step from a record that only adds to the step before: its end, its outcomes.
func (r *Record) isStep() bool {
	return r.Action != nil || r.Reward != nil || r.Observation != nil
}

// add takes in a record of the same episode that is no step.
func (r *Record) add(more *Record) {
	r.Terminated = r.Terminated || more.Terminated
	r.Truncated = r.Truncated || more.Truncated
	r.Outcomes = append(r.Outcomes, more.Outcomes...)
	r.RewardComponents = append(r.RewardComponents, more.RewardComponents...)
}

func membersOf(record []byte) (AsRecorded, error) {
	var all map[string]json.RawMessage // a struct would take keys in other cases too
	if json.Unmarshal(record, &all) != nil {
		if err := json.Unmarshal(quoteWords(record), &all); err != nil {
			return AsRecorded{}, err
		}
	}
	member := func(name string) json.RawMessage {
		if text := all[name]; string(text) != "null" {
			return text
		}
		return nil
	}
	return AsRecorded{
		Action: member("action"), ActionProb: member("action_prob"),
		Observation: member("observation"), NextObservation: member("next_observation"),
	}, nil
}

// quoteWords makes JSON by RFC 8259 of a record that an ingest.Decoder has taken: it also takes words for NaN and infinities.
func quoteWords(record []byte) []byte {
	out := make([]byte, 0, len(record)+16)
	for rest := record; len(rest) > 0; {
		n := tokenLength(rest)
		if _, isWord := wordOf(string(rest[:n])); isWord {
			out = append(append(append(out, '"'), rest[:n]...), '"')
		} else {
			out = append(out, rest[:n]...)
		}
		rest = rest[n:]
	}
	return out
}

// tokenLength gives the length of the string, number or word at the beginning of valid JSON, and 1 where there is none.
func tokenLength(text []byte) int {
	n := 1
	if text[0] != '"' {
		n = len(text) - len(bytes.TrimLeft(text, "+-.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"))
		return max(n, 1)
	}
	for ; n < len(text) && text[n] != '"'; n++ {
		if text[n] == '\\' {
			n++
		}
	}
	return min(n+1, len(text))
}

// errNoStep says that there is nothing to learn from.
var errNoStep = errors.New("no step of the group lies within the offsets")
