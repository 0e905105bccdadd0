package retrain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

func status(code int, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
	}
}

// retryAt asks for the next attempt at a date d from now.
func retryAt(code int, d time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		status(code, "Retry-After", time.Now().Add(d).UTC().Format(http.TimeFormat))(w, r)
	}
}

func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// drip answers 200 and then a byte a second, for ever.
func drip(w http.ResponseWriter, r *http.Request) {
	for r.Context().Err() == nil {
		_, _ = w.Write([]byte("."))
		_ = http.NewResponseController(w).Flush()
		select {
		case <-time.After(time.Second):
		case <-r.Context().Done():
		}
	}
}

// breakOff answers 200 with a tenth of the body that it announced, and closes the connection.
func breakOff(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0123456789"))
	_ = conn.Close()
}

// reset closes the connection without an answer.
func reset(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	_ = conn.Close()
}

func garbage(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	_, _ = conn.Write([]byte("220 mail.test ESMTP\r\n\r\n"))
	_ = conn.Close()
}

func endless(w http.ResponseWriter, _ *http.Request) {
	for {
		if _, err := w.Write(bytes.Repeat([]byte("x"), 4096)); err != nil {
			return
		}
	}
}

// lateness is how much after they are due two attempts may be made, one after the other: each waits until the queue is looked at,
// the times between which River lengthens by up to a tenth.
const lateness = 2 * (fetchEvery + fetchEvery/10)

// jittered is the schedule's delay with the most jitter that it can have.
func jittered(d time.Duration) time.Duration { return d + d/5 }

func testReceiverFaultIsRetriedUnderTheSameID(t *testing.T, on storage) {
	const first = 5 * time.Second // the schedule's first delay
	tests := []struct {
		name             string
		script           []http.HandlerFunc
		want             []Result
		earliest, latest time.Duration // of the last arrival
	}{
		{"ok at once", nil, []Result{ResultDelivered}, 0, 0},
		{"any 2xx", []http.HandlerFunc{status(204)}, []Result{ResultDelivered}, 0, 0},
		{"an endless answer is read in part", []http.HandlerFunc{endless}, []Result{ResultDelivered}, 0, 0},
		{"500", []http.HandlerFunc{status(500)}, []Result{ResultRejected, ResultDelivered}, first, jittered(first)},
		{"404", []http.HandlerFunc{status(404)}, []Result{ResultRejected, ResultDelivered}, first, jittered(first)},
		{"twice 500", []http.HandlerFunc{status(500), status(502)}, []Result{ResultRejected, ResultRejected, ResultDelivered}, first + 5*time.Minute, jittered(first + 5*time.Minute)},
		{"429 with seconds", []http.HandlerFunc{status(429, "Retry-After", "90")}, []Result{ResultThrottled, ResultDelivered}, 90 * time.Second, 91 * time.Second},
		{"429 with a date", []http.HandlerFunc{retryAt(429, time.Hour)}, []Result{ResultThrottled, ResultDelivered}, time.Hour - time.Second, time.Hour},
		{"503 with seconds", []http.HandlerFunc{status(503, "Retry-After", "600")}, []Result{ResultRejected, ResultDelivered}, 10 * time.Minute, 10*time.Minute + time.Second},
		{"429 sooner than the schedule", []http.HandlerFunc{status(429, "Retry-After", "0")}, []Result{ResultThrottled, ResultDelivered}, first, jittered(first)},
		{"429 with nonsense", []http.HandlerFunc{status(429, "Retry-After", "soon")}, []Result{ResultThrottled, ResultDelivered}, first, jittered(first)},
		{"301", []http.HandlerFunc{status(301, "Location", "/elsewhere")}, []Result{ResultRedirected, ResultDelivered}, first, jittered(first)},
		{"307", []http.HandlerFunc{status(307, "Location", "http://elsewhere.test/")}, []Result{ResultRedirected, ResultDelivered}, first, jittered(first)},
		{"no answer", []http.HandlerFunc{hang}, []Result{ResultTimeout, ResultDelivered}, 15*time.Second + first, 15*time.Second + jittered(first)},
		{"slow answer", []http.HandlerFunc{drip}, []Result{ResultTimeout, ResultDelivered}, 15*time.Second + first, 15*time.Second + jittered(first)},
		{"connection closed", []http.HandlerFunc{reset}, []Result{ResultUnreachable, ResultDelivered}, first, jittered(first)},
		{"answer breaks off", []http.HandlerFunc{breakOff}, []Result{ResultUnreachable, ResultDelivered}, first, jittered(first)},
		{"not HTTP", []http.HandlerFunc{garbage}, []Result{ResultUnreachable, ResultDelivered}, first, jittered(first)},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, on, tc.script...)
				r.run()
				id := r.consider(incident("i1", "ranker")).Request
				r.pass(2 * time.Hour)
				if got := r.results(); !slices.Equal(got, tc.want) {
					t.Errorf("results %v, want %v", got, tc.want)
				}
				if q := r.request(); q.State != StateDelivered || q.Attempts != len(tc.want) {
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
		r.consider(incident("i1", "ranker"))
		r.pass(lateness)
		all, err := r.Deliveries(t.Context(), r.request().ID, 10)
		check(t, err)
		if len(all) != 1 || all[0].Status != 500 || !strings.HasPrefix(all[0].Response, "no trainer is free �x") || len(all[0].Response) > keptAnswer+2 {
			t.Errorf("deliveries %+v", all)
		}
	})
}

func testGoneDisablesTheTarget(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on, status(410))
		r.consider(incident("i1", "ranker"))
		r.consider(incident("i2", "bidder")) // waits behind the first one
		r.run()
		r.pass(time.Minute)
		if got := r.results(); !slices.Equal(got, []Result{ResultGone}) {
			t.Fatalf("results %v, want gone alone", got)
		}
		all, err := r.Requests(t.Context(), 10)
		check(t, err)
		for _, q := range all {
			if q.State != StateDeadLetter || !strings.Contains(q.Reason, "410") {
				t.Errorf("request %+v, want a dead letter for 410", q)
			}
		}
		if d := r.consider(incident("i3", "pricer")); d.Reason != TargetDisabled {
			t.Errorf("decision %+v, want target_disabled", d)
		}
		const gauges = `
			# HELP rewardwatch_webhook_dead_letters Requests that were given up before they could be delivered.
			# TYPE rewardwatch_webhook_dead_letters gauge
			rewardwatch_webhook_dead_letters{target="trainer"} 2
			# HELP rewardwatch_webhook_target_disabled 1 where the target answered 410 Gone and nothing is sent to it, 0 otherwise.
			# TYPE rewardwatch_webhook_target_disabled gauge
			rewardwatch_webhook_target_disabled{target="trainer"} 1
			# HELP rewardwatch_webhooks_given_up_total Times that a request was given up before it could be delivered.
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
		if d := r.consider(incident("i3", "pricer")); d.Reason != TargetDisabled {
			t.Errorf("after a restart: %+v, want target_disabled", d)
		}
		r.cfg.Targets[0].Webhook = "http://trainer.test/v2"
		r.reopen()
		r.run()
		if d := r.consider(incident("i3", "pricer")); d.Reason != Opened {
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
		r := newRig(t, on, slices.Repeat([]http.HandlerFunc{status(500)}, 20)...)
		r.run()
		r.consider(incident("i1", "ranker"))
		r.pass(requestLifetime)
		q := r.request()
		if q.State != StateDeadLetter || q.Attempts != 7 || !strings.Contains(q.Reason, "rejected") {
			t.Errorf("request %+v, want a dead letter after 7 attempts", q)
		}
		if end := q.OpenedAt.Add(requestLifetime); !q.ClosedAt.Before(end) {
			t.Errorf("closed at %s, want as soon as no further attempt fits before %s", q.ClosedAt, end)
		}
		history, err := r.History(t.Context(), q.ID)
		check(t, err)
		if len(history) != 2 || history[0].State != StateOpen || history[1].State != StateDeadLetter {
			t.Errorf("history %+v", history)
		}
	})
}

func testRetryAfterBeyondTheExpiry(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on, status(503, "Retry-After", "99999999999999"))
		r.run()
		r.consider(incident("i1", "ranker"))
		r.pass(lateness)
		if q := r.request(); q.State != StateDeadLetter {
			t.Errorf("request %+v, want a dead letter", q)
		}
	})
}

func testExpiresWhileNothingRuns(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		r.consider(incident("i1", "ranker"))
		r.pass(requestLifetime)
		r.reopen()
		r.run()
		r.pass(lateness)
		if q := r.request(); q.State != StateDeadLetter || q.Reason != "expired" {
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
			r.consider(incident("i-"+policy, policy))
		}
		r.pass(time.Minute)
		free := time.Duration(0) // when the answer before was there
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

// crashing delivers and then loses the ledger, as a process that dies between the answer and its record.
type crashing struct {
	adapter
	crash func()
}

func (c crashing) send(ctx context.Context, m message) outcome {
	defer c.crash()
	return c.adapter.send(ctx, m)
}

// crashAfterDelivery lets the desk die once its target has answered.
func crashAfterDelivery(t *testing.T, d *Desk) {
	d.courier.adapters["trainer"] = crashing{d.courier.adapters["trainer"], func() { check(t, d.ledger.close()) }}
}

func testCrashBetweenAnswerAndRecord(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		id := r.consider(incident("i1", "ranker")).Request
		crashAfterDelivery(t, r.Desk)
		if err := r.Run(t.Context()); err == nil {
			t.Error("Run goes on without its ledger")
		}
		r.reopen()
		if d := r.consider(incident("i1", "ranker")); d.Reason != AlreadyRequested || d.Request != id {
			t.Errorf("decision after the crash: %+v", d)
		}
		r.run()
		r.pass(time.Until(r.request().NextAttempt) - time.Second)
		if got, want := r.results(), []Result{ResultInFlight}; !slices.Equal(got, want) {
			t.Errorf("results %v while the dead process still has its claim, want %v", got, want)
		}
		r.pass(time.Minute)
		if got, want := r.results(), []Result{ResultInterrupted, ResultDelivered}; !slices.Equal(got, want) {
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
		r := newRig(t, on, status(429, "Retry-After", "3600"))
		r.run()
		r.consider(incident("i1", "ranker"))
		r.pass(time.Minute)
		r.reopen()
		r.run()
		r.pass(58 * time.Minute)
		if got := len(r.receiver.seen()); got != 1 {
			t.Fatalf("%d arrivals before Retry-After is over, want 1", got)
		}
		r.pass(2 * time.Minute)
		if q := r.request(); q.State != StateDelivered {
			t.Errorf("request %+v, want delivered", q)
		}
	})
}

func testShutdownFinishesTheAttemptInFlight(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on, func(http.ResponseWriter, *http.Request) { <-time.After(10 * time.Second) })
		r.run()
		r.consider(incident("i1", "ranker"))
		r.consider(incident("i2", "bidder"))
		r.pass(5 * time.Second)
		r.stop()
		if got := r.results(); !slices.Equal(got, []Result{ResultDelivered}) {
			t.Errorf("results %v, want the first finished and the second not begun", got)
		}
	})
}

func testLateSuccessOfAWithdrawnRequest(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on, func(http.ResponseWriter, *http.Request) { <-time.After(10 * time.Second) })
		r.run()
		inc := incident("i1", "ranker")
		r.consider(inc)
		r.pass(5 * time.Second)
		inc.Cause = "reward_function"
		r.consider(inc)
		if q := r.request(); q.State != StateWithdrawn {
			t.Fatalf("request %+v, want withdrawn", q)
		}
		r.pass(10 * time.Second)
		if q := r.request(); q.State != StateDelivered {
			t.Errorf("request %+v, want delivered: the receiver has it", q)
		}
	})
}

func testTargetLeavesTheConfiguration(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		r.consider(incident("i1", "ranker"))
		r.cfg.Targets[0].Name, r.cfg.Triggers[0].Target = "other", "other"
		r.reopen()
		if q := r.request(); q.State != StateDeadLetter || !strings.Contains(q.Reason, "no longer configured") {
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
		r.Desk.cfg.Targets = nil // as of an instance with another configuration
		if _, err := r.Approve(t.Context(), id, "ann", "go on"); !errors.Is(err, ErrUnknownTarget) {
			t.Errorf("approved: %v, want ErrUnknownTarget", err)
		}
		if q := r.request(); q.State != StateAwaitingApproval {
			t.Errorf("request %+v, want it to wait", q)
		}
		r.cfg.Targets[0].Name, r.cfg.Triggers[0].Target = "other", "other"
		r.reopen()
		if q := r.request(); q.State != StateDeadLetter || !strings.Contains(q.Reason, "no longer configured") {
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
		r.consider(incident("i1", "ranker"))
		r.pass(lateness)
		all, err := r.Deliveries(t.Context(), "", 10)
		check(t, err)
		if len(all) != 1 || all[0].Result != ResultUnsigned || strings.Contains(all[0].Error, "half a secret") {
			t.Fatalf("deliveries %+v, want one unsigned without the secret in its error", all)
		}
		// Rotation: the newer secret first, the one that the receiver still holds second.
		check(t, os.WriteFile(file, []byte("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"+testSecret+"\n"), 0o600))
		r.pass(10 * time.Second)
		arrivals := r.receiver.seen()
		if len(arrivals) != 1 || arrivals[0].verify != nil {
			t.Errorf("arrivals %+v, want one that verifies", arrivals)
		}
	})
}

func testDeliveryMetrics(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on, status(500))
		r.run()
		r.consider(incident("i1", "ranker"))
		r.pass(time.Hour)
		const want = `
			# HELP rewardwatch_retrain_cooldown_remaining_seconds Time until an incident of the policy can order a retraining from the target again.
			# TYPE rewardwatch_retrain_cooldown_remaining_seconds gauge
			rewardwatch_retrain_cooldown_remaining_seconds{policy="ranker",target="trainer"} 82800
			# HELP rewardwatch_retrain_expected_value Value of the condition that the version of a retraining is to meet, while its outcome is awaited.
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
			# HELP rewardwatch_webhook_dead_letters Requests that were given up before they could be delivered.
			# TYPE rewardwatch_webhook_dead_letters gauge
			rewardwatch_webhook_dead_letters{target="trainer"} 0
			# HELP rewardwatch_webhook_deliveries_total Attempts to deliver a webhook, by result.
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
			# HELP rewardwatch_webhook_target_disabled 1 where the target answered 410 Gone and nothing is sent to it, 0 otherwise.
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
		hook, bad := standardwebhooks.NewWebhook(testSecret)
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
	_, err = desk.Consider(t.Context(), incident("i1", "ranker"), time.Time{})
	check(t, err)
	select {
	case err := <-verified:
		check(t, err)
	case <-time.After(30 * time.Second):
		t.Error("no delivery within 30s")
	}
	cancel()
	check(t, <-done)
	all, err := desk.Requests(t.Context(), 10)
	check(t, err)
	if len(all) != 1 || all[0].State != StateDelivered {
		t.Errorf("requests %+v, want one delivered", all)
	}
	check(t, desk.Close())
}

// A connection that is reset in the middle of the answer is a failure, also where that began with 200.
func TestResetInTheMiddleOfTheAnswer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, err := io.Copy(io.Discard, req.Body)
		check(t, err)
		conn, _, err := http.NewResponseController(w).Hijack()
		check(t, err)
		_, err = conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0123456789"))
		check(t, err)
		time.Sleep(50 * time.Millisecond) // a reset overtakes what was sent
		check(t, conn.(*net.TCPConn).SetLinger(0))
		check(t, conn.Close())
	}))
	defer server.Close()
	a := line{transport: newTransport(Target{AllowPrivate: true})}.post(t.Context(), server.URL, []byte("{}"))
	if a.result != ResultUnreachable || a.status != 200 || !strings.Contains(a.err, "connection reset") {
		t.Errorf("%+v, want a reset after status 200", a.outcome)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	tests := map[string]time.Duration{
		"":                                    0,
		"0":                                   0,
		"120":                                 2 * time.Minute,
		"-1":                                  0,
		"1.5":                                 0,
		"1e9":                                 0,
		"9223372036854775807":                 maxRetryAfter,
		strconv.Itoa(400 * 86400):             maxRetryAfter,
		"Sat, 21 Nov 2026 12:00:30 GMT":       30 * time.Second,
		"Saturday, 21-Nov-26 12:00:30 GMT":    30 * time.Second,
		"Sat Nov 21 12:00:30 2026":            30 * time.Second,
		"Sat, 21 Nov 2026 11:00:00 GMT":       0,
		"Thu, 21 Nov 2199 11:00:00 GMT":       maxRetryAfter,
		"2026-11-21T12:00:30Z":                0,
		"Sat, 21 Nov 2026 12:00:30 GMT, 120":  0,
		"99999999999999999999999999999999999": 0,
	}
	for value, want := range tests {
		if got := retryAfter(value, now); got != want {
			t.Errorf("retryAfter(%q) = %s, want %s", value, got, want)
		}
	}
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

func FuzzRetryAfter(f *testing.F) {
	f.Add("120")
	f.Add("Sat, 21 Nov 2026 12:00:30 GMT")
	f.Fuzz(func(t *testing.T, value string) {
		if d := retryAfter(value, time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)); d < 0 || d > maxRetryAfter {
			t.Errorf("retryAfter(%q) = %s", value, d)
		}
	})
}

// A target that is away is not asked by every request that waits for it.
func testCircuitOpens(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on, slices.Repeat([]http.HandlerFunc{status(503)}, circuitFailures+2)...)
		for i := range 20 {
			r.consider(incident(fmt.Sprintf("i%d", i), fmt.Sprintf("policy-%d", i)))
		}
		r.run()
		r.pass(2 * fetchEvery)
		if n := len(r.receiver.seen()); n != circuitFailures {
			t.Errorf("%d attempts at once, want %d", n, circuitFailures)
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
		for want := circuitFailures + 1; want <= circuitFailures+2; want++ {
			r.pass(circuitPause - 5*fetchEvery)
			if n := len(r.receiver.seen()); n != want-1 {
				t.Errorf("%d attempts before the pause is over, want %d", n, want-1)
			}
			r.pass(7 * fetchEvery)
			if n := len(r.receiver.seen()); n != want {
				t.Errorf("%d attempts, want %d", n, want)
			}
		}
		r.pass(circuitPause)
		if got := slices.Index(r.results(), ResultDelivered); got != circuitFailures+2 || open() != 0 {
			t.Errorf("attempt %d was the first to succeed; circuit %g", got, open())
		}
		r.pass(time.Hour)
		all, err := r.Requests(t.Context(), 100)
		check(t, err)
		for _, q := range all {
			if q.State != StateDelivered {
				t.Errorf("request %s is %s", q.ID, q.State)
			}
		}
	})
}
