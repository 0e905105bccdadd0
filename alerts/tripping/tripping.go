// Package tripping lets incidents trip those guards of their policy that limit causes.
package tripping

import (
	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/guard"
)

// Follow lets changed incidents trip the guards of their policy, and returns the changes together with the incidents of
// the guards that trip. It uses no clock, so the same changes trip the same guards. An incident trips no guard if it is
// of a guard itself or informational: an improvement, or a drift from a provisional baseline.
func Follow(guards *guard.Set, tracker *alerts.Tracker, changes []alerts.Change) []alerts.Change {
	for _, c := range changes {
		if c.Incident == nil || c.Incident.Guard() != nil || c.Incident.Improvement || c.Incident.Provisional {
			continue
		}
		for _, f := range guards.Incident(incidentOf(&c)) {
			changes = append(changes, tracker.Apply(f)...)
		}
	}
	return changes
}

func incidentOf(c *alerts.Change) *guard.Incident {
	i := c.Incident
	out := &guard.Incident{ID: i.ID, Cause: string(i.Cause), Closed: i.Closed}
	if c.Alarm == nil || i.Closed {
		return out
	}
	out.At = c.Alarm.At
	if c.Alarm.EvidenceAt.Ordinal > out.At.Ordinal {
		out.At = c.Alarm.EvidenceAt
	}
	if len(i.Evidence) > 0 {
		out.Why = i.Evidence[0]
	}
	first := i.Earliest()
	out.Onset, out.OnsetFrom, out.Before, out.After = first.Onset, first.OnsetFrom, first.Before, first.After
	return out
}
