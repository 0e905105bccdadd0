package ingest

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// UnitSequence writes or reads consecutive units. A decision (a one-step unit) usually differs little from the previous
// one of its group: then only the differences are written, which takes a fraction of the bytes and the time. The zero
// value is ready to use. Do not use Append and Cut with the same sequence.
type UnitSequence struct {
	shapes     []unitShape
	newest     map[Group]int // the shape of a group that was added last
	last       int           // the shape of the last decision
	ts, offset int64         // of the last decision
	values     []float64     // memory for those of one decision
	labelless  bool          // whether units are read as before they had labels
}

// NewUnitSequenceWithoutLabels returns a sequence that reads what was written before units had Labels.
func NewUnitSequenceWithoutLabels() *UnitSequence { return &UnitSequence{labelless: true} }

// Bounds of what is remembered for the decisions that follow.
const (
	mostShapes       = 512
	mostShapeSignals = 16
	mostShapeActions = 16
)

// unitShape is what decisions of one partition have in common.
type unitShape struct {
	DecisionShape
	like      *DecisionShape // the last one that was found to be the same
	partition Partition
	reading   int64
	actions   []string // one of which was taken, if Acts
	next      int      // the shape of the decision behind the last one of this shape
}

// Reset begins a new sequence, which does not refer to earlier units.
func (q *UnitSequence) Reset() {
	clear(q.newest)
	q.shapes, q.last, q.ts, q.offset = q.shapes[:0], 0, 0, 0
}

// Append appends a unit to b, as AppendUnit does.
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

// AppendDecision appends a decision in the same form as Append appends its unit.
func (q *UnitSequence) AppendDecision(b []byte, d *Decision) []byte {
	at := q.shapeOfDecision(d)
	if at < 0 {
		return q.Append(b, d.Unit())
	}
	return q.append(b, at, d, d.Values[:len(d.Shape.Signals)])
}

// append appends a decision of a shape.
func (q *UnitSequence) append(b []byte, at int, d *Decision, values []float64) []byte {
	c := unitCodec{b: binary.AppendUvarint(b, uint64(at)+1)}
	q.decision(&c, &q.shapes[at], d, values)
	q.follow(at)
	return c.b
}

// Cut reads the unit at the beginning of b, as CutUnit does.
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

// shapeOf returns the shape of a decision, or -1. Groups often come in the same order, so it is nearly always the one that
// came next before.
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

// shapeOfDecision is shapeOf for a decision.
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

// follow notes the shape of a decision.
func (q *UnitSequence) follow(at int) { q.shapes[q.last].next, q.last = at, at }

// remember adds the shape of a decision that was written or read whole.
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

// fits reports whether a unit, which is a decision, has the shape.
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

// fitsDecision is fits for a decision. Nearly all are of few shapes, which are compared once.
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

// isLike reports whether two shapes are the same, except for which signals are outer deciles.
func (s *DecisionShape) isLike(o *DecisionShape) bool {
	return s.Group == o.Group && s.Versions == o.Versions && s.Unfinished == o.Unfinished && s.End == o.End && s.Kind == o.Kind &&
		s.Shadow == o.Shadow && s.Acts == o.Acts &&
		slices.EqualFunc(s.Signals, o.Signals, func(a, b DecisionSignal) bool { return a.Name == b.Name })
}

// decision reads or writes what distinguishes a decision from others of its shape.
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

// action reads or writes the action of a decision: its place among those of the shape, and a new one behind them.
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

// isPlainDecision reports whether a unit is a decision with a reward, that has nothing else than its values.
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

// areOf reports whether moments are those of one finite value.
func areOf(m *Moments, x float64) bool {
	if m.N != 1 || m.NonFinite != 0 || !same(m.M2, 0) || !same(m.Mean, x) || !same(m.Min, x) || !same(m.Max, x) || same(x, math.Copysign(0, -1)) {
		return false
	}
	if x > 0 {
		return same(m.Positive, x) && same(m.Negative, 0) && x <= math.MaxFloat64
	}
	return same(m.Positive, 0) && same(m.Negative, 0-x) && x >= -math.MaxFloat64
}

// same reports whether two numbers have the same bits.
func same(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }
