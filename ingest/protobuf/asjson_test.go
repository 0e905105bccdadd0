package protobuf

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/jsontext"
	"github.com/rewardwatch/rewardwatch/ingest/protobuf/telemetrypb"
	"github.com/rewardwatch/rewardwatch/ingest/telemetry"
)

// asJSON writes an event as telemetry version 1 in JSON. It reads the message only through the generated code.
func asJSON(e *telemetrypb.Event) []byte {
	out := []byte{'{'}
	text := func(name, value string) {
		if value != "" {
			out = jsontext.AppendString(jsontext.AppendKey(out, name), value)
		}
	}
	raw := func(name, value string) { out = append(jsontext.AppendKey(out, name), value...) }
	number := func(x float64) string { return string(jsontext.AppendNumber(nil, x, 64)) }
	switch {
	case e.Ts > 0:
		text("ts", time.Unix(0, e.Ts).UTC().Format(time.RFC3339Nano))
	case e.Ts < 0:
		raw("ts", strconv.FormatInt(e.Ts, 10))
	}
	text("policy", e.Policy)
	text("agent_id", e.AgentId)
	text("episode_id", e.EpisodeId)
	text("env", e.Env)
	text("policy_version", e.PolicyVersion)
	text("env_version", e.EnvVersion)
	text("reward_version", e.RewardVersion)
	if e.Step != nil {
		raw("step", strconv.FormatInt(*e.Step, 10))
	}
	if e.Reward != nil {
		raw("reward", number(*e.Reward))
	}
	raw("terminated", strconv.FormatBool(e.Terminated))
	raw("truncated", strconv.FormatBool(e.Truncated))
	switch a := e.Action.(type) {
	case *telemetrypb.Event_ActionCategory:
		out = jsontext.AppendString(jsontext.AppendKey(out, "action"), a.ActionCategory)
	case *telemetrypb.Event_ActionIndex:
		raw("action", strconv.FormatInt(a.ActionIndex, 10))
	case *telemetrypb.Event_ActionNumber:
		raw("action", number(a.ActionNumber))
	case *telemetrypb.Event_ActionFlag:
		raw("action", strconv.FormatBool(a.ActionFlag))
	case *telemetrypb.Event_ActionVector:
		raw("action", array(a.ActionVector.GetValues()))
	}
	object := func(name string, m map[string]float64) {
		if len(m) > 0 {
			out = append(jsontext.AppendKey(out, name), '{')
			for _, k := range slices.Sorted(maps.Keys(m)) {
				out = jsontext.AppendNumber(jsontext.AppendKey(out, k), m[k], 64)
			}
			out = append(out, '}')
		}
	}
	object("observation", e.Observation)
	if len(e.ObservationArray) > 0 {
		raw("observation", array(e.ObservationArray))
	}
	object("reward_components", e.RewardComponents)
	object("outcomes", e.Outcomes)
	object("next_observation", e.NextObservation)
	if len(e.NextObservationArray) > 0 {
		raw("next_observation", array(e.NextObservationArray))
	}
	if len(e.Labels) > 0 {
		out = append(jsontext.AppendKey(out, "labels"), '{')
		for _, k := range slices.Sorted(maps.Keys(e.Labels)) {
			out = jsontext.AppendString(jsontext.AppendKey(out, k), e.Labels[k])
		}
		out = append(out, '}')
	}
	if e.Episode != nil {
		out = append(jsontext.AppendKey(out, "episode"), '{')
		if e.Episode.R != nil {
			raw("r", number(*e.Episode.R))
		}
		if e.Episode.L != nil {
			raw("l", strconv.FormatInt(*e.Episode.L, 10))
		}
		out = append(out, '}')
	}
	if e.ActionProb != nil {
		raw("action_prob", number(*e.ActionProb))
	}
	if e.TargetProb != nil {
		raw("target_prob", number(*e.TargetProb))
	}
	return append(out, '}')
}

func array(xs []float64) string {
	out := []byte{'['}
	for _, x := range xs {
		out = jsontext.AppendNumber(jsontext.AppendComma(out), x, 64)
	}
	return string(append(out, ']'))
}

// same formats an event so that equal events have equal texts: maps are unordered.
func same(e ingest.Event) string {
	byName := func(a, b ingest.Value) int { return cmp.Compare(a.Name, b.Name) }
	for _, vs := range [][]ingest.Value{e.RewardComponents, e.Observation, e.Outcomes} {
		slices.SortFunc(vs, byName)
	}
	slices.SortFunc(e.Labels, func(a, b ingest.Label) int { return cmp.Compare(a.Name, b.Name) })
	e.Pos, e.AsRecorded = ingest.Position{}, nil
	return strings.ReplaceAll(fmt.Sprintf("%+v", e), "[]ingest.Value(nil)", "[]")
}

// decode returns the events of a message and the reasons why others are refused.
func decode(format ingest.Format, value []byte) (events []ingest.Event, refused []ingest.RecordError) {
	d := format.NewDecoder(ingest.DecoderOptions{MaxRecord: ingest.DefaultMaxRecord})
	events = d.Decode(nil, &ingest.Message{Value: value}, func(e *ingest.RecordError, _ []byte) { refused = append(refused, *e) })
	return events, refused
}

// viaJSON decodes an event with the generated code and via telemetry version 1 in JSON.
func viaJSON(e *telemetrypb.Event) (event string, reason ingest.Reason) {
	events, refused := decode(telemetry.V1{}, asJSON(e))
	if len(refused) > 0 {
		return "", refused[0].Reason
	}
	return same(events[0]), ""
}
