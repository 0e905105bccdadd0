package ingest

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// UnitSequence writes or reads consecutive units. A decision (a one-step unit) usually differs little from the previous
// one of its group. In that case, only the differences are written, which takes a fraction of the space and time. The
// zero value is ready to use. Do not use Append and Cut on the same sequence.
type UnitSequence struct {
	shapes     []unitShape
	newest     map[Group]int // index of the latest shape of each group
	last       int           // shape of the last decision
	ts, offset int64         // of the last decision
	values     []float64     // reused memory for the values of one decision
	labelless  bool          // whether the units are from before they had Labels
}

// NewUnitSequenceWithoutLabels returns a sequence that reads units written before they had Labels.
func NewUnitSequenceWithoutLabels() *UnitSequence { return &UnitSequence{labelless: true} }

// Limits for what is remembered for later decisions.
const (
	mostShapes       = 512
	mostShapeSignals = 16
	mostShapeActions = 16
)

// unitShape contains the fields that many decisions of one partition have in common.
type unitShape struct {
	DecisionShape
	like      *DecisionShape // the last shape that was found to be equal
	partition Partition
	reading   int64
	actions   []string // actions of its decisions so far, if Acts
	next      int      // shape of the decision that followed the last one of this shape
}

// Reset begins a new sequence, which does not refer to earlier units.
func (q *UnitSequence) Reset() {
	clear(q.newest)
	q.shapes, q.last, q.ts, q.offset = q.shapes[:0], 0, 0, 0
}

// Append appends a unit to b. Unlike AppendUnit, it may refer to earlier units of the sequence.
func (q *UnitSequence) Append(b []byte, u *Unit) []byte {
	plain := isPlainDecision(u)
	if plain {
		if at := q.shapeOf(u); at >= 0 {
			d := Decision{Agent: u.Agent, Episode: u.Episode, TS: u.EndTS, Pos: u.Pos, Ord: u.Ord, Run: u.Run, Reward: u.Return}
			if len(u.Actions) > 0 {
				d.Action = u.Actions[0].Name
			}
			q.values = q.values[:0]
			for i := range u.Numeric {
				q.values = append(q.values, u.Numeric[i].Mean)
			}
			return q.append(b, at, &d, q.values)
		}
	}
	b = AppendUnit(append(b, 0), u)
	if plain {
		q.remember(u)
	}
	return b
}

// AppendDecision appends a decision. The bytes are the same as those of Append for its unit.
func (q *UnitSequence) AppendDecision(b []byte, d *Decision) []byte {
	at := q.shapeOfDecision(d)
	if at < 0 {
		return q.Append(b, d.Unit())
	}
	return q.append(b, at, d, d.Values[:len(d.Shape.Signals)])
}

// append appends a decision with the shape at the given index.
func (q *UnitSequence) append(b []byte, at int, d *Decision, values []float64) []byte {
	c := unitCodec{b: binary.AppendUvarint(b, uint64(at)+1)}
	q.decision(&c, &q.shapes[at], d, values)
	q.follow(at)
	return c.b
}

// Cut decodes the unit at the beginning of b, which Append wrote, and returns the remaining bytes. The error wraps
// ErrUnitDamaged.
func (q *UnitSequence) Cut(b []byte) (u *Unit, rest []byte, err error) {
	at, n := binary.Uvarint(b)
	switch {
	case n <= 0 || at > uint64(len(q.shapes)):
		return nil, nil, fmt.Errorf("%w: unknown shape", ErrUnitDamaged)
	case at == 0:
		cut := CutUnit
		if q.labelless {
			cut = CutUnitWithoutLabels
		}
		if u, rest, err = cut(b[n:]); err == nil && isPlainDecision(u) {
			q.remember(u)
		}
		return u, rest, err
	}
	s := &q.shapes[at-1]
	d := Decision{Shape: &s.DecisionShape, Pos: Position{Partition: s.partition}, Reading: s.reading}
	q.values = slices.Grow(q.values[:0], len(s.Signals))[:len(s.Signals)]
	c := unitCodec{b: b[n:], reading: true}
	q.decision(&c, s, &d, q.values)
	u = &Unit{}
	d.Fill(u, q.values)
	if c.damaged || !isPlainDecision(u) {
		return nil, nil, fmt.Errorf("%w: its values are invalid", ErrUnitDamaged)
	}
	return u, c.b, nil
}

// shapeOf returns the index of a decision's shape, or -1. Groups often arrive in the same order, so the shape is nearly
// always the one that followed the last shape before.
func (q *UnitSequence) shapeOf(u *Unit) int {
	if len(q.shapes) == 0 {
		return -1
	}
	if at := q.shapes[q.last].next; at < len(q.shapes) && q.shapes[at].fits(u) {
		return at
	}
	if at, known := q.newest[u.Group]; known && q.shapes[at].fits(u) {
		return at
	}
	return -1
}

// shapeOfDecision is like shapeOf for a Decision.
func (q *UnitSequence) shapeOfDecision(d *Decision) int {
	if len(q.shapes) == 0 {
		return -1
	}
	if at := q.shapes[q.last].next; at < len(q.shapes) && q.shapes[at].fitsDecision(d) {
		return at
	}
	if at, known := q.newest[d.Shape.Group]; known && q.shapes[at].fitsDecision(d) {
		return at
	}
	return -1
}

// follow records the shape of the decision that was just read or written.
func (q *UnitSequence) follow(at int) { q.shapes[q.last].next, q.last = at, at }

// remember adds the shape of a decision that was written or read as a complete unit.
func (q *UnitSequence) remember(u *Unit) {
	at := len(q.shapes)
	if at == mostShapes || len(u.Numeric) > mostShapeSignals {
		return
	}
	if q.newest == nil {
		q.newest = map[Group]int{}
	}
	q.newest[u.Group] = at
	if at < cap(q.shapes) {
		q.shapes = q.shapes[:at+1]
	} else {
		q.shapes = append(q.shapes, unitShape{})
	}
	s := &q.shapes[at]
	*s = unitShape{
		DecisionShape: DecisionShape{
			Group: u.Group, Versions: u.Versions, Unfinished: u.Unfinished, End: u.End, Kind: u.ActionKind, Shadow: u.Shadow,
			Acts: len(u.Actions) > 0, Signals: s.Signals[:0],
		},
		partition: u.Pos.Partition, reading: u.Reading, actions: s.actions[:0], next: at,
	}
	for i := range u.Numeric {
		n := &u.Numeric[i]
		s.Signals = append(s.Signals, DecisionSignal{n.Signal, n.Q10 != 0})
	}
	if s.Acts {
		s.actions = append(s.actions, u.Actions[0].Name)
	}
	q.follow(at)
}

// fits reports whether a unit, which must be a plain decision, has the shape.
func (s *unitShape) fits(u *Unit) bool {
	if u.Group != s.Group || u.Versions != s.Versions || u.Pos.Partition != s.partition || u.Reading != s.reading || u.Unfinished != s.Unfinished ||
		u.End != s.End || u.ActionKind != s.Kind || u.Shadow != s.Shadow || len(u.Actions) > 0 != s.Acts || len(u.Numeric) != len(s.Signals) {
		return false
	}
	for i := range s.Signals {
		n, outer := &u.Numeric[i], s.Signals[i].Outer
		if n.Signal != s.Signals[i].Name || outer != (n.Q10 != 0) && n.Mean != 0 {
			return false
		}
	}
	return true
}

// fitsDecision is like fits for a Decision. Most decisions share few shapes, so a shape is compared only once and then
// recognized by its pointer.
func (s *unitShape) fitsDecision(d *Decision) bool {
	if d.Pos.Partition != s.partition || d.Reading != s.reading || d.Shape != s.like && !s.isLike(d.Shape) {
		return false
	}
	s.like = d.Shape
	for i := range s.Signals {
		if s.Signals[i].Outer != d.Shape.Signals[i].Outer && d.Values[i] != 0 {
			return false
		}
	}
	return true
}

// isLike reports whether two shapes are equal, ignoring Outer of their signals.
func (s *DecisionShape) isLike(o *DecisionShape) bool {
	return s.Group == o.Group && s.Versions == o.Versions && s.Unfinished == o.Unfinished && s.End == o.End && s.Kind == o.Kind &&
		s.Shadow == o.Shadow && s.Acts == o.Acts &&
		slices.EqualFunc(s.Signals, o.Signals, func(a, b DecisionSignal) bool { return a.Name == b.Name })
}

// decision reads or writes the fields in which a decision can differ from others of its shape.
func (q *UnitSequence) decision(c *unitCodec, s *unitShape, d *Decision, values []float64) {
	c.text(&d.Agent)
	c.text(&d.Episode)
	c.near(&d.TS, q.ts)
	c.near(&d.Pos.Offset, q.offset)
	q.ts, q.offset = d.TS, d.Pos.Offset
	number(c, &d.Pos.Record)
	number(c, &d.Ord)
	number(c, &d.Run)
	c.float(&d.Reward)
	if s.Acts {
		c.action(s, &d.Action)
	}
	for i := range values {
		c.float(&values[i])
	}
}

// action reads or writes the action of a decision as its index in the shape's actions. The text of a new action follows
// its index.
func (c *unitCodec) action(s *unitShape, name *string) {
	at := uint64(0)
	for !c.reading && at < uint64(len(s.actions)) && s.actions[at] != *name {
		at++
	}
	c.uint(&at)
	switch {
	case at < uint64(len(s.actions)):
		*name = s.actions[at]
		return
	case at > uint64(len(s.actions)):
		c.damaged, c.b = true, nil
		return
	}
	if c.text(name); len(s.actions) < mostShapeActions {
		s.actions = append(s.actions, *name)
	}
}

// momentsOf returns the moments of one value.
func momentsOf(x float64) (m Moments) {
	m.Add(x)
	return m
}

// isPlainDecision reports whether a unit can be represented as a Decision with any number of values: it is a decision
// with a reward, and has no other information.
func isPlainDecision(u *Unit) bool {
	x := u.Return
	if u.Length != 1 || u.Events != 1 || !u.HasReturn || u.Mixed || u.Shown || u.MixedActionKinds || u.LongestConstant != 1 || u.ProfileSteps != 1 ||
		u.Backwards|u.Duplicates|u.Late|u.Abandoned != 0 || u.Propensity != nil || u.Steps != nil || u.Labels != nil || len(u.Profile) != 1 || len(u.Actions) > 1 ||
		u.First != u.Pos || u.Last != u.Pos || u.StartTS != u.EndTS || !areOf(&u.Reward, x) || !same(u.RewardQ10, x) || !same(u.RewardQ90, x) ||
		!same(u.ConstantReward, x) || math.Float32bits(u.Profile[0]) != math.Float32bits(float32(x)) {
		return false
	}
	if len(u.Actions) > 0 && (u.Actions[0].N != 1 || !same(u.Actions[0].Reward, x)) {
		return false
	}
	for i := range u.Numeric {
		n := &u.Numeric[i]
		if !areOf(&n.Moments, n.Mean) || !same(n.Q10, n.Q90) || n.Q10 != 0 && !same(n.Q10, n.Mean) || n.Q10 == 0 && !same(n.Q10, 0) {
			return false
		}
	}
	return true
}

// areOf reports whether m contains exactly the finite value x, and x is not negative zero.
func areOf(m *Moments, x float64) bool {
	if m.N != 1 || m.NonFinite != 0 || !same(m.M2, 0) || !same(m.Mean, x) || !same(m.Min, x) || !same(m.Max, x) || same(x, math.Copysign(0, -1)) {
		return false
	}
	if x > 0 {
		return same(m.Positive, x) && same(m.Negative, 0) && x <= math.MaxFloat64
	}
	return same(m.Positive, 0) && same(m.Negative, 0-x) && x >= -math.MaxFloat64
}

// same reports whether two numbers have identical bits.
func same(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }
