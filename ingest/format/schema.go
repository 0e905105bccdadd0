package format

import (
	"context"
	"fmt"
	"os"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/avro"
	"github.com/rewardwatch/rewardwatch/ingest/protobuf"
	"github.com/rewardwatch/rewardwatch/ingest/registry"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Schema configures the schema of messages.
type Schema struct {
	File          string          `yaml:"file"`           // Avro schema (`.avsc`)
	DescriptorSet string          `yaml:"descriptor_set"` // Protobuf descriptor file, written by `protoc --include_imports --descriptor_set_out`
	Message       string          `yaml:"message"`        // full name of the Protobuf message, such as `shop.Step`
	Registry      registry.Config `yaml:"registry"`       // schema registry
}

// check reports every value that does not match the format.
func (s Schema) check(format string, report func(path, msg string)) {
	s.Registry.Check(func(path, msg string) { report("registry."+path, msg) })
	if s.File != "" && format != Avro {
		report("file", "can only be set if format is avro")
	}
	if (s.DescriptorSet != "" || s.Message != "") && format != Protobuf {
		report("descriptor_set", "can only be set if format is protobuf")
	}
	if s.registered() && format != "" && format != JSON && format != Avro && format != Protobuf {
		report("registry", "can only be set if format is avro, json or protobuf")
	}
	switch {
	case format == Avro && (s.File != "") == s.registered():
		report("file", "either file or registry must be set if format is avro")
	case format == Protobuf && s.registered() && s.DescriptorSet != "":
		report("descriptor_set", "cannot be combined with registry, which provides the schemas")
	case format == Protobuf && (s.DescriptorSet != "") != (s.Message != ""):
		report("message", "must be set together with descriptor_set")
	}
}

// registered reports whether the schemas are in a registry.
func (s Schema) registered() bool { return s.Registry != registry.Config{} }

// openAvro returns the format for Avro records.
func (s Schema) openAvro(records ingest.Format) (ingest.Format, error) {
	if s.registered() {
		return openFramed(s.Registry, "AVRO", parseAvro, records)
	}
	schema, err := readAvro(s.File)
	return openFixed(schema, records), err
}

// openProtobuf returns the format for Protobuf messages.
func (s Schema) openProtobuf(records ingest.Format, mapped bool) (ingest.Format, error) {
	switch {
	case s.registered():
		format, err := openFramed(s.Registry, "PROTOBUF", parseProtobuf, records)
		if mapped {
			return format, err
		}
		return registeredProtobuf{format}, err
	case s.DescriptorSet != "":
		message, err := protobuf.ReadMessage(s.DescriptorSet, s.Message)
		return openFixed(message, records), err
	}
	return protobuf.V1{}, nil
}

// body rewrites the content of a message, after any schema ID, as one JSON object of at most limit bytes.
type body interface {
	AppendJSON(dst, value []byte, limit int) ([]byte, *ingest.RecordError)
}

// fixed converts messages that all have the same schema.
type fixed struct {
	schema body
	limit  int
}

// Convert implements Converter.
func (f fixed) Convert(dst []byte, m *ingest.Message) ([]byte, *ingest.RecordError) {
	dst, err := f.schema.AppendJSON(dst, m.Value, f.limit)
	if err != nil {
		err.Pos = m.Pos
	}
	return dst, err
}

// openFixed returns the format for messages that all have the same schema.
func openFixed(schema body, records ingest.Format) ingest.Format {
	return asJSON{records, func(o ingest.DecoderOptions) Converter { return fixed{schema, o.MaxRecord} }}
}

// readAvro reads the schema in a file.
func readAvro(path string) (body, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the Avro schema: %w", err)
	}
	schema, err := avro.Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return schema, nil
}

// registered converts messages in Confluent's wire format.
type registered struct {
	schemas *registry.Registry[body]
	limit   int
}

// Prepare implements ingest.Preparer. It fetches the schema.
func (r registered) Prepare(ctx context.Context, m *ingest.Message) error {
	id, _, err := registry.Split(m.Value)
	if err != nil {
		return nil // Convert refuses the message
	}
	return r.schemas.Fetch(ctx, id)
}

// Convert implements Converter.
func (r registered) Convert(dst []byte, m *ingest.Message) ([]byte, *ingest.RecordError) {
	schema, rest, err := r.schema(m)
	if err != nil {
		return dst, err
	}
	dst, err = schema.AppendJSON(dst, rest, r.limit)
	if err != nil {
		err.Pos, err.Size = m.Pos, int64(len(m.Value))
		if err.Column > 0 {
			err.Column += len(m.Value) - len(rest)
		}
	}
	return dst, err
}

// schema returns the schema of a message, and the bytes after the schema ID.
func (r registered) schema(m *ingest.Message) (body, []byte, *ingest.RecordError) {
	refuse := func(reason ingest.Reason, err error) *ingest.RecordError {
		return &ingest.RecordError{Pos: m.Pos, Reason: reason, Size: int64(len(m.Value)), Msg: err.Error()}
	}
	id, rest, err := registry.Split(m.Value)
	if err != nil {
		return nil, nil, refuse(ingest.ReasonBadEncoding, err)
	}
	schema, err := r.schemas.Get(id)
	if err != nil {
		return nil, nil, refuse(ingest.ReasonUnknownSchema, err)
	}
	return schema, rest, nil
}

// framed is the format for messages in Confluent's wire format.
type framed struct {
	asJSON
	schemas *registry.Registry[body]
}

// openFramed returns the format for messages whose schemas are in a registry. All schemas must have the given type.
func openFramed(c registry.Config, kind string, parse func(registry.Schema) (body, error), records ingest.Format) (framed, error) {
	schemas, err := registry.Open(c, func(s registry.Schema) (body, error) {
		if s.Type != kind {
			return nil, fmt.Errorf("its type is %s, but the topic format requires %s", s.Type, kind)
		}
		return parse(s)
	})
	convert := func(o ingest.DecoderOptions) Converter { return registered{schemas, o.MaxRecord} }
	return framed{asJSON{records, convert}, schemas}, err
}

func parseAvro(s registry.Schema) (body, error) {
	var before []string
	for _, r := range s.References {
		before = append(before, r.Text)
	}
	return avro.Parse(s.Text, before...)
}

func parseProtobuf(s registry.Schema) (body, error) {
	others := map[string]string{}
	for _, r := range s.References {
		others[r.Name] = r.Text
	}
	file, err := protobuf.Compile(s.Text, others)
	if err != nil {
		return nil, err
	}
	return protobufFile{file}, nil
}

// protobufFile is a schema from a registry. Each message specifies which message type of the file it has.
type protobufFile struct{ protoreflect.FileDescriptor }

// message returns the type of a message, and its remaining bytes.
func (f protobufFile) message(value []byte) (*protobuf.Message, []byte, *ingest.RecordError) {
	of, rest, err := protobuf.ConsumeIndexes(f, value)
	if err != nil {
		return nil, nil, &ingest.RecordError{Reason: ingest.ReasonBadEncoding, Msg: "invalid message indexes: " + err.Error()}
	}
	return protobuf.NewMessage(of), rest, nil
}

// AppendJSON implements body.
func (f protobufFile) AppendJSON(dst, value []byte, limit int) ([]byte, *ingest.RecordError) {
	of, rest, err := f.message(value)
	if err != nil {
		return dst, err
	}
	return of.AppendJSON(dst, rest, limit)
}

// framedJSON converts JSON in Confluent's wire format. It does not need the schema.
type framedJSON struct{}

// Convert implements Converter.
func (framedJSON) Convert(dst []byte, m *ingest.Message) ([]byte, *ingest.RecordError) {
	_, rest, err := registry.Split(m.Value)
	switch {
	case err != nil:
		return dst, &ingest.RecordError{Pos: m.Pos, Reason: ingest.ReasonBadEncoding, Size: int64(len(m.Value)), Msg: err.Error()}
	case len(rest) == 0:
		return dst, &ingest.RecordError{Pos: m.Pos, Reason: ingest.ReasonEmptyRecord, Size: int64(len(m.Value)), Msg: "the message contains no record"}
	}
	return append(dst, rest...), nil
}

// registeredProtobuf is the format for Protobuf messages in Confluent's wire format, without a mapping. Messages of
// telemetry.proto are decoded directly.
type registeredProtobuf struct{ framed }

// NewDecoder implements ingest.Format.
func (f registeredProtobuf) NewDecoder(o ingest.DecoderOptions) ingest.Decoder {
	return &registeredDecoder{converted: f.newDecoder(o), schemas: registered{schemas: f.schemas}, telemetry: protobuf.V1{}.NewDecoder(o)}
}

// registeredDecoder decodes Protobuf messages in Confluent's wire format.
type registeredDecoder struct {
	*converted
	schemas   registered
	telemetry ingest.Decoder // for messages of telemetry.proto
}

// Decode implements ingest.Decoder.
func (d *registeredDecoder) Decode(dst []ingest.Event, m *ingest.Message, refuse func(e *ingest.RecordError, raw []byte)) []ingest.Event {
	if schema, rest, err := d.schemas.schema(m); err == nil {
		if of, event, err := schema.(protobufFile).message(rest); err == nil && of.Telemetry() {
			bare := *m
			bare.Value = event
			return d.telemetry.Decode(dst, &bare, refuse)
		}
	}
	return d.converted.Decode(dst, m, refuse)
}

// Reset implements ingest.Decoder.
func (d *registeredDecoder) Reset() {
	d.converted.Reset()
	d.telemetry.Reset()
}
