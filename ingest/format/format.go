// Package format defines the message formats of topics, and returns their decoders.
//
// To add a format, create a package next to ingest/telemetry. Implement Converter (converted.go), which rewrites a
// message as lines of JSON or, for speed, ingest.Format and ingest.Decoder. Fetch external data in Prepare
// (ingest.Preparer), so that an outage stops the partition instead of refusing records. Write a fuzz target, list the
// package in arrows_test.go, and open it in this file. begin in ingest/recording/source.go recognizes the formats of
// files.
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

// The message formats.
const (
	JSON        = "json"        // one object, or one per line
	Protobuf    = "protobuf"    // an Event or Events of telemetry.proto, or a message of another schema
	Avro        = "avro"        // a record of a schema
	CloudEvents = "cloudevents" // in structured or binary mode
	OTLP        = "otlp"        // OpenTelemetry logs
)

// names lists the formats in the order of error messages.
func names() []string { return []string{JSON, Protobuf, Avro, CloudEvents, OTLP} }

// Topic configures a topic of telemetry.
type Topic struct {
	Topic   string         `yaml:"topic"`   // name of the topic
	Format  string         `yaml:"format"`  // message format: `json` (the default), `protobuf`, `avro`, `cloudevents` or `otlp`
	Schema  Schema         `yaml:"schema"`  // schema of its messages, for the formats avro and protobuf
	Mapping mapping.Config `yaml:"mapping"` // what the fields of telemetry v1 are in its records, where they have another shape
}

// IsJSON reports whether the messages of the topic are plain JSON.
func (t Topic) IsJSON() bool { return (t.Format == "" || t.Format == JSON) && !t.Schema.registered() }

// Check reports every invalid value.
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

// Open returns the format of a topic that Check has accepted. It reads the files of the schema, but does not connect to
// a registry.
func (t Topic) Open() (ingest.Format, error) {
	format, err := t.open()
	if err != nil {
		return nil, fmt.Errorf("topic %s: %w", t.Topic, err)
	}
	return format, nil
}

// OpenLines returns the format of lines in files with records of the topic. If its messages are binary, a line is the
// JSON form of a message.
func (t Topic) OpenLines() (ingest.Format, error) {
	if t.Format == Avro || t.Format == Protobuf || t.Schema.registered() {
		t.Format, t.Schema = JSON, Schema{}
	}
	return t.Open()
}

// OpenAs returns the format of a topic without its mapping. The JSON form of each record, which a mapping would read,
// is decoded with the format records. Messages of telemetry version 1 in Protobuf have no JSON form, and are decoded as
// such.
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

// openAs opens the format. mapped is whether records is the format of a mapping.
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

// records returns the format of the topic's records as JSON: telemetry version 1, or its mapping.
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
