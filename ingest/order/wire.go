package order

import "time"

// The wire form of the order of units in checkpoints. Field numbers are never reused; see package ingest/saved for the
// rules.

// WireMoment is the wire form of a Moment.
type WireMoment struct {
	TS  int64 `cbor:"1,keyasint"`
	Run int64 `cbor:"2,keyasint"`
}

// MarkState is the wire form of a Watermark.
type MarkState struct {
	At     WireMoment    `cbor:"1,keyasint"`
	End    int64         `cbor:"2,keyasint"` // Unix nanoseconds; 0 for none
	Heard  time.Duration `cbor:"3,keyasint"`
	Marked bool          `cbor:"4,keyasint"`
}

// MarksState is the wire form of Watermarks.
type MarksState struct {
	Marks []MarkState   `cbor:"1,keyasint"` // by partition
	Heard time.Duration `cbor:"2,keyasint"`
	Last  int64         `cbor:"3,keyasint"` // Unix nanoseconds; 0 for none
}
