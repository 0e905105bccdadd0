package retrain

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/outcome"
	"github.com/rewardwatch/rewardwatch/retrain/retraintest"
	"github.com/rewardwatch/rewardwatch/retrain/target"
)

// delivered opens a request and delivers it.
func (r *rig) delivered() ledger.Request {
	r.t.Helper()
	r.run()
	r.consider(retraintest.Incident("i1", "ranker"))
	r.pass(lateness)
	q := r.request()
	if left := time.Until(q.DueAt); q.State != ledger.StateDelivered || left > time.Duration(target.DefaultCompletesWithin) || left < time.Duration(target.DefaultCompletesWithin)-lateness {
		r.t.Fatalf("request %+v, want delivered, its job due in a day", q)
	}
	return q
}

// states returns the states that a request has gone through.
func (r *rig) states(id string) []ledger.State {
	r.t.Helper()
	history, err := r.History(r.t.Context(), id)
	check(r.t, err)
	var out []ledger.State
	for _, c := range history {
		out = append(out, c.State)
	}
	return out
}

func testJobTellsOfItself(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		id := r.delivered().ID
		report := func(what Report) ledger.Request {
			t.Helper()
			var q ledger.Request
			for range 2 { // a job that did not receive the answer reports again
				var err error
				q, err = r.Report(t.Context(), id, what)
				check(t, err)
			}
			return q
		}
		if q := report(Report{State: JobStarted, By: "trainer"}); q.State != ledger.StateRunning {
			t.Errorf("request %+v, want running", q)
		}
		if v, found := r.Awaited(t.Context(), "ranker"); found {
			t.Errorf("%+v awaited of a job that has yet to tell of its end", v)
		}
		r.reopen()
		q := report(Report{State: JobSucceeded, Version: "v3", Log: strings.Repeat("é", keptLog) + "done", By: "trainer"})
		if q.State != ledger.StateVerifying || q.NewVersion != "v3" || !strings.HasSuffix(q.Log, "édone") || len(q.Log) > keptLog {
			t.Errorf("request %+v, want verifying", q)
		}
		v, found := r.Awaited(t.Context(), "ranker")
		if !found || v.Request != id || v.Version != "v3" || v.Expected.Statistic != "mean" || v.Group["env"] != "prod-eu" || v.Due.Sub(v.Since) != 24*time.Hour {
			t.Errorf("to be verified: %+v", v)
		}
		_, err := r.Report(t.Context(), id, Report{State: JobStarted})
		var wrong *ledger.StateError
		if !errors.As(err, &wrong) || wrong.State != ledger.StateVerifying {
			t.Errorf("a job that starts again: %v, want a StateError", err)
		}
		r.pass(time.Until(q.OpenedAt.Add(2 * time.Hour)))
		lastIs := func(state, observed string) {
			t.Helper()
			const head = `
			# HELP rewardwatch_retrain_last_expected_value Value required by the contract of the last delivered retrain request, with the state of that request.
			# TYPE rewardwatch_retrain_last_expected_value gauge
			rewardwatch_retrain_last_expected_value{comparison=">",policy="ranker",request="%s",signal="return",state="%s",statistic="mean"} 180
			`
			check(t, testutil.GatherAndCompare(r.reg, strings.NewReader(fmt.Sprintf(head, id, state)+observed), MetricLastExpected, MetricLastObserved))
		}
		lastIs("verifying", "")
		for range 2 {
			q, err = r.Conclude(t.Context(), id, outcome.Verdict{State: ledger.StateMet, Evidence: "mean return 503", Observed: sql.NullFloat64{Float64: 503.5, Valid: true}})
			check(t, err)
		}
		lastIs("met", `
			# HELP rewardwatch_retrain_last_observed_value Value observed for the last delivered retraining, once its outcome is known.
			# TYPE rewardwatch_retrain_last_observed_value gauge
			rewardwatch_retrain_last_observed_value{policy="ranker",request="`+id+`"} 503.5
		`)
		if q.State != ledger.StateMet || q.Reason != "mean return 503" || q.ClosedAt.IsZero() || !q.DueAt.IsZero() {
			t.Errorf("request %+v, want met", q)
		}
		if v, found := r.Awaited(t.Context(), "ranker"); found {
			t.Errorf("still awaited: %+v", v)
		}
		const metrics = `
			# HELP rewardwatch_retrain_outcomes_total Finished retrainings, by outcome.
			# TYPE rewardwatch_retrain_outcomes_total counter
			rewardwatch_retrain_outcomes_total{outcome="failed",policy="ranker"} 0
			rewardwatch_retrain_outcomes_total{outcome="inconclusive",policy="ranker"} 0
			rewardwatch_retrain_outcomes_total{outcome="met",policy="ranker"} 1
			rewardwatch_retrain_outcomes_total{outcome="missed",policy="ranker"} 0
			# HELP rewardwatch_retrain_outcome_seconds Time from a retrain request to its outcome.
			# TYPE rewardwatch_retrain_outcome_seconds summary
			rewardwatch_retrain_outcome_seconds_sum{outcome="failed",policy="ranker"} 0
			rewardwatch_retrain_outcome_seconds_count{outcome="failed",policy="ranker"} 0
			rewardwatch_retrain_outcome_seconds_sum{outcome="inconclusive",policy="ranker"} 0
			rewardwatch_retrain_outcome_seconds_count{outcome="inconclusive",policy="ranker"} 0
			rewardwatch_retrain_outcome_seconds_sum{outcome="met",policy="ranker"} 7200
			rewardwatch_retrain_outcome_seconds_count{outcome="met",policy="ranker"} 1
			rewardwatch_retrain_outcome_seconds_sum{outcome="missed",policy="ranker"} 0
			rewardwatch_retrain_outcome_seconds_count{outcome="missed",policy="ranker"} 0
		`
		check(t, testutil.GatherAndCompare(r.reg, strings.NewReader(metrics), MetricOutcomes, MetricOutcomeSeconds))
		want := []ledger.State{ledger.StateOpen, ledger.StateDelivered, ledger.StateRunning, ledger.StateVerifying, ledger.StateMet}
		if got := r.states(id); !slices.Equal(got, want) {
			t.Errorf("states %v, want %v", got, want)
		}
	})
}

// A new version that the telemetry shows counts like one that a job reports.
func testTelemetryTellsOfTheVersion(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		if v, found := r.Awaited(t.Context(), "ranker"); found {
			t.Errorf("%+v awaited of no request", v)
		}
		q := r.delivered()
		time.Sleep(awaitedEvery)
		v, found := r.Awaited(t.Context(), "ranker")
		if !slices.Equal(v.Ordered, []string{"v1", "v2"}) {
			t.Errorf("awaited: versions %q of the order", v.Ordered)
		}
		if !found || v.Request != q.ID || v.Version != "" || !v.Due.IsZero() || q.OpenedAt.After(v.Since) || v.Since.After(time.Now()) {
			t.Errorf("awaited: %+v", v)
		}
		_, err := r.Report(t.Context(), q.ID, Report{State: JobSucceeded, Version: "v3", By: "telemetry"})
		check(t, err)
		if v, _ := r.Awaited(t.Context(), "ranker"); v.Version != "v3" || v.Due.Sub(v.Since) != 24*time.Hour {
			t.Errorf("awaited: %+v", v)
		}
		_, err = r.Conclude(t.Context(), q.ID, outcome.Verdict{State: ledger.StateMissed, Evidence: "mean return 3"})
		check(t, err)
	})
}

// A slow ledger delays the caller that queries it, and no other policy.
func testAwaitedWhileAnotherAsks(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		q := r.delivered()
		r.Awaited(t.Context(), "ranker")
		time.Sleep(awaitedEvery)
		r.awaited.asking.Lock() // another caller is querying, and waits for the answer
		_, err := r.Report(t.Context(), q.ID, Report{State: JobSucceeded, Version: "v3"})
		check(t, err)
		if v, found := r.Awaited(t.Context(), "ranker"); !found || v.Version != "" {
			t.Errorf("awaited while another one asks: %+v, want the last answer", v)
		}
		r.awaited.asking.Unlock()
		if v, found := r.Awaited(t.Context(), "ranker"); !found || v.Version != "v3" {
			t.Errorf("awaited: %+v, want the new version", v)
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		time.Sleep(awaitedEvery)
		if v, found := r.Awaited(over, "ranker"); !found || v.Version != "v3" {
			t.Errorf("awaited while the ledger does not answer: %+v, want the last answer", v)
		}
	})
}

// A job's report of its version takes precedence over the telemetry, but only once.
func testJobCorrectsTheVersionOfTelemetry(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		id := r.delivered().ID
		report := func(version, by string) error {
			t.Helper()
			_, err := r.Report(t.Context(), id, Report{State: JobSucceeded, Version: version, By: by})
			return err
		}
		check(t, report("v3", ByTelemetry))
		r.pass(time.Hour)
		for range 2 {
			check(t, report("v4", "trainer"))
		}
		if v, _ := r.Awaited(t.Context(), "ranker"); v.Version != "v4" || v.Due.Sub(v.Since) != 24*time.Hour || time.Since(v.Since) >= time.Hour {
			t.Errorf("awaited: %+v, want v4 from now on", v)
		}
		for _, by := range []string{"trainer", ByTelemetry} {
			if err := report("v5", by); !errors.Is(err, ErrOtherVersion) || !strings.Contains(err.Error(), "v4, not v5") {
				t.Errorf("another version of %s: %v, want ErrOtherVersion", by, err)
			}
		}
		if q := r.request(); q.NewVersion != "v4" {
			t.Errorf("request %+v, want version v4", q)
		}
		want := []ledger.State{ledger.StateOpen, ledger.StateDelivered, ledger.StateVerifying, ledger.StateVerifying}
		if got := r.states(id); !slices.Equal(got, want) {
			t.Errorf("states %v, want %v", got, want)
		}
	})
}

func testReportThatIsMissingSomething(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		id := r.delivered().ID
		for _, bad := range []Report{{}, {State: "done"}, {State: JobSucceeded}, {State: JobStarted, Version: "v3"}} {
			if _, err := r.Report(t.Context(), id, bad); !errors.Is(err, ErrBadReport) {
				t.Errorf("%+v: %v, want ErrBadReport", bad, err)
			}
		}
		if _, err := r.Report(t.Context(), "rr_none", Report{State: JobStarted}); !errors.Is(err, ledger.ErrUnknownRequest) {
			t.Errorf("of an unknown request: %v", err)
		}
	})
}

// A job may report before the answer to its order.
func testJobTellsBeforeTheAnswer(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		var r *rig
		r = newRig(t, on, func(w http.ResponseWriter, req *http.Request) {
			if _, err := r.Report(t.Context(), req.Header.Get("Webhook-Id"), Report{State: JobSucceeded, Version: "v3", By: "trainer"}); err != nil {
				t.Error(err)
			}
			w.WriteHeader(http.StatusAccepted)
		})
		r.run()
		r.consider(retraintest.Incident("i1", "ranker"))
		r.pass(lateness)
		if q := r.request(); q.State != ledger.StateVerifying || q.NewVersion != "v3" || q.Attempts != 1 {
			t.Errorf("request %+v, want verifying", q)
		}
	})
}

func testStatesEndByThemselves(t *testing.T, on storage) {
	for _, tc := range []struct {
		name   string
		report []Report
		after  time.Duration
		want   ledger.State
	}{
		{"nothing is heard of the job", nil, 24 * time.Hour, ledger.StateInconclusive},
		{"the job does not end", []Report{{State: JobStarted}}, 24 * time.Hour, ledger.StateFailed},
		{"nothing is seen of the new version", []Report{{State: JobStarted}, {State: JobSucceeded, Version: "v3"}}, 24*time.Hour + ledger.VerdictMargin, ledger.StateInconclusive},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, on)
			id := r.delivered().ID
			for _, report := range tc.report {
				_, err := r.Report(t.Context(), id, report)
				check(t, err)
			}
			before := r.request().State
			r.pass(tc.after - overdueEvery)
			if q := r.request(); q.State != before {
				t.Errorf("%s: %+v before its time", tc.name, q)
			}
			r.pass(2 * overdueEvery)
			if q := r.request(); q.State != tc.want || q.Reason == "" {
				t.Errorf("%s: request %+v, want %s", tc.name, q, tc.want)
			}
			if d := r.consider(retraintest.Incident("i2", "ranker")); d.Reason != ledger.Opened {
				t.Errorf("%s: the next incident: %+v, want opened", tc.name, d)
			}
			all, err := r.Requests(t.Context(), 2)
			check(t, err)
			if all[0].Parent != id {
				t.Errorf("%s: its parent is %q, want %s", tc.name, all[0].Parent, id)
			}
		})
	}
}

// A report that waited for the service has time to arrive after the start. Without one, the state ends then.
func testStatesEndAfterAStart(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		id := r.delivered().ID
		r.stop()
		r.pass(48 * time.Hour)
		r.reopen()
		r.run()
		r.pass(ledger.ReportMargin - overdueEvery)
		if q := r.request(); q.State != ledger.StateDelivered {
			t.Errorf("request %+v before a report could arrive", q)
		}
		_, err := r.Report(t.Context(), id, Report{State: JobStarted, By: "trainer"})
		check(t, err)
		r.stop()
		r.pass(48 * time.Hour)
		r.reopen()
		r.run()
		r.pass(ledger.ReportMargin + 2*overdueEvery)
		if q := r.request(); q.State != ledger.StateFailed {
			t.Errorf("request %+v, want failed", q)
		}
	})
}

// However many starts there are, they extend the time of a state once, also starts of another instance while this
// one runs: the job of a request may be dead, and its policy must not wait for it forever.
func testStatesEndDespiteStarts(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		r.pass(time.Until(r.delivered().DueAt) - 10*time.Minute)
		r.stop()
		r.reopen()
		r.run()
		first := r.request()
		if left := time.Until(first.DueAt); first.State != ledger.StateDelivered || left < ledger.ReportMargin-time.Second {
			t.Errorf("after the first start, %s has %s left", first.State, left)
		}
		same := func(when string) {
			t.Helper()
			if q := r.request(); q.State != first.State || !q.DueAt.Equal(first.DueAt) {
				t.Errorf("after the start of %s, %s ends at %s, before at %s", when, q.State, q.DueAt, first.DueAt)
			}
		}
		r.pass(ledger.ReportMargin / 2)
		r.stop()
		r.reopen()
		r.run()
		same("this instance")
		r.pass(ledger.ReportMargin/2 - 2*overdueEvery)
		check(t, r.ledger.Resume(t.Context(), r.cfg.Targets)) // like another desk, which cannot open the same file
		same("another instance")
		r.pass(4 * overdueEvery)
		if q := r.request(); q.State != ledger.StateInconclusive {
			t.Errorf("the request is %s, want inconclusive", q.State)
		}
	})
}

// Telemetry from a time in which no instance ran is still read, and can decide the verdict on its version. Without
// it, the state ends then.
func testVerdictAfterAStart(t *testing.T, on storage) {
	for _, shown := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, on)
			id := r.delivered().ID
			_, err := r.Report(t.Context(), id, Report{State: JobSucceeded, Version: "v3", By: "trainer"})
			check(t, err)
			v, _ := r.Awaited(t.Context(), "ranker")
			r.stop()
			r.pass(48 * time.Hour)
			r.reopen()
			r.run()
			r.pass(ledger.VerdictMargin - overdueEvery)
			if now, found := r.Awaited(t.Context(), "ranker"); !found || !now.Due.Equal(v.Due) {
				t.Fatalf("to be verified: %+v, want %+v", now, v)
			}
			want := ledger.StateInconclusive
			if shown {
				want = ledger.StateMet
				_, err := r.Conclude(t.Context(), id, outcome.Verdict{State: want, Evidence: "mean return 503"})
				check(t, err)
			}
			r.pass(3 * overdueEvery)
			if q := r.request(); q.State != want {
				t.Errorf("request %+v, want %s", q, want)
			}
		})
	}
}

// waiting opens a request that waits for its approval.
func (r *rig) waiting(policy string) ledger.Request {
	r.t.Helper()
	id := r.consider(retraintest.Incident(policy+time.Now().Format(time.RFC3339Nano), policy)).Request
	check(r.t, r.ledger.Update(r.t.Context(), onlyStatement(`UPDATE requests SET state = 'awaiting_approval' WHERE id = $1`, id)))
	q, err := r.Request(r.t.Context(), id)
	check(r.t, err)
	return q
}

// Data that drift while an order waits for a person are in the webhook that is sent after the approval, wherever
// the recipe has put the offsets. Later drifted data are not: the receiver's copy stays as it is.
func testDriftedDataIsCutAgain(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		r.cfg.Triggers[0].Approval = true
		r.reopen()
		opened := retraintest.Incident("i-1", "ranker")
		id := r.consider(opened).Request
		drifted := func(last int64) alerts.Incident {
			inc := opened
			inc.Alarms = slices.Clone(opened.Alarms)
			inc.Alarms[0].Offsets = []ingest.Range{{Partition: 0, First: 1000, Last: last}, {Partition: 7, First: 3, Last: 3}}
			other := inc.Alarms[0]
			other.Signal, other.Offsets = "episode_length", []ingest.Range{{Partition: 5, First: 1, Last: 9}} // which did not cause the order
			inc.Alarms = append(inc.Alarms, other)
			return inc
		}
		r.pass(20 * time.Hour)
		if d := r.consider(drifted(90_000)); d.Reason != ledger.AlreadyRequested || d.Request != id {
			t.Fatalf("decided %+v", d)
		}
		cut := time.Now()
		r.pass(time.Hour)
		r.consider(drifted(90_000))
		r.run()
		_, err := r.Approve(t.Context(), id, "ann", "go on")
		check(t, err)
		r.pass(soon)
		r.consider(drifted(120_000))
		seen := r.receiver.seen()
		if len(seen) != 1 {
			t.Fatalf("%d webhooks, want 1", len(seen))
		}
		check(t, r.schema.Check(seen[0].body))
		q := r.request()
		var sent struct{ Data json.RawMessage }
		check(t, json.Unmarshal(seen[0].body, &sent))
		for where, order := range map[string]json.RawMessage{"webhook": sent.Data, "ledger": q.Order} {
			var o struct {
				Offsets struct {
					Drifted []ingest.Range
					CutAt   time.Time `json:"cut_at"`
				}
				Config struct{ Ranges []ingest.Range }
				From   map[string]string `json:"config_from"`
			}
			check(t, json.Unmarshal(order, &o))
			want := []ingest.Range{{Partition: 0, First: 1000, Last: 90_000}, {Partition: 7, First: 3, Last: 3}}
			if !slices.Equal(o.Offsets.Drifted, want) || !slices.Equal(o.Config.Ranges, want) || !o.Offsets.CutAt.Equal(cut) || o.From["ranges[1].last"] != o.From["ranges[0].last"] {
				t.Errorf("%s: offsets %+v, in the config %v, want %v of %s", where, o.Offsets, o.Config.Ranges, want, cut)
			}
		}
	})
}

// The metric of steps shows what was done with the last request of a policy, by whom and when, until a week after
// its end.
func testStepsOfTheLastRequest(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		r.cfg.Triggers[0].Approval = true
		r.reopen()
		r.run()
		stepsAre := func(lines ...string) {
			t.Helper()
			want := ""
			if len(lines) > 0 {
				want = "# HELP " + MetricLastStep + " Unix time at which the last request of a policy entered each state, and who caused it.\n# TYPE " + MetricLastStep + " gauge\n"
			}
			for _, line := range lines {
				want += MetricLastStep + "{" + line + "\n"
			}
			check(t, testutil.GatherAndCompare(r.reg, strings.NewReader(want), MetricLastStep))
		}
		stepsAre()
		id := r.consider(retraintest.Incident("i1", "ranker")).Request
		step := func(step, by string, at time.Time) string {
			return fmt.Sprintf(`by=%q,kind="retrain",policy="ranker",request=%q,step=%q} %g`, by, id, step, float64(at.UnixMilli())/1000)
		}
		opened := time.Now()
		stepsAre(step("awaiting_approval", "rewardwatch", opened))
		r.pass(time.Hour)
		approved := time.Now()
		_, err := r.Approve(t.Context(), id, "ann", "go on")
		check(t, err)
		r.pass(soon)
		history, err := r.History(t.Context(), id)
		check(t, err)
		delivered := history[len(history)-1].At
		lines := []string{step("awaiting_approval", "rewardwatch", opened), step("approved", "ann", approved), step("delivered", "trainer", delivered)}
		stepsAre(lines...)
		_, err = r.Report(t.Context(), id, Report{State: JobStarted, By: "robot"})
		check(t, err)
		lines = append(lines, step("running", "robot", time.Now()))
		stepsAre(lines...)
		_, err = r.Reject(t.Context(), id, "bob", "never ends")
		check(t, err)
		lines = append(lines, step("untracked", "bob", time.Now()))
		r.reopen() // without its queue, whose polls take time
		r.pass(alerts.ExportedAfterEnd)
		stepsAre(lines...)
		r.pass(time.Second)
		stepsAre()
		id = r.waiting("ranker").ID
		stepsAre(step("awaiting_approval", "rewardwatch", time.Now()))
	})
}

// A person's name may contain bytes that a label may not.
func TestStepsOfANameThatIsNotUTF8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, onSQLite)
		_, err := r.Reject(t.Context(), r.waiting("ranker").ID, "ann\xff", "no")
		check(t, err)
		families, err := r.reg.Gather()
		check(t, err)
		var by []string
		for _, f := range families {
			for _, m := range f.GetMetric() {
				for _, l := range m.GetLabel() {
					if f.GetName() == MetricLastStep && l.GetName() == "by" {
						by = append(by, l.GetValue())
					}
				}
			}
		}
		if !slices.Contains(by, "ann\uFFFD") {
			t.Errorf("steps by %q, want one by ann\uFFFD", by)
		}
	})
}

func testPeopleDecide(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		wait := func() string { return r.waiting("ranker").ID }
		rejected := wait()
		q, err := r.Reject(t.Context(), rejected, "ann", "prices change tomorrow")
		check(t, err)
		if q.State != ledger.StateRejected || q.Reason != "prices change tomorrow" || q.Untracked {
			t.Errorf("request %+v, want rejected before its target had it", q)
		}
		var wrong *ledger.StateError
		if _, err := r.Approve(t.Context(), rejected, "bob", ""); !errors.As(err, &wrong) {
			t.Errorf("approving what is rejected: %v, want a StateError", err)
		}
		r.pass(48 * time.Hour)
		withdrawn := wait()
		for range 2 {
			if q, err = r.Withdraw(t.Context(), withdrawn, "ann", "asked for by mistake"); err != nil || q.State != ledger.StateWithdrawn || q.Reason != "asked for by mistake" {
				t.Errorf("request %+v, %v, want withdrawn", q, err)
			}
		}
		r.pass(48 * time.Hour)
		approved := wait()
		r.run()
		r.pass(time.Hour)
		if n := len(r.results()); n != 0 {
			t.Fatalf("%d attempts before the approval", n)
		}
		_, err = r.Approve(t.Context(), approved, "ann", "go on")
		check(t, err)
		r.pass(soon)
		q, err = r.Request(t.Context(), approved)
		check(t, err)
		history, err := r.History(t.Context(), approved)
		check(t, err)
		if q.State != ledger.StateDelivered || history[1].By != "ann" || history[1].Reason != "go on" {
			t.Errorf("request %+v with history %+v, want delivered", q, history)
		}
		if _, err := r.Withdraw(t.Context(), approved, "ann", "too late"); !errors.As(err, &wrong) || wrong.State != ledger.StateDelivered {
			t.Errorf("withdrawing what was delivered: %v, want a StateError", err)
		}
		r.failJobs()
		r.pass(48 * time.Hour)
		expired := wait()
		r.pass(requestLifetime + 2*overdueEvery)
		if q, err := r.Request(t.Context(), expired); err != nil || q.State != ledger.StateExpired {
			t.Errorf("request %+v, %v, want expired", q, err)
		}
	})
}

func testUnfinishedRequestIsRejected(t *testing.T, on storage) {
	for state, reports := range map[ledger.State][]Report{
		ledger.StateDelivered: nil,
		ledger.StateRunning:   {{State: JobStarted}},
		ledger.StateVerifying: {{State: JobSucceeded, Version: "v3"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, on)
			id := r.delivered().ID
			for _, report := range reports {
				_, err := r.Report(t.Context(), id, report)
				check(t, err)
			}
			q, err := r.Reject(t.Context(), id, "ann", "the job hangs")
			check(t, err)
			if q.State != ledger.StateRejected || q.ClosedAt.IsZero() || !q.Untracked {
				t.Errorf("%s: request %+v, want rejected after its target had it", state, q)
			}
			var wrong *ledger.StateError
			if _, err := r.Report(t.Context(), id, Report{State: JobSucceeded, Version: "v4"}); !errors.As(err, &wrong) {
				t.Errorf("%s: a report of its job: %v, want a StateError", state, err)
			}
			if v, found := r.Awaited(t.Context(), "ranker"); found {
				t.Errorf("%s: still awaited: %+v", state, v)
			}
		})
	}
}

// A job may report before the answer to its delivery arrives. Its target had the request all the same, and the
// answer does not undo what a person decided meanwhile.
func testRejectedBeforeTheAnswer(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		var r *rig
		r = newRig(t, on, func(http.ResponseWriter, *http.Request) {
			q := r.request()
			if _, err := r.Report(t.Context(), q.ID, Report{State: JobStarted, By: "trainer"}); err != nil {
				t.Error(err)
			}
			if _, err := r.Reject(t.Context(), q.ID, "ann", "the job hangs"); err != nil {
				t.Error(err)
			}
		})
		r.run()
		id := r.consider(retraintest.Incident("i1", "ranker")).Request
		r.pass(lateness)
		want := []ledger.State{ledger.StateOpen, ledger.StateRunning, ledger.StateRejected}
		if q := r.request(); q.State != ledger.StateRejected || !q.Untracked || !slices.Equal(r.states(id), want) {
			t.Errorf("request %+v, states %v, want %v, untracked", q, r.states(id), want)
		}
		const refused = "is no longer tracked, so it cannot be approved or delivered again"
		if _, err := r.Approve(t.Context(), id, "bob", "go on"); err == nil || !strings.Contains(err.Error(), refused) {
			t.Errorf("approving it: %v, want %q", err, refused)
		}
	})
}

// The history that a person saw is compared in the transaction of the change: states recur, and everything
// unfinished can be rejected.
func testDoSeen(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		id := r.waiting("ranker").ID
		var wrong *ledger.StateError
		do := func(seen int, v Verb) error {
			_, err := r.DoSeen(t.Context(), id, seen, v, "ann", "go on")
			return err
		}
		for _, seen := range []int{-1, 0, 2} {
			if err := do(seen, VerbReject); !errors.As(err, &wrong) || wrong.State != ledger.StateAwaitingApproval {
				t.Errorf("%d entries seen: %v, want a StateError", seen, err)
			}
		}
		check(t, do(1, VerbApprove))
		for _, v := range []Verb{VerbApprove, VerbReject} {
			if err := do(1, v); !errors.As(err, &wrong) || wrong.State != ledger.StateOpen {
				t.Errorf("%s of what is approved: %v, want a StateError", v, err)
			}
		}
		if err := do(2, VerbApprove); !errors.As(err, &wrong) {
			t.Errorf("approving what is seen to be open: %v, want a StateError", err)
		}
		r.run()
		r.pass(soon)
		check(t, do(3, VerbResend))
		r.pass(soon)
		if q, err := r.Request(t.Context(), id); err != nil || q.State != ledger.StateDelivered {
			t.Fatalf("request %+v, %v, want delivered", q, err)
		}
		if err := do(3, VerbResend); !errors.As(err, &wrong) || len(r.receiver.seen()) != 2 {
			t.Errorf("sending again what was delivered since: %v after %d deliveries, want a StateError after 2", err, len(r.receiver.seen()))
		}
		if _, err := r.DoSeen(t.Context(), "rr_none", 0, VerbReject, "ann", "no"); !errors.Is(err, ledger.ErrUnknownRequest) {
			t.Errorf("an unknown request: %v", err)
		}
	})
}

func testResend(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on, slices.Repeat([]http.HandlerFunc{retraintest.Status(500)}, 7)...)
		r.run()
		id := r.consider(retraintest.Incident("i1", "ranker")).Request
		r.pass(requestLifetime)
		if q := r.request(); q.State != ledger.StateDeadLetter {
			t.Fatalf("request %+v, want a dead letter", q)
		}
		other := r.consider(retraintest.Incident("i2", "ranker")).Request
		if _, err := r.Resend(t.Context(), id, "ann", "the trainer is back"); !errors.Is(err, ErrUnfinished) || !strings.Contains(err.Error(), other) {
			t.Errorf("beside an unfinished one: %v, want ErrUnfinished", err)
		}
		r.pass(time.Minute)
		r.failJobs()
		for range 2 { // what the receiver has lost can be sent again, too
			_, err := r.Resend(t.Context(), id, "ann", "the trainer is back")
			check(t, err)
			r.pass(soon)
			if q, err := r.Request(t.Context(), id); err != nil || q.State != ledger.StateDelivered {
				t.Errorf("request %+v, %v, want delivered", q, err)
			}
		}
		seen := r.receiver.seen()
		if last := seen[len(seen)-1]; last.id != id || string(last.body) != string(seen[0].body) {
			t.Error("it was sent as another order")
		}
	})
}

// The last job of a pipeline reports that the run has failed, even if a stage has reported that before, or has
// succeeded: the first report counts.
func testFirstReportOfAFailureCounts(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		id := r.delivered().ID
		for _, why := range []string{"stage train ended with exit code 1", "stage train ended with result failure"} {
			q, err := r.Report(t.Context(), id, Report{State: JobFailed, Error: why, By: "pipeline"})
			check(t, err)
			if q.State != ledger.StateFailed || q.Reason != "stage train ended with exit code 1" {
				t.Errorf("request %+v, want failed in the stage", q)
			}
		}
		states := r.states(id)
		if n := len(states); states[n-1] != ledger.StateFailed || slices.Contains(states[:n-1], ledger.StateFailed) {
			t.Errorf("states %v, want one failure", states)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		id := r.delivered().ID
		_, err := r.Report(t.Context(), id, Report{State: JobSucceeded, Version: "v3", By: "pipeline"})
		check(t, err)
		var wrong *ledger.StateError
		if _, err := r.Report(t.Context(), id, Report{State: JobFailed, Error: "the files could not be kept"}); !errors.As(err, &wrong) || wrong.State != ledger.StateVerifying {
			t.Errorf("a failure after a success: %v, want a StateError", err)
		}
	})
}
