package detectors

import (
	"encoding/binary"
	"errors"
	"math"
)

// Floats is a list of numbers that a snapshot stores as consecutive raw bits.
type Floats []float64

// Counts is a list of whole numbers that a snapshot stores like Floats.
type Counts []uint32

var errNotWhole = errors.New("its length is not a multiple of the size of a number")

// MarshalBinary returns the bits of the numbers.
func (f Floats) MarshalBinary() ([]byte, error) { return floatBits(f), nil }

// UnmarshalBinary reads what MarshalBinary returned. An empty list becomes nil.
func (f *Floats) UnmarshalBinary(b []byte) error {
	if *f = nil; len(b) > 0 {
		*f = make(Floats, len(b)/8)
	}
	return readFloats(b, *f)
}

// MarshalBinary returns the bits of the numbers.
func (c Counts) MarshalBinary() ([]byte, error) {
	b := make([]byte, 0, 4*len(c))
	for _, n := range c {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	return b, nil
}

// UnmarshalBinary reads what MarshalBinary returned. An empty list becomes nil.
func (c *Counts) UnmarshalBinary(b []byte) error {
	if len(b)%4 != 0 {
		return errNotWhole
	}
	if *c = nil; len(b) > 0 {
		*c = make(Counts, len(b)/4)
	}
	for i := range *c {
		(*c)[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return nil
}

func floatBits(values []float64) []byte {
	b := make([]byte, 0, 8*len(values))
	for _, x := range values {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return b
}

func readFloats(b []byte, into []float64) error {
	if len(b) != 8*len(into) {
		return errNotWhole
	}
	for i := range into {
		into[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return nil
}
