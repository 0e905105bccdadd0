package retrain

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/model"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/outcome"
	"github.com/rewardwatch/rewardwatch/retrain/recipe"
	"github.com/rewardwatch/rewardwatch/retrain/retraintest"
)

func TestTriggerWants(t *testing.T) {
	for name, test := range map[string]struct {
		trigger Trigger
		change  func(*alerts.Incident)
		want    ledger.Reason
	}{
		"no rule":                       {Trigger{}, func(*alerts.Incident) {}, ledger.Opened},
		"its cause":                     {Trigger{Causes: []alerts.Cause{alerts.CauseUnknown, alerts.CausePolicy}}, func(*alerts.Incident) {}, ledger.Opened},
		"another cause":                 {Trigger{Causes: []alerts.Cause{alerts.CauseEnvironment}}, func(*alerts.Incident) {}, ledger.NoTrigger},
		"a cause for a person":          {Trigger{Causes: []alerts.Cause{alerts.CauseEnvironment}}, func(i *alerts.Incident) { i.Cause = alerts.CauseTelemetry }, ledger.CauseNeedsPerson},
		"what its estimate shows":       {Trigger{OffPolicy: []finding.Shown{finding.ShownWorld, finding.ShownBoth}}, shows(finding.ShownWorld), ledger.Opened},
		"its estimate shows otherwise":  {Trigger{OffPolicy: []finding.Shown{finding.ShownWorld}}, shows(finding.ShownPolicy), ledger.NoTrigger},
		"its estimate is undecided":     {Trigger{OffPolicy: []finding.Shown{finding.ShownWorld}}, shows(finding.Undecided), ledger.NoTrigger},
		"it has no estimate":            {Trigger{OffPolicy: []finding.Shown{finding.ShownWorld}}, func(*alerts.Incident) {}, ledger.NoTrigger},
		"its policy":                    {Trigger{Policies: []string{"bid*", "rank?r"}}, func(*alerts.Incident) {}, ledger.Opened},
		"another policy":                {Trigger{Policies: []string{"bid*"}}, func(*alerts.Incident) {}, ledger.NoTrigger},
		"a policy with slash":           {Trigger{Policies: []string{"ALE*"}}, func(i *alerts.Incident) { *i = retraintest.Incident("i1", "ALE/Pong-v5") }, ledger.Opened},
		"severe enough":                 {Trigger{Severity: alerts.Critical}, func(*alerts.Incident) {}, ledger.Opened},
		"not severe enough":             {Trigger{Severity: alerts.Critical}, func(i *alerts.Incident) { i.Severity = alerts.Warning }, ledger.NoTrigger},
		"a warning will do":             {Trigger{Severity: alerts.Warning}, func(i *alerts.Incident) { i.Severity = alerts.Warning }, ledger.Opened},
		"an improvement":                {Trigger{}, improved, ledger.Improvement},
		"an improvement that is wanted": {Trigger{Improvements: true}, improved, ledger.Opened},
		"a wanted improvement by the reward function": {Trigger{Improvements: true}, func(i *alerts.Incident) {
			improved(i)
			i.Cause = alerts.CauseRewardFunction
		}, ledger.CauseNeedsPerson},
		"reward hacking, by a reward that is better": {Trigger{}, func(i *alerts.Incident) {
			improved(i)
			i.Cause = alerts.CauseRewardHacking
		}, ledger.CauseNeedsPerson},
		"provisional": {
			Trigger{Severity: alerts.Critical},
			func(i *alerts.Incident) { i.Severity, i.Provisional = alerts.Info, true }, ledger.Provisional,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inc := retraintest.Incident("i1", "ranker")
			test.change(&inc)
			test.trigger.On = OnIncident
			if _, reason := judge([]Trigger{{On: OnSchedule}, test.trigger}, inc); reason != test.want {
				t.Errorf("%s, want %s", reason, test.want)
			}
		})
	}
}

// shows adds an off-policy estimate to the first alarm of an incident.
func shows(shown finding.Shown) func(*alerts.Incident) {
	return func(i *alerts.Incident) { i.Alarms[0].OffPolicy = &finding.OffPolicy{Shown: shown} }
}

// The keys of triggers that use only old rules must not change. Otherwise a restart with a new build would end their
// cooldowns.
func TestTriggerKeysStay(t *testing.T) {
	for want, trigger := range map[string]Trigger{
		"incident(*) -> trainer":             {On: OnIncident, Target: "trainer", Cooldown: 1, Lasting: 1, Approval: true, Recipe: "x", Severity: alerts.Warning},
		"incident(return,reward) -> trainer": {On: OnIncident, Target: "trainer", Signals: []string{"reward", "return"}},
		"incident(*; policies a,b*; causes environment,policy; critical) -> trainer": {
			On: OnIncident, Target: "trainer", Policies: []string{"b*", "a"}, Causes: []alerts.Cause{"policy", "environment"}, Severity: alerts.Critical,
		},
		"incident(*; off-policy both,world; critical) -> trainer": {
			On: OnIncident, Target: "trainer", OffPolicy: []finding.Shown{finding.ShownWorld, finding.ShownBoth}, Severity: alerts.Critical,
		},
		"incident(*; improvements) -> trainer": {On: OnIncident, Target: "trainer", Improvements: true},
		"schedule(0 3 * * 1) -> trainer":       {On: OnSchedule, Target: "trainer", Cron: " 0 3 *  * 1", Policies: []string{"a"}},
	} {
		if got := trigger.key(); got != want {
			t.Errorf("key %q, want %q", got, want)
		}
	}
}

func testApprovalWhereConfigured(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		r.cfg.Triggers[0].Approval = true
		r.reopen()
		r.run()
		id := r.consider(retraintest.Incident("i1", "ranker")).Request
		r.pass(time.Hour)
		if q := r.request(); q.State != ledger.StateAwaitingApproval || len(r.receiver.seen()) != 0 {
			t.Errorf("%s with %d deliveries, want it to wait", q.State, len(r.receiver.seen()))
		}
		if d := r.consider(retraintest.Incident("i2", "ranker")); d.Reason != ledger.OpenRequest || d.Detail != id {
			t.Errorf("beside one that waits: %+v, want open_request", d)
		}
		_, err := r.Approve(t.Context(), id, "alice", "go on")
		check(t, err)
		r.pass(time.Minute)
		history, err := r.History(t.Context(), id)
		check(t, err)
		if len(r.receiver.seen()) != 1 || len(history) != 3 || history[0].State != ledger.StateAwaitingApproval || history[0].By != ledger.ByService {
			t.Errorf("%d deliveries, history %+v", len(r.receiver.seen()), history)
		}
	})
}

// A drift orders nothing until it has lasted long enough, by the clock of its telemetry at any speed, also across a
// restart.
func testLasting(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		r.cfg.Triggers[0].Lasting = model.Duration(30 * time.Minute)
		r.reopen()
		opened := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
		inc := retraintest.Incident("i1", "ranker")
		inc.Opened.TS = opened.UnixNano()
		at := func(after time.Duration) ledger.Decision {
			t.Helper()
			d, err := r.Consider(t.Context(), inc, opened.Add(after))
			check(t, err)
			return d
		}
		for _, after := range []time.Duration{0, time.Minute, 30*time.Minute - 1} {
			if d := at(after); d.Reason != ledger.NotLasted || !d.Again.Equal(opened.Add(30*time.Minute)) || d.Request != "" {
				t.Errorf("after %s: %+v, want not_lasted", after, d)
			}
			r.reopen()
			r.pass(time.Hour) // which the telemetry does not see
		}
		if d := at(30 * time.Minute); d.Reason != ledger.Opened || !d.Again.IsZero() {
			t.Errorf("once it has lasted: %+v, want opened", d)
		}
	})
}

// If the telemetry has no clock, the time counts from when the ledger first saw the drift.
func testLastingWithoutAClock(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		r.cfg.Triggers[0].Lasting = model.Duration(30 * time.Minute)
		r.reopen()
		end := time.Now().Add(30 * time.Minute)
		for range 3 {
			if d := r.consider(retraintest.Incident("i1", "ranker")); d.Reason != ledger.NotLasted || !d.Again.Equal(end) {
				t.Errorf("%+v, want not_lasted until %s", d, end)
			}
			r.pass(10*time.Minute - time.Second)
			r.reopen()
		}
		r.pass(3 * time.Second)
		if d := r.consider(retraintest.Incident("i1", "ranker")); d.Reason != ledger.Opened {
			t.Errorf("%+v, want opened", d)
		}
	})
}

// scheduled makes the rig's desk retrain policies only by a schedule.
func scheduled(r *rig, cron string, policies ...string) {
	r.cfg.Triggers = []Trigger{{On: OnSchedule, Cron: cron, Policies: policies, Recipe: "ranker", Target: "trainer", Cooldown: defaultCooldown}}
	r.reopen()
}

func (r *rig) requests() []ledger.Request {
	r.t.Helper()
	all, err := r.Requests(r.t.Context(), 1000)
	check(r.t, err)
	return all
}

// The bubble's clock begins on Saturday, 2000-01-01 00:00 UTC.
func testSchedule(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		scheduled(r, "30 0,1 * * *", "ranker", "bidder")
		r.run()
		r.pass(30*time.Minute - time.Second)
		if all := r.requests(); len(all) != 0 {
			t.Fatalf("before its time: %+v", all)
		}
		r.pass(time.Second)
		all := r.requests()
		var policies, origins []string
		for _, q := range all {
			policies, origins = append(policies, q.Policy), append(origins, q.Origin)
			if q.OriginKind != ledger.OriginSchedule || q.Trigger != "schedule(30 0,1 * * *) -> trainer" || !strings.Contains(string(q.Order), `"incident":null`) {
				t.Errorf("request %+v", q)
			}
		}
		slices.Sort(policies)
		slices.Sort(origins)
		if !slices.Equal(policies, []string{"bidder", "ranker"}) || origins[0] != "schedule/schedule(30 0,1 * * *) -> trainer/bidder/2000-01-01T00:30:00Z" {
			t.Fatalf("policies %v, origins %v", policies, origins)
		}
		for range 3 { // and not again
			r.pass(time.Minute)
			r.failJobs()
			r.reopen()
			r.run()
		}
		r.pass(56 * time.Minute)
		if n := len(r.requests()); n != 2 {
			t.Errorf("%d requests within an hour, want 2", n)
		}
		r.pass(time.Minute)
		if n := len(r.requests()); n != 4 {
			t.Errorf("%d requests after the second slot, want 4", n)
		}
	})
}

// Of the slots at which nothing was running, the most recent one is used, unless it is too old.
func testSlotsMissed(t *testing.T, on storage) {
	for name, test := range map[string]struct {
		cron string
		down time.Duration
		want []string
	}{
		"the newest of many": {"*/10 * * * *", 5*time.Hour + 15*time.Minute, []string{"2000-01-01T05:10:00Z"}},
		"just in time":       {"0 3 * * *", 4*time.Hour - time.Second, []string{"2000-01-01T03:00:00Z"}},
		"too old":            {"0 3 * * *", 4 * time.Hour, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, on)
				scheduled(r, test.cron, "ranker")
				r.pass(test.down)
				r.run()
				r.pass(time.Second)
				var slots []string
				for _, q := range r.requests() {
					slots = append(slots, q.Origin[strings.LastIndex(q.Origin, "/")+1:])
				}
				if !slices.Equal(slots, test.want) {
					t.Errorf("slots %v, want %v", slots, test.want)
				}
			})
		})
	}
}

// A slot is decided when it comes, even if nothing is ordered.
func testSlotOfABusyPolicy(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		scheduled(r, "30 0 * * *", "ranker")
		r.run()
		q, err := r.Ask(t.Context(), Ask{Policy: "ranker", Recipe: "ranker", Target: "trainer", By: "alice", Why: "try"})
		check(t, err)
		r.pass(30*time.Minute + time.Second)
		r.failJobs()
		r.pass(20 * time.Minute)
		r.reopen()
		r.run()
		r.pass(time.Minute)
		decisions, err := r.Decisions(t.Context(), "schedule/schedule(30 0 * * *) -> trainer/ranker/2000-01-01T00:30:00Z", 10)
		check(t, err)
		if len(r.requests()) != 1 || len(decisions) != 1 || decisions[0].Reason != ledger.OpenRequest || decisions[0].Detail != q.ID {
			t.Errorf("%d requests, decisions %+v, want open_request", len(r.requests()), decisions)
		}
	})
}

// Several instances that share a ledger order each slot once.
func testScheduleOfSeveralInstances(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		scheduled(r, "5,15,25,35,45 0 * * *", "ranker", "bidder")
		ctx, cancel := contextWithCancel(t)
		done := make(chan error, 3)
		var desks []*Desk
		for range cap(done) {
			desk, _ := r.another()
			desks = append(desks, desk)
			go func() { done <- runSeldom(ctx, t, desk) }()
		}
		const slots = 5
		for range slots {
			r.pass(10 * time.Minute)
			r.failJobs()
		}
		cancel()
		for _, desk := range desks {
			check(t, <-done)
			defer func() { check(t, desk.Close()) }()
		}
		if n := len(r.requests()); n != 2*slots {
			t.Errorf("%d requests, want %d", n, 2*slots)
		}
	})
}

func TestParseSchedule(t *testing.T) {
	at := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC) // clocks go forward in Berlin on the following night
	for text, want := range map[string]string{
		"0 3 * * 1":                       "2026-03-30T03:00:00Z",
		" */15 * * * * ":                  "2026-03-28T12:15:00Z",
		"CRON_TZ=Europe/Berlin 0 3 * * *": "2026-03-29T01:00:00Z",
		"TZ=America/New_York 0 3 * * MON": "2026-03-30T07:00:00Z",
	} {
		s, err := parseSchedule(text)
		check(t, err)
		if got := s.Next(at).UTC().Format(time.RFC3339); got != want {
			t.Errorf("%q next comes at %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{
		"", " ", "0 3 * *", "0 0 3 * * 1", "@daily", "@every 1h", "60 * * * *", "CRON_TZ=UTC", "CRON_TZ=Nowhere/At 0 3 * * *", "CRON_TZ=UTC @every 1h", "0 0 30 2 *",
	} {
		if _, err := parseSchedule(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

func FuzzParseSchedule(f *testing.F) {
	f.Add("0 3 * * 1")
	f.Add("CRON_TZ=UTC */5 1-3 * JAN,MAR ?")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseSchedule(text)
		if err == nil && s.Next(time.Unix(0, 0)).IsZero() {
			t.Errorf("%q never occurs", text)
		}
	})
}

func testAsk(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		r.run()
		ask := Ask{ID: "one", Policy: "ranker", Recipe: "ranker", Target: "trainer", By: "alice", Why: "the catalogue is new"}
		q, err := r.Ask(t.Context(), ask)
		check(t, err)
		if q.OriginKind != ledger.OriginPerson || q.Origin != "person/one" || q.State != ledger.StateOpen {
			t.Errorf("request %+v", q)
		}
		again, err := r.Ask(t.Context(), ask)
		check(t, err)
		if again.ID != q.ID {
			t.Errorf("asked again it is %s, not %s", again.ID, q.ID)
		}
		r.pass(time.Minute)
		if n := len(r.receiver.seen()); n != 1 || len(r.requests()) != 1 {
			t.Errorf("%d deliveries of %d requests, want one", n, len(r.requests()))
		}
		history, err := r.History(t.Context(), q.ID)
		check(t, err)
		if history[0].By != "alice" || history[0].Reason != "the catalogue is new" {
			t.Errorf("history begins %+v", history[0])
		}
		decisions, err := r.Decisions(t.Context(), "person/one", 10)
		check(t, err)
		if len(decisions) != 1 || decisions[0].Reason != ledger.Opened || decisions[0].Request != q.ID || decisions[0].Detail != "requested by alice: the catalogue is new" {
			t.Errorf("decisions %+v", decisions)
		}
		for name, test := range map[string]struct {
			change func(*Ask)
			want   error
		}{
			"another under the same id": {func(a *Ask) { a.Policy = "bidder" }, ErrAskedOtherwise},
			"unfinished":                {func(a *Ask) { a.ID = "two" }, ErrUnfinished},
			"no policy":                 {func(a *Ask) { a.Policy = "" }, ErrBadAsk},
			"nobody":                    {func(a *Ask) { a.By = "" }, ErrBadAsk},
			"no reason":                 {func(a *Ask) { a.Why = "" }, ErrBadAsk},
			"no such recipe":            {func(a *Ask) { a.Recipe = "none" }, ErrBadAsk},
			"half a recipe":             {func(a *Ask) { a.Recipe = "base" }, ErrBadAsk},
			"no such target":            {func(a *Ask) { a.Target = "none" }, ErrBadAsk},
			"incident of another": {func(a *Ask) {
				inc := retraintest.Incident("i1", "bidder")
				a.Incident = &inc
			}, ErrBadAsk},
		} {
			a := ask
			test.change(&a)
			if _, err := r.Ask(t.Context(), a); !errors.Is(err, test.want) {
				t.Errorf("%s: %v, want %v", name, err, test.want)
			}
		}
	})
}

// A person can request a retraining where a trigger must not: during a cooldown, and for a cause with which a
// retraining would learn the fault.
func testAskAboutAnIncident(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		r.run()
		r.consider(retraintest.Incident("i1", "ranker"))
		r.pass(time.Minute)
		r.failJobs()
		inc := retraintest.Incident("i2", "ranker")
		inc.Cause = alerts.CauseRewardFunction
		inc.Alarms = append(inc.Alarms, retraintest.Alarm("reward"))
		inc.Alarms[1].Resolved = true
		if d := r.consider(inc); d.Reason != ledger.CauseNeedsPerson {
			t.Fatalf("%+v, want cause_needs_person", d)
		}
		q, err := r.Ask(t.Context(), Ask{Policy: "ranker", Recipe: "ranker", Target: "trainer", By: "alice", Why: "the new rewards are meant", Incident: &inc})
		check(t, err)
		for _, part := range []string{`"incident":"i2"`, `"cause":"reward_function"`, `"signals":["return"]`, `"partition":0`} {
			if !strings.Contains(string(q.Order), part) {
				t.Errorf("the order has no %s: %s", part, q.Order)
			}
		}
		if d := r.consider(inc); d.Reason != ledger.CauseNeedsPerson {
			t.Errorf("the incident itself: %+v, want cause_needs_person", d)
		}
		r.pass(time.Minute)
		if got := r.requests()[0]; got.ID != q.ID || got.State != ledger.StateDelivered || got.Parent == "" {
			t.Errorf("request %+v, want it delivered, after the other", got)
		}
	})
}

// A guard has no baseline and no units. A request from its incident is for the policy, and can be verified.
func testAskAboutAGuard(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		r.run()
		inc := retraintest.Incident("i1", "ranker")
		inc.Group = ingest.NewGroup("ranker", ingest.Label{Name: "guard", Value: "unsafe"})
		inc.Alarms = []alerts.Alarm{{Signal: "guard", Group: inc.Group, Guard: &finding.Guard{Name: "unsafe", State: "hold"}}}
		q, err := r.Ask(t.Context(), Ask{Policy: "ranker", Recipe: "ranker", Target: "trainer", By: "alice", Why: "unsafe", Incident: &inc})
		check(t, err)
		if order := string(q.Order); strings.Contains(order, `"guard"`) || !strings.Contains(order, `"incident":null`) {
			t.Errorf("the order is about the guard: %s", order)
		}
	})
}

// Fields about an incident are null if none is the reason for the retraining, and unknown in a text.
func testOrderWithoutAnIncident(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		q, err := r.Ask(t.Context(), Ask{Policy: "ranker", Recipe: "ranker", Target: "trainer", By: "alice", Why: "try"})
		check(t, err)
		leaves, err := recipe.LeavesOfOrder(q.Order)
		check(t, err)
		got := map[string]string{}
		for _, l := range leaves {
			got[l.Path] = l.Value
		}
		for path, want := range map[string]string{
			"contract.hypothesis": `"unknown moved as customers changed; unknown in unknown"`, "contract.objective": `"the ranker earns what it did"`,
			"config.ranges": "null", "config.run": `"retrain-` + q.ID + `"`, "config.optimizer.lr": "0.0003",
		} {
			if got[path] != want {
				t.Errorf("%s is %s, want %s", path, got[path], want)
			}
		}
	})
}

func testBreaker(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		r.cfg.Triggers[0].Cooldown = 0
		r.cfg.Breaker = BreakerConfig{After: 2, Pause: model.Duration(time.Hour)}
		r.reopen()
		r.run()
		breaker := func(want float64) {
			t.Helper()
			if got := gaugeOf(t, r.reg, MetricBreakerOpen, "ranker"); got != want {
				t.Errorf("the breaker is %g, want %g", got, want)
			}
		}
		n := 0
		// ended opens a retraining for an incident and ends it.
		ended := func(id string, end ledger.State) {
			t.Helper()
			r.pass(time.Minute)
			if end == ledger.StateFailed {
				r.failJobs()
				return
			}
			_, err := r.Report(t.Context(), id, Report{State: JobSucceeded, Version: "v9", By: "trainer"})
			check(t, err)
			r.pass(time.Minute)
			_, err = r.Conclude(t.Context(), id, outcome.Verdict{State: end, Evidence: "mean return 150"})
			check(t, err)
			r.pass(time.Minute)
		}
		wants := func(want ledger.Reason) ledger.Decision {
			t.Helper()
			n++
			d := r.consider(retraintest.Incident("i"+string(rune('0'+n)), "ranker"))
			if d.Reason != want {
				t.Fatalf("incident %d: %+v, want %s", n, d, want)
			}
			return d
		}
		ended(wants(ledger.Opened).Request, ledger.StateMissed)
		breaker(0)
		ended(wants(ledger.Opened).Request, ledger.StateMet) // ends the row
		ended(wants(ledger.Opened).Request, ledger.StateFailed)
		ended(wants(ledger.Opened).Request, ledger.StateInconclusive) // no evidence
		breaker(0)
		ended(wants(ledger.Opened).Request, ledger.StateMissed)
		breaker(1)
		held := wants(ledger.BreakerOpen)
		if !strings.HasPrefix(held.Detail, "the last 2 retrainings missed their contract or failed; paused until 2000-01-01 01:") {
			t.Errorf("detail %q", held.Detail)
		}
		if d := r.consider(retraintest.Incident("other", "bidder")); d.Reason != ledger.Opened {
			t.Errorf("another policy: %+v, want opened", d)
		}
		ask := func(end ledger.State) {
			q, err := r.Ask(t.Context(), Ask{Policy: "ranker", Recipe: "ranker", Target: "trainer", By: "alice", Why: "try"})
			check(t, err)
			ended(q.ID, end)
		}
		r.reopen()
		r.run()
		ask(ledger.StateMissed)
		wants(ledger.BreakerOpen)
		ask(ledger.StateMet)
		breaker(0)
		ended(wants(ledger.Opened).Request, ledger.StateMissed)
		ended(wants(ledger.Opened).Request, ledger.StateMissed)
		r.pass(time.Hour - 2*time.Minute)
		breaker(1)
		r.pass(2 * time.Minute)
		breaker(0)
		ended(r.consider(retraintest.Incident("late", "ranker")).Request, ledger.StateMissed) // one more try after each pause
		breaker(1)
	})
}

func improved(i *alerts.Incident) {
	i.Improvement, i.Severity, i.Alarms[0].Improvement = true, alerts.Info, true
}
