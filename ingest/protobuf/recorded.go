package protobuf

import (
	"encoding/json"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/jsontext"
)

// asRecorded returns the values that the event omits or contains only in part, as JSON of telemetry version 1.
func (d *decoder) asRecorded(ev *ingest.Event) *ingest.AsRecorded {
	r := &ingest.AsRecorded{Action: d.recordedAction(&ev.Action)}
	if ev.ActionProb.Known {
		r.ActionProb = jsontext.AppendStrictNumber(nil, ev.ActionProb.P)
	}
	r.Observation = recordedValues(ev.Observation, d.record.observed == fieldArray)
	r.NextObservation = recordedValues(d.record.nextValues, d.record.next == fieldNextArray)
	return r
}

func (d *decoder) recordedAction(a *ingest.Action) json.RawMessage {
	switch {
	case a.Kind == ingest.ActionNone:
		return nil
	case d.record.action == fieldFlag:
		return json.RawMessage(a.Category)
	case d.record.action == fieldCategory:
		return jsontext.AppendString(nil, a.Category)
	case a.Kind == ingest.ActionCategory:
		return json.RawMessage(a.Category) // digits of an integer
	case a.Scalar:
		return jsontext.AppendStrictNumber(nil, a.Values[0])
	}
	out := []byte{'['}
	for _, x := range a.Values {
		out = jsontext.AppendStrictNumber(jsontext.AppendComma(out), x)
	}
	return append(out, ']')
}

// recordedValues returns the numbers of an observation, or nil if there are none.
func recordedValues(vs []ingest.Value, array bool) json.RawMessage {
	switch {
	case len(vs) == 0:
		return nil
	case array:
		out := []byte{'['}
		for i := range vs {
			out = jsontext.AppendStrictNumber(jsontext.AppendComma(out), vs[i].X)
		}
		return append(out, ']')
	}
	out := []byte{'{'}
	for i := range vs {
		out = jsontext.AppendStrictNumber(jsontext.AppendKey(out, vs[i].Name), vs[i].X)
	}
	return append(out, '}')
}
