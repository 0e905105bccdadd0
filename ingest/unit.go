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

// HorizonLabel is the last label of a group whose decisions are evaluated on the feedback within a horizon, before all
// feedback has arrived. Its value is the horizon. The group for the complete feedback does not have this label.
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

// HasHorizon reports whether the last label is HorizonLabel. It does not allocate.
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

// End says how a unit ended.
type End uint8

// The ways a unit can end. EndStep means that the next step of the episode did not increase. EndBlock ends a block of
// steps of a policy whose telemetry does not end episodes. EndWindow ends a decision that is evaluated when its
// feedback window, or part of it, has passed. EndOpen is not an end: the unit is one step of an episode in progress,
// and only guards evaluate it.
const (
	EndTerminated End = iota
	EndTruncated
	EndSummary
	EndStep
	EndBlock
	EndWindow
	EndOpen
)

// Ends is the number of End values.
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

// MergeOne does what Merge does with the moments of one finite value.
func (m *Moments) MergeOne(x float64) {
	if m.N == 0 {
		m.Merge(momentsOf(x))
		return
	}
	d, n := x-m.Mean, float64(m.N+1)
	m.Mean += d / n
	m.M2 += d * d * float64(m.N) / n
	m.N++
	if m.Min, m.Max = min(m.Min, x), max(m.Max, x); x > 0 {
		m.Positive += x
	} else {
		m.Negative -= x
	}
}

// SD returns the standard deviation over the values themselves (divisor N), or 0 for fewer than two.
func (m *Moments) SD() float64 {
	if m.N < 2 || m.M2 <= 0 {
		return 0
	}
	return math.Sqrt(m.M2 / float64(m.N))
}

// OtherActions is the name under which a unit counts all actions beyond its limit.
const OtherActions = "other"

// Count is the number of times that an action was taken, with the rewards of those steps.
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
	Targets        int64   // steps in Steps that have a valid target_prob
	LogTarget      float64 // sum of log(target_prob) over Targets; may be -Inf
	Weight         float64 // sum of target_prob/action_prob over Targets
	WeightedReward float64 // sum of target_prob/action_prob*reward over Targets; steps without a finite reward add nothing
	// Actions has an element for each of Unit.Actions, or is empty.
	Actions []InverseProbs
}

// InverseProbs contains the sums of 1/action_prob and reward/action_prob over the steps with an action.
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

// Unit is the basic sample of the detectors: a finished episode, or a block of steps of one agent if there are no
// episodes. The receiver owns it; it shares no memory with events.
//
// Unit is large because it summarizes every telemetry field for all detectors.
type Unit struct {
	Group          Group
	Agent, Episode string
	End            End
	Mixed          bool     // a block with steps of many agents, none of which takes enough steps for a separate block
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
	// Run orders units of several partitions that end at the same time; agent and episode are compared only after it. It
	// increases while the partition advances but its largest event time does not.
	Run int64

	Length    int64   // steps
	HasReturn bool    // whether Return is known
	Return    float64 // sum of rewards, or the return in the episode's summary; may be NaN or infinite

	Reward          Moments // of the per-step rewards; N+NonFinite is 0 if there are none
	RewardQ10       float64 // quantiles of the per-step rewards, valid if Reward.N > 0
	RewardQ90       float64
	LongestConstant int64   // longest run of equal successive rewards inside the unit, in steps
	ConstantReward  float64 // reward of that run, or of the first such run
	// Profile contains the means of the finite rewards over consecutive segments of ProfileSteps steps each, at most 32.
	// Trailing steps that do not fill a segment are omitted. It is nil without finite rewards.
	Profile      []float32
	ProfileSteps int64

	ActionKind       ActionKind
	MixedActionKinds bool           // the unit contains both categories and numbers
	Actions          []Count        // categories in order of first use; their counts sum to the steps with an action
	Numeric          []NamedMoments // action, action.<i>, outcome.<name>, reward_component.<name>, observation.<name>, feedback_delay

	Events    int64 // records of the unit
	Backwards int64 // events more than a minute older than the previous event, by their own times
	// Duplicates counts events that were skipped during the unit because the agent had sent them before. Late counts steps
	// that were skipped because they arrived after the end of their episode. For agents without an open episode, the next
	// unit of the group reports both. Abandoned counts the group's episodes that were dropped since its previous unit
	// because their ends never arrived. All three count within the partition.
	Duplicates int64
	Late       int64
	Abandoned  int64
	// Unfinished counts the group's episodes that were found to be overdue since its previous unit, including abandoned
	// ones. It is -1 while there is too little telemetry to determine this.
	Unfinished int64

	Propensity *Propensity // nil if no step has a probability of its action

	Steps *Steps // nil unless the telemetry has the observation and action of each step

	Decisions *Decisions // nil unless a bank has joined the unit from one-step episodes

	// Labels are the labels of its last event by which causes are broken down, if present, and RaterLabel. It is nil for
	// blocks.
	Labels []Label

	Shown bool // each of its steps was already sent as a separate unit with EndOpen
}

// RaterLabel returns the name of the label that identifies who rated an outcome. Units have it if an outcome may have
// several raters.
func RaterLabel(outcome string) string { return "rater of " + outcome }

// Decisions contains the fields that apply only to a block of decisions. A decision is an episode of one step. The
// Return of such a block is the mean of its finite returns.
type Decisions struct {
	N       int64 // episodes
	Returns Moments
}

// Episodes returns the number of finished episodes in a unit that is not a block of steps: the number of decisions for
// a block of decisions, otherwise 1.
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

// unitSize is the size in bytes of a Unit, without the memory its fields point to, rounded up to an allocation size.
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
	Partition Partition `json:"partition" yaml:"partition"`   // partition, or 0 in files
	First     int64     `json:"first" yaml:"first"`           // first offset, or the index of a record in files
	Last      int64     `json:"last" yaml:"last"`             // last offset
}

// String returns the range in the form "10 to 20 of partition 0 of topic".
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

// Widen merges more into ranges, so that each partition has one range that covers all of its offsets. ranges must have
// at most one range per partition. Widen may overwrite ranges.
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
