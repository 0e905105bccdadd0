package alerts

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func muteUntil(until time.Time) Decision {
	return Decision{Kind: Muted, By: "alice", Why: "known", At: noon, Until: until}
}

func acceptance() Decision { return Decision{Kind: Accepted, By: "bob", Why: "new prices", At: noon} }

// restarted returns the findings of a bank whose baseline ends while signals drift.
func restarted(n int64, signals ...string) []finding.Finding {
	var out []finding.Finding
	for _, s := range signals {
		out = append(out, goes(s, finding.Drift, finding.WarmingUp, n))
	}
	return append(out, quiet(n))
}

func TestAcceptedIncidentCloses(t *testing.T) {
	b := NewTracker()
	applied(b, drift("return", 100), drift("reward", 101))
	id := b.Incidents()[0].ID
	if !b.End(id, acceptance()) {
		t.Fatal("the incident is not open")
	}
	told := told(applied(b, restarted(101, "return", "reward")...))
	want := []string{
		"return fired=false resolved=true cause=unknown firing=1/2", "reward fired=false resolved=true cause=unknown firing=0/2",
		"incident closed=true cause=unknown",
	}
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	i, known := b.Incident(id)
	d, ended := i.Ended()
	if !known || !i.Closed || !ended || d != acceptance() {
		t.Errorf("incident %+v", i)
	}
	if s := i.summary(); !strings.Contains(s, "accepted as the new normal by bob") {
		t.Errorf("summary %q", s)
	}
	reset := i
	reset.Decisions = []Decision{{Kind: Reset, By: "rewardwatch", Why: "v2 has met the contract"}}
	if s := reset.summary(); !strings.Contains(s, "closed because the baseline was reset; collecting a new one") {
		t.Errorf("summary of what a retraining has ended: %q", s)
	}
	if got := (Links{}).incidentAlert(&i).annotations["decisions"]; got != "accepted by bob at 2026-11-20 12:00:00 UTC: new prices" {
		t.Errorf("annotation %q", got)
	}
	if b.End(id, acceptance()) || b.End("none", acceptance()) || b.Mute(id, muteUntil(noon)) != nil || b.Mute("none", muteUntil(noon)) != nil {
		t.Error("an incident that is not open can be decided on")
	}
}

// Comments do not change the state of an incident, open or closed, and never replace the decision that ended it.
func TestComments(t *testing.T) {
	b := NewTracker()
	applied(b, drift("return", 100))
	id := b.Incidents()[0].ID
	comment := func(n int) Decision {
		return Decision{Kind: Commented, By: "alice", Why: fmt.Sprint("note ", n), At: noon}
	}
	b.Mute(id, muteUntil(noon.Add(time.Hour)))
	before := b.Incidents()[0]
	if changes := b.Comment(id, comment(0)); len(changes) != 1 || !changes[0].Incident.IsMuted() || len(changes[0].Incident.Decisions) != 2 {
		t.Errorf("a comment changes %+v", changes)
	}
	if b.Comment(id, comment(0)) != nil || b.Comment("none", comment(0)) != nil || len(before.Decisions) != 1 {
		t.Error("a second click is a second comment, or what was handed out has changed")
	}
	if b.Mute(id, muteUntil(noon.Add(time.Hour))) != nil {
		t.Error("after a comment, the same mute is another one")
	}
	b.End(id, acceptance())
	applied(b, restarted(101, "return")...)
	closedBefore := b.Incidents()[0]
	for n := range 3 * keptDecisions {
		if changes := b.Comment(id, comment(n+1)); len(changes) != 1 || !changes[0].Incident.Closed {
			t.Fatalf("comment %d on a closed incident changes %+v", n, changes)
		}
	}
	i := b.Incidents()[0]
	last := i.Decisions[len(i.Decisions)-1]
	if d, ended := i.Ended(); !ended || d != acceptance() || len(i.Decisions) != keptComments+2 || last != comment(3*keptDecisions) || len(closedBefore.Decisions) != 3 {
		t.Errorf("after many comments: %d decisions, the last %+v", len(i.Decisions), last)
	}
}

func TestMuteEndsAtItsTime(t *testing.T) {
	b := NewTracker()
	applied(b, drift("return", 100))
	id, until := b.Incidents()[0].ID, noon.Add(time.Hour)
	changes := b.Mute(id, muteUntil(until))
	if len(changes) != 1 || !changes[0].Incident.IsMuted() || changes[0].Incident.Closed {
		t.Fatalf("changes %+v", changes)
	}
	again := muteUntil(until)
	again.At = noon.Add(time.Minute)
	if got := b.Mute(id, again); got != nil {
		t.Errorf("the same mute again changes %v", told(got))
	}
	if got := (Links{}).incidentAlert(changes[0].Incident); !got.resolved || got.annotations["decisions"] != "muted by alice at 2026-11-20 12:00:00 UTC until 2026-11-20 13:00:00 UTC: known" {
		t.Errorf("the alert of a muted incident is %+v", got)
	}
	if got := b.EndMutes(until.Add(-time.Second)); got != nil {
		t.Errorf("ended early: %v", told(got))
	}
	restored := NewTracker()
	resumed(t, b, restored)
	if !reflect.DeepEqual(restored.Incidents(), b.Incidents()) {
		t.Errorf("restored %+v, want %+v", restored.Incidents(), b.Incidents())
	}
	changes = restored.EndMutes(until)
	if len(changes) != 1 || changes[0].Incident.IsMuted() || len(changes[0].Incident.Decisions) != 1 {
		t.Errorf("the end of the mute changes %+v", changes)
	}
	if got := restored.EndMutes(until); got != nil {
		t.Errorf("ended twice: %v", told(got))
	}
	if got := restored.Mute(id, muteUntil(until)); len(got) != 1 {
		t.Errorf("muted once more changes %v", told(got))
	}
}

func TestUnmute(t *testing.T) {
	b := NewTracker()
	applied(b, drift("return", 100))
	id := b.Incidents()[0].ID
	unmute := Decision{Kind: Unmuted, By: "bob", Why: "the test is over", At: noon.Add(time.Minute)}
	if got := b.Mute(id, unmute); got != nil {
		t.Errorf("the end of no mute changes %v", told(got))
	}
	b.Mute(id, muteUntil(noon.Add(time.Hour)))
	changes := b.Mute(id, unmute)
	if len(changes) != 1 || changes[0].Incident.IsMuted() || changes[0].Incident.Closed {
		t.Fatalf("changes %+v", changes)
	}
	if _, ended := changes[0].Incident.Ended(); ended {
		t.Error("the end of a mute is taken for the end of the incident")
	}
	const want = "muted by alice at 2026-11-20 12:00:00 UTC until 2026-11-20 13:00:00 UTC: known\n" +
		"unmuted by bob at 2026-11-20 12:01:00 UTC: the test is over"
	if a := (Links{}).incidentAlert(changes[0].Incident); a.resolved || a.annotations["decisions"] != want {
		t.Errorf("the alert is resolved=%t, decisions %q", a.resolved, a.annotations["decisions"])
	}
	if got := b.Mute(id, unmute); got != nil {
		t.Errorf("ended twice: %v", told(got))
	}
}

func TestMutedIncidentThatCloses(t *testing.T) {
	b := NewTracker()
	applied(b, drift("return", 100))
	b.Mute(b.Incidents()[0].ID, muteUntil(noon))
	applied(b, goes("return", finding.Drift, finding.OK, 150), quiet(171))
	i := b.Incidents()[0]
	if _, ended := i.Ended(); !i.Closed || i.IsMuted() || ended || len(i.Decisions) != 1 {
		t.Errorf("incident %+v", i)
	}
}

// Copies that have been handed out do not change with a later decision.
func TestDecisionsAreBoundedAndNotShared(t *testing.T) {
	b := NewTracker()
	applied(b, drift("return", 100))
	id := b.Incidents()[0].ID
	var first *Incident
	for i := range keptDecisions + 5 {
		d := muteUntil(noon.Add(time.Duration(i+1) * time.Hour))
		d.Why = fmt.Sprint(i)
		changes := b.Mute(id, d)
		if i == keptDecisions-1 {
			first = changes[0].Incident
		}
	}
	i, _ := b.Incident(id)
	if len(i.Decisions) != keptDecisions || i.Decisions[0].Why != "5" || first.Decisions[0].Why != "0" {
		t.Errorf("%d decisions from %q, of an older copy from %q", len(i.Decisions), i.Decisions[0].Why, first.Decisions[0].Why)
	}
}

func TestMutedIncidentIsNotPushed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		am, b := &receiver{status: 200}, NewTracker()
		n := start(t, am)
		n.Update(b.Apply(drift("return", 100)))
		pass(time.Second)
		am.taken()
		id := b.Incidents()[0].ID
		n.Update(b.Mute(id, muteUntil(time.Now().Add(time.Hour))))
		pass(time.Second)
		if got := am.taken(); len(got) != 1 || got[0].EndsAt.After(time.Now()) {
			t.Fatalf("pushed %+v, want one resolved alert", got)
		}
		pass(10 * time.Minute)
		n.Update(b.Apply(drift("reward", 110)))
		pass(49 * time.Minute)
		if got := am.taken(); len(got) != 0 {
			t.Errorf("pushed while muted: %+v", got)
		}
		n.Update(b.EndMutes(time.Now().Add(time.Hour)))
		pass(time.Second)
		got := am.taken()
		if len(got) != 1 || !got[0].EndsAt.After(time.Now()) || got[0].Annotations["signals"] != "return, reward" {
			t.Errorf("after the mute %+v, want one firing alert of both signals", got)
		}
		n.stop()
	})
}

// A restart during a mute, or after it, sends no notification of a muted incident.
func TestMutedIncidentIsLeftOutOfAResync(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		am, b := &receiver{status: 200}, NewTracker()
		applied(b, drift("return", 100))
		b.Mute(b.Incidents()[0].ID, muteUntil(time.Now().Add(time.Hour)))
		n := start(t, am)
		n.Resync(b.Incidents(), nil)
		pass(5 * time.Minute)
		if got := am.taken(); len(got) != 0 {
			t.Errorf("pushed %+v", got)
		}
		n.stop()
	})
}
