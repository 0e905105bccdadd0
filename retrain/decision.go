package retrain

import (
	"slices"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// candidate is an incident that a trigger would turn into a request, with the alarms that matched.
type candidate struct {
	trigger Trigger
	alarms  []alerts.Alarm
}

// judge makes the part of the decision that depends only on the incident. The reason is Opened if the incident
// permits a request. The first trigger that matches a firing alarm applies.
func judge(triggers []Trigger, inc alerts.Incident) (candidate, ledger.Reason) {
	switch _, accepted := inc.Ended(); {
	case accepted:
		return candidate{}, ledger.IncidentAccepted
	case inc.Closed:
		return candidate{}, ledger.IncidentClosed
	case inc.IsMuted():
		return candidate{}, ledger.IncidentMuted
	}
	if inc.Guard() != nil {
		return candidate{}, ledger.GuardTripped
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
	return candidate{}, ledger.NoTrigger
}

// narrow keeps the alarms that may order a retraining.
func narrow(c candidate, inc alerts.Incident) (candidate, ledger.Reason) {
	if inc.Cause == alerts.CauseRewardHacking { // even if the reward is better
		return c, ledger.CauseNeedsPerson
	}
	c.alarms = keep(c.alarms, func(a alerts.Alarm) bool { return c.trigger.Improvements || !a.Improvement })
	if len(c.alarms) == 0 {
		return c, ledger.Improvement
	}
	if inc.Cause.NeedsPerson() {
		return c, ledger.CauseNeedsPerson
	}
	c.alarms = keep(c.alarms, func(a alerts.Alarm) bool { return !a.Provisional })
	if inc.Provisional || len(c.alarms) == 0 {
		return c, ledger.Provisional
	}
	c.alarms = keep(c.alarms, func(a alerts.Alarm) bool { return !a.Cause.NeedsPerson() })
	switch {
	case len(c.alarms) == 0:
		return c, ledger.CauseNeedsPerson
	case inc.Unsettled():
		return c, ledger.CauseUnsettled
	}
	return c, ledger.Opened
}

func keep(alarms []alerts.Alarm, wanted func(alerts.Alarm) bool) []alerts.Alarm {
	return slices.DeleteFunc(slices.Clone(alarms), func(a alerts.Alarm) bool { return !wanted(a) })
}
