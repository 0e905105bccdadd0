package retrain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/recipe"
	"github.com/rewardwatch/rewardwatch/retrain/retraintest"
)

func contextWithCancel(t *testing.T) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return ctx, cancel
}

func TestJudge(t *testing.T) {
	triggers := []Trigger{
		{On: OnIncident, Signals: []string{"return", "outcome.*"}, Target: "trainer"},
		{On: OnIncident, Signals: []string{"action"}, Target: "tuner"},
	}
	with := func(change func(*alerts.Incident)) alerts.Incident {
		inc := retraintest.Incident("i1", "ranker")
		change(&inc)
		return inc
	}
	tests := []struct {
		name    string
		inc     alerts.Incident
		want    ledger.Reason
		target  string
		signals []string
	}{
		{"matches", with(func(*alerts.Incident) {}), ledger.Opened, "trainer", []string{"return"}},
		{"glob", with(func(i *alerts.Incident) { i.Alarms[0].Signal = "outcome.conversion" }), ledger.Opened, "trainer", []string{"outcome.conversion"}},
		{"second trigger", with(func(i *alerts.Incident) { i.Alarms[0].Signal = "action" }), ledger.Opened, "tuner", []string{"action"}},
		{"first trigger of two", with(func(i *alerts.Incident) { i.Alarms = append([]alerts.Alarm{retraintest.Alarm("action")}, i.Alarms...) }), ledger.Opened, "trainer", []string{"return"}},
		{"unknown cause", with(func(i *alerts.Incident) { i.Cause = alerts.CauseUnknown }), ledger.Opened, "trainer", []string{"return"}},
		{"unknown cause, perhaps the reward function", with(func(i *alerts.Incident) { doubtful(i, .3) }), ledger.CauseUnsettled, "trainer", []string{"return"}},
		{"environment, perhaps the reward function", with(func(i *alerts.Incident) {
			doubtful(i, .3)
			i.Cause = alerts.CauseEnvironment
		}), ledger.CauseUnsettled, "trainer", []string{"return"}},
		{"unknown cause, hardly the reward function", with(func(i *alerts.Incident) { doubtful(i, .1) }), ledger.Opened, "trainer", []string{"return"}},
		{"unknown cause, perhaps the reward function, looked at again", with(func(i *alerts.Incident) {
			doubtful(i, .3)
			i.Alarms[0].EvidenceAt.Ordinal = 20
		}), ledger.Opened, "trainer", []string{"return"}},
		{"unknown cause, rather the reward function, looked at again", with(func(i *alerts.Incident) {
			doubtful(i, .75)
			i.Alarms[0].EvidenceAt.Ordinal = 20
		}), ledger.CauseUnsettled, "trainer", []string{"return"}},
		{"guard", with(func(i *alerts.Incident) { i.Alarms[0].Guard = &finding.Guard{Name: "unsafe", State: "hold"} }), ledger.GuardTripped, "", nil},
		{"environment", with(func(i *alerts.Incident) { i.Cause = alerts.CauseEnvironment }), ledger.Opened, "trainer", []string{"return"}},
		{"other signal", with(func(i *alerts.Incident) { i.Alarms[0].Signal = "episode_length" }), ledger.NoTrigger, "", nil},
		{"resolved", with(func(i *alerts.Incident) { i.Alarms[0].Resolved = true }), ledger.NoTrigger, "", nil},
		{"closed", with(func(i *alerts.Incident) { i.Closed = true }), ledger.IncidentClosed, "", nil},
		{"muted", with(func(i *alerts.Incident) { i.MutedUntil = time.Unix(1, 0) }), ledger.IncidentMuted, "", nil},
		{"mute over", with(func(i *alerts.Incident) { i.Decisions = []alerts.Decision{{Kind: alerts.Muted}} }), ledger.Opened, "trainer", []string{"return"}},
		{"accepted, about to close", with(func(i *alerts.Incident) { i.Decisions = []alerts.Decision{{Kind: alerts.Accepted}} }), ledger.IncidentAccepted, "", nil},
		{"reward function", with(func(i *alerts.Incident) { i.Cause = alerts.CauseRewardFunction }), ledger.CauseNeedsPerson, "trainer", []string{"return"}},
		{"telemetry", with(func(i *alerts.Incident) { i.Cause = alerts.CauseTelemetry }), ledger.CauseNeedsPerson, "trainer", []string{"return"}},
		{"cause of the only alarm", with(func(i *alerts.Incident) { i.Alarms[0].Cause = alerts.CauseTelemetry }), ledger.CauseNeedsPerson, "trainer", nil},
		{"improvement", with(func(i *alerts.Incident) { i.Improvement, i.Alarms[0].Improvement = true, true }), ledger.Improvement, "trainer", nil},
		{"improvement by the reward function", with(func(i *alerts.Incident) {
			i.Improvement, i.Alarms[0].Improvement, i.Cause = true, true, alerts.CauseRewardFunction
		}), ledger.Improvement, "trainer", nil},
		{"improvement beside a drift", with(func(i *alerts.Incident) {
			i.Alarms[0].Improvement = true
			i.Alarms = append(i.Alarms, retraintest.Alarm("outcome.sale"))
		}), ledger.Opened, "trainer", []string{"outcome.sale"}},
		{"provisional incident", with(func(i *alerts.Incident) { i.Provisional = true }), ledger.Provisional, "trainer", []string{"return"}},
		{"provisional alarm", with(func(i *alerts.Incident) { i.Alarms[0].Provisional = true }), ledger.Provisional, "trainer", nil},
		{"provisional beside accepted", with(func(i *alerts.Incident) {
			i.Alarms[0].Provisional = true
			i.Alarms = append(i.Alarms, retraintest.Alarm("outcome.sale"))
		}), ledger.Opened, "trainer", []string{"outcome.sale"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			c, reason := judge(triggers, tc.inc)
			var signals []string
			for _, a := range c.alarms {
				signals = append(signals, a.Signal)
			}
			if reason != tc.want || c.trigger.Target != tc.target || !slices.Equal(signals, tc.signals) {
				t.Errorf("%s for %q with %v, want %s for %q with %v", reason, c.trigger.Target, signals, tc.want, tc.target, tc.signals)
			}
		})
	}
	if _, reason := judge(nil, retraintest.Incident("i1", "ranker")); reason != ledger.NoTrigger {
		t.Errorf("without triggers: %s, want no_trigger", reason)
	}
}

func testConsiderIsIdempotent(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		first := r.consider(retraintest.Incident("i1", "ranker"))
		if first.Reason != ledger.Opened || first.Request != recipe.RequestID("i1", r.cfg.Triggers[0].key()) {
			t.Fatalf("first decision %+v", first)
		}
		for n := range 100 {
			if n%25 == 0 {
				r.reopen()
			}
			inc := retraintest.Incident("i1", "ranker")
			inc.Alarms = append(inc.Alarms, retraintest.Alarm("reward"))
			if d := r.consider(inc); d.Reason != ledger.AlreadyRequested || d.Request != first.Request {
				t.Fatalf("decision %d: %+v", n, d)
			}
		}
		r.run()
		r.pass(2 * requestLifetime)
		r.consider(retraintest.Incident("i1", "ranker"))
		r.pass(time.Hour)
		if got := len(r.receiver.seen()); got != 1 {
			t.Errorf("%d deliveries, want 1", got)
		}
		decisions, err := r.Decisions(t.Context(), "i1", 10)
		check(t, err)
		if len(decisions) != 1 || decisions[0].Reason != ledger.Opened || decisions[0].Request != first.Request {
			t.Errorf("decisions %+v, want opened alone", decisions)
		}
	})
}

func testConsiderConcurrently(t *testing.T, on storage) {
	desk, err := Open(t.Context(), testConfig(t, on), testRecipes(t), zerolog.Nop(), prometheus.NewRegistry())
	check(t, err)
	reasons := make([]ledger.Reason, 20)
	var wg sync.WaitGroup
	for i := range reasons {
		wg.Go(func() {
			d, err := desk.Consider(t.Context(), retraintest.Incident("i1", "ranker"), time.Time{})
			if err != nil {
				t.Error(err)
			}
			reasons[i] = d.Reason
		})
	}
	wg.Wait()
	slices.Sort(reasons)
	if reasons[18] != ledger.AlreadyRequested || reasons[19] != ledger.Opened {
		t.Errorf("reasons %v, want one opened and the rest already_requested", reasons)
	}
	check(t, desk.Close())
}

func testWhatOrdersNothingIsRecordedOnce(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		r.run()
		inc := retraintest.Incident("i1", "ranker")
		inc.Provisional = true
		var want []ledger.Reason
		for _, step := range []struct {
			change func()
			reason ledger.Reason
		}{
			{func() {}, ledger.Provisional},
			{func() {}, ledger.Provisional},
			{func() { inc.Provisional, inc.Cause = false, alerts.CauseRewardFunction }, ledger.CauseNeedsPerson},
			{func() { inc.Cause = alerts.CauseTelemetry }, ledger.CauseNeedsPerson},
			{func() { inc.Alarms[0].Signal = "episode_length" }, ledger.NoTrigger},
		} {
			step.change()
			if d := r.consider(inc); d.Reason != step.reason || d.Request != "" {
				t.Errorf("decision %+v, want %s", d, step.reason)
			}
			if !slices.Contains(want, step.reason) {
				want = append(want, step.reason)
			}
			r.pass(time.Minute)
		}
		decisions, err := r.Decisions(t.Context(), "", 10)
		check(t, err)
		var got []ledger.Reason
		for _, d := range slices.Backward(decisions) {
			got = append(got, d.Reason)
		}
		if !slices.Equal(got, want) {
			t.Errorf("recorded %v, want %v", got, want)
		}
		if n := len(r.receiver.seen()); n != 0 {
			t.Errorf("%d deliveries, want none", n)
		}
		inc.Alarms[0].Signal, inc.Cause = "return", alerts.CausePolicy
		if d := r.consider(inc); d.Reason != ledger.Opened {
			t.Errorf("once the cause is the policy: %+v, want opened", d)
		}
	})
}

func testCooldownAndOpenRequest(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on, retraintest.Status(500))
		r.run()
		first := r.consider(retraintest.Incident("i1", "ranker"))
		synctest.Wait()
		if d := r.consider(retraintest.Incident("i2", "ranker")); d.Reason != ledger.OpenRequest || d.Detail != first.Request {
			t.Errorf("beside an undelivered request: %+v, want open_request", d)
		}
		if d := r.consider(retraintest.Incident("i3", "bidder")); d.Reason != ledger.Opened {
			t.Errorf("another policy: %+v, want opened", d)
		}
		r.pass(time.Hour)
		if d := r.consider(retraintest.Incident("i2", "ranker")); d.Reason != ledger.OpenRequest {
			t.Errorf("beside one whose job goes on: %+v, want open_request", d)
		}
		r.failJobs()
		if d := r.consider(retraintest.Incident("i2", "ranker")); d.Reason != ledger.Cooldown || d.Detail != "until 2000-01-02 00:00:00 UTC" {
			t.Errorf("after the job: %+v, want cooldown", d)
		}
		r.reopen()
		r.pass(23*time.Hour - 2*time.Second)
		if d := r.consider(retraintest.Incident("i2", "ranker")); d.Reason != ledger.Cooldown {
			t.Errorf("just before its end: %+v, want cooldown", d)
		}
		r.pass(2 * time.Second)
		if d := r.consider(retraintest.Incident("i2", "ranker")); d.Reason != ledger.Opened {
			t.Errorf("at its end: %+v, want opened", d)
		}
	})
}

func testCooldownIsOfTheTrigger(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		r.cfg.Triggers = append(r.cfg.Triggers, Trigger{On: OnIncident, Signals: []string{"action"}, Recipe: "ranker", Target: "trainer", Cooldown: 0})
		r.reopen()
		r.run()
		r.consider(retraintest.Incident("i1", "ranker"))
		r.pass(time.Minute)
		r.failJobs()
		for _, id := range []string{"i2", "i3"} {
			other := retraintest.Incident(id, "ranker")
			other.Alarms = []alerts.Alarm{retraintest.Alarm("action")}
			if d := r.consider(other); d.Reason != ledger.Opened {
				t.Errorf("another trigger, without a cooldown: %+v, want opened", d)
			}
			r.pass(time.Minute)
			r.failJobs()
		}
	})
}

func testExpiredRequestBlocksNothing(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		r.consider(retraintest.Incident("i1", "ranker"))
		r.pass(requestLifetime)
		if d := r.consider(retraintest.Incident("i2", "ranker")); d.Reason != ledger.Opened {
			t.Errorf("decision %+v, want opened", d)
		}
	})
}

func testCauseThatNeedsAPersonWithdraws(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		inc := retraintest.Incident("i1", "ranker")
		id := r.consider(inc).Request
		inc.Cause = alerts.CauseRewardFunction
		if d := r.consider(inc); d.Reason != ledger.CauseNeedsPerson || d.Request != id {
			t.Errorf("decision %+v, want cause_needs_person", d)
		}
		r.run()
		r.pass(time.Hour)
		if q := r.request(); q.State != ledger.StateWithdrawn || !strings.Contains(q.Reason, "reward_function") {
			t.Errorf("request %+v, want withdrawn", q)
		}
		if n := len(r.receiver.seen()); n != 0 {
			t.Errorf("%d deliveries, want none", n)
		}
		if d := r.consider(inc); d.Reason != ledger.AlreadyRequested {
			t.Errorf("again: %+v, want already_requested", d)
		}
	})
}

func testAcceptedIncidentWithdraws(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		inc := retraintest.Incident("i1", "ranker")
		id := r.consider(inc).Request
		inc.Decisions = []alerts.Decision{{Kind: alerts.Accepted, By: "alice", Why: "new prices"}}
		if d := r.consider(inc); d.Reason != ledger.IncidentAccepted || d.Request != id {
			t.Errorf("decision %+v, want incident_accepted", d)
		}
		r.run()
		r.pass(time.Hour)
		if q := r.request(); q.State != ledger.StateWithdrawn || !strings.Contains(q.Reason, "accepted by alice") {
			t.Errorf("request %+v, want withdrawn", q)
		}
		if n := len(r.receiver.seen()); n != 0 {
			t.Errorf("%d deliveries, want none", n)
		}
	})
}

func TestOpenFails(t *testing.T) {
	secretless := testConfig(t, onSQLite)
	secretless.Targets[0].SecretFile += ".missing"
	noLedger := testConfig(t, onSQLite)
	noLedger.Ledger.SQLite = noLedger.Targets[0].SecretFile // not a database
	for name, tc := range map[string]struct {
		cfg  Config
		want string
	}{"secret": {secretless, "target trainer: read webhook secret"}, "ledger": {noLedger, "open ledger"}} {
		if _, err := Open(t.Context(), tc.cfg, testRecipes(t), zerolog.Nop(), prometheus.NewRegistry()); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

func testOpenTwiceOnOneRegistry(t *testing.T, on storage) {
	cfg, reg := testConfig(t, on), prometheus.NewRegistry()
	first, err := Open(t.Context(), cfg, testRecipes(t), zerolog.Nop(), reg)
	check(t, err)
	if _, err := Open(t.Context(), cfg, testRecipes(t), zerolog.Nop(), reg); err == nil {
		t.Error("metrics were registered twice")
	}
	check(t, first.Close())
	second, err := Open(t.Context(), cfg, testRecipes(t), zerolog.Nop(), reg)
	check(t, err)
	check(t, second.Close())
}

func BenchmarkConsiderKnownIncident(b *testing.B) {
	cfg := Config{
		Ledger:   ledger.Config{SQLite: b.TempDir() + "/ledger.db"},
		Triggers: []Trigger{{On: OnIncident, Signals: []string{"action"}, Cooldown: model.Duration(time.Hour)}},
	}
	desk, err := Open(b.Context(), cfg, nil, zerolog.Nop(), prometheus.NewRegistry())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := desk.Consider(b.Context(), retraintest.Incident("i1", "ranker"), time.Time{}); err != nil {
			b.Fatal(err)
		}
	}
	if err := desk.Close(); err != nil {
		b.Fatal(err)
	}
}

// A slash in a signal's name is an ordinary character, here as in the signals of a policy.
func TestTriggerMatchesNamesWithSlashes(t *testing.T) {
	for glob, want := range map[string]bool{"outcome.*": true, "outcome.ctr/7d": true, "outcome.ctr": false, "return": false} {
		if got := (Trigger{Signals: []string{glob}}).matches("outcome.ctr/7d"); got != want {
			t.Errorf("%s matches outcome.ctr/7d: %v", glob, got)
		}
	}
}

// doubtful makes the cause of an incident uncertain: the reward function has the given weight.
func doubtful(i *alerts.Incident, weight float64) {
	i.Cause = alerts.CauseUnknown
	i.Causes = []alerts.RankedCause{
		{Cause: alerts.CauseEnvironment, Weight: 1 - weight}, {Cause: alerts.CauseRewardFunction, Weight: weight},
	}
}

// An order waits until the cause has been judged for the second time. It is not made if the cause then needs a
// person.
func testUnsettledCauseWaits(t *testing.T, on storage) {
	for name, test := range map[string]struct {
		then alerts.Cause
		want ledger.Reason
	}{
		"it is the reward function": {alerts.CauseRewardFunction, ledger.CauseNeedsPerson},
		"it is the environment":     {alerts.CauseEnvironment, ledger.Opened},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, on)
				inc := retraintest.Incident("i1", "ranker")
				doubtful(&inc, .4)
				if d := r.consider(inc); d.Reason != ledger.CauseUnsettled || d.Request != "" {
					t.Errorf("decision %+v, want cause_unsettled", d)
				}
				inc.Cause, inc.Alarms[0].EvidenceAt.Ordinal = test.then, 20
				inc.Causes = nil
				if d := r.consider(inc); d.Reason != test.want {
					t.Errorf("then %+v, want %s", d, test.want)
				}
			})
		})
	}
}

// A value relative to the baseline is resolved when the request opens, from the incident's group. If that is
// impossible, nothing is ordered.
func testContractRelativeToTheBaseline(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		const text = "mean return >= 0.95 * baseline over 200 episodes within 24h"
		expected := r.recipes["ranker"].Contract.Members["expected"]
		expected.Scalar = text
		r.recipes["ranker"].Contract.Members["expected"] = expected
		inc := retraintest.Incident("i-1", "ranker")
		if d := r.consider(inc); d.Reason != ledger.InvalidOrder || d.Detail != `resolve "`+text+`": no baseline exists yet` {
			t.Errorf("without baselines: %+v", d)
		}
		r.ResolveBy(func(policy string, group *ingest.Group, signal string) (finding.Distribution, error) {
			if group == nil {
				return finding.Distribution{}, fmt.Errorf("policy %q has 2 groups", policy)
			}
			if *group != inc.Group || signal != "return" {
				t.Errorf("asked for %s of %s", signal, group)
			}
			return finding.Distribution{Units: 500, Mean: 200, SD: 10}, nil
		})
		_, err := r.Ask(t.Context(), Ask{Policy: "ranker", Recipe: "ranker", Target: "trainer", By: "ann", Why: "new data"})
		if !errors.Is(err, ErrBadAsk) || !strings.Contains(err.Error(), "has 2 groups") {
			t.Errorf("asked for without an incident: %v", err)
		}
		id := r.consider(inc).Request
		r.run()
		r.pass(soon)
		q, err := r.Request(t.Context(), id)
		check(t, err)
		o, err := recipe.ReadTerms(q.Order)
		check(t, err)
		want := recipe.Relative{Times: .95, Level: 200, SD: 10}
		if e := o.Contract.Expected; e.Text != text || e.Value != 190 || e.Relative != want || e.Told() != text+" (>= 190, because the baseline's mean is 200)" {
			t.Errorf("the ledger has %+v, told as %s", e, e.Told())
		}
		seen := r.receiver.seen()
		if len(seen) != 1 || !strings.Contains(string(seen[0].body), `"value":190`) || !strings.Contains(string(seen[0].body), `"relative":{"times":0.95`) {
			t.Errorf("sent %+v", seen)
		}
	})
}
