package retrain

import (
	"slices"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
)

// Reason says why an incident, a slot of a schedule or a person did or did not lead to a request.
type Reason string

// The reasons. Opened is the only one that orders a retraining.
const (
	Opened           Reason = "opened"
	AlreadyRequested Reason = "already_requested"
	IncidentClosed   Reason = "incident_closed"
	IncidentAccepted Reason = "incident_accepted"  // a person has declared the drift the new normal
	IncidentMuted    Reason = "incident_muted"     // a person has muted it
	NoTrigger        Reason = "no_trigger"         // no trigger is for such an incident, or no firing alarm of its signals
	NotLasted        Reason = "not_lasted"         // not yet open for as long as the trigger wants
	Provisional      Reason = "provisional"        // the alarms rest on a provisional baseline
	CauseNeedsPerson Reason = "cause_needs_person" // reward function or telemetry: retraining would learn the fault
	CauseUnsettled   Reason = "cause_unsettled"    // may yet turn out to need a person: more evidence is to come
	Cooldown         Reason = "cooldown"           // the trigger opened a request for this policy not long ago
	OpenRequest      Reason = "open_request"       // the policy has a request that is not finished
	BreakerOpen      Reason = "breaker_open"       // the last retrainings of the policy missed or failed
	TargetDisabled   Reason = "target_disabled"    // the target answered 410 Gone
	InvalidOrder     Reason = "invalid_order"      // what the recipe makes of the incident does not follow the published schema
)

// Decision is what was decided of an incident, of a slot of a schedule, or for a person.
type Decision struct {
	Reason  Reason
	Request string    // id of its request, "" where there is none
	Detail  string    // more in words, may be ""
	Again   time.Time // of NotLasted: when to look again, by the clock of the incident's telemetry, or of the world where it has none
}

// Held reports whether the ledger alone speaks against the retraining. That may end while nothing of the incident changes, so that whoever
// is told of incidents has to look again by himself.
func (d Decision) Held() bool {
	return d.Reason == OpenRequest || d.Reason == Cooldown || d.Reason == BreakerOpen || d.Reason == TargetDisabled
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
		if !t.wants(&inc) {
			continue
		}
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

func keep(alarms []alerts.Alarm, wanted func(alerts.Alarm) bool) []alerts.Alarm {
	return slices.DeleteFunc(slices.Clone(alarms), func(a alerts.Alarm) bool { return !wanted(a) })
}
