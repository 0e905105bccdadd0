package ledger

import "time"

// Reason is why an incident, a slot of a schedule or a person did or did not lead to a request.
type Reason string

// The reasons. Only Opened leads to a request.
const (
	Opened           Reason = "opened"
	AlreadyRequested Reason = "already_requested"
	IncidentClosed   Reason = "incident_closed"
	IncidentAccepted Reason = "incident_accepted"  // a person has declared the drift the new normal
	IncidentMuted    Reason = "incident_muted"     // a person has muted it
	NoTrigger        Reason = "no_trigger"         // no trigger applies to the incident, or none to a firing alarm of its signals
	NotLasted        Reason = "not_lasted"         // not open for as long as the trigger requires
	Provisional      Reason = "provisional"        // the alarms come from a provisional baseline
	Improvement      Reason = "improvement"        // the signals are better than the baseline, and the trigger ignores improvements
	CauseNeedsPerson Reason = "cause_needs_person" // such as the reward function or the telemetry: retraining would learn the fault
	CauseUnsettled   Reason = "cause_unsettled"    // may turn out to need a person: more evidence is expected
	GuardTripped     Reason = "guard_tripped"      // a tripped guard requires a manual decision
	Cooldown         Reason = "cooldown"           // the trigger recently opened a request for this policy
	OpenRequest      Reason = "open_request"       // the policy has an unfinished request
	BreakerOpen      Reason = "breaker_open"       // the last retrainings of the policy missed or failed
	TargetDisabled   Reason = "target_disabled"    // the target answered 410 Gone
	InvalidOrder     Reason = "invalid_order"      // the order from the recipe violates the published schema
)

// Decision is the decision on an incident, a slot of a schedule, or a person's request.
type Decision struct {
	Reason  Reason
	Request string    // id of its request, "" if there is none
	Detail  string    // details in words, may be ""
	Again   time.Time // of NotLasted: when to decide again, by the telemetry's clock, or real time without one
}

// Held reports whether only the ledger forbids the retraining. That may end without any change of the incident, so
// the caller has to decide again later.
func (d Decision) Held() bool {
	return d.Reason == OpenRequest || d.Reason == Cooldown || d.Reason == BreakerOpen || d.Reason == TargetDisabled
}
