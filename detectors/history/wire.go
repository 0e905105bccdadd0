package history

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

// The past has its own encoding, since it has many small numbers: integers are varints, each span is its difference from
// the one before, and a bucket without values takes one byte.

// MarshalBinary writes the past.
func (h *History) MarshalBinary() ([]byte, error) {
	b := make([]byte, 0, 16+len(h.spans)*(12+10*len(h.signals)))
	b = binary.AppendUvarint(b, uint64(len(h.spans)))
	var before Span
	for _, s := range h.spans {
		for _, x := range []int64{s.First - before.First, s.Units, s.From - before.From, s.To - s.From} {
			b = binary.AppendVarint(b, x)
		}
		before = s
	}
	b = binary.AppendUvarint(b, uint64(len(h.signals)))
	for _, s := range h.signals {
		b = append(binary.AppendUvarint(b, uint64(len(s.Name))), s.Name...)
		for _, c := range s.Buckets {
			b = binary.AppendUvarint(b, uint64(c.N))
			if c.N == 0 {
				continue
			}
			for _, x := range []float32{c.Mean, c.SD} {
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
			}
		}
	}
	return b, nil
}

var errNoHistory = errors.New("invalid signal history")

// UnmarshalBinary reads what MarshalBinary wrote.
func (h *History) UnmarshalBinary(b []byte) error {
	r := reader{left: b}
	*h = History{}
	spans := r.length(maxSpans)
	var before Span
	for range spans {
		s := Span{First: before.First + r.int(), Units: r.int(), From: before.From + r.int()}
		s.To = s.From + r.int()
		h.spans = appended(h.spans, s)
		before = s
	}
	for range r.length(len(b)) { // each signal takes at least a byte
		s := Signal{Name: r.text()}
		if r.short {
			return errNoHistory
		}
		for range spans {
			s.Buckets = appended(s.Buckets, r.bucket())
		}
		h.signals = append(h.signals, s)
	}
	if r.short || len(r.left) > 0 || spans == 0 && len(h.signals) > 0 {
		return errNoHistory
	}
	return nil
}

// reader reads values from the front of the remaining bytes. Once it runs out of bytes it returns zeros.
type reader struct {
	left  []byte
	short bool
}

func (r *reader) skip(n int) {
	if n <= 0 || n > len(r.left) {
		r.short, r.left = true, nil
		return
	}
	r.left = r.left[n:]
}

func (r *reader) int() int64 {
	x, n := binary.Varint(r.left)
	r.skip(n)
	return x
}

// length reads a number; more than most is an error.
func (r *reader) length(most int) int {
	x, n := binary.Uvarint(r.left)
	r.skip(n)
	if x > uint64(most) {
		r.short, r.left = true, nil
		return 0
	}
	return int(x)
}

func (r *reader) text() string {
	size := r.length(len(r.left))
	if size > len(r.left) {
		r.short, r.left = true, nil
		return ""
	}
	text := string(r.left[:size])
	r.left = r.left[size:]
	return text
}

func (r *reader) bucket() Bucket {
	b := Bucket{N: uint32(r.length(math.MaxUint32))}
	if b.N == 0 {
		return b
	}
	for _, x := range []*float32{&b.Mean, &b.SD} {
		if len(r.left) >= 4 {
			*x = math.Float32frombits(binary.LittleEndian.Uint32(r.left))
		}
		r.skip(4)
	}
	return b
}

// ChangeWire is the saved form of a Change. Changes are a separate part, which older builds skip.
type ChangeWire struct {
	Unit int64          `cbor:"1,keyasint"`
	TS   int64          `cbor:"2,keyasint,omitzero"`
	From saved.Versions `cbor:"3,keyasint"`
	To   saved.Versions `cbor:"4,keyasint"`
}

// Wire returns the saved form.
func (c Change) Wire() ChangeWire {
	return ChangeWire{Unit: c.Unit, TS: c.TS, From: saved.Versions(c.From), To: saved.Versions(c.To)}
}

// Live is the inverse of Wire.
func (w ChangeWire) Live() Change {
	return Change{Unit: w.Unit, TS: w.TS, From: ingest.Versions(w.From), To: ingest.Versions(w.To)}
}
