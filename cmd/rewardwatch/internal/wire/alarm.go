// Package wire defines the JSON that the API returns and the commands read. Field names are a contract: a field is
// always present.
package wire

import (
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// AlarmContext is the evidence for an alarm beyond its own signal. Causes are ranked, most likely first. Shifts are
// those of the signals that are most prominent since the onset, whether they drift or not.
type AlarmContext struct {
	OnsetInterval *finding.Interval      `json:"onset_interval"`
	Causes        []alerts.RankedCause   `json:"causes"`
	ReturnChange  *finding.Decomposition `json:"return_change"`
	OffPolicy     *finding.OffPolicy     `json:"off_policy"`
	Mix           *Mix                   `json:"mix"` // null if units are not divided into strata
	Promise       finding.Promise        `json:"promise"`
	Shifts        []finding.Shift        `json:"shifts"`
	Histogram     *finding.Histogram     `json:"histogram"` // of the quantity in the effect
}

// EvidenceOf returns the evidence for an alarm beyond its own signal.
func EvidenceOf(a alerts.Alarm) AlarmContext {
	return AlarmContext{
		OnsetInterval: a.OnsetInterval(), Causes: List(a.Causes), ReturnChange: a.Return, OffPolicy: a.OffPolicy, Promise: a.Promise,
		Mix: MixOf(a.Mix), Shifts: List(a.Shifts), Histogram: a.Histogram,
	}
}

// BaselineRef identifies a baseline.
type BaselineRef struct {
	ID     string `json:"id"`
	Units  int    `json:"units"`
	Config string `json:"config"` // hash of the configuration of the policy
}

// Offsets are the first and the last offset of a range.
type Offsets struct {
	First int64 `json:"first"`
	Last  int64 `json:"last"`
}

// IncidentState returns "open" or "closed".
func IncidentState(i alerts.Incident) string {
	if i.Closed {
		return "closed"
	}
	return "open"
}

// Spanned returns the first and the last offset of ranges, which in a file belong to one partition.
func Spanned(ranges []ingest.Range) *Offsets {
	if len(ranges) == 0 {
		return nil
	}
	o := &Offsets{First: ranges[0].First, Last: ranges[0].Last}
	for _, r := range ranges[1:] {
		o.First, o.Last = min(o.First, r.First), max(o.Last, r.Last)
	}
	return o
}

// Versions are the versions of policy, environment and reward function.
type Versions struct {
	Policy string `json:"policy_version"`
	Env    string `json:"env_version"`
	Reward string `json:"reward_version"`
}

// Unit is the position of a unit in the telemetry.
type Unit struct {
	Ordinal     int64    `json:"ordinal"`
	Agent       *string  `json:"agent_id"`
	Episode     *string  `json:"episode_id"`
	Partition   int32    `json:"partition"`
	FirstOffset int64    `json:"first_offset"`
	Offset      int64    `json:"offset"`
	TS          *Instant `json:"ts"`
}

// Alarm is a stream that drifts, or has drifted.
//
// It is large because it has a field for each key of the JSON object.
type Alarm struct {
	ID          string            `json:"id"`
	Incident    string            `json:"incident"`
	State       string            `json:"state"` // firing or resolved
	Policy      string            `json:"policy"`
	Group       map[string]string `json:"group"`
	Signal      string            `json:"signal"`
	Provisional bool              `json:"provisional"`
	Detectors   []string          `json:"detectors"`
	Score       Number            `json:"score"`
	Cause       alerts.Cause      `json:"cause"`
	Evidence    []string          `json:"evidence"`
	At          Unit              `json:"at"`
	Onset       Unit              `json:"onset"`
	ResolvedAt  *Unit             `json:"resolved_at"`
	Effect      finding.Effect    `json:"effect"`
	Baseline    BaselineRef       `json:"baseline"`
	Before      Versions          `json:"before"`
	After       Versions          `json:"after"`
	Offsets     []ingest.Range    `json:"offsets"`
	Improvement bool              `json:"improvement"`
	Guard       *finding.Guard    `json:"guard,omitempty"` // guard that tripped; there is then no effect and no baseline
	AlarmContext
}

// Incident groups the alarms of one group of a policy.
type Incident struct {
	ID          string            `json:"id"`
	State       string            `json:"state"` // open or closed
	Policy      string            `json:"policy"`
	Group       map[string]string `json:"group"`
	Severity    alerts.Severity   `json:"severity"`
	Provisional bool              `json:"provisional"`
	Improvement bool              `json:"improvement"`
	Cause       alerts.Cause      `json:"cause"`
	Evidence    []string          `json:"evidence"`
	Opened      Unit              `json:"opened"`
	Closed      *Unit             `json:"closed"`

	Causes     []alerts.RankedCause `json:"causes"` // most likely first
	Alarms     []Alarm              `json:"alarms"`
	MutedUntil *time.Time           `json:"muted_until"`
	Decisions  []Decision           `json:"decisions"`
}

// UnitName returns the name of the units of the incident's group.
func (i *Incident) UnitName() finding.UnitName {
	if len(i.Alarms) == 0 {
		return finding.UnitName{}
	}
	return i.Alarms[0].Promise.UnitNameOf(i.Alarms[0].At.Ref())
}

// Decision is a person's decision on an incident.
type Decision struct {
	Decision alerts.DecisionKind `json:"decision"`
	By       string              `json:"by"`
	Why      string              `json:"why"`
	At       time.Time           `json:"at"`
	Until    *time.Time          `json:"until"` // end of a mute
}

// Fault is a telemetry fault of one stream.
type Fault struct {
	Policy string            `json:"policy"`
	Group  map[string]string `json:"group"`
	Rules  map[string]string `json:"rules"` // by signal
	Since  Unit              `json:"since"`
}

// AlarmsOf returns alarms in the form of the API.
func AlarmsOf(alarms []alerts.Alarm) []Alarm {
	out := make([]Alarm, len(alarms))
	for i, a := range alarms {
		out[i] = Alarm{
			ID:          a.ID,
			Incident:    a.Incident,
			State:       words.AlarmState(a),
			Policy:      a.Group.Policy,
			Group:       a.Group.Map(),
			Signal:      a.Signal,
			Provisional: a.Provisional,
			Detectors:   List(a.Detectors),
			Score:       Number(a.Score),
			Cause:       a.Cause,
			Evidence:    List(a.Evidence),
			At:          UnitOf(a.At),
			Onset:       UnitOf(a.Onset),
			ResolvedAt:  unitIf(a.Resolved, a.ResolvedAt),
			Effect:      a.Effect,
			Baseline:    BaselineRef{ID: a.Baseline.ID, Units: a.Baseline.Units, Config: a.Baseline.Config},
			Before:      Versions(a.Before),
			After:       Versions(a.After),
			Offsets:     List(a.Offsets),
			Improvement: a.Improvement,
			Guard:       a.Guard,

			AlarmContext: EvidenceOf(a),
		}
	}
	return out
}

// UnitOf returns a unit in the form of the API.
func UnitOf(u finding.UnitRef) Unit {
	return Unit{
		Ordinal:     u.Ordinal,
		Agent:       OrNull(u.Agent),
		Episode:     OrNull(u.Episode),
		Partition:   int32(u.Pos.Partition),
		FirstOffset: u.First.Offset,
		Offset:      u.Pos.Offset,
		TS:          At(u.TS),
	}
}

func unitIf(valid bool, u finding.UnitRef) *Unit {
	if !valid {
		return nil
	}
	return new(UnitOf(u))
}

// IncidentOf returns an incident in the form of the API.
func IncidentOf(i alerts.Incident) Incident {
	return Incident{
		ID:          i.ID,
		State:       IncidentState(i),
		Policy:      i.Group.Policy,
		Group:       i.Group.Map(),
		Severity:    i.Severity,
		Provisional: i.Provisional,
		Improvement: i.Improvement,
		Cause:       i.Cause,
		Evidence:    List(i.Evidence),
		Opened:      UnitOf(i.Opened),
		Closed:      unitIf(i.Closed, i.ClosedAt),
		Alarms:      AlarmsOf(i.Alarms),
		Causes:      List(i.Causes),
		MutedUntil:  TimeOrNull(i.MutedUntil),
		Decisions:   decisionsOf(i.Decisions),
	}
}

func decisionsOf(decisions []alerts.Decision) []Decision {
	out := make([]Decision, len(decisions))
	for k, d := range decisions {
		out[k] = Decision{Decision: d.Kind, By: d.By, Why: d.Why, At: d.At.UTC(), Until: TimeOrNull(d.Until)}
	}
	return out
}

// TimeOrNull returns nil for the zero time.
func TimeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC())
}

// Alarm converts the alarm back, as far as commands print it.
func (a *Alarm) Alarm() alerts.Alarm {
	out := alerts.Alarm{
		ID: a.ID, Incident: a.Incident, Group: words.Group(a.Policy, a.Group), Signal: a.Signal, Provisional: a.Provisional,
		Detectors: a.Detectors, Score: float64(a.Score), At: a.At.Ref(), Onset: a.Onset.Ref(), Effect: a.Effect,
		Baseline: finding.BaselineRef{ID: a.Baseline.ID, Units: a.Baseline.Units, Provisional: a.Provisional},
		Before:   ingest.Versions(a.Before), After: ingest.Versions(a.After),
		Offsets: a.Offsets, Cause: a.Cause, Evidence: a.Evidence,
	}
	a.addTo(&out)
	if a.ResolvedAt != nil {
		out.Resolved, out.ResolvedAt = true, a.ResolvedAt.Ref()
	}
	return out
}

// addTo adds the evidence to an alarm.
func (e *AlarmContext) addTo(a *alerts.Alarm) {
	a.Causes, a.Return, a.Promise, a.Shifts, a.Histogram = e.Causes, e.ReturnChange, e.Promise, e.Shifts, e.Histogram
	a.OffPolicy, a.Mix = e.OffPolicy, e.Mix.split()
	if i := e.OnsetInterval; i != nil {
		a.OnsetFrom, a.OnsetTo = endOf(i.FirstUnit, i.FirstTS), endOf(i.LastUnit, i.LastTS)
	}
}

// endOf returns the unit at an end of an interval, as far as commands print it.
func endOf(ordinal int64, ts *time.Time) finding.UnitRef {
	u := finding.UnitRef{Ordinal: ordinal}
	if ts != nil {
		u.TS = ts.UnixNano()
	}
	return u
}

// Ref converts the unit back.
func (u *Unit) Ref() finding.UnitRef {
	out := finding.UnitRef{
		Ordinal: u.Ordinal, Pos: ingest.Position{Partition: ingest.Partition(u.Partition), Offset: u.Offset},
		First: ingest.Position{Partition: ingest.Partition(u.Partition), Offset: u.FirstOffset},
	}
	if u.Agent != nil {
		out.Agent = *u.Agent
	}
	if u.Episode != nil {
		out.Episode = *u.Episode
	}
	if u.TS != nil {
		out.TS = int64(*u.TS)
	}
	return out
}
