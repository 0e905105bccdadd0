package alerts

import (
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// trip returns a finding for a guard that trips at a unit, with the onset 8 units earlier.
func trip(state string, n int64) finding.Finding {
	f := goes("guard", finding.OK, finding.Drift, n)
	f.Group = ingest.NewGroup("ranker", ingest.Label{Name: "guard", Value: "unsafe"})
	f.Effect, f.Baseline, f.Offsets = finding.Effect{}, finding.BaselineRef{}, nil
	f.Guard = &finding.Guard{
		Name: "unsafe", State: state, Limit: "steps with action drop at most 1% of steps", Why: "steps with action drop: 7.5% of 700 steps (limit 1%)",
	}
	return f
}

func TestATrippedGuardIsAnIncident(t *testing.T) {
	for state, want := range map[string]Severity{"warn": Warning, "hold": Critical, "fallback": Critical} {
		b := NewTracker()
		changes := b.Apply(trip(state, 100))
		if len(changes) != 1 || changes[0].Incident.Severity != want {
			t.Fatalf("%s: %+v", state, changes)
		}
		a := Links{Console: "http://rewardwatch"}.incidentAlert(changes[0].Incident)
		if a.labels["guard"] != "unsafe" || !strings.HasPrefix(a.annotations["summary"], "ranker: guard unsafe: "+state+" since ") {
			t.Errorf("%s: labels %v, summary %q", state, a.labels, a.annotations["summary"])
		}
		if d := a.annotations["description"]; !strings.HasPrefix(d, "steps with action drop: 7.5% of 700 steps (limit 1%); since ") {
			t.Errorf("%s: description %q", state, d)
		}
		if _, has := a.annotations["baseline"]; has {
			t.Errorf("%s: a guard has no baseline, but the alert names %q", state, a.annotations["baseline"])
		}
	}
}

func TestTheCauseOfAGuardIsTheVersionThatChanged(t *testing.T) {
	f := trip("hold", 100)
	f.After.Policy, f.Changed = "p2", []string{"policy"}
	i := NewTracker().Apply(f)[0].Incident
	if i.Cause != CausePolicy || !strings.Contains(strings.Join(i.Evidence, "; "), "policy_version") {
		t.Errorf("cause %s by %q, want policy by its version", i.Cause, i.Evidence)
	}
	i = NewTracker().Apply(trip("hold", 100))[0].Incident
	if i.Cause != CauseUnknown || i.Evidence[0] != f.Guard.Why {
		t.Errorf("cause %s by %q, want unknown, with what the guard has seen", i.Cause, i.Evidence)
	}
}

func TestAGuardSurvivesACheckpoint(t *testing.T) {
	b := NewTracker()
	before := *b.Apply(trip("hold", 100))[0].Incident
	parts, err := b.Changes()
	if err != nil {
		t.Fatal(err)
	}
	again := NewTracker()
	if err := again.Resume(parts); err != nil {
		t.Fatal(err)
	}
	after, _ := again.Incident(before.ID)
	if after.Guard() == nil || *after.Guard() != *before.Guard() {
		t.Errorf("restored %+v, want %+v", after.Guard(), before.Guard())
	}
}

func TestAReleasedGuardSaysWhoReleasedIt(t *testing.T) {
	b := NewTracker()
	i := b.Apply(trip("hold", 100))[0].Incident
	b.End(i.ID, Decision{Kind: Released, By: "ann", Why: "fixed"})
	f := trip("hold", 110)
	b.Apply(finding.Finding{Kind: finding.StreamChanged, Group: f.Group, Signal: "guard", From: finding.Drift, To: finding.OK, At: unit(110, 0)})
	changes := b.Apply(finding.Finding{Kind: finding.GroupQuiet, Group: f.Group, At: unit(110, 0)})
	if s := changes[len(changes)-1].Incident.summary(); s != "ranker: guard unsafe: released by ann" {
		t.Errorf("summary %q", s)
	}
}
