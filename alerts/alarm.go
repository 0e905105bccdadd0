// Package alerts folds the findings of the bank into alarms and incidents, names their causes, and notifies people:
// through Alertmanager's API, or through the Prometheus rules that it generates.
package alerts

import (
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/mix"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Cause is the most likely reason for a drift, or CauseUnknown.
type Cause string

// The causes.
const (
	CausePolicy         Cause = "policy"
	CauseEnvironment    Cause = "environment"
	CauseRewardFunction Cause = "reward_function"
	CauseObservations   Cause = "observations"   // a sensor, or a delay: observations do not match the world
	CauseRewardHacking  Cause = "reward_hacking" // rewards got better while an outcome got worse
	CauseTelemetry      Cause = "telemetry"
	CauseUnknown        Cause = "unknown"
)

// Causes returns all causes.
func Causes() []Cause {
	return []Cause{CausePolicy, CauseEnvironment, CauseRewardFunction, CauseRewardHacking, CauseObservations, CauseTelemetry, CauseUnknown}
}

// Severity is how urgent an incident is. It is fixed when the incident opens, with two exceptions: an improvement takes
// the severity of its first alarm that is not an improvement, and reward hacking is critical.
type Severity string

// The severities. A primary signal on an accepted baseline is critical, any other signal a warning. Improvements, and
// anything judged against a provisional baseline, are info.
const (
	Critical Severity = "critical"
	Warning  Severity = "warning"
	Info     Severity = "info"
)

// Severities returns all severities, most urgent first.
func Severities() []Severity { return []Severity{Critical, Warning, Info} }

// Alarm is the drift of one stream. It resolves when the stream has returned to its baseline.
//
// It is large because it carries everything that is reported about an alarm, and is saved and shown on its own.
type Alarm struct {
	ID          string // hash of policy, group, signal, baseline id and the key of the unit At
	Incident    string // id of its incident
	Group       ingest.Group
	Signal      string
	Provisional bool
	Improvement bool // the signal has moved to its better side
	Detectors   []string
	Score       float64 // highest seen while firing; 1 = threshold
	At          finding.UnitRef
	Onset       finding.UnitRef
	OnsetFrom   finding.UnitRef // the 90% interval of the onset
	OnsetTo     finding.UnitRef
	// OnsetOffsets are the offsets of the units in that interval, one range per partition.
	OnsetOffsets []ingest.Range
	Effect       finding.Effect
	Histogram    *finding.Histogram // of the quantity in Effect; nil if it has no finite values
	// Height and HeightHistogram are the newest Effect and Histogram from when the score was highest.
	Height          finding.Effect
	HeightHistogram *finding.Histogram
	Shifts          []finding.Shift        // largest shift of each signal that moved most since the onset, strongest first
	Return          *finding.Decomposition // parts of the change in return; nil if unknown
	OffPolicy       *finding.OffPolicy     // estimate since the onset of the incident; nil if the telemetry does not allow one
	Mix             *mix.Split             // of the change of the signal; nil if units are not divided into strata
	Promise         finding.Promise
	Baseline        finding.BaselineRef
	Before          ingest.Versions
	After           ingest.Versions
	Offsets         []ingest.Range
	Cause           Cause
	Evidence        []string        // reasons for Cause, in words
	Causes          []RankedCause   // all possible causes, most likely first
	EvidenceAt      finding.UnitRef // newest unit in the evidence
	Resolved        bool
	ResolvedAt      finding.UnitRef // valid if Resolved
	Guard           *finding.Guard  // guard that tripped; nil for drift
}

// OnsetInterval returns the 90% interval of the onset, or nil if none was estimated: a guard estimates the onset alone.
func (a *Alarm) OnsetInterval() *finding.Interval {
	if a.Guard != nil {
		return nil
	}
	return finding.IntervalOf(a.OnsetFrom, a.Onset, a.OnsetTo, a.OnsetOffsets)
}

// EffectWords describes an effect of the alarm: in the past tense if the alarm is resolved.
func (a *Alarm) EffectWords(e finding.Effect) string {
	if a.Resolved {
		return e.PastWords(a.UnitName())
	}
	return e.Words(a.UnitName())
}

// ForemostClause describes the most important effect as a clause: in the past tense if the alarm is resolved.
func (a *Alarm) ForemostClause() string {
	if a.Resolved {
		return a.Foremost().PastClauseOf(a.Signal, a.UnitName())
	}
	return a.Foremost().ClauseOf(a.Signal, a.UnitName())
}

// Incident groups the alarms of one group of a policy. It leads to one page, and at most one retrain request.
type Incident struct {
	ID          string // the id of its first alarm
	Group       ingest.Group
	Severity    Severity
	Provisional bool // its baseline was provisional when it opened: no retraining is ordered
	Improvement bool // all of its alarms so far are improvements
	Cause       Cause
	Evidence    []string
	Causes      []RankedCause // possible causes of the alarm that determines Cause
	Alarms      []Alarm       // in the order in which they joined
	Omitted     int           // number of resolved alarms dropped from Alarms, because a stream drifted too often
	Opened      finding.UnitRef
	Closed      bool
	ClosedAt    finding.UnitRef // valid if Closed
	Decisions   []Decision      // people's decisions on the incident, newest last
	MutedUntil  time.Time       // no notifications are sent before; zero if it is not muted
}

// Fault is the telemetry fault of a group: a single alert that lasts while any stream of the group has a fault.
type Fault struct {
	Group   ingest.Group
	Streams map[string]string // signal -> rule in force, such as fault.Constant; if Ended, the last one
	Since   finding.UnitRef
	Ended   bool
	Moved   []StreamFault // faults that began or ended with this Change
}

// StreamFault is a telemetry fault that one rule found in one stream.
type StreamFault struct {
	Signal, Rule string
	Since        finding.UnitRef // the unit at which the rule was first in force
	Ended        bool
	Until        finding.UnitRef // valid if Ended
}

// Change is what one finding changed. Exactly one of these is set: Alarm with Incident, Incident alone, or Fault. An
// alarm that fired, was renewed or resolved comes with its incident. An incident alone has closed, has been muted, or
// its mute has ended. The values are copies that share their slices with other changes: do not modify them.
type Change struct {
	Alarm    *Alarm
	Fired    bool // Alarm is new with this change; so is the incident if it has the alarm's id
	Incident *Incident
	Fault    *Fault
}
