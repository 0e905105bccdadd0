package console

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// retrainedWhileOpen returns an incident to which a retrained policy has added the drift of another signal.
func retrainedWhileOpen() alerts.Incident {
	i := someIncident()
	action := i.Alarms[1]
	action.ID, action.Signal, action.Resolved, action.Causes = "acac", "action", false, nil
	for _, u := range []*finding.UnitRef{&action.OnsetFrom, &action.Onset, &action.OnsetTo, &action.At} {
		u.Ordinal += 200
		u.TS += 5 * 60e9
	}
	action.Before, action.After = i.Alarms[0].After, i.Alarms[0].After
	action.After.Policy = "v2"
	i.Alarms = append(slices.Clone(i.Alarms), action)
	return i
}

// The headline shows the onset of the incident only for signals that began with it.
func TestHeadlineTellsLaterSignalsApart(t *testing.T) {
	open := retrainedWhileOpen()
	over := closed(open)
	lasting := retrainedWhileOpen()
	lasting.Alarms[0].Resolved = true
	for name, c := range map[string]struct {
		i    alerts.Incident
		want string
	}{
		"open":            {open, "return has drifted from the baseline since 2026-11-20 08:00:05 UTC. action drifted later, starting at 2026-11-20 08:12:05 UTC. "},
		"closed":          {over, "return and outcome.conversion drifted from the baseline, starting at 2026-11-20 08:00:05 UTC. action drifted later, starting at 2026-11-20 08:12:05 UTC. "},
		"only later ones": {lasting, "action has drifted from the baseline since 2026-11-20 08:12:05 UTC. "},
		"none later":      {someIncident(), "return has drifted from the baseline since 2026-11-20 08:00:05 UTC. "},
	} {
		if got := lead(&c.i, ""); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if got := lead(&c.i, ""); name == "none later" && strings.Contains(got, "later") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Versions are those of the onset. For one that came later, the time is shown.
func TestVersionsAreThoseOfTheOnset(t *testing.T) {
	i := retrainedWhileOpen()
	want := []versionPart{
		{Name: "policy", Before: "v1", After: "v1", Later: []laterVersion{{"v2", i.Alarms[2].At.Moment(i.UnitName())}}},
		{Name: "environment", Before: "41", After: "42", Changed: true},
		{Name: "reward function", Before: "r7", After: "r7"},
	}
	got := versionParts(&i)
	same := func(a, b versionPart) bool {
		return a.Name == b.Name && a.Before == b.Before && a.After == b.After && a.Changed == b.Changed && slices.Equal(a.Later, b.Later)
	}
	if !slices.EqualFunc(got, want, same) {
		t.Errorf("versions %+v, want %+v", got, want)
	}
}

// Evidence such as "actions did not change" names the time it refers to once another signal has joined.
func TestEvidenceSaysOfWhichOnset(t *testing.T) {
	i := retrainedWhileOpen()
	v := madeUpFleet(1, someTime)
	v.incidents = []alerts.Incident{i}
	page := get(consoleOf(v, nil), "/incidents/"+i.ID)
	for _, want := range []string{
		string(times("The causes below explain the onset at 2026-11-20 08:00:05 UTC; action drifted later, starting at 2026-11-20 08:12:05 UTC.")),
		`<dt>policy</dt><dd><bdi>v1</bdi> <span class="none">(unchanged)</span><br>later <b><bdi>v2</bdi></b>`,
	} {
		if !strings.Contains(page.Body.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	i.Causes = []alerts.RankedCause{{Cause: alerts.CausePolicy, Weight: .9}} // of the later alarm
	if got := ofOnset(&i); got != "" {
		t.Errorf("evidence of a later alarm: %q", got)
	}
	if i = someIncident(); ofOnset(&i) != "" {
		t.Errorf("without later signals: %q", ofOnset(&i))
	}
}

// The effect of a resolved alarm is not shown as the current one.
func TestPageTellsThatADriftIsOver(t *testing.T) {
	v := madeUpFleet(1, someTime)
	path := "/incidents/" + v.incidents[0].ID
	if page := get(consoleOf(v, nil), path).Body.String(); !strings.Contains(page, "</i> now <b>") {
		t.Errorf("while it lasts: %s", page)
	}
	for k := range v.incidents[0].Alarms {
		v.incidents[0].Alarms[k].Resolved = true
	}
	if page := get(consoleOf(v, nil), path).Body.String(); strings.Contains(page, "</i> now <b>") || !strings.Contains(page, "</i> then <b>") {
		t.Errorf("after it: %s", page)
	}
}

// A signal that ended with a reset did not return to its baseline; one that had returned before is resolved.
func TestAlarmsOfAResetAreNotResolved(t *testing.T) {
	i := closed(someIncident())
	i.Alarms[1].ResolvedAt.Ordinal--
	for kind, want := range map[alerts.DecisionKind]string{alerts.Reset: "baseline replaced", alerts.Accepted: "accepted", alerts.Commented: "resolved"} {
		i.Decisions = []alerts.Decision{{Kind: kind, By: "ann", Why: "new prices"}}
		states := map[string]string{}
		for _, a := range storyOf(&i).Alarms {
			if states[a.Signal] = a.State; (a.Class == "ok") != (a.State == "resolved") || (a.Replaced == "") != (a.State == "resolved") {
				t.Errorf("%s: %s is %s in %q: %q", kind, a.Signal, a.State, a.Class, a.Replaced)
			}
		}
		if states["return"] != want || states["outcome.conversion"] != "resolved" {
			t.Errorf("%s: %v, want %s of return only", kind, states, want)
		}
	}
}

// A closed incident says that its new baseline is being collected, but only until the baseline is complete.
func TestNewBaselineIsTold(t *testing.T) {
	v := madeUpFleet(1, someTime)
	i, g := v.incidents[0], &v.summaries[0].Groups[0]
	i.Alarms[0].Baseline.ID = g.Baseline.ID
	c := consoleOf(v, nil)
	tells := func(want string) {
		t.Helper()
		if got := c.newBaseline(&i); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%q, want %q", got, want)
		}
	}
	tells("A new baseline is being collected. ")
	g.Baseline.ID = ""
	tells("A new baseline is being collected. ")
	g.Baseline.ID = "new"
	tells("The new baseline was completed at 2026-11-16 16:00:05 UTC. ")
	i.Group.Policy = "gone"
	tells("")
}

// Decisions on the incident and on its requests are in the order of their times.
func TestDecisionsAreInOrder(t *testing.T) {
	i, d := someIncident(), someDesk()
	d.history["rr_waits"] = append(d.history["rr_waits"], ledger.StateChange{At: someTime.Add(-30 * time.Minute), State: ledger.StateOpen, By: "bob", Reason: "go on"})
	i.Decisions = append(i.Decisions, alerts.Decision{Kind: alerts.Commented, By: "ann", Why: "thanks", At: someTime.Add(-10 * time.Minute)})
	page := storyOf(&i)
	page.tellOrders(t.Context(), consoleOf(madeUpFleet(1, someTime), d), &i)
	var by []string
	for _, decision := range page.Decisions {
		by = append(by, decision.Text[:strings.Index(decision.Text, " at ")])
	}
	if want := []string{"Muted until 2026-11-20 09:10:05 UTC by ann", "Retraining approved by bob", "Commented by ann"}; !slices.Equal(by, want) {
		t.Errorf("%q, want %q", by, want)
	}
}

// A muted incident needs attention once its retraining has ended without success.
func TestMutedIncidentWithoutSuccessNeedsAttention(t *testing.T) {
	for state, attention := range map[ledger.State]bool{
		ledger.StateInconclusive: true, ledger.StateFailed: true, ledger.StateMissed: true, ledger.StateMet: false, ledger.StateRunning: false, ledger.StateRejected: false,
	} {
		v, d := madeUpFleet(1, someTime), someDesk()
		i := &v.incidents[0]
		i.MutedUntil = someTime.Add(time.Hour)
		d.requests = []ledger.Request{{ID: "rr_1", Kind: ledger.KindRetrain, Policy: i.Group.Policy, Origin: i.ID, State: state, OpenedAt: someTime}}
		fleet := consoleOf(v, d).fleetData(t.Context(), nil)
		if len(fleet.Incidents) == 1 != attention || len(fleet.Muted) == 1 == attention {
			t.Errorf("%s: %d incidents need attention, %d are muted", state, len(fleet.Incidents), len(fleet.Muted))
		}
		if attention && !strings.HasSuffix(fleet.Incidents[0].What, "; retraining "+words.Standing(ledger.Request{State: state})) {
			t.Errorf("%s: %q", state, fleet.Incidents[0].What)
		}
	}
}

// The change of a share agrees with the percentages beside it, and is never a negative zero.
func TestPointsAgreeWithPercentages(t *testing.T) {
	for _, c := range []struct {
		from, to float64
		want     string
	}{{.01752, .01949, "+0.1"}, {.0176, .0194, "+0.1"}, {.5, .4999, "0.0"}, {.5, .5, "0.0"}, {.6, .2, "-40.0"}} {
		if got := points(c.from, c.to); got != c.want {
			t.Errorf("%v to %v: %s, want %s", c.from, c.to, got, c.want)
		}
	}
}
