package ingest

import (
	"encoding/binary"
	"math"
	"slices"
)

// Limits for the individually kept steps of a unit.
const (
	MaxKeptSteps        = 64
	MaxKeptObservations = 32 // of the components of the observation; only the first ones are kept
	MaxKeptNumbers      = 64 // components of a numeric action; steps with more are not kept
)

// Steps contains individually kept steps of a unit, in order. They are used to determine which law of the agent's steps
// has changed. They form runs of consecutive steps: the beginning, a random sample, and the end.
type Steps struct {
	Names   []string  // of the components of the observation
	Numbers int       // components of a numeric action; 0 if actions are categories
	At      []int32   // number of each step in its unit, from 0
	Actions []int32   // index of each step's category in Unit.Actions; nil if actions are numbers
	Rows    []float32 // the observation, the numeric action and the reward of each step
}

// Width returns the number of values per step in Rows.
func (s *Steps) Width() int { return len(s.Names) + s.Numbers + 1 }

// Row returns the values of the i-th kept step.
func (s *Steps) Row(i int) []float32 {
	w := s.Width()
	return s.Rows[i*w : (i+1)*w]
}

// Bytes returns the approximate memory of the steps. Equal steps have equal sizes.
func (s *Steps) Bytes() int {
	if s == nil {
		return 0
	}
	return 112 + 16*len(s.Names) + 4*(len(s.At)+len(s.Actions)+len(s.Rows))
}

// Clone returns a deep copy.
func (s *Steps) Clone() *Steps {
	return &Steps{
		Names: slices.Clone(s.Names), Numbers: s.Numbers, At: slices.Clone(s.At), Actions: slices.Clone(s.Actions),
		Rows: slices.Clone(s.Rows),
	}
}

// Sound reports whether the lengths of the lists are consistent and all categories are in range. The codecs do not
// check this.
func (s *Steps) Sound(categories int) bool {
	n := len(s.At)
	if s.Numbers < 0 || s.Numbers > MaxKeptNumbers || len(s.Rows) != n*s.Width() ||
		s.Numbers == 0 && len(s.Actions) != n || s.Numbers > 0 && len(s.Actions) > 0 {
		return false
	}
	for _, a := range s.Actions {
		if a < 0 || int(a) >= categories {
			return false
		}
	}
	return true
}

// WireSteps is the wire form of Steps.
type WireSteps struct {
	Names   []string  `cbor:"1,keyasint"`
	Numbers int       `cbor:"2,keyasint,omitempty"`
	At      []int32   `cbor:"3,keyasint"`
	Actions []int32   `cbor:"4,keyasint,omitempty"`
	Rows    []float32 `cbor:"5,keyasint"`
}

// steps reads or writes the kept steps of a unit.
func (c *unitCodec) steps(u *Unit) {
	has := u.Steps != nil
	c.flags(&has)
	if !has {
		return
	}
	if c.reading {
		u.Steps = &Steps{}
	}
	s := u.Steps
	list(c, &s.Names, func(name *string) { c.text(name) })
	numbers := int64(s.Numbers)
	number(c, &numbers)
	if c.reading {
		s.Numbers = int(numbers)
	}
	list(c, &s.At, func(n *int32) { number(c, n) })
	list(c, &s.Actions, func(n *int32) { number(c, n) })
	c.singles(&s.Rows)
}

// singles reads or writes a list of float32 values, four bytes each.
func (c *unitCodec) singles(l *[]float32) {
	length := uint64(len(*l))
	c.uint(&length)
	switch {
	case !c.reading:
		for _, x := range *l {
			c.b = binary.LittleEndian.AppendUint32(c.b, math.Float32bits(x))
		}
	case length > uint64(len(c.b)/4):
		c.damaged, c.b = true, nil
	case length > 0:
		*l = make([]float32, length)
		for i := range *l {
			(*l)[i] = math.Float32frombits(binary.LittleEndian.Uint32(c.b))
			c.b = c.b[4:]
		}
	}
}

// Single reports whether a number is finite in single precision. A larger number would make the scale of a whole
// baseline infinite.
func Single(x float64) bool { return math.Abs(x) <= math.MaxFloat32 }

// MixStep is the increment between the arguments of Mix that produces a sequence of numbers from one key.
const MixStep = 0x9e3779b97f4a7c15

// Mix returns pseudo-random bits for a key: the finalizer of splitmix64 (Steele, Lea & Flood 2014).
func Mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
