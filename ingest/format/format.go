// Package format says in which format the messages of a topic are, and returns what decodes them.
package format

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/mapping"
	"github.com/rewardwatch/rewardwatch/ingest/protobuf"
	"github.com/rewardwatch/rewardwatch/ingest/telemetry"
)

// The formats of messages.
const (
	JSON     = "json"     // one object, or several on separate lines
	Protobuf = "protobuf" // an Event or an Events of telemetry.proto
)

// names lists the formats in the order in which messages list them.
func names() []string { return []string{JSON, Protobuf} }

// Topic configures a topic of telemetry.
type Topic struct {
	Topic   string         `yaml:"topic"`   // name of the topic
	Format  string         `yaml:"format"`  // format of its messages: json, which is also the default, or protobuf
	Mapping mapping.Config `yaml:"mapping"` // what the fields of telemetry v1 are in its records, where they have another shape
}

// IsJSON reports whether the messages of the topic are JSON.
func (t Topic) IsJSON() bool { return t.Format == "" || t.Format == JSON }

// Check reports every value that is out of range.
func (t Topic) Check(report func(path, msg string)) {
	if !ingest.ValidTopic(t.Topic) {
		report("topic", "must be 1 to 249 letters, digits, dots, underscores and hyphens")
	}
	if t.Format != "" && !slices.Contains(names(), t.Format) {
		report("format", "must be one of "+strings.Join(names(), ", "))
	}
	if t.Format == Protobuf && !t.Mapping.IsZero() {
		report("mapping", "must not be given for protobuf, whose messages are telemetry v1")
	}
	t.Mapping.Check(func(path, msg string) { report("mapping."+path, msg) })
}

// Open returns the format of a topic that Check has accepted.
func (t Topic) Open() (ingest.Format, error) {
	records, err := t.records()
	if err != nil {
		return nil, fmt.Errorf("the topic %s: %w", t.Topic, err)
	}
	switch t.Format {
	case "", JSON:
		return records, nil
	case Protobuf:
		return protobuf.V1{}, nil
	}
	return nil, fmt.Errorf("the topic %s: there is no format %q", t.Topic, t.Format)
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
