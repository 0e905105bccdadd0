package format

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
	"github.com/rewardwatch/rewardwatch/ingest/mapping"
	"github.com/rewardwatch/rewardwatch/ingest/protobuf/telemetrypb"
	"github.com/rewardwatch/rewardwatch/ingest/registry"
	"github.com/twmb/avro"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// problems returns what Check reports.
func problems(t Topic) (found []string) {
	t.Check(func(path, msg string) { found = append(found, path+": "+msg) })
	return found
}

// decoder returns the decoder of a topic.
func decoder(t *testing.T, topic Topic) ingest.Decoder {
	t.Helper()
	if found := problems(topic); len(found) > 0 {
		t.Fatal(found)
	}
	format, err := topic.Open()
	if err != nil {
		t.Fatal(err)
	}
	return format.NewDecoder(ingest.DecoderOptions{MaxRecord: ingest.DefaultMaxRecord})
}

// decode prepares and decodes a message. It returns its events and the reasons why others are refused.
func decode(t *testing.T, d ingest.Decoder, m *ingest.Message) (events []ingest.Event, refused []ingest.RecordError) {
	t.Helper()
	if err := ingest.Prepare(t.Context(), d, m); err != nil {
		t.Fatal(err)
	}
	d.Reset()
	events = d.Decode(nil, m, func(e *ingest.RecordError, raw []byte) {
		if !bytes.Equal(raw, m.Value) {
			t.Errorf("refused %q of %q", raw, m.Value)
		}
		refused = append(refused, *e)
	})
	return events, refused
}

func TestCheck(t *testing.T) {
	with := func(format string, s Schema) Topic { return Topic{Topic: "t", Format: format, Schema: s} }
	registered := registry.Config{URL: "http://registry"}
	for _, c := range []struct {
		topic Topic
		want  []string
	}{
		{Topic{Topic: "t"}, nil},
		{with("", Schema{Registry: registered}), nil},
		{with(Protobuf, Schema{}), nil},
		{with(Protobuf, Schema{Registry: registered}), nil},
		{with(Protobuf, Schema{DescriptorSet: "d", Message: "m"}), nil},
		{with(Avro, Schema{File: "f"}), nil},
		{with(Avro, Schema{Registry: registered}), nil},
		{with(CloudEvents, Schema{}), nil},
		{with(OTLP, Schema{}), nil},
		{Topic{Topic: "t", Format: Protobuf, Mapping: fields(map[string]string{"policy": "p", "reward": "r"})}, []string{
			"mapping: cannot be set for protobuf without a schema, because the messages are telemetry v1",
		}},
		{Topic{Topic: "a b", Format: "xml", Schema: Schema{File: "f"}}, []string{
			"topic: must be 1 to 249 letters, digits, dots, underscores and hyphens",
			"format: must be one of json, protobuf, avro, cloudevents, otlp",
		}},
		{with(JSON, Schema{File: "f", Message: "m"}), []string{
			"schema.file: can only be set if format is avro", "schema.descriptor_set: can only be set if format is protobuf",
		}},
		{with(OTLP, Schema{Registry: registry.Config{URL: "registry"}}), []string{
			"schema.registry.url: must be a URL such as https://registry.example:8081",
			"schema.registry: can only be set if format is avro, json or protobuf",
		}},
		{with(Avro, Schema{}), []string{"schema.file: either file or registry must be set if format is avro"}},
		{with(Avro, Schema{File: "f", Registry: registered}), []string{"schema.file: either file or registry must be set if format is avro"}},
		{with(Protobuf, Schema{DescriptorSet: "d"}), []string{"schema.message: must be set together with descriptor_set"}},
		{with(Protobuf, Schema{DescriptorSet: "d", Message: "m", Registry: registered}), []string{
			"schema.descriptor_set: cannot be combined with registry, which provides the schemas",
		}},
	} {
		if got := problems(c.topic); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.topic, got, c.want)
		}
	}
}

// Log records that neither a mapping nor the built-in one matches are skipped and counted.
func TestLeftOut(t *testing.T) {
	format, err := Topic{Topic: "t", Format: OTLP}.Open()
	if err != nil {
		t.Fatal(err)
	}
	left := 0
	d := format.NewDecoder(ingest.DecoderOptions{MaxRecord: ingest.DefaultMaxRecord, LeftOut: func(ingest.Position) { left++ }})
	events, refused := decode(t, d, &ingest.Message{Value: []byte(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{},{}]}]}]}`)})
	if len(events)+len(refused) > 0 || left != 2 {
		t.Errorf("%d events, %v, %d left out", len(events), refused, left)
	}
}

// fields maps fields of telemetry version 1 to the given paths.
func fields(paths map[string]string) mapping.Config {
	c := mapping.Config{Fields: map[string]mapping.Field{}}
	for name, path := range paths {
		c.Fields[name] = mapping.Field{Source: mapping.Source{Path: path}}
	}
	return c
}

// A mapping reads messages in every format, including attributes.
func TestMappings(t *testing.T) {
	server := start(t)
	proto2, err := os.ReadFile("../protobuf/telemetry.proto")
	if err != nil {
		t.Fatal(err)
	}
	id := server.Put("telemetry.proto", "PROTOBUF", string(proto2))
	for _, c := range []struct {
		topic Topic
		m     *ingest.Message
	}{
		{
			Topic{Format: CloudEvents, Mapping: fields(map[string]string{"policy": "type", "reward": "data.score"})},
			&ingest.Message{Value: []byte(`{"type":"p","data":{"score":1}}`)},
		},
		{
			Topic{Format: OTLP, Mapping: fields(map[string]string{"policy": `resource["service.name"]`, "reward": `attributes["score"]`})},
			&ingest.Message{Value: []byte(`{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"p"}}]},` +
				`"scopeLogs":[{"logRecords":[{"attributes":[{"key":"score","value":{"intValue":"1"}}]}]}]}]}`)},
		},
		{
			Topic{
				Format: Protobuf, Schema: Schema{Registry: registry.Config{URL: server.URL}},
				Mapping: fields(map[string]string{"policy": "policy", "reward": "reward"}),
			},
			&ingest.Message{Value: framedWith(id, "\x02\x00"+eventInProtobuf)},
		},
	} {
		c.topic.Topic = "t"
		events, refused := decode(t, decoder(t, c.topic), c.m)
		if len(events) != 1 || events[0].Policy != "p" || events[0].Reward != 1 {
			t.Errorf("%+v: %+v %v", c.topic, events, refused)
		}
	}
}

func TestOpenLines(t *testing.T) {
	registered := Schema{Registry: registry.Config{URL: "http://r"}}
	for _, topic := range []Topic{{}, {Schema: registered}, {Format: Protobuf}, {Format: Avro, Schema: Schema{File: "missing.avsc"}}} {
		lines, err := topic.OpenLines()
		if err != nil {
			t.Fatal(err)
		}
		d := lines.NewDecoder(ingest.DecoderOptions{MaxRecord: ingest.DefaultMaxRecord})
		if events, refused := decode(t, d, &ingest.Message{Value: []byte(`{"policy":"p","reward":1}`)}); len(events) != 1 {
			t.Errorf("%+v: %v", topic, refused)
		}
	}
}

func TestIsJSON(t *testing.T) {
	for topic, want := range map[*Topic]bool{
		{}:             true,
		{Format: JSON}: true,
		{Schema: Schema{Registry: registry.Config{URL: "http://r"}}}: false,
		{Format: OTLP}: false,
	} {
		if got := topic.IsJSON(); got != want {
			t.Errorf("%+v: %t", topic, got)
		}
	}
}

// stepSchema is an Avro schema of telemetry version 1 with a policy and a reward.
const stepSchema = `{"type":"record","name":"Step","fields":[{"name":"policy","type":"string"},{"name":"reward","type":["null","double"]}]}`

func stepInAvro(t *testing.T, policy string, reward float64) []byte {
	t.Helper()
	value, err := avro.MustParse(stepSchema).Encode(map[string]any{"policy": policy, "reward": reward})
	if err != nil {
		t.Fatal(err)
	}
	return value
}

const stepProto = `syntax = "proto3"; package shop; message Other { string name = 1; } message Step { string policy = 1; double reward = 2; }`

// stepInProtobuf is a shop.Step.
const stepInProtobuf = "\x0a\x01p\x11\x00\x00\x00\x00\x00\x00\xf0\x3f"

// eventInProtobuf is an Event of telemetry.proto.
const eventInProtobuf = "\x12\x01p\x39\x00\x00\x00\x00\x00\x00\xf0\x3f"

// framedWith prefixes a message with the ID of a schema.
func framedWith(id int, value string) []byte { return append([]byte{0, 0, 0, 0, byte(id)}, value...) }

func write(t *testing.T, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func start(t *testing.T) *ingesttest.SchemaRegistry {
	t.Helper()
	server := ingesttest.NewSchemaRegistry()
	t.Cleanup(server.Close)
	return server
}

// TestFormats decodes the same event in every format, with every kind of schema.
func TestFormats(t *testing.T) {
	proto2, err := os.ReadFile("../protobuf/telemetry.proto")
	if err != nil {
		t.Fatal(err)
	}
	set, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{
		protodesc.ToFileDescriptorProto(telemetrypb.File_telemetry_proto),
	}})
	if err != nil {
		t.Fatal(err)
	}
	server := start(t)
	inAvro, inProto := server.Put("step", "AVRO", stepSchema), server.Put("step.proto", "PROTOBUF", stepProto)
	telemetry := server.Put("telemetry.proto", "PROTOBUF", string(proto2))
	registered := Schema{Registry: registry.Config{URL: server.URL}}
	const step = `{"policy":"p","reward":1}`
	for _, c := range []struct {
		name, format string
		schema       Schema
		value        []byte
	}{
		{"json", "", Schema{}, []byte(step)},
		{"framed json", JSON, registered, framedWith(9, step)},
		{"telemetry.proto", Protobuf, Schema{}, []byte(eventInProtobuf)},
		{"protobuf by a descriptor set", Protobuf, Schema{DescriptorSet: write(t, "set.pb", set), Message: "rewardwatch.telemetry.v1.Event"}, []byte(eventInProtobuf)},
		{"framed protobuf", Protobuf, registered, framedWith(inProto, "\x02\x02"+stepInProtobuf)},
		{"framed telemetry.proto", Protobuf, registered, framedWith(telemetry, "\x00"+eventInProtobuf)},
		{"framed telemetry.proto with several", Protobuf, registered, framedWith(telemetry, "\x02\x02\x0a\x0c"+eventInProtobuf)},
		{"avro by a file", Avro, Schema{File: write(t, "step.avsc", []byte(stepSchema))}, stepInAvro(t, "p", 1)},
		{"framed avro", Avro, registered, framedWith(inAvro, string(stepInAvro(t, "p", 1)))},
		{"cloudevents", CloudEvents, Schema{}, []byte(`{"specversion":"1.0","data":` + step + `}`)},
		{"otlp", OTLP, Schema{}, []byte(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"eventName":"gen_ai.evaluation.result","attributes":[` +
			`{"key":"gen_ai.agent.name","value":{"stringValue":"p"}},{"key":"gen_ai.evaluation.score.value","value":{"doubleValue":1}}]}]}]}]}`)},
	} {
		d := decoder(t, Topic{Topic: "t", Format: c.format, Schema: c.schema})
		for range 2 {
			events, refused := decode(t, d, &ingest.Message{Value: c.value})
			if len(events) != 1 || events[0].Policy != "p" || events[0].Reward != 1 {
				t.Errorf("%s: %+v %v", c.name, events, refused)
			}
		}
	}
}

// Each poison record becomes a dead letter with its reason, and the next record is read.
func TestPoisonRecords(t *testing.T) {
	server := start(t)
	inAvro, inProto := server.Put("step", "AVRO", stepSchema), server.Put("step.proto", "PROTOBUF", stepProto)
	bad := server.Put("bad", "AVRO", `{"type":"nothing"}`)
	badProto := server.Put("bad.proto", "PROTOBUF", `message {`)
	registered := Schema{Registry: registry.Config{URL: server.URL}}
	good := string(stepInAvro(t, "p", 1))
	for _, c := range []struct {
		format, value, good string
		reason              ingest.Reason
		column              int
		msg                 string
	}{
		{Avro, "\x00\x00\x00", string(framedWith(inAvro, good)), ingest.ReasonBadEncoding, 0, "this one has only 3 bytes"},
		{Avro, good, string(framedWith(inAvro, good)), ingest.ReasonBadEncoding, 0, "this one starts with 0x02"},
		{Avro, string(framedWith(99, good)), string(framedWith(inAvro, good)), ingest.ReasonUnknownSchema, 0, "has no schema 99"},
		{Avro, string(framedWith(bad, good)), string(framedWith(inAvro, good)), ingest.ReasonUnknownSchema, 0, "parse the Avro schema: unknown"},
		{Avro, string(framedWith(inProto, good)), string(framedWith(inAvro, good)), ingest.ReasonUnknownSchema, 0, "requires AVRO"},
		{Avro, string(framedWith(inAvro, good[:3])), string(framedWith(inAvro, good)), ingest.ReasonBadEncoding, 9, "ends inside a value"},
		{Avro, string(framedWith(inAvro, string(stepInAvro(t, "", 1)))), string(framedWith(inAvro, good)), ingest.ReasonMissingPolicy, 0, "must have a policy"},
		{Avro, string(framedWith(inAvro, string(stepInAvro(t, "a\x00", 1)))), string(framedWith(inAvro, good)), ingest.ReasonNUL, 0, "(column 11 as JSON)"},
		{Protobuf, string(framedWith(badProto, "\x00")), string(framedWith(inProto, "\x02\x02"+stepInProtobuf)), ingest.ReasonUnknownSchema, 0, "compile the Protobuf schema"},
		{Protobuf, string(framedWith(inProto, "\x02\x04")), string(framedWith(inProto, "\x02\x02"+stepInProtobuf)), ingest.ReasonBadEncoding, 0, "the schema does not contain this message"},
		{Protobuf, string(framedWith(inProto, "\x02\x02\xff")), string(framedWith(inProto, "\x02\x02"+stepInProtobuf)), ingest.ReasonBadEncoding, 0, "shop.Step: "},
		{JSON, `{"policy":"p","reward":1}`, string(framedWith(1, `{"policy":"p","reward":1}`)), ingest.ReasonBadEncoding, 0, "starts with 0x7b"},
		{JSON, string(framedWith(1, "")), string(framedWith(1, `{"policy":"p","reward":1}`)), ingest.ReasonEmptyRecord, 0, "no record"},
	} {
		d := decoder(t, Topic{Topic: "t", Format: c.format, Schema: registered})
		m := &ingest.Message{Pos: ingest.Position{Partition: 2, Offset: 7}, Value: []byte(c.value)}
		events, refused := decode(t, d, m)
		if len(events) > 0 || len(refused) != 1 {
			t.Errorf("%s %q: %d events, refused %+v", c.format, c.value, len(events), refused)
			continue
		}
		e := refused[0]
		if e.Reason != c.reason || e.Column != c.column || !strings.Contains(e.Msg, c.msg) || e.Pos != m.Pos || e.Size != int64(len(c.value)) {
			t.Errorf("%s %q: refused %+v, want %s at %d: %s", c.format, c.value, e, c.reason, c.column, c.msg)
		}
		if events, refused := decode(t, d, &ingest.Message{Value: []byte(c.good)}); len(events) != 1 {
			t.Errorf("%s: after it: %v", c.format, refused)
		}
	}
}

func TestARegistryThatIsDownIsWaitedFor(t *testing.T) {
	server := start(t)
	id := server.Put("step", "AVRO", stepSchema)
	d := decoder(t, Topic{Topic: "t", Format: Avro, Schema: Schema{Registry: registry.Config{URL: server.URL}}})
	m := &ingest.Message{Value: framedWith(id, string(stepInAvro(t, "p", 1)))}
	server.Fail(503)
	if err := ingest.Prepare(t.Context(), d, m); err == nil || !strings.Contains(err.Error(), "fetch schema 1 from the schema registry") {
		t.Error(err)
	}
	server.Fail(0)
	if events, refused := decode(t, d, m); len(events) != 1 {
		t.Error(refused)
	}
}

func TestOpenNamesTheTopicAndTheFile(t *testing.T) {
	for _, c := range []struct {
		format string
		schema Schema
		want   string
	}{
		{Avro, Schema{File: "missing.avsc"}, "topic t: read the Avro schema: open missing.avsc"},
		{Avro, Schema{File: write(t, "bad.avsc", []byte("{"))}, "bad.avsc: parse the Avro schema"},
		{Protobuf, Schema{DescriptorSet: "missing.pb", Message: "m"}, "topic t: read the descriptor set: open missing.pb"},
		{Avro, Schema{Registry: registry.Config{URL: "http://r", CAFile: "missing.pem"}}, "topic t: read the CA certificate for the schema registry"},
	} {
		if _, err := (Topic{Topic: "t", Format: c.format, Schema: c.schema}).Open(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// A message that would become much longer as JSON is refused before it uses the memory.
func TestExpansionIsBounded(t *testing.T) {
	file := write(t, "s.avsc", []byte(`{"type":"record","name":"R","fields":[{"name":"policy","type":"string"},{"name":"reward","type":"int"},{"name":"x","type":{"type":"array","items":"null"}}]}`))
	topic := Topic{Topic: "t", Format: Avro, Schema: Schema{File: file}}
	for value, want := range map[string]string{
		"\x02p\x02\xd0\x0f\x00":                                       "",          // 1,000 items
		"\x02p\x02\xfe\xff\xff\xff\xff\xff\xff\xff\x7f\x00":           "too_large", // 2^61
		base64.StdEncoding.EncodeToString(make([]byte, 100)) + "\x00": "bad_encoding",
	} {
		events, refused := decode(t, decoder(t, topic), &ingest.Message{Value: []byte(value)})
		if want == "" && len(events) != 1 || want != "" && (len(refused) != 1 || string(refused[0].Reason) != want) {
			t.Errorf("%q: %d events, %v, want %q", value, len(events), refused, want)
		}
	}
}
