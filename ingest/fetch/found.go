package fetch

import (
	"fmt"
	"math"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Kind is the kind of a step through a partition.
type Kind uint8

// The kinds of a step.
const (
	KindRecord  Kind = iota
	KindControl      // the marker at the end of a transaction
	KindAborted      // records of an aborted transaction
	KindRefused      // records that cannot be read in bounded memory and time
	KindNothing      // offsets whose records compaction has removed
)

// Found is one step through a partition: a record, or offsets to skip. Its memory is valid until the next step.
type Found struct {
	Kind       Kind
	Offset     int64 // of the first record
	Next       int64 // the offset after the last record
	Records    int64
	ts         int64 // when the record was created or appended, in Unix milliseconds; -1 if unknown
	Key, Value []byte
	headers    []ingest.Header
	Size       int64 // of the value; above the limit, Value is truncated and there are no headers
	Why        error // why the records were refused
}

// FoundRecord returns the step to a whole record that was written at a time in Unix milliseconds. It shares the memory of
// its arguments.
func FoundRecord(offset, ts int64, key []byte, headers []ingest.Header, value []byte) Found {
	return Found{Offset: offset, Next: offset + 1, Records: 1, ts: ts, Key: key, headers: headers, Value: value, Size: int64(len(value))}
}

// Class is how a step must be handled.
type Class uint8

// The classes.
const (
	Telemetry Class = iota
	Tombstone
	Control
	Aborted
	TooLarge
)

// Classify separates telemetry from the rest.
func (f *Found) Classify(limit ingest.ByteSize) Class {
	switch {
	case f.Kind == KindControl:
		return Control
	case f.Kind == KindAborted:
		return Aborted
	case f.Kind == KindRefused, f.Size > int64(limit):
		return TooLarge
	case f.Size == 0:
		return Tombstone
	}
	return Telemetry
}

// Time returns when the record was created or appended, in Unix nanoseconds, or 0 if that is unknown.
func (f *Found) Time() int64 {
	if f.ts > 0 && f.ts < math.MaxInt64/int64(time.Millisecond) {
		return f.ts * int64(time.Millisecond)
	}
	return 0
}

// Message returns the message of a record at a position in a topic. It shares the memory of f.
func (f *Found) Message(topic string, at ingest.Position) ingest.Message {
	return ingest.Message{Topic: topic, Pos: at, TS: f.Time(), Key: f.Key, Headers: f.headers, Value: f.Value}
}

// TooLarge returns the error for a record above the limit.
func (f *Found) TooLarge(at ingest.Position, limit ingest.ByteSize) *ingest.RecordError {
	if f.Kind != KindRefused {
		return ingest.TooLarge(at, f.Size, int(limit))
	}
	return &ingest.RecordError{
		Pos: at, Reason: ingest.ReasonTooLarge,
		Msg: fmt.Sprintf("%d records at offsets %d to %d cannot be read: %v", f.Records, f.Offset, f.Next-1, f.Why),
	}
}
