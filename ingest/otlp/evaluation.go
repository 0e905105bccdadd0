package otlp

import (
	"strconv"

	"github.com/rewardwatch/rewardwatch/ingest/jsontext"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
)

// evaluationEvent is the name of the event that reports the result of an evaluation, with the attributes below, in the
// semantic conventions of OpenTelemetry for generative AI
// (https://github.com/open-telemetry/semantic-conventions-genai/blob/main/model/gen-ai/events.yaml).
const evaluationEvent = "gen_ai.evaluation.result"

// evaluation writes the result of an evaluation as telemetry version 1. It returns false, and writes nothing, for any
// other log record and for a result without a score.
//
// The policy is the agent, the requested model or the service, whichever exists first. The version is that of the
// agent, the responding model or the version of the service. The agent is the conversation or, if there is none, the
// trace. The score is the reward, and also an outcome with the name of the evaluation. The labels are this name, and
// the label that the evaluator gave to the score. There is no episode, because nothing indicates the end of a
// conversation.
func (w *writer) evaluation(l logRecord) bool {
	if l.name() != evaluationEvent {
		return false
	}
	score, ok := numberOf(l.Attributes, "gen_ai.evaluation.score.value")
	if !ok {
		return false
	}
	w.dst = append(w.dst, '{')
	if at := l.time(); at != 0 {
		w.dst = strconv.AppendUint(jsontext.AppendKey(w.dst, "ts"), at, 10)
	}
	w.text("policy", first(stringOf(l.Attributes, "gen_ai.agent.name", "gen_ai.request.model"), l.from.policy))
	w.text("policy_version", first(stringOf(l.Attributes, "gen_ai.agent.version", "gen_ai.response.model"), l.from.version))
	w.text("env", l.from.env)
	w.text("agent_id", first(stringOf(l.Attributes, "gen_ai.conversation.id"), w.id(l.TraceId)))
	w.dst = jsontext.AppendNumber(jsontext.AppendKey(w.dst, "reward"), score, 64)
	name := stringOf(l.Attributes, "gen_ai.evaluation.name")
	if name != "" {
		w.dst = append(jsontext.AppendKey(w.dst, "outcomes"), '{')
		w.dst = jsontext.AppendNumber(jsontext.AppendKey(w.dst, name), score, 64)
		w.dst = append(w.dst, '}')
	}
	w.dst = append(jsontext.AppendKey(w.dst, "labels"), '{')
	w.text("evaluation", name)
	w.text("evaluation_label", stringOf(l.Attributes, "gen_ai.evaluation.score.label"))
	w.dst = append(w.dst, "}}\n"...)
	return true
}

// origin contains the values that a resource provides for all of its log records. They are read only once, because a
// resource may have as many attributes as log records.
type origin struct{ policy, version, env string }

func originOf(resource []*commonpb.KeyValue) origin {
	return origin{
		policy:  stringOf(resource, "gen_ai.agent.name", "service.name"),
		version: stringOf(resource, "service.version"),
		env:     stringOf(resource, "deployment.environment.name", "deployment.environment"),
	}
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// numberOf returns the attribute with the given name if it is a number.
func numberOf(of []*commonpb.KeyValue, name string) (x float64, ok bool) {
	for _, kv := range of {
		if kv.GetKey() != name {
			continue
		}
		switch v := kv.GetValue().GetValue().(type) {
		case *commonpb.AnyValue_DoubleValue:
			return v.DoubleValue, true
		case *commonpb.AnyValue_IntValue:
			return float64(v.IntValue), true
		}
	}
	return 0, false
}
