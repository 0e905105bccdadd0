package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/format"
	"github.com/rewardwatch/rewardwatch/ingest/registry"
)

// recognized is the minimum share of messages that must have a format for it to be recognized.
const recognized = .9

// candidate is a format that messages may have.
type candidate struct {
	format.Topic
	why    string
	sample []ingest.Message // as the JSON that a mapping reads; empty for telemetry version 1 in Protobuf
}

// recognize returns the format that messages appear to have by their bytes, or nil if they match no format.
func recognize(ctx context.Context, topic string, messages []ingest.Message, registryURL string) (*candidate, error) {
	for _, c := range candidates(topic, messages, registryURL) {
		as, err := c.OpenAs(keeper{&c.sample})
		if err != nil {
			return nil, err
		}
		ok, err := decode(ctx, as, messages)
		if err != nil {
			return nil, err
		}
		if c.Format == format.OTLP && len(c.sample) == 0 { // any Protobuf message may be a request without logs
			continue
		}
		if float64(ok) >= recognized*float64(len(messages)) {
			c.why = fmt.Sprintf("%d of %d messages %s", ok, len(messages), c.why)
			return &c, nil
		}
	}
	return nil, nil
}

// candidates returns the formats that messages may have by their headers and first bytes, the most specific first.
func candidates(topic string, messages []ingest.Message, registryURL string) []candidate {
	of := func(name, why string) candidate {
		return candidate{Topic: format.Topic{Topic: topic, Format: name}, why: why}
	}
	switch {
	case most(messages, isBinaryCloudEvent):
		return []candidate{of(format.CloudEvents, "have the headers of a CloudEvent in binary mode")}
	case most(messages, hasMembers("specversion", "type", "source")):
		return []candidate{of(format.CloudEvents, "are CloudEvents in structured mode")}
	case most(messages, isBatch):
		return []candidate{of(format.CloudEvents, "are batches of CloudEvents")}
	case most(messages, hasMembers("resourceLogs")):
		return []candidate{of(format.OTLP, "are OpenTelemetry logs in JSON")}
	case most(messages, isFramed):
		var all []candidate
		for _, name := range []string{format.Avro, format.Protobuf, format.JSON} {
			c := of(name, "have a schema of this type in the registry")
			c.Schema.Registry = registry.Config{URL: registryURL}
			if registryURL != "" {
				all = append(all, c)
			}
		}
		return all
	case most(messages, isJSON):
		return []candidate{of(format.JSON, "are JSON")}
	}
	return []candidate{of(format.Protobuf, "are telemetry version 1 in Protobuf"), of(format.OTLP, "are OpenTelemetry logs in Protobuf")}
}

// most reports whether nearly all non-empty messages meet a condition.
func most(messages []ingest.Message, is func(m *ingest.Message) bool) bool {
	n, of := 0, 0
	for i := range messages {
		if m := &messages[i]; len(m.Value) > 0 {
			of++
			if is(m) {
				n++
			}
		}
	}
	return of > 0 && float64(n) >= recognized*float64(of)
}

// isJSON reports whether a message, or its first line, is JSON. A Protobuf message may begin with the same bytes.
func isJSON(m *ingest.Message) bool {
	first, _, _ := bytes.Cut(bytes.TrimSpace(m.Value), []byte("\n"))
	return len(first) > 0 && (first[0] == '{' || first[0] == '[') && (json.Valid(first) || json.Valid(m.Value))
}

func isBinaryCloudEvent(m *ingest.Message) bool {
	for _, h := range m.Headers {
		if h.Key == "ce_specversion" || h.Key == "ce-specversion" {
			return true
		}
	}
	return false
}

// isBatch reports whether a message is an array of CloudEvents.
func isBatch(m *ingest.Message) bool {
	var events []json.RawMessage
	return json.Unmarshal(m.Value, &events) == nil && len(events) > 0 && hasMembers("specversion", "type", "source")(&ingest.Message{Value: events[0]})
}

func hasMembers(names ...string) func(m *ingest.Message) bool {
	return func(m *ingest.Message) bool {
		var object map[string]json.RawMessage
		if json.Unmarshal(m.Value, &object) != nil {
			return false
		}
		for _, name := range names {
			if object[name] == nil {
				return false
			}
		}
		return true
	}
}

// isFramed reports whether a message appears to be in Confluent's wire format. No other format begins with a zero byte.
func isFramed(m *ingest.Message) bool {
	_, _, err := registry.Split(m.Value)
	return err == nil
}
