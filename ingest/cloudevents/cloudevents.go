// Package cloudevents rewrites CloudEvents 1.0 as JSON, according to the Kafka protocol binding.
package cloudevents

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"slices"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/jsontext"
)

// Converter writes each CloudEvent as one JSON object.
//
// A message with the header ce_specversion is in binary mode: attributes are headers that begin with ce_, and the value
// is the data. Any other message is in structured mode: the value is a JSON object with attributes and data. It may
// also be an array of such objects if the content type is that of a batch, or if there is none. Data that is JSON
// becomes the member data, and other data becomes the member data_base64.
type Converter struct {
	// DataOnly writes only the data, which must be telemetry version 1. An event without a ts gets the time of the
	// CloudEvent.
	DataOnly bool
}

// The content types of CloudEvents in structured mode, and of JSON.
const (
	typeEvent = "application/cloudevents+json"
	typeBatch = "application/cloudevents-batch+json"
	typeJSON  = "application/json"
)

// Convert implements Converter.
func (c Converter) Convert(dst []byte, m *ingest.Message) ([]byte, *ingest.RecordError) {
	if len(m.Value) == 0 {
		return dst, refusal(m, ingest.ReasonEmptyRecord, "the CloudEvent has no data")
	}
	if _, binary := attribute(m, "specversion"); binary {
		return c.binary(dst, m)
	}
	var events []json.RawMessage
	switch of := contentType(header(m, "content-type")); of {
	case typeBatch:
		if err := json.Unmarshal(m.Value, &events); err != nil {
			return dst, invalid(m, err)
		}
	case "", typeEvent, typeJSON:
		events = []json.RawMessage{m.Value}
		if isArray := bytes.HasPrefix(bytes.TrimLeft(m.Value, " \t\r\n"), []byte("[")); isArray && of == "" {
			events = nil
			if err := json.Unmarshal(m.Value, &events); err != nil {
				return dst, invalid(m, err)
			}
		}
	default:
		return dst, refusal(m, ingest.ReasonBadEncoding, "not a CloudEvent: the header ce_specversion is missing, and the content type is "+of)
	}
	for _, event := range events {
		var err *ingest.RecordError
		dst, err = c.structured(dst, event, m)
		switch {
		case err != nil && len(events) == 1:
			return dst, err
		case err != nil: // the other events of the batch are still read, and this one is refused because of what is missing
			dst = append(appendLine(dst, event), '\n')
		}
	}
	return dst, nil
}

// binary writes an event in binary mode, whose attributes are headers.
func (c Converter) binary(dst []byte, m *ingest.Message) ([]byte, *ingest.RecordError) {
	isJSON := isJSON(contentType(header(m, "content-type")))
	if c.DataOnly {
		if !isJSON {
			return dst, notJSON(m)
		}
		at, _ := attribute(m, "time")
		return appendData(dst, m.Value, at), nil
	}
	start := len(dst)
	dst = append(dst, '{')
	for _, h := range m.Headers {
		if name, ok := attributeName(h.Key); ok {
			dst = jsontext.AppendString(jsontext.AppendKey(dst, name), h.Value)
		}
	}
	if !isJSON {
		dst = append(jsontext.AppendKey(dst, "data_base64"), '"')
		dst = base64.StdEncoding.AppendEncode(dst, m.Value)
		return append(dst, "\"}\n"...), nil
	}
	if err := check(m.Value); err != nil {
		return dst[:start], invalid(m, err)
	}
	dst = appendLine(jsontext.AppendKey(dst, "data"), m.Value)
	return append(dst, "}\n"...), nil
}

// structured writes an event in structured mode, which is a JSON object.
func (c Converter) structured(dst []byte, event json.RawMessage, m *ingest.Message) ([]byte, *ingest.RecordError) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(event, &members); err != nil {
		return dst, invalid(m, err)
	}
	if err := decodeBase64(members); err != nil {
		return dst, refusal(m, ingest.ReasonBadEncoding, err.Error())
	}
	if !c.DataOnly {
		dst = append(dst, '{')
		for _, name := range sortedNames(members) {
			dst = appendLine(jsontext.AppendKey(dst, name), members[name])
		}
		return append(dst, "}\n"...), nil
	}
	data, ok := members["data"]
	switch {
	case ok && isJSON(contentType(text(members["datacontenttype"]))):
		return appendData(dst, data, text(members["time"])), nil
	case ok || members["data_base64"] != nil:
		return dst, notJSON(m)
	}
	return dst, refusal(m, ingest.ReasonEmptyRecord, "the CloudEvent has no data")
}

// decodeBase64 moves data_base64 to data if it is JSON.
func decodeBase64(members map[string]json.RawMessage) error {
	encoded, ok := members["data_base64"]
	if !ok || !isJSON(contentType(text(members["datacontenttype"]))) {
		return nil
	}
	data, err := base64.StdEncoding.DecodeString(text(encoded))
	if err == nil {
		err = check(data)
	}
	if err != nil {
		return fmt.Errorf("data_base64: %w", err)
	}
	members["data"] = data
	delete(members, "data_base64")
	return nil
}

// appendData appends data as a line. The time of the CloudEvent comes first, so a ts in the data takes precedence.
func appendData(dst, data []byte, at string) []byte {
	rest := bytes.TrimLeft(data, " \t\r\n")
	when, err := time.Parse(time.RFC3339, at)
	if err == nil && when.Year() >= 1971 && when.Year() <= 2261 && len(rest) > 0 && rest[0] == '{' {
		dst = jsontext.AppendString(append(dst, `{"ts":`...), at)
		if rest = bytes.TrimLeft(rest[1:], " \t\r\n"); len(rest) > 0 && rest[0] != '}' {
			dst = append(dst, ',')
		}
	}
	return append(appendLine(dst, rest), '\n')
}

// appendLine appends JSON on one line. Line breaks in JSON are always white space, because strings cannot contain them.
func appendLine(dst, text []byte) []byte {
	start := len(dst)
	dst = append(dst, text...)
	for i, c := range dst[start:] {
		if c == '\n' || c == '\r' {
			dst[start+i] = ' '
		}
	}
	return dst
}

// check returns an error if text is not JSON.
func check(text []byte) error {
	var unused json.RawMessage
	return json.Unmarshal(text, &unused)
}

// text decodes a JSON string. It returns "" for anything else.
func text(value json.RawMessage) string {
	var s string
	if json.Unmarshal(value, &s) != nil {
		return ""
	}
	return s
}

func sortedNames(members map[string]json.RawMessage) []string {
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// attributeName returns the name of the attribute in a header. The Kafka binding specifies the prefix ce_, but some
// clients use ce- as in HTTP.
func attributeName(header string) (name string, ok bool) {
	if len(header) <= 3 || !strings.EqualFold(header[:2], "ce") || header[2] != '_' && header[2] != '-' {
		return "", false
	}
	return strings.ToLower(header[3:]), true
}

// attribute returns an attribute of an event in binary mode.
func attribute(m *ingest.Message, name string) (value string, ok bool) {
	for _, h := range m.Headers {
		if n, is := attributeName(h.Key); is && n == name {
			return string(h.Value), true
		}
	}
	return "", false
}

// header returns the value of a header, or "". The case of the name is ignored.
func header(m *ingest.Message, name string) string {
	for _, h := range m.Headers {
		if strings.EqualFold(h.Key, name) {
			return string(h.Value)
		}
	}
	return ""
}

// contentType returns a media type without its parameters.
func contentType(value string) string {
	of, _, err := mime.ParseMediaType(value)
	if err != nil {
		return strings.ToLower(value)
	}
	return of
}

// isJSON reports whether data with a content type is JSON. Data without a content type is.
func isJSON(contentType string) bool {
	return contentType == "" || strings.HasSuffix(contentType, "/json") || strings.HasSuffix(contentType, "+json")
}

func refusal(m *ingest.Message, reason ingest.Reason, msg string) *ingest.RecordError {
	return &ingest.RecordError{Pos: m.Pos, Reason: reason, Size: int64(len(m.Value)), Msg: msg}
}

func invalid(m *ingest.Message, err error) *ingest.RecordError {
	return refusal(m, ingest.ReasonInvalidJSON, "invalid CloudEvent: "+err.Error())
}

func notJSON(m *ingest.Message) *ingest.RecordError {
	return refusal(m, ingest.ReasonBadEncoding, "the data of the CloudEvent is not JSON")
}
