package ingest

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
)

// unitCodec reads or writes units in a form that is several times faster than WireUnit, for a log that is read only
// after a restart. Reading and writing walk the same list of fields. A new field must be added at the end, and requires
// a new version of the log. Writing does not modify the unit, because a bank reads it at the same time.
type unitCodec struct {
	b         []byte // bytes written so far, or still to be read
	reading   bool
	damaged   bool
	old       bool   // whether the floats are from before repeated floats were shortened
	stepless  bool   // whether the units are from before they had Steps
	labelless bool   // whether the units are from before they had Labels
	last      uint64 // bits of the last float other than 0; a one-step unit mostly repeats it
}

// AppendUnit appends the encoding of a unit to b. Decisions is not included, because only banks set it. All positions
// of the unit must be in one partition, which holds for every unit.
func AppendUnit(b []byte, u *Unit) []byte {
	c := unitCodec{b: b}
	c.unit(u)
	return c.b
}

// CutUnit decodes the unit at the beginning of b, which AppendUnit wrote, and returns the remaining bytes. The unit
// shares no memory with b. The error wraps ErrUnitDamaged.
func CutUnit(b []byte) (u *Unit, rest []byte, err error) {
	return unitCodec{b: b, reading: true}.cut()
}

// CutUnitWithoutLabels is like CutUnit, for units that were written before they had Labels.
func CutUnitWithoutLabels(b []byte) (u *Unit, rest []byte, err error) {
	return unitCodec{b: b, reading: true, labelless: true}.cut()
}

// CutUnitWithoutSteps is like CutUnit, for units that were written before they had Steps and Labels.
func CutUnitWithoutSteps(b []byte) (u *Unit, rest []byte, err error) {
	return unitCodec{b: b, reading: true, labelless: true, stepless: true}.cut()
}

// CutOldUnit is like CutUnit, for units that were written before repeated floats took one byte and before units had
// Steps and Labels.
func CutOldUnit(b []byte) (u *Unit, rest []byte, err error) {
	return unitCodec{b: b, reading: true, labelless: true, stepless: true, old: true}.cut()
}

func (c unitCodec) cut() (u *Unit, rest []byte, err error) {
	u = &Unit{}
	c.unit(u)
	if c.damaged || int(u.End) >= Ends || u.ActionKind > ActionNumeric || u.Pos.Partition < 0 ||
		u.Propensity != nil && len(u.Propensity.Actions) > len(u.Actions) {
		return nil, nil, fmt.Errorf("%w: its values are invalid", ErrUnitDamaged)
	}
	u.First.Partition, u.Last.Partition = u.Pos.Partition, u.Pos.Partition
	return u, c.b, nil
}

func (c *unitCodec) unit(u *Unit) {
	c.text(&u.Group.Policy)
	c.text(&u.Group.labels)
	c.text(&u.Agent)
	c.text(&u.Episode)
	number(c, &u.End)
	c.flags(&u.Mixed, &u.Shadow, &u.HasReturn, &u.MixedActionKinds, &u.Shown)
	c.text(&u.Versions.Policy)
	c.text(&u.Versions.Env)
	c.text(&u.Versions.Reward)
	number(c, &u.EndTS)
	c.near(&u.StartTS, u.EndTS)
	number(c, &u.Pos.Partition)
	number(c, &u.Pos.Offset)
	number(c, &u.Pos.Record)
	c.near(&u.First.Offset, u.Pos.Offset)
	number(c, &u.First.Record)
	c.near(&u.Last.Offset, u.Pos.Offset)
	number(c, &u.Last.Record)
	number(c, &u.Ord)
	number(c, &u.Reading)
	number(c, &u.Run)
	number(c, &u.Length)
	c.float(&u.Return)
	c.moments(&u.Reward)
	c.float(&u.RewardQ10)
	c.float(&u.RewardQ90)
	number(c, &u.LongestConstant)
	c.float(&u.ConstantReward)
	list(c, &u.Profile, func(x *float32) {
		bit := math.Float32bits(*x)
		number(c, &bit)
		if c.reading {
			*x = math.Float32frombits(bit)
		}
	})
	number(c, &u.ProfileSteps)
	number(c, &u.ActionKind)
	list(c, &u.Actions, func(a *Count) {
		c.text(&a.Name)
		number(c, &a.N)
		c.float(&a.Reward)
	})
	list(c, &u.Numeric, func(n *NamedMoments) {
		c.text(&n.Signal)
		c.moments(&n.Moments)
		c.float(&n.Q10)
		c.float(&n.Q90)
	})
	for _, n := range []*int64{&u.Events, &u.Backwards, &u.Duplicates, &u.Late, &u.Abandoned, &u.Unfinished} {
		number(c, n)
	}
	c.propensity(u)
	if !c.stepless {
		c.steps(u)
	}
	c.labels(u)
}

func (c *unitCodec) labels(u *Unit) {
	if c.labelless {
		return
	}
	list(c, &u.Labels, func(l *Label) {
		c.text(&l.Name)
		c.text(&l.Value)
	})
}

func (c *unitCodec) propensity(u *Unit) {
	has := u.Propensity != nil
	c.flags(&has)
	if !has {
		return
	}
	if c.reading {
		u.Propensity = &Propensity{}
	}
	p := u.Propensity
	for _, n := range []*int64{&p.Steps, &p.Invalid, &p.Targets} {
		number(c, n)
	}
	for _, x := range []*float64{&p.Log, &p.LogTarget, &p.Weight, &p.WeightedReward} {
		c.float(x)
	}
	list(c, &p.Actions, func(a *InverseProbs) {
		c.float(&a.Sum)
		c.float(&a.Reward)
	})
}

func (c *unitCodec) moments(m *Moments) {
	number(c, &m.N)
	number(c, &m.NonFinite)
	for _, x := range []*float64{&m.Mean, &m.M2, &m.Min, &m.Max, &m.Positive, &m.Negative} {
		c.float(x)
	}
}

// uint reads or writes an unsigned number.
func (c *unitCodec) uint(x *uint64) {
	if !c.reading {
		c.b = binary.AppendUvarint(c.b, *x)
		return
	}
	n := 0
	if *x, n = binary.Uvarint(c.b); n <= 0 {
		*x, c.damaged, c.b = 0, true, nil
		return
	}
	c.b = c.b[n:]
}

// number reads or writes an integer. Small ones take one byte.
func number[N ~int64 | ~int32 | ~uint32 | ~uint8](c *unitCodec, x *N) {
	signed := int64(*x)
	zigzag := uint64(signed)<<1 ^ uint64(signed>>63)
	if !c.reading && zigzag < 1<<7 { // same as in uint, but faster for the small numbers, which are most of them
		c.b = append(c.b, byte(zigzag))
		return
	}
	c.uint(&zigzag)
	if c.reading {
		signed = int64(zigzag>>1) ^ -int64(zigzag&1)
		*x = N(signed)
		c.damaged = c.damaged || int64(*x) != signed
	}
}

// near reads or writes a number as its difference from another one.
func (c *unitCodec) near(x *int64, from int64) {
	distance := *x - from
	number(c, &distance)
	if c.reading {
		*x = from + distance
	}
}

// A float is encoded as the number of its leading bytes that follow, from the most significant one; the omitted bytes
// are 0. The first byte can also be one of these values instead.
const (
	floatLast    = 9  // same bits as the last float other than 0
	floatOpposed = 10 // the same with the opposite sign
)

const signBit = 1 << 63

// float reads or writes a number without loss. Round numbers take a few bytes, repeated ones a single byte.
func (c *unitCodec) float(x *float64) {
	if c.reading {
		*x = math.Float64frombits(c.readFloat())
		return
	}
	switch bit := math.Float64bits(*x); bit {
	case 0:
		c.b = append(c.b, 0)
	case c.last:
		c.b = append(c.b, floatLast)
	case c.last ^ signBit:
		c.b = append(c.b, floatOpposed)
	default:
		n := 8 - bits.TrailingZeros64(bit)/8
		c.b = append(c.b, byte(n))
		c.b = binary.BigEndian.AppendUint64(c.b, bit)[:len(c.b)+n]
		c.last = bit
	}
}

func (c *unitCodec) readFloat() (bit uint64) {
	if c.old {
		c.uint(&bit)
		return bits.ReverseBytes64(bit)
	}
	if len(c.b) == 0 {
		c.damaged = true
		return 0
	}
	n := int(c.b[0])
	c.b = c.b[1:]
	switch {
	case n == floatLast:
		return c.last
	case n == floatOpposed:
		return c.last ^ signBit
	case n > min(8, len(c.b)):
		c.damaged, c.b = true, nil
		return 0
	}
	var whole [8]byte
	copy(whole[:], c.b[:n])
	c.b = c.b[n:]
	if bit = binary.BigEndian.Uint64(whole[:]); bit != 0 {
		c.last = bit
	}
	return bit
}

func (c *unitCodec) flags(all ...*bool) {
	set := uint64(0)
	for i, flag := range all {
		if *flag {
			set |= 1 << i
		}
	}
	c.uint(&set)
	if !c.reading {
		return
	}
	for i, flag := range all {
		*flag = set>>i&1 == 1
	}
}

func (c *unitCodec) text(s *string) {
	length := uint64(len(*s))
	c.uint(&length)
	switch {
	case !c.reading:
		c.b = append(c.b, *s...)
	case length > uint64(len(c.b)):
		c.damaged, c.b = true, nil
	default:
		*s, c.b = string(c.b[:length]), c.b[length:]
	}
}

// list reads or writes a list. An empty list is read as nil.
func list[T any](c *unitCodec, l *[]T, each func(*T)) {
	length := uint64(len(*l))
	c.uint(&length)
	if length > uint64(len(c.b)) && c.reading { // each element takes at least one byte
		c.damaged, c.b = true, nil
		return
	}
	if c.reading && length > 0 {
		*l = make([]T, length)
	}
	for i := range *l {
		each(&(*l)[i])
	}
}
