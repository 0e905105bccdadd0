package alarmmetrics

import (
	"cmp"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// decided lists the decisions on the latest incident of a group that are exported: only the newest of each kind, which
// bounds the number of series.
type decided struct {
	id     string
	closed bool
	newest []decision
}

// decision is an exported decision.
type decision struct {
	what, by string
	at       time.Time
}

// decidedOn returns the decisions on an incident that are exported.
func decidedOn(i *alerts.Incident) decided {
	out := decided{id: i.ID, closed: i.Closed}
	newest := map[alerts.DecisionKind]alerts.Decision{}
	for _, d := range i.Decisions {
		newest[d.Kind] = d
	}
	for _, kind := range alerts.DecisionKinds() {
		d, any := newest[kind]
		if !any {
			continue
		}
		out.newest = append(out.newest, decision{string(kind), d.By, d.At})
		if kind == alerts.Muted && i.IsMuted() {
			out.newest = append(out.newest, decision{alerts.MuteEnds, d.By, i.MutedUntil})
		}
	}
	return out
}

// export calls put with the time of each decision, in Unix seconds, unless the incident has closed and its newest
// decision is too old to matter.
func (d decided) export(now time.Time, put func(at float64, labels ...ingest.Label)) {
	recent := !d.closed
	for _, one := range d.newest {
		recent = recent || now.Sub(one.at) < alerts.ExportedAfterEnd
	}
	if !recent {
		return
	}
	for _, one := range d.newest {
		put(float64(one.at.UnixMilli())/1000, ingest.Label{Name: "incident", Value: d.id}, ingest.Label{Name: "decision", Value: one.what}, ingest.Label{Name: "by", Value: one.by})
	}
}

// versionChanges are the versions before and after the onset of an incident.
type versionChanges struct {
	before, after ingest.Versions
	cause         alerts.Cause
}

// changedVersions returns the versions before and after the onset of the first alarm that has the cause of the
// incident, or of the earliest alarm if no alarm has that cause.
func changedVersions(i *alerts.Incident) versionChanges {
	for _, a := range i.Alarms {
		if a.Cause == i.Cause {
			return versionChanges{a.Before, a.After, i.Cause}
		}
	}
	a := i.Earliest()
	return versionChanges{a.Before, a.After, i.Cause}
}

// labels returns the labels for what changed, the version of the cause first, and for the versions after the onset.
func (v versionChanges) labels() []ingest.Label {
	return []ingest.Label{
		{Name: "changed", Value: orNone(strings.Join(v.words(), ", "))},
		{Name: "policy_version", Value: v.after.Policy},
		{Name: "env_version", Value: v.after.Env},
		{Name: "reward_version", Value: v.after.Reward},
	}
}

// words describes each version that changed, such as "env_version 41 → 42".
func (v versionChanges) words() (changed []string) {
	for _, f := range []struct {
		cause          alerts.Cause
		name, from, to string
	}{
		{alerts.CausePolicy, "policy_version", v.before.Policy, v.after.Policy},
		{alerts.CauseEnvironment, "env_version", v.before.Env, v.after.Env},
		{alerts.CauseRewardFunction, "reward_version", v.before.Reward, v.after.Reward},
	} {
		if f.from == f.to {
			continue
		}
		word := f.name + " " + orNone(f.from) + " → " + orNone(f.to)
		if f.cause == v.cause {
			changed = append([]string{word}, changed...)
		} else {
			changed = append(changed, word)
		}
	}
	return changed
}

func orNone(text string) string { return cmp.Or(text, "none") }
