package order

import "time"

// The wire form of the order of units in checkpoints. Numbers are never reused; package ingest/saved has the rules.

// WireMoment is the wire form of a Moment.
type WireMoment struct {
	TS  int64 `cbor:"1,keyasint"`
	Run int64 `cbor:"2,keyasint"`
}

// MarkState is one watermark.
type MarkState struct {
	At     WireMoment    `cbor:"1,keyasint"`
	End    int64         `cbor:"2,keyasint"` // Unix nanoseconds, 0 for none
	Heard  time.Duration `cbor:"3,keyasint"`
	Marked bool          `cbor:"4,keyasint"`
}

// MarksState is the state of all watermarks.
type MarksState struct {
	Marks []MarkState   `cbor:"1,keyasint"` // by partition
	Heard time.Duration `cbor:"2,keyasint"`
	Last  int64         `cbor:"3,keyasint"` // Unix nanoseconds, 0 for none
}
