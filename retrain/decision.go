package retrain

import (
	"slices"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
)

// Reason says why an incident did or did not lead to a request.
type Reason string

// The reasons. Opened is the only one that orders a retraining.
const (
	Opened           Reason = "opened"
	AlreadyRequested Reason = "already_requested"
	IncidentClosed   Reason = "incident_closed"
	IncidentAccepted Reason = "incident_accepted"  // a person has declared the drift the new normal
	IncidentMuted    Reason = "incident_muted"     // a person has muted it
	NoTrigger        Reason = "no_trigger"         // no firing alarm is of a trigger's signals
	Provisional      Reason = "provisional"        // the alarms rest on a provisional baseline
	CauseNeedsPerson Reason = "cause_needs_person" // reward function or telemetry: retraining would learn the fault
	CauseUnsettled   Reason = "cause_unsettled"    // may yet turn out to need a person: more evidence is to come
	Cooldown         Reason = "cooldown"           // the trigger opened a request for this policy not long ago
	OpenRequest      Reason = "open_request"       // the policy has a request that is not delivered yet
	TargetDisabled   Reason = "target_disabled"    // the target answered 410 Gone
	InvalidOrder     Reason = "invalid_order"      // what the recipe makes of the incident does not follow the published schema
)

// Decision is what was decided of an incident.
type Decision struct {
	Reason  Reason
	Request string // id of the incident's request, "" where there is none
	Detail  string // more in words, may be ""
}

// needsPerson reports whether a drift of this cause must not start a retraining by itself.
func needsPerson(c alerts.Cause) bool {
	return c == alerts.CauseRewardFunction || c == alerts.CauseTelemetry
}

// candidate is an incident that a trigger would turn into a request, and the alarms that it matched.
type candidate struct {
	trigger Trigger
	alarms  []alerts.Alarm
}

// judge decides what can be decided from the incident alone. The reason is Opened where nothing in the incident speaks
// against a request; the first trigger that matches a firing alarm holds.
func judge(triggers []Trigger, inc alerts.Incident) (candidate, Reason) {
	switch _, accepted := inc.Ended(); {
	case accepted:
		return candidate{}, IncidentAccepted
	case inc.Closed:
		return candidate{}, IncidentClosed
	case inc.IsMuted():
		return candidate{}, IncidentMuted
	}
	for _, t := range triggers {
		matched := keep(inc.Alarms, func(a alerts.Alarm) bool { return !a.Resolved && t.matches(a.Signal) })
		if len(matched) > 0 {
			return narrow(candidate{trigger: t, alarms: matched}, inc)
		}
	}
	return candidate{}, NoTrigger
}

// narrow leaves the alarms that may order a retraining.
func narrow(c candidate, inc alerts.Incident) (candidate, Reason) {
	if needsPerson(inc.Cause) {
		return c, CauseNeedsPerson
	}
	c.alarms = keep(c.alarms, func(a alerts.Alarm) bool { return !a.Provisional })
	if inc.Provisional || len(c.alarms) == 0 {
		return c, Provisional
	}
	c.alarms = keep(c.alarms, func(a alerts.Alarm) bool { return !needsPerson(a.Cause) })
	switch {
	case len(c.alarms) == 0:
		return c, CauseNeedsPerson
	case inc.Unsettled():
		return c, CauseUnsettled
	}
	return c, Opened
}

func (t Trigger) matches(signal string) bool {
	if len(t.Signals) == 0 {
		return true
	}
	return slices.ContainsFunc(t.Signals, func(glob string) bool { return bank.Match(glob, signal) })
}

func keep(alarms []alerts.Alarm, wanted func(alerts.Alarm) bool) []alerts.Alarm {
	return slices.DeleteFunc(slices.Clone(alarms), func(a alerts.Alarm) bool { return !wanted(a) })
}
