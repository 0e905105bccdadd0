package ingest

import "unsafe"

// MostDecisionValues is the maximum number of values in a Decision.
const MostDecisionValues = 4

// Decision is a one-step unit with a finite reward and nothing else except an action and a few finite numbers. Most
// one-step units qualify. A Decision takes a fraction of the memory of a Unit, and therefore less time on its way to
// the bank.
type Decision struct {
	Shape          *DecisionShape
	Agent, Episode string
	TS             int64    // StartTS and EndTS of the Unit
	Pos            Position // First, Last and Pos of the Unit
	Ord            int32
	Reading, Run   int64
	Reward         float64
	Action         string                      // if Shape.Acts
	Values         [MostDecisionValues]float64 // of Shape.Signals, in order
}

// DecisionShape contains the fields that many decisions have in common. Decisions share it, so it must not be changed
// once a decision refers to it.
type DecisionShape struct {
	Group        Group
	Versions     Versions
	Unfinished   int64
	End          End
	Kind         ActionKind
	Shadow, Acts bool // Acts: whether the action is a category
	Signals      []DecisionSignal
}

// DecisionSignal is a numeric signal of decisions.
type DecisionSignal struct {
	Name  string
	Outer bool // whether Q10 and Q90 are set to the value, as for all signals except outcomes
}

// Value returns the values of a unit for the signal at an index of Signals, given its only value.
func (s *DecisionShape) Value(at int, value float64) NamedMoments {
	n := NamedMoments{Signal: s.Signals[at].Name, Moments: momentsOf(value)}
	if s.Signals[at].Outer {
		n.Q10, n.Q90 = value, value
	}
	return n
}

// Bytes returns the approximate memory of the decision, without its shape.
func (d *Decision) Bytes() int64 {
	return int64(int(unsafe.Sizeof(*d)) + len(d.Agent) + len(d.Episode))
}

// Place returns the position of the decision in its partition.
func (d *Decision) Place() AppliedUnit {
	return AppliedUnit{Pos: d.Pos, Ord: d.Ord, Reading: d.Reading}
}

// Unit returns the decision as a unit in newly allocated memory.
func (d *Decision) Unit() *Unit {
	u := NewShortUnit()
	d.Fill(u, d.Values[:len(d.Shape.Signals)])
	return u
}

// DecisionUnit holds memory that is reused for the unit of each decision.
type DecisionUnit struct {
	unit    Unit
	actions [1]Count
	numeric [MostDecisionValues]NamedMoments
	profile [1]float32
}

// Of returns a decision as a unit. The unit is valid until the next call.
func (m *DecisionUnit) Of(d *Decision) *Unit {
	m.unit.Actions, m.unit.Numeric, m.unit.Profile = m.actions[:0], m.numeric[:0], m.profile[:0]
	d.Fill(&m.unit, d.Values[:len(d.Shape.Signals)])
	return &m.unit
}

// Fill makes u the unit of the decision, and reuses the memory of u's lists. values are the values of the shape's
// signals, and may be more than fit into d.Values. Fill is the inverse of isPlainDecision.
func (d *Decision) Fill(u *Unit, values []float64) {
	s, x := d.Shape, d.Reward
	*u = Unit{
		Group: s.Group, Agent: d.Agent, Episode: d.Episode, End: s.End, Shadow: s.Shadow, Versions: s.Versions, StartTS: d.TS, EndTS: d.TS,
		First: d.Pos, Last: d.Pos, Pos: d.Pos, Ord: d.Ord, Reading: d.Reading, Run: d.Run, Length: 1, HasReturn: true, Return: x,
		Reward: momentsOf(x), RewardQ10: x, RewardQ90: x, LongestConstant: 1, ConstantReward: x,
		Profile: append(u.Profile[:0], float32(x)), ProfileSteps: 1, ActionKind: s.Kind, Events: 1, Unfinished: s.Unfinished,
		Actions: u.Actions[:0], Numeric: u.Numeric[:0],
	}
	if s.Acts {
		u.Actions = append(u.Actions, Count{Name: d.Action, N: 1, Reward: x})
	} else {
		u.Actions = nil // like the empty lists of other units
	}
	for i, value := range values {
		u.Numeric = append(u.Numeric, s.Value(i, value))
	}
	if len(values) == 0 {
		u.Numeric = nil
	}
}

// shortUnit is a unit of one event in a single allocation, with room for the lists of most such units.
type shortUnit struct {
	Unit
	actions [1]Count
	numeric [1]NamedMoments
	profile [1]float32
}

// NewShortUnit returns a unit with room for an action, a numeric signal and a profile of one segment.
func NewShortUnit() *Unit {
	short := &shortUnit{}
	u := &short.Unit
	u.Actions, u.Numeric, u.Profile = short.actions[:0], short.numeric[:0], short.profile[:0]
	return u
}

// episodeUnit is a unit of several events in a single allocation, with room for the lists of most such units.
type episodeUnit struct {
	Unit
	actions [roomForActions]Count
	numeric [roomForSignals]NamedMoments
	profile [roomForProfile]float32
}

// The capacities of a unit from NewEpisodeUnit. No profile has more segments than roomForProfile.
const (
	roomForActions = 4
	roomForSignals = 2
	roomForProfile = 32
)

// NewEpisodeUnit returns a unit with room for any profile and, unless they exceed the capacities above, for the given
// numbers of actions and numeric signals. Most units then take a single allocation.
func NewEpisodeUnit(actions, signals int) *Unit {
	if actions > roomForActions || signals > roomForSignals {
		return &Unit{}
	}
	long := &episodeUnit{}
	u := &long.Unit
	u.Actions, u.Numeric, u.Profile = long.actions[:0], long.numeric[:0], long.profile[:0]
	return u
}
