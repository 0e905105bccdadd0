package ingest

import (
	"context"
	"encoding/json"
)

// Header is a header of a message.
type Header struct {
	Key   string
	Value []byte
}

// Message is a whole message of a topic, or a record of a file, which has only a position and a value. Its memory is
// valid until the method that received it returns.
type Message struct {
	Topic   string
	Pos     Position // without a Record
	TS      int64    // Kafka timestamp in Unix nanoseconds, which may differ from the times of the events; 0 if there is none
	Key     []byte   // nil if there is none
	Headers []Header
	Value   []byte
}

// Format is the format of events in messages, such as telemetry version 1. Its methods are safe for concurrent use.
type Format interface {
	NewDecoder(o DecoderOptions) Decoder
}

// Topic is a topic with telemetry.
type Topic struct {
	Name   string
	Format Format // of the events in its messages
}

// The limits of a record. A record that exceeds one of them is refused with the reason in parentheses.
const (
	// DefaultMaxRecord is the default limit of a record in bytes (ReasonTooLarge).
	DefaultMaxRecord = 1 << 20
	// MaxDepth is the maximum nesting depth of objects and arrays, including the record itself (ReasonTooDeep).
	MaxDepth = 32
	// MaxValues is the maximum number of numbers in action, observation, outcomes and reward_components of a record
	// together (ReasonTooManyValues).
	MaxValues = 1024
	// MaxLabels is the maximum number of labels in a record (ReasonTooManyValues).
	MaxLabels = 64
	// MaxString is the maximum length of a name, id, category, version or label, in bytes (ReasonStringTooLong).
	MaxString = 1 << 10
	// MaxElements is the maximum number of elements in an array that a mapping splits into events
	// (ReasonTooManyValues).
	MaxElements = 1 << 14
	// MaxRefusals is the maximum number of refused records per message that are reported with their bytes. The others
	// are only counted.
	MaxRefusals = 10
)

// DecoderOptions configure a Decoder.
type DecoderOptions struct {
	MaxRecord  int  // in bytes; a longer record is refused
	AsRecorded bool // set Event.AsRecorded, for callers that write records instead of detecting changes

	// LeftOut, if not nil, is called for every record that a mapping skips. Such a record is neither an event nor refused.
	LeftOut func(pos Position)
}

// Decoder turns messages into events. It is not safe for concurrent use.
type Decoder interface {
	// Decode appends the events of a message to dst and returns it. It reuses the events between len(dst) and cap(dst)
	// and their slices. The events share no memory with the message; their strings are valid until Reset.
	//
	// Decode reports a record that is not an event to refuse, with its bytes, and decodes the others. The bytes are valid
	// until refuse returns; refuse may retain the error. If a message has more than MaxRefusals refused records, raw is
	// nil for the remaining ones, because even a one-byte record is costly to keep. A message without any event, refused
	// or skipped record, such as a header line, does not count as a record.
	Decode(dst []Event, m *Message, refuse func(e *RecordError, raw []byte)) []Event
	// Reset ends a batch: the strings of its events that are not interned become invalid.
	Reset()
}

// Preparer is a Decoder that may need external data to decode a message, such as its schema.
type Preparer interface {
	// Prepare returns nil once Decode can decode m. An error means that something needed for m is currently unavailable,
	// which is not a fault of m. Call Prepare again later, and do not decode m before it succeeds.
	Prepare(ctx context.Context, m *Message) error
}

// Prepare calls d.Prepare if d is a Preparer, and returns nil otherwise.
func Prepare(ctx context.Context, d Decoder, m *Message) error {
	if p, ok := d.(Preparer); ok {
		return p.Prepare(ctx, m)
	}
	return nil
}

// AsRecorded contains, as JSON, the members of a record that Event omits or contains only in part. A member is nil if
// absent. NaN and infinities are quoted strings.
type AsRecorded struct {
	Action          json.RawMessage
	ActionProb      json.RawMessage
	Observation     json.RawMessage
	NextObservation json.RawMessage
}
