package console

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// onsets divides the signals of an incident into those that began to drift with it, and those that began later.
type onsets struct {
	own, later  []string        // by rank
	since, from finding.UnitRef // onset of the incident and of later; since is the onset of own if nothing else drifts
}

// onsetsOf returns the onsets of the signals that signalsOf returns.
func onsetsOf(i *alerts.Incident) onsets {
	var own, later []*alerts.Alarm
	for _, a := range driftAlarms(i) {
		if a.LaterThan(i) {
			later = append(later, a)
		} else {
			own = append(own, a)
		}
	}
	o := onsets{own: signalNames(own), since: i.Earliest().Onset}
	for _, name := range signalNames(later) {
		if !slices.Contains(o.own, name) {
			o.later = append(o.later, name)
		}
	}
	later = slices.DeleteFunc(later, func(a *alerts.Alarm) bool { return !slices.Contains(o.later, a.Signal) })
	if len(later) > 0 {
		o.from = slices.MinFunc(later, func(a, b *alerts.Alarm) int { return cmp.Compare(a.Onset.Ordinal, b.Onset.Ordinal) }).Onset
	}
	if len(own) == 0 {
		return onsets{own: o.later, since: o.from}
	}
	return o
}

// laterText names the signals that began to drift after the incident had opened, or returns "" if there are none.
func (o onsets) laterText(unit finding.UnitName) string {
	if len(o.later) == 0 {
		return ""
	}
	return fmt.Sprintf("%s drifted later, starting at %s", words.Listed(o.later), o.from.Moment(unit))
}

// signalsOf returns the signals that drift, or all that have drifted if none drifts any more, ordered by rank.
func signalsOf(i *alerts.Incident) []string { return signalNames(driftAlarms(i)) }

// driftAlarms returns the firing alarms of an incident, or all if none is firing.
func driftAlarms(i *alerts.Incident) (firing []*alerts.Alarm) {
	var all []*alerts.Alarm
	for k := range i.Alarms {
		a := &i.Alarms[k]
		if all = append(all, a); !a.Resolved {
			firing = append(firing, a)
		}
	}
	if len(firing) == 0 {
		return all
	}
	return firing
}

func signalNames(alarms []*alerts.Alarm) (names []string) {
	for _, a := range alarms {
		if !slices.Contains(names, a.Signal) {
			names = append(names, a.Signal)
		}
	}
	return alerts.Ranked(names)
}

// ofOnset describes the subject of the evidence for the cause. It returns "" if every signal began to drift with the
// incident, or if the evidence is from a later alarm.
func ofOnset(i *alerts.Incident) string {
	if len(i.Alarms) == 0 || len(i.Causes) == 0 {
		return ""
	}
	same := func(a, b alerts.RankedCause) bool { return a.Cause == b.Cause && a.Weight == b.Weight }
	for k := range i.Alarms {
		if a := &i.Alarms[k]; !a.LaterThan(i) && slices.EqualFunc(a.Causes, i.Causes, same) {
			if later := onsetsOf(i).laterText(i.UnitName()); later != "" {
				return fmt.Sprintf("The causes below explain the onset at %s; %s.", i.Earliest().Onset.Moment(i.UnitName()), later)
			}
			return ""
		}
	}
	return ""
}

// endedWith notes that the signal of an alarm that ended with its incident did not return to the baseline.
func (p alarmPart) endedWith(i *alerts.Incident, a *alerts.Alarm) alarmPart {
	d, ended := i.Ended()
	if !ended || d.Kind == alerts.Released || !i.Closed || !a.Resolved || a.ResolvedAt.Ordinal < i.ClosedAt.Ordinal {
		return p
	}
	p.Class, p.State, p.Replaced = "warming-up", words.EndedBy(alerts.Reset), "The baseline was replaced because of a retraining or a manual reset. The signal did not return to the old baseline."
	if d.Kind == alerts.Accepted {
		p.State, p.Replaced = "accepted", "The change was accepted as the new normal. The signal did not return to the old baseline."
	}
	return p
}

// newBaseline describes in a sentence whether the baseline that replaces that of a closed incident is complete. It
// returns "" if the group is no longer watched.
func (c *Console) newBaseline(i *alerts.Incident) string {
	old := func(a alerts.Alarm) bool { return a.Baseline.ID != "" }
	for _, p := range c.view.Summaries() {
		for k := range p.Groups {
			g := &p.Groups[k]
			switch at := slices.IndexFunc(i.Alarms, old); {
			case g.Group != i.Group:
			case g.Baseline.ID == "" || at >= 0 && g.Baseline.ID == i.Alarms[at].Baseline.ID:
				return "A new baseline is being collected. "
			case g.FrozenTS != 0:
				return "The new baseline was completed at " + words.Stamp(time.Unix(0, g.FrozenTS)) + ". "
			default:
				return "The new baseline is complete. "
			}
		}
	}
	return ""
}

// versionPart is a version before and after the onset, together with the versions of later alarms.
type versionPart struct {
	Name, Before, After string
	Changed             bool
	Later               []laterVersion
}

// laterVersion is a version that was in use when a later alarm fired.
type laterVersion struct{ Version, By string }

// versionParts describes the versions in the telemetry.
func versionParts(i *alerts.Incident) (out []versionPart) {
	for _, field := range []struct {
		name string
		of   func(ingest.Versions) string
	}{
		{"policy", func(v ingest.Versions) string { return v.Policy }},
		{"environment", func(v ingest.Versions) string { return v.Env }},
		{"reward function", func(v ingest.Versions) string { return v.Reward }},
	} {
		v := versionPart{Name: field.name, Before: field.of(i.Earliest().Before), After: field.of(i.Alarms[0].After)}
		v.Changed = v.Before != v.After
		for last, k := v.After, 1; k < len(i.Alarms); k++ {
			if now := field.of(i.Alarms[k].After); now != last {
				v.Later, last = append(v.Later, laterVersion{now, i.Alarms[k].At.Moment(i.UnitName())}), now
			}
		}
		if v.Before != "" || v.After != "" || len(v.Later) > 0 {
			out = append(out, v)
		}
	}
	return out
}
