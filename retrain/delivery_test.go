package retrain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/retraintest"
	"github.com/rewardwatch/rewardwatch/retrain/target"
)

// retryAt answers with a Retry-After date that is d from now.
func retryAt(code int, d time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		retraintest.Status(code, "Retry-After", time.Now().Add(d).UTC().Format(http.TimeFormat))(w, r)
	}
}

func endless(w http.ResponseWriter, _ *http.Request) {
	for {
		if _, err := w.Write(bytes.Repeat([]byte("x"), 4096)); err != nil {
			return
		}
	}
}

// lateness is how much later than due two consecutive attempts may be made. Each waits for a poll of the queue,
// whose interval River lengthens by up to a tenth.
const lateness = 2 * (ledger.FetchEvery + ledger.FetchEvery/10)

// jittered returns the schedule's delay with the largest possible jitter.
func jittered(d time.Duration) time.Duration { return d + d/5 }

func testReceiverFaultIsRetriedUnderTheSameID(t *testing.T, on storage) {
	const first = 5 * time.Second // the schedule's first delay
	tests := []struct {
		name             string
		script           []http.HandlerFunc
		want             []target.Result
		earliest, latest time.Duration // of the last arrival
	}{
		{"ok at once", nil, []target.Result{target.ResultDelivered}, 0, 0},
		{"any 2xx", []http.HandlerFunc{retraintest.Status(204)}, []target.Result{target.ResultDelivered}, 0, 0},
		{"an endless answer is read in part", []http.HandlerFunc{endless}, []target.Result{target.ResultDelivered}, 0, 0},
		{"500", []http.HandlerFunc{retraintest.Status(500)}, []target.Result{target.ResultRejected, target.ResultDelivered}, first, jittered(first)},
		{"404", []http.HandlerFunc{retraintest.Status(404)}, []target.Result{target.ResultRejected, target.ResultDelivered}, first, jittered(first)},
		{"twice 500", []http.HandlerFunc{retraintest.Status(500), retraintest.Status(502)}, []target.Result{target.ResultRejected, target.ResultRejected, target.ResultDelivered}, first + 5*time.Minute, jittered(first + 5*time.Minute)},
		{"429 with seconds", []http.HandlerFunc{retraintest.Status(429, "Retry-After", "90")}, []target.Result{target.ResultThrottled, target.ResultDelivered}, 90 * time.Second, 91 * time.Second},
		{"429 with a date", []http.HandlerFunc{retryAt(429, time.Hour)}, []target.Result{target.ResultThrottled, target.ResultDelivered}, time.Hour - time.Second, time.Hour},
		{"503 with seconds", []http.HandlerFunc{retraintest.Status(503, "Retry-After", "600")}, []target.Result{target.ResultRejected, target.ResultDelivered}, 10 * time.Minute, 10*time.Minute + time.Second},
		{"429 sooner than the schedule", []http.HandlerFunc{retraintest.Status(429, "Retry-After", "0")}, []target.Result{target.ResultThrottled, target.ResultDelivered}, first, jittered(first)},
		{"429 with nonsense", []http.HandlerFunc{retraintest.Status(429, "Retry-After", "soon")}, []target.Result{target.ResultThrottled, target.ResultDelivered}, first, jittered(first)},
		{"301", []http.HandlerFunc{retraintest.Status(301, "Location", "/elsewhere")}, []target.Result{target.ResultRedirected, target.ResultDelivered}, first, jittered(first)},
		{"307", []http.HandlerFunc{retraintest.Status(307, "Location", "http://elsewhere.test/")}, []target.Result{target.ResultRedirected, target.ResultDelivered}, first, jittered(first)},
		{"no answer", []http.HandlerFunc{retraintest.Hang}, []target.Result{target.ResultTimeout, target.ResultDelivered}, 15*time.Second + first, 15*time.Second + jittered(first)},
		{"slow answer", []http.HandlerFunc{retraintest.Drip}, []target.Result{target.ResultTimeout, target.ResultDelivered}, 15*time.Second + first, 15*time.Second + jittered(first)},
		{"connection closed", []http.HandlerFunc{retraintest.Reset}, []target.Result{target.ResultUnreachable, target.ResultDelivered}, first, jittered(first)},
		{"answer breaks off", []http.HandlerFunc{retraintest.BreakOff}, []target.Result{target.ResultUnreachable, target.ResultDelivered}, first, jittered(first)},
		{"not HTTP", []http.HandlerFunc{retraintest.Garbage}, []target.Result{target.ResultUnreachable, target.ResultDelivered}, first, jittered(first)},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, on, tc.script...)
				r.run()
				id := r.consider(retraintest.Incident("i1", "ranker")).Request
				r.pass(2 * time.Hour)
				if got := r.results(); !slices.Equal(got, tc.want) {
					t.Errorf("results %v, want %v", got, tc.want)
				}
				if q := r.request(); q.State != ledger.StateDelivered || q.Attempts != len(tc.want) {
					t.Errorf("request %+v, want delivered after %d attempts", q, len(tc.want))
				}
				arrivals := r.receiver.seen()
				if len(arrivals) != len(tc.want) {
					t.Fatalf("%d arrivals, want %d", len(arrivals), len(tc.want))
				}
				for i, a := range arrivals {
					if a.id != id || a.verify != nil || !bytes.Equal(a.body, arrivals[0].body) {
						t.Errorf("arrival %d: id %s, want %s; verification: %v; same body: %t", i, a.id, id, a.verify, bytes.Equal(a.body, arrivals[0].body))
					}
				}
				if at := arrivals[len(arrivals)-1].at; at < tc.earliest || at > tc.latest+lateness {
					t.Errorf("last attempt after %s, want between %s and %s", at, tc.earliest, tc.latest+lateness)
				}
			})
		})
	}
}

func testAnswerIsKeptInPart(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		answer := func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write([]byte("no trainer is free \xff" + strings.Repeat("x", 5000)))
		}
		r := newRig(t, on, answer)
		r.run()
		r.consider(retraintest.Incident("i1", "ranker"))
		r.pass(lateness)
		all, err := r.Deliveries(t.Context(), r.request().ID, 10)
		check(t, err)
		if len(all) != 1 || all[0].Status != 500 || !strings.HasPrefix(all[0].Response, "no trainer is free �x") || len(all[0].Response) > 1<<10+2 {
			t.Errorf("deliveries %+v", all)
		}
	})
}

func testGoneDisablesTheTarget(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on, retraintest.Status(410))
		r.consider(retraintest.Incident("i1", "ranker"))
		r.consider(retraintest.Incident("i2", "bidder")) // waits behind the first one
		r.run()
		r.pass(time.Minute)
		if got := r.results(); !slices.Equal(got, []target.Result{target.ResultGone}) {
			t.Fatalf("results %v, want gone alone", got)
		}
		all, err := r.Requests(t.Context(), 10)
		check(t, err)
		for _, q := range all {
			if q.State != ledger.StateDeadLetter || !strings.Contains(q.Reason, "410") {
				t.Errorf("request %+v, want a dead letter for 410", q)
			}
		}
		if d := r.consider(retraintest.Incident("i3", "pricer")); d.Reason != ledger.TargetDisabled {
			t.Errorf("decision %+v, want target_disabled", d)
		}
		const gauges = `
			# HELP rewardwatch_webhook_dead_letters Requests in the ledger that could not be delivered.
			# TYPE rewardwatch_webhook_dead_letters gauge
			rewardwatch_webhook_dead_letters{target="trainer"} 2
			# HELP rewardwatch_webhook_target_disabled 1 if the target responded with 410 Gone and is disabled, 0 otherwise.
			# TYPE rewardwatch_webhook_target_disabled gauge
			rewardwatch_webhook_target_disabled{target="trainer"} 1
			# HELP rewardwatch_webhooks_given_up_total Deliveries that were given up, after repeated failures or because a retry could not succeed.
			# TYPE rewardwatch_webhooks_given_up_total counter
			rewardwatch_webhooks_given_up_total{target="trainer"} 2
		`
		compare := func() {
			t.Helper()
			err := testutil.GatherAndCompare(r.reg, strings.NewReader(gauges), MetricDeadLetters, MetricTargetDisabled, MetricGivenUp)
			if err != nil {
				t.Error(err)
			}
		}
		compare()

		r.reopen()
		compare()
		if d := r.consider(retraintest.Incident("i3", "pricer")); d.Reason != ledger.TargetDisabled {
			t.Errorf("after a restart: %+v, want target_disabled", d)
		}
		r.cfg.Targets[0].Webhook = "http://trainer.test/v2"
		r.reopen()
		r.run()
		if d := r.consider(retraintest.Incident("i3", "pricer")); d.Reason != ledger.Opened {
			t.Errorf("with another URL: %+v, want opened", d)
		}
		r.pass(lateness)
		if got := len(r.receiver.seen()); got != 2 {
			t.Errorf("%d arrivals, want 2", got)
		}
	})
}

func testExpiryEndsTheRetries(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on, slices.Repeat([]http.HandlerFunc{retraintest.Status(500)}, 20)...)
		r.run()
		r.consider(retraintest.Incident("i1", "ranker"))
		r.pass(requestLifetime)
		q := r.request()
		if q.State != ledger.StateDeadLetter || q.Attempts != 7 || !strings.Contains(q.Reason, "rejected") {
			t.Errorf("request %+v, want a dead letter after 7 attempts", q)
		}
		if end := q.OpenedAt.Add(requestLifetime); !q.ClosedAt.Before(end) {
			t.Errorf("closed at %s, want as soon as no further attempt fits before %s", q.ClosedAt, end)
		}
		history, err := r.History(t.Context(), q.ID)
		check(t, err)
		if len(history) != 2 || history[0].State != ledger.StateOpen || history[1].State != ledger.StateDeadLetter {
			t.Errorf("history %+v", history)
		}
	})
}

func testRetryAfterBeyondTheExpiry(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on, retraintest.Status(503, "Retry-After", "99999999999999"))
		r.run()
		r.consider(retraintest.Incident("i1", "ranker"))
		r.pass(lateness)
		if q := r.request(); q.State != ledger.StateDeadLetter {
			t.Errorf("request %+v, want a dead letter", q)
		}
	})
}

func testExpiresWhileNothingRuns(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		r.consider(retraintest.Incident("i1", "ranker"))
		r.pass(requestLifetime)
		r.reopen()
		r.run()
		r.pass(lateness)
		if q := r.request(); q.State != ledger.StateDeadLetter || q.Reason != "expired" {
			t.Errorf("request %+v, want expired", q)
		}
		if got := len(r.receiver.seen()); got != 0 {
			t.Errorf("%d arrivals of an expired request", got)
		}
	})
}

func testOneDeliveryAtATimeForATarget(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(http.ResponseWriter, *http.Request) { <-time.After(10 * time.Second) }
		r := newRig(t, on, slow, slow, slow)
		r.run()
		for _, policy := range []string{"a", "b", "c"} {
			r.consider(retraintest.Incident("i-"+policy, policy))
		}
		r.pass(time.Minute)
		free := time.Duration(0) // when the previous answer was received
		for i, a := range r.receiver.seen() {
			if a.at < free || a.at > free+lateness {
				t.Errorf("arrival %d after %s, want from %s to %s", i, a.at, free, free+lateness)
			}
			free = a.at + 10*time.Second
		}
		if n := len(r.receiver.seen()); n != 3 {
			t.Errorf("%d arrivals, want 3", n)
		}
	})
}

// crashing delivers and then loses the ledger, like a process that dies between the answer and its record.
type crashing struct {
	target.Adapter
	crash func()
}

func (c crashing) Send(ctx context.Context, m target.Message) target.Attempt {
	defer c.crash()
	return c.Adapter.Send(ctx, m)
}

// crashAfterDelivery lets the desk die once its target has answered.
func crashAfterDelivery(t *testing.T, d *Desk) {
	d.dispatcher.adapters["trainer"] = crashing{d.dispatcher.adapters["trainer"], func() { check(t, d.ledger.Close()) }}
}

func testCrashBetweenAnswerAndRecord(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		id := r.consider(retraintest.Incident("i1", "ranker")).Request
		crashAfterDelivery(t, r.Desk)
		if err := r.Run(t.Context()); err == nil {
			t.Error("Run goes on without its ledger")
		}
		r.reopen()
		if d := r.consider(retraintest.Incident("i1", "ranker")); d.Reason != ledger.AlreadyRequested || d.Request != id {
			t.Errorf("decision after the crash: %+v", d)
		}
		r.run()
		r.pass(time.Until(r.request().NextAttempt) - time.Second)
		if got, want := r.results(), []target.Result{target.ResultInFlight}; !slices.Equal(got, want) {
			t.Errorf("results %v while the dead process still has its claim, want %v", got, want)
		}
		r.pass(time.Minute)
		if got, want := r.results(), []target.Result{target.ResultInterrupted, target.ResultDelivered}; !slices.Equal(got, want) {
			t.Errorf("results %v, want %v", got, want)
		}
		arrivals := r.receiver.seen()
		if len(arrivals) != 2 || arrivals[0].id != id || arrivals[1].id != id || !bytes.Equal(arrivals[0].body, arrivals[1].body) {
			t.Errorf("arrivals %+v, want the same message twice", arrivals)
		}
		r.reopen()
		r.run()
		r.pass(requestLifetime)
		if got := len(r.receiver.seen()); got != 2 {
			t.Errorf("%d arrivals after another restart, want no more than 2", got)
		}
	})
}

func testRetryTimeSurvivesARestart(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on, retraintest.Status(429, "Retry-After", "3600"))
		r.run()
		r.consider(retraintest.Incident("i1", "ranker"))
		r.pass(time.Minute)
		r.reopen()
		r.run()
		r.pass(58 * time.Minute)
		if got := len(r.receiver.seen()); got != 1 {
			t.Fatalf("%d arrivals before Retry-After is over, want 1", got)
		}
		r.pass(2 * time.Minute)
		if q := r.request(); q.State != ledger.StateDelivered {
			t.Errorf("request %+v, want delivered", q)
		}
	})
}

func testShutdownFinishesTheAttemptInFlight(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on, func(http.ResponseWriter, *http.Request) { <-time.After(10 * time.Second) })
		r.run()
		r.consider(retraintest.Incident("i1", "ranker"))
		r.consider(retraintest.Incident("i2", "bidder"))
		r.pass(5 * time.Second)
		r.stop()
		if got := r.results(); !slices.Equal(got, []target.Result{target.ResultDelivered}) {
			t.Errorf("results %v, want the first finished and the second not begun", got)
		}
	})
}

func testLateSuccessOfAWithdrawnRequest(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on, func(http.ResponseWriter, *http.Request) { <-time.After(10 * time.Second) })
		r.run()
		inc := retraintest.Incident("i1", "ranker")
		r.consider(inc)
		r.pass(5 * time.Second)
		inc.Cause = "reward_function"
		r.consider(inc)
		if q := r.request(); q.State != ledger.StateWithdrawn {
			t.Fatalf("request %+v, want withdrawn", q)
		}
		r.pass(10 * time.Second)
		if q := r.request(); q.State != ledger.StateDelivered {
			t.Errorf("request %+v, want delivered: the receiver has it", q)
		}
	})
}

func testTargetLeavesTheConfiguration(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		r.consider(retraintest.Incident("i1", "ranker"))
		r.cfg.Targets[0].Name, r.cfg.Triggers[0].Target = "other", "other"
		r.reopen()
		if q := r.request(); q.State != ledger.StateDeadLetter || !strings.Contains(q.Reason, "no longer configured") {
			t.Errorf("request %+v, want a dead letter", q)
		}
		if _, err := r.Resend(t.Context(), r.request().ID, "ann", "once more"); !errors.Is(err, ErrUnknownTarget) {
			t.Errorf("delivered again: %v, want ErrUnknownTarget", err)
		}
	})
}

func testTargetLeavesTheConfigurationBeforeTheApproval(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		id := r.waiting("ranker").ID
		r.Desk.cfg.Targets = nil // like an instance with another configuration
		if _, err := r.Approve(t.Context(), id, "ann", "go on"); !errors.Is(err, ErrUnknownTarget) {
			t.Errorf("approved: %v, want ErrUnknownTarget", err)
		}
		if q := r.request(); q.State != ledger.StateAwaitingApproval {
			t.Errorf("request %+v, want it to wait", q)
		}
		r.cfg.Targets[0].Name, r.cfg.Triggers[0].Target = "other", "other"
		r.reopen()
		if q := r.request(); q.State != ledger.StateDeadLetter || !strings.Contains(q.Reason, "no longer configured") {
			t.Errorf("request %+v, want a dead letter", q)
		}
	})
}

func testSecretsAreReadAtEachAttempt(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		file := r.cfg.Targets[0].SecretFile
		check(t, os.WriteFile(file, []byte("half a secret"), 0o600))
		r.run()
		r.consider(retraintest.Incident("i1", "ranker"))
		r.pass(lateness)
		all, err := r.Deliveries(t.Context(), "", 10)
		check(t, err)
		if len(all) != 1 || all[0].Result != target.ResultUnsigned || strings.Contains(all[0].Error, "half a secret") {
			t.Fatalf("deliveries %+v, want one unsigned without the secret in its error", all)
		}
		// Rotation: the newer secret is first, the one that the receiver still uses is second.
		check(t, os.WriteFile(file, []byte("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"+retraintest.Secret+"\n"), 0o600))
		r.pass(10 * time.Second)
		arrivals := r.receiver.seen()
		if len(arrivals) != 1 || arrivals[0].verify != nil {
			t.Errorf("arrivals %+v, want one that verifies", arrivals)
		}
	})
}

func testDeliveryMetrics(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on, retraintest.Status(500))
		r.run()
		retrying := func(n int) {
			t.Helper()
			want := fmt.Sprintf(`
			# HELP rewardwatch_webhook_retrying_requests Requests whose delivery failed at least once and will be retried.
			# TYPE rewardwatch_webhook_retrying_requests gauge
			rewardwatch_webhook_retrying_requests{target="trainer"} %d
			`, n)
			check(t, testutil.GatherAndCompare(r.reg, strings.NewReader(want), MetricRetrying))
		}
		retrying(0)
		r.consider(retraintest.Incident("i1", "ranker"))
		r.pass(time.Second)
		retrying(1)
		r.pass(time.Hour - time.Second)
		retrying(0)
		const want = `
			# HELP rewardwatch_retrain_cooldown_remaining_seconds Time until an incident of the policy can request another retraining from the target.
			# TYPE rewardwatch_retrain_cooldown_remaining_seconds gauge
			rewardwatch_retrain_cooldown_remaining_seconds{policy="ranker",target="trainer"} 82800
			# HELP rewardwatch_retrain_expected_value Value that the new version must reach, while the outcome of the retraining is pending.
			# TYPE rewardwatch_retrain_expected_value gauge
			rewardwatch_retrain_expected_value{comparison=">",policy="ranker",signal="return",statistic="mean"} 180
			# HELP rewardwatch_retrain_requests Retrain requests in the ledger, by state.
			# TYPE rewardwatch_retrain_requests gauge
			rewardwatch_retrain_requests{policy="ranker",state="awaiting_approval"} 0
			rewardwatch_retrain_requests{policy="ranker",state="dead_letter"} 0
			rewardwatch_retrain_requests{policy="ranker",state="delivered"} 1
			rewardwatch_retrain_requests{policy="ranker",state="expired"} 0
			rewardwatch_retrain_requests{policy="ranker",state="failed"} 0
			rewardwatch_retrain_requests{policy="ranker",state="inconclusive"} 0
			rewardwatch_retrain_requests{policy="ranker",state="met"} 0
			rewardwatch_retrain_requests{policy="ranker",state="missed"} 0
			rewardwatch_retrain_requests{policy="ranker",state="open"} 0
			rewardwatch_retrain_requests{policy="ranker",state="queued"} 0
			rewardwatch_retrain_requests{policy="ranker",state="rejected"} 0
			rewardwatch_retrain_requests{policy="ranker",state="running"} 0
			rewardwatch_retrain_requests{policy="ranker",state="verifying"} 0
			rewardwatch_retrain_requests{policy="ranker",state="withdrawn"} 0
			# HELP rewardwatch_webhook_dead_letters Requests in the ledger that could not be delivered.
			# TYPE rewardwatch_webhook_dead_letters gauge
			rewardwatch_webhook_dead_letters{target="trainer"} 0
			# HELP rewardwatch_webhook_deliveries_total Webhook delivery attempts, by result.
			# TYPE rewardwatch_webhook_deliveries_total counter
			rewardwatch_webhook_deliveries_total{result="delivered",target="trainer"} 1
			rewardwatch_webhook_deliveries_total{result="gone",target="trainer"} 0
			rewardwatch_webhook_deliveries_total{result="invalid",target="trainer"} 0
			rewardwatch_webhook_deliveries_total{result="redirected",target="trainer"} 0
			rewardwatch_webhook_deliveries_total{result="refused_address",target="trainer"} 0
			rewardwatch_webhook_deliveries_total{result="rejected",target="trainer"} 1
			rewardwatch_webhook_deliveries_total{result="throttled",target="trainer"} 0
			rewardwatch_webhook_deliveries_total{result="timeout",target="trainer"} 0
			rewardwatch_webhook_deliveries_total{result="unreachable",target="trainer"} 0
			rewardwatch_webhook_deliveries_total{result="unsigned",target="trainer"} 0
			# HELP rewardwatch_webhook_target_disabled 1 if the target responded with 410 Gone and is disabled, 0 otherwise.
			# TYPE rewardwatch_webhook_target_disabled gauge
			rewardwatch_webhook_target_disabled{target="trainer"} 0
		`
		if err := testutil.GatherAndCompare(r.reg, strings.NewReader(want), MetricRequests, MetricExpected, MetricCooldown, MetricDeadLetters, MetricDeliveries, MetricTargetDisabled); err != nil {
			t.Error(err)
		}
		if n := testutil.CollectAndCount(r.metrics.duration); n != 1 {
			t.Errorf("%d duration histograms, want 1", n)
		}
	})
}

// TestRealSockets runs the exported constructor against a server on the loopback interface.
func testRealSockets(t *testing.T, on storage) {
	verified := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		var body bytes.Buffer
		_, err := body.ReadFrom(req.Body)
		hook, bad := standardwebhooks.NewWebhook(retraintest.Secret)
		if err = errors.Join(err, bad); err == nil {
			err = hook.Verify(body.Bytes(), req.Header)
		}
		verified <- err
	}))
	defer server.Close()
	cfg := testConfig(t, on)
	cfg.Targets[0].Webhook, cfg.Targets[0].AllowPrivate = server.URL, true
	desk, err := Open(t.Context(), cfg, testRecipes(t), zerolog.Nop(), prometheus.NewRegistry())
	check(t, err)
	ctx, cancel := contextWithCancel(t)
	done := make(chan error, 1)
	go func() { done <- desk.Run(ctx) }()
	_, err = desk.Consider(t.Context(), retraintest.Incident("i1", "ranker"), time.Time{})
	check(t, err)
	select {
	case err := <-verified:
		check(t, err)
	case <-time.After(2 * time.Minute):
		t.Error("no delivery within two minutes")
	}
	cancel()
	check(t, <-done)
	all, err := desk.Requests(t.Context(), 10)
	check(t, err)
	if len(all) != 1 || all[0].State != ledger.StateDelivered {
		t.Errorf("requests %+v, want one delivered", all)
	}
	check(t, desk.Close())
}

func TestRetryDelay(t *testing.T) {
	want := []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 10 * time.Hour, 10 * time.Hour}
	for i, d := range want {
		if got := retryDelay(i+1, 0); got != d {
			t.Errorf("after attempt %d: %s, want %s", i+1, got, d)
		}
		if got := retryDelay(i+1, 0.999); got <= d || got >= jittered(d) {
			t.Errorf("after attempt %d with jitter: %s, want between %s and %s", i+1, got, d, jittered(d))
		}
	}
}

// If a target is unavailable, not every waiting request tries it.
func testCircuitOpens(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on, slices.Repeat([]http.HandlerFunc{retraintest.Status(503)}, ledger.CircuitFailures+2)...)
		for i := range 20 {
			r.consider(retraintest.Incident(fmt.Sprintf("i%d", i), fmt.Sprintf("policy-%d", i)))
		}
		r.run()
		r.pass(2 * ledger.FetchEvery)
		if n := len(r.receiver.seen()); n != ledger.CircuitFailures {
			t.Errorf("%d attempts at once, want %d", n, ledger.CircuitFailures)
		}
		open := func() float64 {
			value, err := testutil.GatherAndCount(r.reg, MetricCircuitOpen)
			check(t, err)
			if value != 1 {
				t.Fatalf("%d series, want 1", value)
			}
			families, err := r.reg.Gather()
			check(t, err)
			for _, f := range families {
				if f.GetName() == MetricCircuitOpen {
					return f.GetMetric()[0].GetGauge().GetValue()
				}
			}
			return -1
		}
		if open() != 1 {
			t.Error("its circuit is closed")
		}
		r.reopen() // it is in the ledger
		r.run()
		for want := ledger.CircuitFailures + 1; want <= ledger.CircuitFailures+2; want++ {
			r.pass(ledger.CircuitPause - 5*ledger.FetchEvery)
			if n := len(r.receiver.seen()); n != want-1 {
				t.Errorf("%d attempts before the pause is over, want %d", n, want-1)
			}
			r.pass(7 * ledger.FetchEvery)
			if n := len(r.receiver.seen()); n != want {
				t.Errorf("%d attempts, want %d", n, want)
			}
		}
		r.pass(ledger.CircuitPause)
		if got := slices.Index(r.results(), target.ResultDelivered); got != ledger.CircuitFailures+2 || open() != 0 {
			t.Errorf("attempt %d was the first to succeed; circuit %g", got, open())
		}
		r.pass(time.Hour)
		all, err := r.Requests(t.Context(), 100)
		check(t, err)
		for _, q := range all {
			if q.State != ledger.StateDelivered {
				t.Errorf("request %s is %s", q.ID, q.State)
			}
		}
	})
}

// A desk delivers to every kind of target. A target that is gone gets no more deliveries until it is a different
// one.
func TestDeskTellsOtherServices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, onSQLite, retraintest.Status(204), retraintest.Status(410))
		token := filepath.Join(t.TempDir(), "token")
		check(t, os.WriteFile(token, []byte("token"), 0o600))
		r.cfg.Targets[0].Webhook, r.cfg.Targets[0].SecretFile = "", ""
		r.cfg.Targets[0].GitHub = target.GitHub{Repository: "acme/trainer", TokenFile: token, URL: "http://github.test/"}
		r.reopen()
		r.run()
		r.consider(retraintest.Incident("i1", "ranker"))
		r.pass(lateness)
		if q := r.request(); q.State != ledger.StateDelivered {
			t.Errorf("request %+v, want delivered", q)
		}
		r.consider(retraintest.Incident("i2", "bidder"))
		r.pass(lateness)
		if d := r.consider(retraintest.Incident("i3", "pricer")); d.Reason != ledger.TargetDisabled {
			t.Errorf("decision %+v after 410, want target_disabled", d)
		}
		if got, want := r.results(), []target.Result{target.ResultDelivered, target.ResultGone}; !slices.Equal(got, want) {
			t.Errorf("results %v, want %v", got, want)
		}
		r.cfg.Targets[0].GitHub.Repository = "acme/trainer-2"
		r.reopen()
		if d := r.consider(retraintest.Incident("i3", "pricer")); d.Reason != ledger.Opened {
			t.Errorf("decision %+v with another repository, want opened", d)
		}
	})
}
