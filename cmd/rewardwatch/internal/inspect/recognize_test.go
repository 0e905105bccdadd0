package inspect

import (
	"encoding/binary"
	"fmt"
	"testing"

	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/protobuf/proto"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
	"github.com/rewardwatch/rewardwatch/ingest/protobuf/telemetrypb"
	"github.com/twmb/avro"
)

func marshal(t *testing.T, m proto.Message) string {
	t.Helper()
	text, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The proposed format is that of the messages' bytes.
func TestFormatsAreRecognized(t *testing.T) {
	registry := ingesttest.NewSchemaRegistry()
	t.Cleanup(registry.Close)
	const schema = `{"type":"record","name":"Step","fields":[{"name":"arm","type":"string"}]}`
	inAvro, err := avro.MustParse(schema).Encode(map[string]any{"arm": "a"})
	if err != nil {
		t.Fatal(err)
	}
	framed := string(append(binary.BigEndian.AppendUint32([]byte{0}, uint32(registry.Put("Step", "AVRO", schema))), inAvro...))
	event := marshal(t, &telemetrypb.Event{Policy: "p", Reward: new(1.5)})
	logs := marshal(t, &logspb.LogsData{ResourceLogs: []*logspb.ResourceLogs{{ScopeLogs: []*logspb.ScopeLogs{{LogRecords: []*logspb.LogRecord{{EventName: "step"}}}}}}})
	cloud := []ingest.Header{{Key: "ce_specversion", Value: []byte("1.0")}, {Key: "ce_type", Value: []byte("step")}, {Key: "ce_source", Value: []byte("x")}, {Key: "ce_id", Value: []byte("1")}}
	for name, c := range map[string]struct {
		value    string
		headers  []ingest.Header
		registry string
		format   string // empty for none
		record   string // the first record as JSON
	}{
		"JSON":                        {value: `{"arm":"a"}`, format: "json", record: `{"arm":"a"}`},
		"JSON on several lines":       {value: "{\"arm\":\n\"a\"}", format: "json", record: "{\"arm\":\n\"a\"}"},
		"lines of JSON":               {value: "{\"arm\":1}\n{\"arm\":2}", format: "json", record: "{\"arm\":1}\n{\"arm\":2}"},
		"a list":                      {value: `[{"arm":1}]`, format: "json", record: `[{"arm":1}]`},
		"a CloudEvent":                {value: `{"specversion":"1.0","type":"t","source":"s","id":"1","data":{"arm":1}}`, format: "cloudevents", record: `{"data":{"arm":1},"id":"1","source":"s","specversion":"1.0","type":"t"}` + "\n"},
		"a CloudEvent in binary mode": {value: `{"arm":1}`, headers: cloud, format: "cloudevents", record: `{"specversion":"1.0","type":"step","source":"x","id":"1","data":{"arm":1}}` + "\n"},
		"OTLP in JSON":                {value: `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"eventName":"step"}]}]}]}`, format: "otlp", record: `{"event_name":"step"}` + "\n"},
		"OTLP in Protobuf":            {value: logs, format: "otlp", record: `{"event_name":"step"}` + "\n"},
		"telemetry in Protobuf":       {value: event, format: "protobuf"},
		"Avro with a registry":        {value: framed, registry: registry.URL, format: "avro", record: `{"arm":"a"}`},
		"Avro without its registry":   {value: framed},
		"text":                        {value: "started"},
		"noise":                       {value: "\x93\x07\xff"},
	} {
		t.Run(name, func(t *testing.T) {
			messages := []ingest.Message{{Value: []byte(c.value), Headers: c.headers}, {Value: []byte(c.value), Headers: c.headers}}
			got, err := recognize(t.Context(), "topic", messages, c.registry)
			if err != nil || (got != nil) != (c.format != "") {
				t.Fatalf("%+v, %v", got, err)
			}
			if got == nil {
				return
			}
			record := ""
			if len(got.sample) > 0 {
				record = string(got.sample[0].Value)
			}
			if got.Format != c.format || record != c.record {
				t.Errorf("%s of %q, want %s of %q", got.Format, record, c.format, c.record)
			}
		})
	}
}

// A registry that cannot be reached is an error, and not a different format.
func TestARegistryOutOfReachIsAnError(t *testing.T) {
	messages := []ingest.Message{{Value: []byte("\x00\x00\x00\x00\x01abc")}}
	if got, err := recognize(t.Context(), "topic", messages, "http://127.0.0.1:1"); err == nil {
		t.Errorf("%+v", got)
	}
}

func TestEnoughMessagesAreKept(t *testing.T) {
	var kept []ingest.Message
	d := keeper{&kept}.NewDecoder(ingest.DecoderOptions{})
	for i := range keptMessages + 10 {
		d.Decode(nil, &ingest.Message{Value: []byte(fmt.Sprint(i))}, nil)
	}
	if len(kept) != keptMessages || string(kept[keptMessages-1].Value) != fmt.Sprint(keptMessages-1) {
		t.Errorf("%d messages", len(kept))
	}
	kept = nil
	d = keeper{&kept}.NewDecoder(ingest.DecoderOptions{})
	for range 20 {
		d.Decode(nil, &ingest.Message{Value: make([]byte, 1<<20)}, nil)
	}
	if len(kept) != keptBytes>>20 {
		t.Errorf("%d messages of 1 MiB", len(kept))
	}
}
