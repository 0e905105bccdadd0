// Package otlp rewrites OpenTelemetry logs as JSON, and evaluation results in logs as telemetry version 1.
package otlp

import (
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/jsontext"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Converter writes each log record of an ExportLogsServiceRequest, in Protobuf or in the JSON of OTLP, as one JSON
// object:
//
//	{"resource":{"service.name":"shop"},"scope":{"name":"evals","version":"1"},"time_unix_nano":1795168800000000000,
//	 "observed_time_unix_nano":1795168800000000000,"severity":"INFO","severity_number":9,"event_name":"step","body":"text",
//	 "attributes":{"gen_ai.agent.name":"helper"},"trace_id":"5b8efff798038103d269b633813fc60c","span_id":"eee19b7ec3c1b174"}
//
// What a log record does not have is left out.
type Converter struct {
	// Limit is the maximum size of a message as JSON, in bytes.
	Limit int
	// Evaluations restricts the output to evaluation results, as telemetry version 1 (see evaluation).
	Evaluations bool
	// LeftOut, if not nil, is called for every log record that is skipped because of Evaluations.
	LeftOut func(pos ingest.Position)
}

// firstByte is the first byte of a request in Protobuf: the tag of its only field.
const firstByte = 0x0a

// Convert implements Converter.
func (c Converter) Convert(dst []byte, m *ingest.Message) ([]byte, *ingest.RecordError) {
	refuse := func(reason ingest.Reason, msg string) ([]byte, *ingest.RecordError) {
		return dst, &ingest.RecordError{Pos: m.Pos, Reason: reason, Size: int64(len(m.Value)), Msg: msg}
	}
	if len(m.Value) == 0 {
		return refuse(ingest.ReasonEmptyRecord, "the message contains no logs")
	}
	var logs logspb.LogsData // has the same wire format as ExportLogsServiceRequest
	asJSON := m.Value[0] != firstByte
	if asJSON {
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(m.Value, &logs); err != nil {
			return refuse(ingest.ReasonBadEncoding, "not OTLP logs in Protobuf or JSON: "+err.Error())
		}
	} else if err := proto.Unmarshal(m.Value, &logs); err != nil {
		return refuse(ingest.ReasonBadEncoding, "not OTLP logs in Protobuf: "+err.Error())
	}
	w := writer{dst: dst, idsAsBase64: asJSON}
	for _, r := range logs.ResourceLogs {
		from := originOf(r.Resource.GetAttributes())
		for _, s := range r.ScopeLogs {
			for _, l := range s.LogRecords {
				record := logRecord{resource: r.Resource, from: from, scope: s.Scope, LogRecord: l}
				switch {
				case !c.Evaluations:
					w.record(record)
				case !w.evaluation(record) && c.LeftOut != nil:
					c.LeftOut(m.Pos)
				}
				if len(w.dst)-len(dst) > c.Limit {
					return refuse(ingest.ReasonTooLarge, "exceeds the limit of "+strconv.Itoa(c.Limit)+" bytes as JSON")
				}
			}
		}
	}
	return w.dst, nil
}

// logRecord is a log record with its resource and scope.
type logRecord struct {
	resource *resourcepb.Resource
	from     origin
	scope    *commonpb.InstrumentationScope
	*logspb.LogRecord
}

// name returns the event name of the log record, or "". Before OTLP 1.5, it was an attribute.
func (l logRecord) name() string {
	if l.EventName != "" {
		return l.EventName
	}
	return stringOf(l.Attributes, "event.name")
}

// time returns the time of the event, or the time at which it was observed, in Unix nanoseconds. It returns 0 if both
// are missing.
func (l logRecord) time() uint64 {
	if l.TimeUnixNano != 0 {
		return l.TimeUnixNano
	}
	return l.ObservedTimeUnixNano
}

// stringOf returns the first non-empty string attribute with one of the names, in the order of names.
func stringOf(of []*commonpb.KeyValue, names ...string) string {
	for _, name := range names {
		for _, kv := range of {
			if s := kv.GetValue().GetStringValue(); kv.GetKey() == name && s != "" {
				return s
			}
		}
	}
	return ""
}

// writer writes log records as JSON.
type writer struct {
	dst         []byte
	depth       int
	idsAsBase64 bool // IDs are hexadecimal, but were decoded as base64
}

// record writes a log record on one line.
func (w *writer) record(l logRecord) {
	w.dst = append(w.dst, '{')
	w.attributes("resource", l.resource.GetAttributes())
	if l.scope.GetName() != "" || l.scope.GetVersion() != "" {
		w.dst = append(jsontext.AppendKey(w.dst, "scope"), '{')
		w.text("name", l.scope.GetName())
		w.text("version", l.scope.GetVersion())
		w.dst = append(w.dst, '}')
	}
	w.time("time_unix_nano", l.TimeUnixNano)
	w.time("observed_time_unix_nano", l.ObservedTimeUnixNano)
	w.text("severity", l.SeverityText)
	if l.SeverityNumber != 0 {
		w.dst = strconv.AppendInt(jsontext.AppendKey(w.dst, "severity_number"), int64(l.SeverityNumber), 10)
	}
	w.text("event_name", l.name())
	if l.Body != nil {
		w.dst = jsontext.AppendKey(w.dst, "body")
		w.value(l.Body)
	}
	w.attributes("attributes", l.Attributes)
	w.text("trace_id", w.id(l.TraceId))
	w.text("span_id", w.id(l.SpanId))
	w.dst = append(w.dst, "}\n"...)
}

func (w *writer) text(name, value string) {
	if value != "" {
		w.dst = jsontext.AppendString(jsontext.AppendKey(w.dst, name), value)
	}
}

func (w *writer) time(name string, at uint64) {
	if at != 0 {
		w.dst = strconv.AppendUint(jsontext.AppendKey(w.dst, name), at, 10)
	}
}

// id returns the hexadecimal form of an ID. In OTLP's JSON, IDs are hexadecimal, but the Protobuf JSON decoder reads
// them as base64.
func (w *writer) id(b []byte) string {
	if w.idsAsBase64 {
		return strings.ToLower(base64.StdEncoding.EncodeToString(b))
	}
	return hex.EncodeToString(b)
}

func (w *writer) attributes(name string, of []*commonpb.KeyValue) {
	if len(of) > 0 {
		w.dst = jsontext.AppendKey(w.dst, name)
		w.object(of)
	}
}

func (w *writer) object(of []*commonpb.KeyValue) {
	w.dst = append(w.dst, '{')
	for _, kv := range of {
		w.dst = jsontext.AppendKey(w.dst, kv.GetKey())
		w.value(kv.GetValue())
	}
	w.dst = append(w.dst, '}')
}

// value writes a value as JSON, with bytes as base64. It stops at a depth at which the decoder refuses the record as
// too deep.
func (w *writer) value(v *commonpb.AnyValue) {
	if w.depth > ingest.MaxDepth {
		w.dst = append(w.dst, "null"...)
		return
	}
	w.depth++
	defer func() { w.depth-- }()
	switch v := v.GetValue().(type) {
	case *commonpb.AnyValue_StringValue:
		w.dst = jsontext.AppendString(w.dst, v.StringValue)
	case *commonpb.AnyValue_BoolValue:
		w.dst = strconv.AppendBool(w.dst, v.BoolValue)
	case *commonpb.AnyValue_IntValue:
		w.dst = strconv.AppendInt(w.dst, v.IntValue, 10)
	case *commonpb.AnyValue_DoubleValue:
		w.dst = jsontext.AppendNumber(w.dst, v.DoubleValue, 64)
	case *commonpb.AnyValue_BytesValue:
		w.dst = jsontext.AppendString(w.dst, base64.StdEncoding.EncodeToString(v.BytesValue))
	case *commonpb.AnyValue_ArrayValue:
		w.dst = append(w.dst, '[')
		for _, item := range v.ArrayValue.GetValues() {
			w.dst = jsontext.AppendComma(w.dst)
			w.value(item)
		}
		w.dst = append(w.dst, ']')
	case *commonpb.AnyValue_KvlistValue:
		w.object(v.KvlistValue.GetValues())
	default:
		w.dst = append(w.dst, "null"...)
	}
}
