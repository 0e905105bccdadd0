package otlp

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// exported is a request in OTLP's JSON encoding, with the results of two evaluations and other log records.
const exported = `{"resourceLogs":[{
	"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}},{"key":"service.version","value":{"stringValue":"7"}},
		{"key":"deployment.environment.name","value":{"stringValue":"prod"}}]},
	"scopeLogs":[{"scope":{"name":"evals","version":"1"},"logRecords":[
		{"timeUnixNano":"1795168800123000000","observedTimeUnixNano":"1795168801000000000","severityNumber":9,"severityText":"INFO",
			"eventName":"gen_ai.evaluation.result","traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174",
			"body":{"stringValue":"two\nlines"},"attributes":[
			{"key":"gen_ai.evaluation.name","value":{"stringValue":"Relevance"}},
			{"key":"gen_ai.evaluation.score.value","value":{"doubleValue":4.5}},
			{"key":"gen_ai.evaluation.score.label","value":{"stringValue":"relevant"}},
			{"key":"gen_ai.agent.name","value":{"stringValue":"helper"}},
			{"key":"gen_ai.response.model","value":{"stringValue":"gpt-4-0613"}},
			{"key":"gen_ai.conversation.id","value":{"stringValue":"conv-1"}}]},
		{"observedTimeUnixNano":"1795168801000000000","traceId":"5B8EFFF798038103D269B633813FC60C","attributes":[
			{"key":"event.name","value":{"stringValue":"gen_ai.evaluation.result"}},
			{"key":"gen_ai.evaluation.score.value","value":{"intValue":"-1"}}]},
		{"eventName":"gen_ai.evaluation.result","attributes":[{"key":"gen_ai.evaluation.score.label","value":{"stringValue":"pass"}}]},
		{"body":{"kvlistValue":{"values":[{"key":"a","value":{"arrayValue":{"values":[{"intValue":"9223372036854775807"},{"boolValue":true},
			{"doubleValue":"NaN"},{"bytesValue":"AQL/"},{}]}}}]}}},
		{}
	]}]}]}`

// inBothForms returns the request in JSON and in Protobuf.
func inBothForms(t testing.TB) map[string][]byte {
	t.Helper()
	var logs logspb.LogsData
	if err := protojson.Unmarshal([]byte(exported), &logs); err != nil {
		t.Fatal(err)
	}
	for _, l := range logs.ResourceLogs[0].ScopeLogs[0].LogRecords {
		if len(l.TraceId) > 0 {
			l.TraceId = []byte("\x5b\x8e\xff\xf7\x98\x03\x81\x03\xd2\x69\xb6\x33\x81\x3f\xc6\x0c")
		}
		if len(l.SpanId) > 0 {
			l.SpanId = []byte("\xee\xe1\x9b\x7e\xc3\xc1\xb1\x74")
		}
	}
	value, err := proto.Marshal(&logs)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{"JSON": []byte(exported), "Protobuf": value}
}

const resource = `{"resource":{"service.name":"shop","service.version":"7","deployment.environment.name":"prod"},"scope":{"name":"evals","version":"1"}`

const records = resource + `,"time_unix_nano":1795168800123000000,"observed_time_unix_nano":1795168801000000000,"severity":"INFO","severity_number":9,` +
	`"event_name":"gen_ai.evaluation.result","body":"two\nlines","attributes":{"gen_ai.evaluation.name":"Relevance","gen_ai.evaluation.score.value":4.5,` +
	`"gen_ai.evaluation.score.label":"relevant","gen_ai.agent.name":"helper","gen_ai.response.model":"gpt-4-0613","gen_ai.conversation.id":"conv-1"},` +
	`"trace_id":"5b8efff798038103d269b633813fc60c","span_id":"eee19b7ec3c1b174"}` + "\n" +
	resource + `,"observed_time_unix_nano":1795168801000000000,"event_name":"gen_ai.evaluation.result","attributes":{"event.name":"gen_ai.evaluation.result",` +
	`"gen_ai.evaluation.score.value":-1},"trace_id":"5b8efff798038103d269b633813fc60c"}` + "\n" +
	resource + `,"event_name":"gen_ai.evaluation.result","attributes":{"gen_ai.evaluation.score.label":"pass"}}` + "\n" +
	resource + `,"body":{"a":[9223372036854775807,true,NaN,"AQL/",null]}}` + "\n" +
	resource + "}\n"

const evaluations = `{"ts":1795168800123000000,"policy":"helper","policy_version":"gpt-4-0613","env":"prod","agent_id":"conv-1","reward":4.5,` +
	`"outcomes":{"Relevance":4.5},"labels":{"evaluation":"Relevance","evaluation_label":"relevant"}}` + "\n" +
	`{"ts":1795168801000000000,"policy":"shop","policy_version":"7","env":"prod","agent_id":"5b8efff798038103d269b633813fc60c","reward":-1,"labels":{}}` + "\n"

func TestConvert(t *testing.T) {
	for form, value := range inBothForms(t) {
		m := &ingest.Message{Pos: ingest.Position{Offset: 7}, Value: value}
		got, err := Converter{Limit: 1 << 20}.Convert(nil, m)
		if err != nil || string(got) != records {
			t.Errorf("%s: %v\n got %s\nwant %s", form, err, got, records)
		}
		left := 0
		results := Converter{Limit: 1 << 20, Evaluations: true, LeftOut: func(pos ingest.Position) {
			if left++; pos != m.Pos {
				t.Errorf("left out at %s", pos)
			}
		}}
		got, err = results.Convert(nil, m)
		if err != nil || string(got) != evaluations || left != 3 {
			t.Errorf("%s: %v, %d left out\n got %s\nwant %s", form, err, left, got, evaluations)
		}
	}
}

func TestEvaluationsAreTelemetry(t *testing.T) {
	d := telemetry.V1{}.NewDecoder(ingest.DecoderOptions{MaxRecord: ingest.DefaultMaxRecord})
	events := d.Decode(nil, &ingest.Message{Value: []byte(evaluations)}, func(e *ingest.RecordError, _ []byte) { t.Error(e) })
	if len(events) != 2 || events[0].TS != 1795168800123e6 || events[0].Policy != "helper" || events[0].Outcomes[0].X != 4.5 || events[1].Reward != -1 {
		t.Errorf("%+v", events)
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name, value string
		reason      ingest.Reason
	}{
		{"nothing", "", ingest.ReasonEmptyRecord},
		{"other JSON", `[1]`, ingest.ReasonBadEncoding},
		{"JSON of another kind", `{"resourceLogs":1}`, ingest.ReasonBadEncoding},
		{"broken off", "\x0a\x05\x01", ingest.ReasonBadEncoding},
		{"long", `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"` + strings.Repeat("x", 100) + `"}}]}]}]}`, ingest.ReasonTooLarge},
	} {
		got, err := Converter{Limit: 100}.Convert([]byte("before"), &ingest.Message{Value: []byte(c.value)})
		if err == nil || err.Reason != c.reason || err.Size != int64(len(c.value)) || string(got) != "before" {
			t.Errorf("%s: %q %+v, want %s", c.name, got, err, c.reason)
		}
	}
}

// The attributes of a resource apply to all its log records. Many of them must not be searched for every record.
func TestManyAttributesOfAResource(t *testing.T) {
	resource := resourcepb.Resource{Attributes: []*commonpb.KeyValue{{Key: "service.name", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: "shop"}}}}}
	for range 80_000 {
		resource.Attributes = append(resource.Attributes, &commonpb.KeyValue{})
	}
	score := &commonpb.KeyValue{Key: "gen_ai.evaluation.score.value", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: 1}}}
	var scope logspb.ScopeLogs
	for range 7000 {
		scope.LogRecords = append(scope.LogRecords, &logspb.LogRecord{EventName: evaluationEvent, Attributes: []*commonpb.KeyValue{score}})
	}
	value, err := proto.Marshal(&logspb.LogsData{ResourceLogs: []*logspb.ResourceLogs{{Resource: &resource, ScopeLogs: []*logspb.ScopeLogs{&scope}}}})
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	got, refused := Converter{Limit: 1 << 20, Evaluations: true}.Convert(nil, &ingest.Message{Value: value})
	if refused != nil || strings.Count(string(got), `"policy":"shop"`) != 7000 {
		t.Errorf("%v, %.100s", refused, got)
	}
	if took := time.Since(begun); took > 3*time.Second { // it takes .05 s, and took half a minute
		t.Errorf("took %s", took)
	}
}

// A record that is nested too deeply is left to the decoder, which refuses it. The others are read.
func TestDeepValues(t *testing.T) {
	deep := &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: math.Pi}}
	for range 10 * ingest.MaxDepth {
		deep = &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: &commonpb.ArrayValue{Values: []*commonpb.AnyValue{deep}}}}
	}
	value, err := proto.Marshal(&logspb.LogsData{ResourceLogs: []*logspb.ResourceLogs{{ScopeLogs: []*logspb.ScopeLogs{{LogRecords: []*logspb.LogRecord{{Body: deep}}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	lines, refused := Converter{Limit: 1 << 20}.Convert(nil, &ingest.Message{Value: value})
	if refused != nil {
		t.Fatal(refused)
	}
	var reasons []ingest.Reason
	telemetry.V1{}.NewDecoder(ingest.DecoderOptions{MaxRecord: 1 << 20}).Decode(nil, &ingest.Message{Value: lines}, func(e *ingest.RecordError, _ []byte) {
		reasons = append(reasons, e.Reason)
	})
	if len(reasons) != 1 || reasons[0] != ingest.ReasonTooDeep {
		t.Errorf("%s: %v", lines, reasons)
	}
}

// FuzzConvert reads random requests. The output must be JSON, with one line per log record.
func FuzzConvert(f *testing.F) {
	for _, value := range inBothForms(f) {
		f.Add(value)
	}
	words := strings.NewReplacer("NaN", "0", "-Infinity", "0", "Infinity", "0")
	f.Fuzz(func(t *testing.T, value []byte) {
		m := &ingest.Message{Value: value}
		left := 0
		all, err := Converter{Limit: 1 << 20}.Convert(nil, m)
		results, also := Converter{Limit: 1 << 20, Evaluations: true, LeftOut: func(ingest.Position) { left++ }}.Convert(nil, m)
		if err != nil || also != nil {
			return
		}
		for _, lines := range [][]byte{all, results} {
			for line := range strings.Lines(string(lines)) {
				if !json.Valid([]byte(words.Replace(line))) {
					t.Errorf("%q is not JSON", line)
				}
			}
		}
		if a, r := strings.Count(string(all), "\n"), strings.Count(string(results), "\n"); a != r+left {
			t.Errorf("%d log records, %d results and %d left out", a, r, left)
		}
	})
}
