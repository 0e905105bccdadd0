package ingest

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Group is a policy with the values of its group_by labels. It is comparable: groups are equal when policy, label
// names and values are.
type Group struct {
	Policy string
	labels string // name, 0, value, 0, ... in the order of group_by
}

// NewGroup makes the group of a policy from its group_by labels, in their order. A NUL in a value is replaced.
func NewGroup(policy string, labels ...Label) Group {
	if len(labels) == 0 {
		return Group{Policy: policy}
	}
	var b strings.Builder
	for _, l := range labels {
		b.WriteString(l.Name)
		b.WriteByte(0)
		b.WriteString(strings.ReplaceAll(l.Value, "\x00", "�"))
		b.WriteByte(0)
	}
	return Group{Policy: policy, labels: b.String()}
}

// Labels gives the group_by labels in order.
func (g Group) Labels() []Label {
	var out []Label
	for rest := g.labels; rest != ""; {
		name, after, _ := strings.Cut(rest, "\x00")
		value, more, _ := strings.Cut(after, "\x00")
		out = append(out, Label{Name: name, Value: value})
		rest = more
	}
	return out
}

// Map gives the group_by labels as a map, never nil.
func (g Group) Map() map[string]string {
	m := map[string]string{}
	for _, l := range g.Labels() {
		m[l.Name] = l.Value
	}
	return m
}

// String gives policy{name="value",...}.
func (g Group) String() string {
	var b strings.Builder
	b.WriteString(g.Policy)
	b.WriteByte('{')
	for i, l := range g.Labels() {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(l.Name + `="` + l.Value + `"`)
	}
	b.WriteByte('}')
	return b.String()
}

// MarshalBinary encodes the group for snapshots.
func (g Group) MarshalBinary() ([]byte, error) { return []byte(g.Policy + "\x00" + g.labels), nil }

// UnmarshalBinary reads what MarshalBinary wrote.
func (g *Group) UnmarshalBinary(b []byte) error {
	g.Policy, g.labels, _ = strings.Cut(string(b), "\x00")
	return nil
}

// End says how a unit ended.
type End uint8

// The ends of a unit. EndStep is an episode that was ended by a step that did not increase; EndBlock is a block of
// steps of a policy in whose telemetry no episode ends.
const (
	EndTerminated End = iota
	EndTruncated
	EndSummary
	EndStep
	EndBlock
)

// String gives the value of the label `end` of episodes_total.
func (e End) String() string {
	return [...]string{"terminated", "truncated", "summary", "step", "block"}[e]
}

// Moments sums up the finite values of one quantity over a unit by Welford's recurrence, and counts the others.
type Moments struct {
	N         int64 // finite values
	NonFinite int64 // NaN and infinite values
	Mean, M2  float64
	Min, Max  float64
	Positive  float64 // sum of the positive values
	Negative  float64 // sum of the negative values, as a positive number
}

// Add folds one value in.
func (m *Moments) Add(x float64) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		m.NonFinite++
		return
	}
	if m.N == 0 || x < m.Min {
		m.Min = x
	}
	if m.N == 0 || x > m.Max {
		m.Max = x
	}
	m.N++
	d := x - m.Mean
	m.Mean += d / float64(m.N)
	m.M2 += d * (x - m.Mean)
	if x > 0 {
		m.Positive += x
	} else {
		m.Negative -= x
	}
}

// Merge folds in the values that o has summed up (Chan, Golub & LeVeque 1983).
func (m *Moments) Merge(o Moments) {
	switch {
	case o.N == 0:
		m.NonFinite += o.NonFinite
		return
	case m.N == 0:
		o.NonFinite += m.NonFinite
		*m = o
		return
	}
	d, n := o.Mean-m.Mean, m.N+o.N
	m.Mean += d * float64(o.N) / float64(n)
	m.M2 += o.M2 + d*d*float64(m.N)*float64(o.N)/float64(n)
	m.N, m.NonFinite = n, m.NonFinite+o.NonFinite
	m.Min, m.Max = min(m.Min, o.Min), max(m.Max, o.Max)
	m.Positive += o.Positive
	m.Negative += o.Negative
}

// SD is the standard deviation over the values themselves (divisor N); 0 for fewer than two.
func (m *Moments) SD() float64 {
	if m.N < 2 || m.M2 <= 0 {
		return 0
	}
	return math.Sqrt(m.M2 / float64(m.N))
}

// Count is how often an action was taken, and what its steps were rewarded with.
type Count struct {
	_      struct{} `cbor:",toarray"`
	Name   string
	N      int64
	Reward float64 // sum of the finite rewards of its steps
}

// NamedMoments are the moments of one numeric signal other than the reward.
type NamedMoments struct {
	_      struct{} `cbor:",toarray"`
	Signal string
	Moments
	Q10, Q90 float64 // quantiles of the values, valid where N > 0; 0 of outcomes, whose mean says it all
}

// Unit is what detectors count in: a finished episode, or a block of steps of one agent where there are no episodes.
// The receiver owns it; it shares no memory with events.
type Unit struct {
	_              struct{} `cbor:",toarray"`
	Group          Group
	Agent, Episode string
	End            End
	Mixed          bool // a block of the steps of many agents, none of which takes enough for one of its own
	// Shadow says that its events had the label shadow: its policy did not serve. Lists of units are saved with Shadows
	// beside them, as this field came later than their format.
	Shadow         bool     `cbor:"-"`
	Versions       Versions // of its last event
	StartTS, EndTS int64    // Unix nanoseconds of its first and last event, 0 where the telemetry has no clock

	First, Last Position // offsets of its first and last event
	// Pos is the record at which the unit ended and Ord its rank among the units that this record ended: together they
	// order the units of one partition.
	Pos Position
	Ord int32
	// Reading tells the units of a partition that is read anew, so that its offsets may be those of other records, from
	// those that were read of it before.
	Reading int64
	// Run orders units of several partitions that end at the same time, before agent and episode do: it grows while a
	// partition goes on and its largest event time does not.
	Run int64

	Length    int64   // steps
	HasReturn bool    // whether Return is known
	Return    float64 // sum of rewards, or as the episode's summary says; may be NaN or infinite

	Reward          Moments // of the per-step rewards; N+NonFinite = 0 where there were none
	RewardQ10       float64 // quantiles of the per-step rewards, valid where Reward.N > 0
	RewardQ90       float64
	LongestConstant int64   // longest run of equal successive rewards inside the unit, in steps
	ConstantReward  float64 // the reward of that run, of the first one where several are as long
	// Profile is the course of the finite rewards: their means over segments of ProfileSteps steps each, in order, at
	// most 32. Steps at the end that do not fill a segment are left out. nil where there were no finite rewards.
	Profile      []float32
	ProfileSteps int64

	ActionKind       ActionKind
	MixedActionKinds bool           // the unit held categories and numbers
	Actions          []Count        // categories in order of first use; their counts sum to the steps with an action
	Numeric          []NamedMoments // action, action.<i>, outcome.<name>, reward_component.<name>, observation.<name>

	Events    int64 // records that make up the unit
	Backwards int64 // of them, those that are by more than a minute older than the one before, by their own times
	// Duplicates are events left out, while the unit grew, because the agent had sent them before; those of agents
	// without an open episode are told by the next unit of the group. Abandoned are the group's episodes given up since
	// its unit before because their ends never came. Both count within the partition.
	Duplicates int64
	Abandoned  int64
}

// Shadows gives the places of the units that are in shadow.
func Shadows(units []*Unit) (places []int) {
	for i, u := range units {
		if u.Shadow {
			places = append(places, i)
		}
	}
	return places
}

// SetShadows marks the units at the places that Shadows gave. It refuses places that are none.
func SetShadows(units []*Unit, places []int) error {
	for _, i := range places {
		if i < 0 || i >= len(units) || units[i] == nil {
			return fmt.Errorf("there is no unit %d to be in shadow", i)
		}
		units[i].Shadow = true
	}
	return nil
}

// After reports whether u ended after the unit at (pos, ord) of the same partition.
func (u *Unit) After(pos Position, ord int32) bool {
	if u.Pos != pos {
		return pos.Before(u.Pos)
	}
	return u.Ord > ord
}

// Range is a range of offsets of one partition, both ends included.
type Range struct {
	Partition int32 `json:"partition" yaml:"partition"` // in files 0
	First     int64 `json:"first" yaml:"first"`         // offset; in files the number of the record, from 0
	Last      int64 `json:"last" yaml:"last"`           // the same, part of the range
}

// String names the range as people read it.
func (r Range) String() string {
	return fmt.Sprintf("%d to %d of partition %d", r.First, r.Last, r.Partition)
}

// Range gives the offsets of the unit's events.
func (u *Unit) Range() Range {
	return Range{Partition: u.Pos.Partition, First: u.First.Offset, Last: u.Last.Offset}
}

// Widen adds more ranges to ranges, of which there is at most one a partition, and keeps it so: those of one partition
// become one that covers them all. ranges may be overwritten.
func Widen(ranges []Range, more ...Range) []Range {
	for _, r := range more {
		i := slices.IndexFunc(ranges, func(have Range) bool { return have.Partition == r.Partition })
		if i < 0 {
			ranges = append(ranges, r)
			continue
		}
		have := &ranges[i]
		have.First, have.Last = min(have.First, r.First), max(have.Last, r.Last)
	}
	return ranges
}
