package experience

import (
	"bufio"
	"encoding/json"
	"io"
	"math"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// line is a step in NDJSON. Every field is always present, and null if the telemetry says nothing.
//
// It is large because it has a field for each key of a line.
type line struct {
	Data             string            `json:"data"`
	Episode          int64             `json:"episode"`
	EpisodeComplete  bool              `json:"episode_complete"`
	Index            int64             `json:"index"`
	Policy           string            `json:"policy"`
	PolicyVersion    *string           `json:"policy_version"`
	Env              *string           `json:"env"`
	EnvVersion       *string           `json:"env_version"`
	RewardVersion    *string           `json:"reward_version"`
	Labels           map[string]string `json:"labels"`
	AgentID          *string           `json:"agent_id"`
	EpisodeID        *string           `json:"episode_id"`
	Step             *int64            `json:"step"`
	TS               *time.Time        `json:"ts"`
	Observation      json.RawMessage   `json:"observation"`
	Action           json.RawMessage   `json:"action"`
	ActionProb       json.RawMessage   `json:"action_prob"`
	Reward           *number           `json:"reward"`
	RewardComponents map[string]number `json:"reward_components"`
	NextObservation  json.RawMessage   `json:"next_observation"`
	Terminated       bool              `json:"terminated"`
	Truncated        bool              `json:"truncated"`
	Outcomes         map[string]number `json:"outcomes"`
	Partition        int32             `json:"partition"`
	Offset           int64             `json:"offset"`
	Record           int32             `json:"record"`
}

// number is a JSON number if JSON can represent it, else a quoted word.
type number float64

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) {
	switch x := float64(n); {
	case math.IsNaN(x):
		return []byte(`"NaN"`), nil
	case math.IsInf(x, 1):
		return []byte(`"Infinity"`), nil
	case math.IsInf(x, -1):
		return []byte(`"-Infinity"`), nil
	default:
		return json.Marshal(x)
	}
}

// ndjson writes one step per line.
type ndjson struct {
	buffer  *bufio.Writer
	encoder *json.Encoder
}

// NewNDJSON returns a Writer of one JSON object per line.
func NewNDJSON(w io.Writer) Writer {
	n := &ndjson{buffer: bufio.NewWriterSize(w, 64<<10)}
	n.encoder = json.NewEncoder(n.buffer)
	n.encoder.SetEscapeHTML(false)
	return n
}

// Write implements Writer.
func (n *ndjson) Write(s *Step) error {
	return n.encoder.Encode(line{
		Data: s.Data, Episode: s.Episode, EpisodeComplete: s.Complete, Index: s.Index,
		Policy: s.Policy, PolicyVersion: text(s.Versions.Policy), Env: text(s.Env), EnvVersion: text(s.Versions.Env),
		RewardVersion: text(s.Versions.Reward), Labels: labelsOf(s.Labels), AgentID: text(s.AgentID), EpisodeID: text(s.EpisodeID),
		Step: s.counted(), TS: s.time(), Observation: s.Observation, Action: s.Action, ActionProb: s.ActionProb,
		Reward: (*number)(s.Reward), RewardComponents: valuesOf[number](s.RewardComponents), NextObservation: s.NextObservation,
		Terminated: s.Terminated, Truncated: s.Truncated, Outcomes: valuesOf[number](s.Outcomes),
		Partition: s.Pos.Partition.Number(), Offset: s.Pos.Offset, Record: s.Pos.Record,
	})
}

// Close implements Writer.
func (n *ndjson) Close() error { return n.buffer.Flush() }

// text returns nil for "".
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// counted returns nil if the telemetry does not number steps.
func (s *Step) counted() *int64 {
	if s.Step < 0 {
		return nil
	}
	return &s.Step
}

// time returns nil if the telemetry has no clock.
func (s *Step) time() *time.Time {
	if s.TS == 0 {
		return nil
	}
	return new(time.Unix(0, s.TS).UTC())
}

func labelsOf(labels []ingest.Label) map[string]string {
	if len(labels) == 0 {
		return nil
	}
	m := make(map[string]string, len(labels))
	for _, l := range labels {
		m[l.Name] = l.Value
	}
	return m
}

// valuesOf returns values by name, nil without any.
func valuesOf[N ~float64](values []ingest.Value) map[string]N {
	if len(values) == 0 {
		return nil
	}
	m := make(map[string]N, len(values))
	for _, v := range values {
		m[v.Name] = N(v.X)
	}
	return m
}
