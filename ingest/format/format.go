// Package format defines the message formats of topics, and returns their decoders.
//
// For a new format, in a package next to ingest/telemetry, implement Converter (converted.go), which rewrites a message
// as lines of JSON, or for speed ingest.Format and ingest.Decoder. Fetch what it needs in Prepare (ingest.Preparer), so
// that an outage stops the partition and refuses nothing. Write a fuzz target, list the package in arrows_test.go, and
// open it in this file. decoderOf in ingest/recording/files.go recognizes formats of files.
package format

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/cloudevents"
	"github.com/rewardwatch/rewardwatch/ingest/mapping"
	"github.com/rewardwatch/rewardwatch/ingest/otlp"
	"github.com/rewardwatch/rewardwatch/ingest/telemetry"
)

// The formats of messages.
const (
	JSON        = "json"        // one object, or several on separate lines
	Protobuf    = "protobuf"    // an Event or an Events of telemetry.proto, or a message of another schema
	Avro        = "avro"        // a record of a schema
	CloudEvents = "cloudevents" // in structured or binary mode
	OTLP        = "otlp"        // OpenTelemetry logs
)

// names lists the formats in the order in which messages list them.
func names() []string { return []string{JSON, Protobuf, Avro, CloudEvents, OTLP} }

// Topic configures a topic of telemetry.
type Topic struct {
	Topic   string         `yaml:"topic"`   // name of the topic
	Format  string         `yaml:"format"`  // message format: json (the default), protobuf, avro, cloudevents or otlp
	Schema  Schema         `yaml:"schema"`  // schema of its messages, for the formats avro and protobuf
	Mapping mapping.Config `yaml:"mapping"` // what the fields of telemetry v1 are in its records, where they have another shape
}

// IsJSON reports whether the messages of the topic are JSON and nothing else.
func (t Topic) IsJSON() bool { return (t.Format == "" || t.Format == JSON) && !t.Schema.registered() }

// Check reports every value that is out of range.
func (t Topic) Check(report func(path, msg string)) {
	if !ingest.ValidTopic(t.Topic) {
		report("topic", "must be 1 to 249 letters, digits, dots, underscores and hyphens")
	}
	if t.Format != "" && !slices.Contains(names(), t.Format) {
		report("format", "must be one of "+strings.Join(names(), ", "))
	} else {
		t.Schema.check(t.Format, func(path, msg string) { report("schema."+path, msg) })
	}
	if t.Format == Protobuf && t.Schema == (Schema{}) && !t.Mapping.IsZero() {
		report("mapping", "cannot be set for protobuf without a schema, because the messages are telemetry v1")
	}
	t.Mapping.Check(func(path, msg string) { report("mapping."+path, msg) })
}

// Open returns the format of a topic that Check has accepted. It reads the files of the schema, and does not ask a
// registry for anything yet.
func (t Topic) Open() (ingest.Format, error) {
	format, err := t.open()
	if err != nil {
		return nil, fmt.Errorf("topic %s: %w", t.Topic, err)
	}
	return format, nil
}

// OpenLines returns the format of the lines of files with records of the topic. Where its messages are binary, a line is
// the JSON that such a message is rewritten as.
func (t Topic) OpenLines() (ingest.Format, error) {
	if t.Format == Avro || t.Format == Protobuf || t.Schema.registered() {
		t.Format, t.Schema = JSON, Schema{}
	}
	return t.Open()
}

// OpenAs returns the format of a topic without its mapping: each record, as the JSON that a mapping would read, is decoded
// as records says. Messages that are telemetry version 1 in Protobuf have no JSON, and are decoded as such.
func (t Topic) OpenAs(records ingest.Format) (ingest.Format, error) {
	format, err := t.openAs(records, true)
	if err != nil {
		return nil, fmt.Errorf("topic %s: %w", t.Topic, err)
	}
	return format, nil
}

func (t Topic) open() (ingest.Format, error) {
	records, err := t.records()
	if err != nil {
		return nil, err
	}
	return t.openAs(records, !t.Mapping.IsZero())
}

// openAs opens the format; records are those of a mapping if mapped.
func (t Topic) openAs(records ingest.Format, mapped bool) (ingest.Format, error) {
	switch t.Format {
	case Avro:
		return t.Schema.openAvro(records)
	case Protobuf:
		return t.Schema.openProtobuf(records, mapped)
	case CloudEvents:
		return asJSON{records, func(ingest.DecoderOptions) Converter { return cloudevents.Converter{DataOnly: !mapped} }}, nil
	case OTLP:
		return asJSON{records, func(o ingest.DecoderOptions) Converter {
			return otlp.Converter{Limit: o.MaxRecord, Evaluations: !mapped, LeftOut: o.LeftOut}
		}}, nil
	}
	if t.Schema.registered() {
		return asJSON{records, func(ingest.DecoderOptions) Converter { return framedJSON{} }}, nil
	}
	return records, nil
}

// records returns the format of the topic's records as JSON: telemetry version 1, unless they have another shape.
func (t Topic) records() (ingest.Format, error) {
	if t.Mapping.IsZero() {
		return telemetry.V1{}, nil
	}
	plan, err := t.Mapping.Compile()
	if err != nil {
		return nil, err
	}
	return telemetry.Mapped{Plan: plan}, nil
}
