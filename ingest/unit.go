package ingest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unsafe"
)

// Group is a policy with the values of its group_by labels. It is comparable: groups are equal when policy, label
// names and values are.
type Group struct {
	Policy string
	labels string // name, 0, value, 0, ... in the order of group_by
}

// NewGroup returns the group of a policy with its group_by labels, in order. It replaces a NUL in a value.
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

// HorizonLabel is the last label of a group in which decisions are judged by the feedback up to a horizon, before all
// of it has arrived. Its value is the horizon. The group of the whole feedback lacks it.
const HorizonLabel = "horizon"

// Labels returns the group_by labels in order.
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

// Map returns the group_by labels as a map, never nil.
func (g Group) Map() map[string]string {
	m := map[string]string{}
	for _, l := range g.Labels() {
		m[l.Name] = l.Value
	}
	return m
}

// HasHorizon reports whether the last label is HorizonLabel. It takes no memory.
func (g Group) HasHorizon() bool {
	end := strings.LastIndexByte(strings.TrimSuffix(g.labels, "\x00"), 0) // of the last name
	if end < 0 {
		return false
	}
	return g.labels[strings.LastIndexByte(g.labels[:end], 0)+1:end] == HorizonLabel
}

// String returns policy{name="value",...}.
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

// End is how a unit ended.
type End uint8

// The ends of a unit. EndStep is the end of an episode by a step that did not increase; EndBlock is a block of steps of
// a policy whose telemetry ends no episodes; EndWindow is a decision that was judged when the time for its feedback, or
// part of that time, was over. EndOpen is no end: the unit is a step of an episode that goes on, which only guards judge.
const (
	EndTerminated End = iota
	EndTruncated
	EndSummary
	EndStep
	EndBlock
	EndWindow
	EndOpen
)

// Ends is the number of ends.
const Ends = int(EndOpen) + 1

// String returns the value of the label `end` of episodes_total.
func (e End) String() string {
	return [...]string{"terminated", "truncated", "summary", "step", "block", "window", "open"}[e]
}

// Moments aggregates the finite values of one quantity over a unit by Welford's recurrence, and counts the others.
type Moments struct {
	N         int64 // finite values
	NonFinite int64 // NaN and infinite values
	Mean, M2  float64
	Min, Max  float64
	Positive  float64 // sum of the positive values
	Negative  float64 // sum of the negative values, as a positive number
}

// Add adds one value.
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

// Merge adds the values that o aggregates (Chan, Golub & LeVeque 1983).
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

// SD returns the standard deviation over the values themselves (divisor N), or 0 for fewer than two.
func (m *Moments) SD() float64 {
	if m.N < 2 || m.M2 <= 0 {
		return 0
	}
	return math.Sqrt(m.M2 / float64(m.N))
}

// OtherActions is the name under which a unit counts actions beyond its maximum number of actions.
const OtherActions = "other"

// Count is how often an action was taken, and the rewards of its steps.
type Count struct {
	Name   string
	N      int64
	Reward float64 // sum of the finite rewards of its steps
}

// Propensity summarizes how probable the actions of a unit were. A probability is invalid if it is not above 0, above 1
// for a category, or not finite; only a target_prob may be 0.
type Propensity struct {
	Steps          int64   // with a valid action_prob
	Invalid        int64   // with an invalid action_prob or target_prob
	Log            float64 // sum of log(action_prob) over Steps
	Targets        int64   // of Steps, those with a valid target_prob
	LogTarget      float64 // sum of log(target_prob) over Targets; may be -Inf
	Weight         float64 // sum of target_prob/action_prob over Targets
	WeightedReward float64 // the same, of each step times its reward; steps without a finite reward add nothing
	// Actions has an element for each of Unit.Actions, or is empty.
	Actions []InverseProbs
}

// InverseProbs are the sums of 1/action_prob, and of reward/action_prob, over the steps with an action.
type InverseProbs struct{ Sum, Reward float64 }

// Merge adds the sums of o, except for its actions.
func (p *Propensity) Merge(o *Propensity) {
	p.Steps, p.Invalid, p.Targets = p.Steps+o.Steps, p.Invalid+o.Invalid, p.Targets+o.Targets
	p.Log, p.LogTarget = p.Log+o.Log, p.LogTarget+o.LogTarget
	p.Weight, p.WeightedReward = p.Weight+o.Weight, p.WeightedReward+o.WeightedReward
}

// NamedMoments are the moments of one numeric signal other than the reward.
type NamedMoments struct {
	Signal string
	Moments
	Q10, Q90 float64 // quantiles of the values, valid if N > 0; 0 for outcomes, which their mean describes
}

// Unit is what detectors count in: a finished episode, or a block of steps of one agent if there are no episodes. The
// receiver owns it; it shares no memory with events.
//
// It is large because it summarizes every telemetry field, for all detectors.
type Unit struct {
	Group          Group
	Agent, Episode string
	End            End
	Mixed          bool     // a block of the steps of many agents, none of which takes enough for a separate block
	Shadow         bool     // its events had the label shadow: its policy did not serve
	Versions       Versions // of its last event
	StartTS, EndTS int64    // Unix nanoseconds of its first and last event, 0 if the telemetry has no clock

	First, Last Position // offsets of its first and last event
	// Pos is the record at which the unit ended, and Ord its rank among the units that this record ended. Together they
	// order the units of one partition.
	Pos Position
	Ord int32
	// Reading distinguishes units from different readings of a partition: after the partition is read again, the same
	// offsets may belong to other records.
	Reading int64
	// Run orders units of several partitions that end at the same time, before agent and episode do. It grows while a
	// partition advances and its largest event time does not.
	Run int64

	Length    int64   // steps
	HasReturn bool    // whether Return is known
	Return    float64 // sum of rewards, or the return in the episode's summary; may be NaN or infinite

	Reward          Moments // of the per-step rewards; N+NonFinite = 0 without any
	RewardQ10       float64 // quantiles of the per-step rewards, valid if Reward.N > 0
	RewardQ90       float64
	LongestConstant int64   // longest run of equal successive rewards inside the unit, in steps
	ConstantReward  float64 // the reward of that run, the first one if several are as long
	// Profile is the course of the finite rewards: their means over segments of ProfileSteps steps each, in order, at
	// most 32. It omits trailing steps that do not fill a segment. It is nil without finite rewards.
	Profile      []float32
	ProfileSteps int64

	ActionKind       ActionKind
	MixedActionKinds bool           // the unit contains both categories and numbers
	Actions          []Count        // categories in order of first use; their counts sum to the steps with an action
	Numeric          []NamedMoments // action, action.<i>, outcome.<name>, reward_component.<name>, observation.<name>, feedback_delay

	Events    int64 // records of the unit
	Backwards int64 // of those, the ones more than a minute older than the previous one, by their own times
	// Duplicates are events left out during the unit because the agent had sent them before. Late are steps left out
	// because they arrived after the end of their episode. For agents without an open episode, the next unit of the
	// group reports both. Abandoned are the group's episodes that were dropped since its previous unit because their
	// ends never arrived. All three count within the partition.
	Duplicates int64
	Late       int64
	Abandoned  int64
	// Unfinished are the group's episodes that, since its previous unit, were found to be overdue, including abandoned
	// ones. It is -1 while there is too little telemetry to determine this.
	Unfinished int64

	Propensity *Propensity // nil if no step says how probable its action was

	Steps *Steps // nil unless the telemetry has observations and actions of each step

	Decisions *Decisions // nil unless a bank has joined the unit from episodes of one step

	// Labels are the labels of its last event by which causes are split, if present, and RaterLabel; nil for blocks.
	Labels []Label

	Shown bool // each of its steps came before as a separate unit, with EndOpen
}

// RaterLabel is the label of a unit that names who rated an outcome, if the outcomes of a unit may have several raters.
func RaterLabel(outcome string) string { return "rater of " + outcome }

// Decisions contains what applies only to a block of decisions. A decision is an episode of one step. Return is the
// mean of the block's finite returns.
type Decisions struct {
	N       int64 // episodes
	Returns Moments
}

// Episodes returns the number of finished episodes of a unit that is not a block of steps: 1, or those of a block of
// decisions.
func (u *Unit) Episodes() int64 {
	if u.Decisions == nil {
		return 1
	}
	return u.Decisions.N
}

// After reports whether u ended after the unit at (pos, ord) of the same partition.
func (u *Unit) After(pos Position, ord int32) bool {
	if u.Pos != pos {
		return pos.Before(u.Pos)
	}
	return u.Ord > ord
}

// unitSize is the memory in bytes of a unit without what its fields point to, rounded up to an allocation size.
const unitSize = 640

// Bytes returns the approximate memory of the unit.
func (u *Unit) Bytes() int64 {
	n := unitSize + len(u.Agent) + len(u.Episode) + 4*cap(u.Profile) + int(unsafe.Sizeof(Count{}))*cap(u.Actions) +
		int(unsafe.Sizeof(NamedMoments{}))*cap(u.Numeric)
	for _, l := range u.Labels {
		n += int(unsafe.Sizeof(l)) + len(l.Value)
	}
	if p := u.Propensity; p != nil {
		n += int(unsafe.Sizeof(*p)) + int(unsafe.Sizeof(InverseProbs{}))*cap(p.Actions)
	}
	return int64(n + u.Steps.Bytes())
}

// Range is a range of offsets in one partition, including both ends.
type Range struct {
	Topic     string    `json:"topic,omitempty" yaml:"topic"` // topic, if there is more than one
	Partition Partition `json:"partition" yaml:"partition"`   // partition; 0 in files
	First     int64     `json:"first" yaml:"first"`           // first offset; in files, the index of a record
	Last      int64     `json:"last" yaml:"last"`             // last offset
}

// String returns the range in words.
func (r Range) String() string {
	of := ""
	if r.Topic != "" {
		of = " of " + r.Topic
	}
	return fmt.Sprintf("%d to %d of partition %s%s", r.First, r.Last, r.Partition, of)
}

// Range returns the offsets of the unit's events.
func (u *Unit) Range() Range {
	return Range{Partition: u.Pos.Partition, First: u.First.Offset, Last: u.Last.Offset}
}

// Widen merges more into ranges, which has at most one range per partition: ranges of one partition become one that
// covers them all. It may overwrite ranges.
func Widen(ranges []Range, more ...Range) []Range {
	for _, r := range more {
		i := slices.IndexFunc(ranges, func(have Range) bool { return have.Partition == r.Partition && have.Topic == r.Topic })
		if i < 0 {
			ranges = append(ranges, r)
			continue
		}
		have := &ranges[i]
		have.First, have.Last = min(have.First, r.First), max(have.Last, r.Last)
	}
	return ranges
}
