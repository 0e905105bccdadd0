package ingest

import (
	"encoding/binary"
	"fmt"
	"math"
)

// UnitSequence writes or reads units one after the other. A decision, which is a unit of one step, is like the one before
// of its group in nearly everything: then only what differs is written, which takes a fraction of the bytes and of the
// time. The zero value is ready to use. Append and Cut are not used with the same sequence.
type UnitSequence struct {
	shapes     []unitShape
	newest     map[Group]int // the shape of a group that was added last
	last       int           // the shape of the last decision
	ts, offset int64         // of the last decision
}

// Bounds of what is remembered for the decisions that follow.
const (
	mostShapes       = 512
	mostShapeSignals = 16
	mostShapeActions = 16
)

// unitShape is what decisions have in common.
type unitShape struct {
	group        Group
	versions     Versions
	partition    Partition
	reading      int64
	unfinished   int64
	end          End
	kind         ActionKind
	shadow, acts bool
	signals      []signalShape
	actions      []string // one of which was taken, if acts
	next         int      // the shape of the decision behind the last one of this shape
}

// signalShape is a numeric signal of decisions.
type signalShape struct {
	name  string
	outer bool // whether its value is its outer deciles too
}

// Reset begins a new sequence, which does not refer to what was before.
func (q *UnitSequence) Reset() {
	clear(q.newest)
	q.shapes, q.last, q.ts, q.offset = q.shapes[:0], 0, 0, 0
}

// Append appends a unit to b, as AppendUnit does.
func (q *UnitSequence) Append(b []byte, u *Unit) []byte {
	plain := isPlainDecision(u)
	if plain {
		if at := q.shapeOf(u); at >= 0 {
			c := unitCodec{b: binary.AppendUvarint(b, uint64(at)+1)}
			q.decision(&c, &q.shapes[at], u)
			q.follow(at)
			return c.b
		}
	}
	b = AppendUnit(append(b, 0), u)
	if plain {
		q.remember(u)
	}
	return b
}

// Cut reads the unit at the beginning of b, as CutUnit does.
func (q *UnitSequence) Cut(b []byte) (u *Unit, rest []byte, err error) {
	at, n := binary.Uvarint(b)
	switch {
	case n <= 0 || at > uint64(len(q.shapes)):
		return nil, nil, fmt.Errorf("%w: it is like none before", ErrUnitDamaged)
	case at == 0:
		if u, rest, err = CutUnit(b[n:]); err == nil && isPlainDecision(u) {
			q.remember(u)
		}
		return u, rest, err
	}
	s := &q.shapes[at-1]
	u = s.unit()
	c := unitCodec{b: b[n:], reading: true}
	q.decision(&c, s, u)
	if c.damaged || !isPlainDecision(u) {
		return nil, nil, fmt.Errorf("%w: its values are impossible", ErrUnitDamaged)
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
		group: u.Group, versions: u.Versions, partition: u.Pos.Partition, reading: u.Reading, unfinished: u.Unfinished, end: u.End,
		kind: u.ActionKind, shadow: u.Shadow, acts: len(u.Actions) > 0, signals: s.signals[:0], actions: s.actions[:0], next: at,
	}
	for i := range u.Numeric {
		n := &u.Numeric[i]
		s.signals = append(s.signals, signalShape{n.Signal, n.Q10 != 0})
	}
	if s.acts {
		s.actions = append(s.actions, u.Actions[0].Name)
	}
	q.follow(at)
}

// fits reports whether a decision has the shape.
func (s *unitShape) fits(u *Unit) bool {
	if u.Group != s.group || u.Versions != s.versions || u.Pos.Partition != s.partition || u.Reading != s.reading || u.Unfinished != s.unfinished ||
		u.End != s.end || u.ActionKind != s.kind || u.Shadow != s.shadow || len(u.Actions) > 0 != s.acts || len(u.Numeric) != len(s.signals) {
		return false
	}
	for i := range s.signals {
		n, outer := &u.Numeric[i], s.signals[i].outer
		if n.Signal != s.signals[i].name || outer != (n.Q10 != 0) && n.Mean != 0 {
			return false
		}
	}
	return true
}

// unit returns a decision of the shape without what distinguishes it.
func (s *unitShape) unit() *Unit {
	u := &Unit{
		Group: s.group, Versions: s.versions, Reading: s.reading, Unfinished: s.unfinished, End: s.end, ActionKind: s.kind, Shadow: s.shadow,
		HasReturn: true, Length: 1, Events: 1, LongestConstant: 1, Profile: make([]float32, 1), ProfileSteps: 1,
	}
	u.Pos.Partition = s.partition
	if s.acts {
		u.Actions = []Count{{N: 1}}
	}
	for _, n := range s.signals {
		u.Numeric = append(u.Numeric, NamedMoments{Signal: n.name})
	}
	return u
}

// decision reads or writes what distinguishes a decision from others of its shape.
func (q *UnitSequence) decision(c *unitCodec, s *unitShape, u *Unit) {
	c.text(&u.Agent)
	c.text(&u.Episode)
	c.near(&u.EndTS, q.ts)
	c.near(&u.Pos.Offset, q.offset)
	q.ts, q.offset = u.EndTS, u.Pos.Offset
	number(c, &u.Pos.Record)
	number(c, &u.Ord)
	number(c, &u.Run)
	c.float(&u.Return)
	if s.acts {
		c.action(s, &u.Actions[0].Name)
	}
	for i := range u.Numeric {
		c.float(&u.Numeric[i].Mean)
	}
	if c.reading {
		completeDecision(s, u)
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

// completeDecision sets what follows from the values that are written. It is the inverse of isPlainDecision.
func completeDecision(s *unitShape, u *Unit) {
	x := u.Return
	u.First, u.Last, u.StartTS = u.Pos, u.Pos, u.EndTS
	u.Reward = momentsOf(x)
	u.RewardQ10, u.RewardQ90, u.ConstantReward = x, x, x
	u.Profile[0] = float32(x)
	if s.acts {
		u.Actions[0].Reward = x
	}
	for i := range u.Numeric {
		n := &u.Numeric[i]
		if n.Moments = momentsOf(n.Mean); s.signals[i].outer {
			n.Q10, n.Q90 = n.Mean, n.Mean
		}
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
	if u.Length != 1 || u.Events != 1 || !u.HasReturn || u.Mixed || u.MixedActionKinds || u.LongestConstant != 1 || u.ProfileSteps != 1 ||
		u.Backwards|u.Duplicates|u.Late|u.Abandoned != 0 || u.Propensity != nil || u.Steps != nil || len(u.Profile) != 1 || len(u.Actions) > 1 ||
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
