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
	KindControl      // marker at the end of a transaction
	KindAborted      // records of an aborted transaction
	KindRefused      // records that cannot be read in bounded memory and time
	KindNothing      // offsets whose records were removed by compaction
)

// Found is one step through a partition: a record, or offsets to skip. Its memory is valid until the next step.
type Found struct {
	Kind       Kind
	Offset     int64 // of the first record
	Next       int64 // offset after the last record
	Records    int64
	ts         int64 // time when the record was created or appended, in Unix milliseconds; -1 if unknown
	Key, Value []byte
	headers    []ingest.Header
	Size       int64 // size of the value; if it exceeds the limit, Value is truncated and there are no headers
	Why        error // why the records were refused
	Final      bool  // whether it is the last record of its record batch
}

// FoundRecord returns the step for a complete record that is not part of a record batch. ts is in Unix milliseconds. The
// step shares the memory of the arguments.
func FoundRecord(offset, ts int64, key []byte, headers []ingest.Header, value []byte) Found {
	return Found{Offset: offset, Next: offset + 1, Records: 1, ts: ts, Key: key, headers: headers, Value: value, Size: int64(len(value)), Final: true}
}

// Class says how a step must be handled.
type Class uint8

// The classes.
const (
	Telemetry Class = iota
	Tombstone
	Control
	Aborted
	TooLarge
)

// Classify returns the class of a step. limit is the maximum size of a record.
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

// Time returns the time when the record was created or appended, in Unix nanoseconds, or 0 if unknown.
func (f *Found) Time() int64 {
	if f.ts > 0 && f.ts < math.MaxInt64/int64(time.Millisecond) {
		return f.ts * int64(time.Millisecond)
	}
	return 0
}

// Message returns the record as a message. It shares the memory of f.
func (f *Found) Message(topic string, at ingest.Position) ingest.Message {
	return ingest.Message{Topic: topic, Pos: at, TS: f.Time(), Key: f.Key, Headers: f.headers, Value: f.Value}
}

// TooLarge returns a RecordError for a record that exceeds the limit or cannot be read.
func (f *Found) TooLarge(at ingest.Position, limit ingest.ByteSize) *ingest.RecordError {
	if f.Kind != KindRefused {
		return ingest.TooLarge(at, f.Size, int(limit))
	}
	return &ingest.RecordError{
		Pos: at, Reason: ingest.ReasonTooLarge,
		Msg: fmt.Sprintf("%d records at offsets %d to %d cannot be read: %v", f.Records, f.Offset, f.Next-1, f.Why),
	}
}
