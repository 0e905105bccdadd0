package alarmmetrics

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/ingest"
)

func TestMetricsOfDecisions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewPedanticRegistry()
		m, b := registered(reg, nobody), alerts.NewTracker()
		m.Update(applied(b, drift("return", 100)))
		decisionsAre(t, reg)
		const id = "8913315e1179a501"
		by := func(kind alerts.DecisionKind, who string, until time.Time) alerts.Decision {
			time.Sleep(time.Minute)
			return alerts.Decision{Kind: kind, By: who, Why: "busy", At: time.Now(), Until: until}
		}
		start, end := time.Now(), time.Now().Add(4*time.Hour)
		m.Update(b.Mute(id, by(alerts.Muted, "ann", end)))
		m.Update(b.Comment(id, by(alerts.Commented, "bob", time.Time{})))
		m.Update(b.Comment(id, by(alerts.Commented, "\xffeve", time.Time{})))
		decisionsAre(t, reg,
			deed{"\uFFFDeve", "commented", start.Add(3 * time.Minute)},
			deed{"ann", "mute_ends", end}, deed{"ann", "muted", start.Add(time.Minute)})
		m.Update(b.Mute(id, by(alerts.Unmuted, "ann", time.Time{})))
		b.End(id, by(alerts.Accepted, "ann", time.Time{}))
		m.Update(applied(b, quiet(130)))
		closed := []deed{
			{"\uFFFDeve", "commented", start.Add(3 * time.Minute)},
			{"ann", "accepted", start.Add(5 * time.Minute)},
			{"ann", "muted", start.Add(time.Minute)},
			{"ann", "unmuted", start.Add(4 * time.Minute)},
		}
		decisionsAre(t, reg, closed...)
		time.Sleep(alerts.ExportedAfterEnd - time.Second)
		decisionsAre(t, reg, closed...)
		restarted := prometheus.NewPedanticRegistry()
		registered(restarted, nobody).Restore(b.Incidents())
		decisionsAre(t, restarted, closed...)
		time.Sleep(time.Second)
		decisionsAre(t, reg)
		m.Update(b.Comment(id, by(alerts.Commented, "bob", time.Time{})))
		decisionsAre(t, reg, append(closed[1:], deed{"bob", "commented", time.Now()})...)
		m.Forget([]string{"checkout"})
		decisionsAre(t, reg)
	})
}

// deed is a decision in the metric for the incident of these tests.
type deed struct {
	by, what string
	at       time.Time
}

func decisionsAre(t *testing.T, g prometheus.Gatherer, all ...deed) {
	t.Helper()
	want := ""
	for i, d := range all {
		if i == 0 {
			want = "# HELP rewardwatch_incident_decision_timestamp_seconds Time of the most recent decision of each kind on the latest incident of a group, in Unix time.\n" +
				"# TYPE rewardwatch_incident_decision_timestamp_seconds gauge\n"
		}
		want += fmt.Sprintf("rewardwatch_incident_decision_timestamp_seconds{by=%q,decision=%q,env=\"prod\",incident=\"8913315e1179a501\",policy=\"checkout\"} %g\n", d.by, d.what, float64(d.at.UnixMilli())/1000)
	}
	if err := testutil.GatherAndCompare(g, strings.NewReader(want), alerts.MetricIncidentDecision); err != nil {
		t.Error(err)
	}
}

// A comment on a closed incident neither closes it again nor hides the open one.
func TestCommentsOnClosedIncidentsDoNotCount(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m, b := registered(reg, nobody), alerts.NewTracker()
	m.Update(applied(b, drift("return", 100), quiet(150)))
	remark := func(who string) {
		m.Update(b.Comment("8913315e1179a501", alerts.Decision{Kind: alerts.Commented, By: who, Why: "a release", At: time.Now()}))
	}
	closedIs := func(n int) {
		t.Helper()
		want := fmt.Sprintf("rewardwatch_incidents_closed_total{cause=\"unknown\",env=\"prod\",policy=\"checkout\"} %d\n", n)
		if text := alarmsText(t, m, false); !strings.Contains(text, want) {
			t.Errorf("without %q: %s", want, text)
		}
	}
	closedIs(1)
	remark("ann")
	closedIs(1)
	m.Update(applied(b, drift("return", 300), drift("reward", 301)))
	remark("bob")
	closedIs(1)
	if text := alarmsText(t, m, false); !strings.Contains(text, "rewardwatch_alarms{env=\"prod\",policy=\"checkout\",severity=\"critical\"} 2\n") {
		t.Errorf("the open incident is hidden: %s", text)
	}
	decisionsAre(t, reg)
}

func TestChangedVersionsOfAnIncident(t *testing.T) {
	before := ingest.Versions{Policy: "p1", Env: "41", Reward: "r7"}
	for _, test := range []struct {
		cause alerts.Cause
		after ingest.Versions
		want  string
	}{
		{alerts.CauseUnknown, before, "none"},
		{alerts.CauseEnvironment, ingest.Versions{Policy: "p1", Env: "42", Reward: "r7"}, "env_version 41 → 42"},
		{alerts.CauseEnvironment, ingest.Versions{Policy: "p2", Env: "42", Reward: "r7"}, "env_version 41 → 42, policy_version p1 → p2"},
		{alerts.CausePolicy, ingest.Versions{Policy: "p2", Env: "42"}, "policy_version p1 → p2, env_version 41 → 42, reward_version r7 → none"},
	} {
		i := &alerts.Incident{Cause: test.cause, Alarms: []alerts.Alarm{
			{Cause: alerts.CauseTelemetry, Before: before, After: ingest.Versions{Policy: "p9"}}, {Cause: test.cause, Before: before, After: test.after},
		}}
		if got := changedVersions(i).labels()[0].Value; got != test.want {
			t.Errorf("%s: %q, want %q", test.cause, got, test.want)
		}
	}
}
