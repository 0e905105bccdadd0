package telemetry

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/jsontext"
)

// AppendEvent appends an event as a record of telemetry version 1, without a line break. It writes the members that the
// event contains. Without AsRecorded, there is no next_observation, and an observation consists of its numbers only.
func AppendEvent(dst []byte, e *ingest.Event) []byte {
	w := writer{out: append(dst, '{')}
	if e.TS != 0 {
		w.text("ts", time.Unix(0, e.TS).UTC().Format(time.RFC3339Nano))
	}
	w.text("policy", e.Policy)
	for _, m := range [...]struct{ name, value string }{
		{"policy_version", e.Versions.Policy},
		{"env", e.Env},
		{"env_version", e.Versions.Env},
		{"reward_version", e.Versions.Reward},
		{"agent_id", e.AgentID},
		{"episode_id", e.EpisodeID},
	} {
		if m.value != "" {
			w.text(m.name, m.value)
		}
	}
	if e.Step >= 0 {
		w.name("step")
		w.out = strconv.AppendInt(w.out, e.Step, 10)
	}
	recorded := e.AsRecorded
	if recorded == nil {
		recorded = &ingest.AsRecorded{}
	}
	if !w.raw("observation", recorded.Observation) {
		w.values("observation", e.Observation)
	}
	w.raw("next_observation", recorded.NextObservation)
	if e.Action.Scalar || !w.raw("action", recorded.Action) { // a quoted NaN or infinity would be a category
		w.action(&e.Action)
	}
	if !w.raw("action_prob", recorded.ActionProb) {
		w.prob("action_prob", e.ActionProb)
	}
	w.prob("target_prob", e.TargetProb)
	if e.HasReward {
		w.number("reward", e.Reward)
	}
	w.values("reward_components", e.RewardComponents)
	w.values("outcomes", e.Outcomes)
	w.ends(e)
	if len(e.Labels) > 0 {
		w.open("labels")
		for _, l := range e.Labels {
			w.text(l.Name, l.Value)
		}
		w.out = append(w.out, '}')
	}
	return append(w.out, '}')
}

// writer writes members of JSON objects.
type writer struct{ out []byte }

func (w *writer) name(name string) { w.out = jsontext.AppendKey(w.out, name) }

func (w *writer) open(name string) {
	w.name(name)
	w.out = append(w.out, '{')
}

func (w *writer) text(name, value string) {
	w.name(name)
	w.out = jsontext.AppendString(w.out, value)
}

func (w *writer) number(name string, x float64) {
	w.name(name)
	w.out = jsontext.AppendStrictNumber(w.out, x)
}

// raw writes a member as recorded. It returns false if there is none.
func (w *writer) raw(name string, value json.RawMessage) bool {
	if len(value) == 0 {
		return false
	}
	w.name(name)
	w.out = append(w.out, value...)
	return true
}

func (w *writer) prob(name string, p ingest.Prob) {
	if p.Known {
		w.number(name, p.P)
	}
}

func (w *writer) values(name string, values []ingest.Value) {
	if len(values) == 0 {
		return
	}
	w.open(name)
	for _, v := range values {
		w.number(v.Name, v.X)
	}
	w.out = append(w.out, '}')
}

// action writes a category as a string, and a number in a form that is not read as a category.
func (w *writer) action(a *ingest.Action) {
	switch {
	case a.Kind == ingest.ActionNone:
		return
	case a.Kind == ingest.ActionCategory && a.Scalar:
		w.name("action")
		w.out = append(w.out, a.Category...)
		return
	case a.Kind == ingest.ActionCategory:
		w.text("action", a.Category)
		return
	case a.Scalar:
		w.name("action")
		w.out = jsontext.AppendNumber(w.out, a.Values[0], 64) // not quoted, because a quoted NaN or infinity would be a category
		return
	}
	w.name("action")
	w.out = append(w.out, '[')
	for i, x := range a.Values {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		w.out = jsontext.AppendStrictNumber(w.out, x)
	}
	w.out = append(w.out, ']')
}

// ends writes the members that end an episode.
func (w *writer) ends(e *ingest.Event) {
	if e.Terminated {
		w.name("terminated")
		w.out = append(w.out, "true"...)
	}
	if e.Truncated {
		w.name("truncated")
		w.out = append(w.out, "true"...)
	}
	if !e.HasEpisode {
		return
	}
	w.open("episode")
	w.number("r", e.Return)
	if e.Length >= 0 {
		w.name("l")
		w.out = strconv.AppendInt(w.out, e.Length, 10)
	}
	w.out = append(w.out, '}')
}
