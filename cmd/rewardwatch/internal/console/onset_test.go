package console

import (
	"slices"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// retrainedWhileOpen is an incident to which a retrained policy has added the drift of another signal.
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

// The headline gives the onset of the incident only to signals that began with it.
func TestHeadlineTellsLaterSignalsApart(t *testing.T) {
	open := retrainedWhileOpen()
	over := closed(open)
	lasting := retrainedWhileOpen()
	lasting.Alarms[0].Resolved = true
	for name, c := range map[string]struct {
		i    alerts.Incident
		want string
	}{
		"open":            {open, "return has drifted from the baseline since 2026-11-20T08:00:05Z. Later: action, from 2026-11-20T08:12:05Z. "},
		"closed":          {over, "return and outcome.conversion drifted from the baseline, starting at 2026-11-20T08:00:05Z. Later: action, from 2026-11-20T08:12:05Z. "},
		"only later ones": {lasting, "action has drifted from the baseline since 2026-11-20T08:12:05Z. "},
		"none later":      {someIncident(), "return has drifted from the baseline since 2026-11-20T08:00:05Z. "},
	} {
		if got := lead(&c.i); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if got := lead(&c.i); name == "none later" && strings.Contains(got, "Later") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Versions are those of the onset. One that came later says by when.
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

// Evidence such as "actions did not change" says of which time it speaks once another signal has joined.
func TestEvidenceSaysOfWhichOnset(t *testing.T) {
	i := retrainedWhileOpen()
	v := madeUpFleet(1, someTime)
	v.incidents = []alerts.Incident{i}
	page := get(consoleOf(v, nil), "/incidents/"+i.ID)
	for _, want := range []string{
		string(times("This is about the onset at 2026-11-20T08:00:05Z. Later: action, from 2026-11-20T08:12:05Z.")),
		`<dt>policy</dt><dd><bdi>v1</bdi> <span class="none">unchanged</span><br>later <b><bdi>v2</bdi></b>`,
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
