// Package alerts folds the bank's findings into alarms and incidents, names their cause, and tells people: through
// Alertmanager's API, or through Prometheus rules that it generates.
package alerts

import (
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Cause is why a group drifted, as far as it is known.
type Cause string

// The causes.
const (
	CausePolicy         Cause = "policy"
	CauseEnvironment    Cause = "environment"
	CauseRewardFunction Cause = "reward_function"
	CauseTelemetry      Cause = "telemetry"
	CauseUnknown        Cause = "unknown"
)

// Causes lists them.
func Causes() []Cause {
	return []Cause{CausePolicy, CauseEnvironment, CauseRewardFunction, CauseTelemetry, CauseUnknown}
}

// Severity is how loudly an incident asks for attention. It is fixed when the incident opens.
type Severity string

// The severities: a primary signal on an accepted baseline is critical, another signal warning, and whatever rests on
// a provisional baseline info.
const (
	Critical Severity = "critical"
	Warning  Severity = "warning"
	Info     Severity = "info"
)

// Severities lists them, the loudest first.
func Severities() []Severity { return []Severity{Critical, Warning, Info} }

// Alarm is a stream that went to drift. It resolves when the stream has come back.
type Alarm struct {
	ID          string // hash of policy, group, signal, baseline id and the key of the unit At
	Incident    string // id of its incident
	Group       ingest.Group
	Signal      string
	Provisional bool
	Detectors   []string
	Score       float64 // highest seen while firing; 1 = threshold
	At          bank.UnitRef
	Onset       bank.UnitRef
	OnsetFrom   bank.UnitRef // the 90 % interval of the onset
	OnsetTo     bank.UnitRef
	// OnsetOffsets are of the units of that interval, one range a partition.
	OnsetOffsets []ingest.Range
	Effect       bank.Effect
	Histogram    *bank.Histogram     // of the quantity of Effect; nil where it has no finite value
	Shifts       []bank.Shift        // of the signals that stand out most since the onset, one each, the strongest first
	Return       *bank.Decomposition // of the change in return; nil where it cannot be told
	Promise      bank.Promise
	Baseline     bank.BaselineRef
	Before       ingest.Versions
	After        ingest.Versions
	Offsets      []ingest.Range
	Cause        Cause
	Evidence     []string      // why that cause, in words
	Causes       []RankedCause // all that are possible, the likeliest first
	EvidenceAt   bank.UnitRef  // the newest unit that the evidence is from
	Resolved     bool
	ResolvedAt   bank.UnitRef // valid where Resolved
}

// Incident is the open alarms of one group: one page and at most one retrain request.
type Incident struct {
	ID          string // the id of its first alarm
	Group       ingest.Group
	Severity    Severity
	Provisional bool // its baseline was provisional when it opened: it orders no retraining
	Cause       Cause
	Evidence    []string
	Causes      []RankedCause // of the alarm whose cause holds
	Alarms      []Alarm       // in the order in which they joined
	Omitted     int           // resolved alarms that are no longer in Alarms, because a stream came and went too often
	Opened      bank.UnitRef
	Closed      bool
	ClosedAt    bank.UnitRef // valid where Closed
	Decisions   []Decision   // what people decided of it, the newest last
	MutedUntil  time.Time    // until when nobody is told of it; zero where it is not muted
}

// Fault is a group's telemetry fault: one alert while any stream of the group is in it.
type Fault struct {
	Group   ingest.Group
	Streams map[string]string // signal -> the rule that holds, such as bank.FaultConstant; where Ended, that held last
	Since   bank.UnitRef
	Ended   bool
}

// Change is what one finding changed. Exactly one of Alarm with Incident, Incident alone, or Fault is set: an alarm
// that fired, was renewed or resolved comes with its incident; an incident alone has closed, or has been muted, or its
// mute has ended. The values are copies whose
// slices are shared between changes: they are to be read only.
type Change struct {
	Alarm    *Alarm
	Fired    bool // Alarm is new with this change; the incident too, where it has the alarm's id
	Incident *Incident
	Fault    *Fault
}
