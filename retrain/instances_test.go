package retrain

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/model"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/retraintest"
	"github.com/rewardwatch/rewardwatch/retrain/target"
)

// busyTrainer is a receiver that acts once on each webhook id, takes a second for each attempt, and fails every
// third one.
type busyTrainer struct {
	mu       sync.Mutex
	attempts int
	inFlight map[string]int
	acted    map[string]int
	overlaps []string // ids that arrived while an attempt with the same id was in flight
}

func (b *busyTrainer) answer(w http.ResponseWriter, req *http.Request) {
	id := req.Header.Get("webhook-id")
	b.mu.Lock()
	b.attempts++
	fails := b.attempts%3 == 0
	if b.inFlight[id]++; b.inFlight[id] > 1 {
		b.overlaps = append(b.overlaps, id)
	}
	b.mu.Unlock()
	<-time.After(time.Second)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inFlight[id]--
	if fails {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	b.acted[id] = 1
}

func testSeveralInstances(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		if opened, requests := severalInstances(t, on, func() {}); opened != requests {
			t.Errorf("%d decisions opened a request, and there are %d", opened, requests)
		}
	})
}

// severalInstances lets four instances consider the same incidents at once, after a fifth has died while it held a
// claim, and disturbs them meanwhile. It checks every rule of the ledger, and returns how many decisions opened a
// request and how many requests there are. It must be called in a bubble.
func severalInstances(t *testing.T, on storage, disturb func()) (opened, requests int) {
	const incidents = 5
	trainer := &busyTrainer{inFlight: map[string]int{}, acted: map[string]int{}}
	r := newRig(t, on, slices.Repeat([]http.HandlerFunc{trainer.answer}, 10_000)...)
	r.cfg.Triggers = []Trigger{
		{On: OnIncident, Signals: []string{"return"}, Recipe: "ranker", Target: "trainer"},
		{On: OnIncident, Signals: []string{"reward"}, Recipe: "ranker", Target: "trainer", Cooldown: model.Duration(30 * 24 * time.Hour)},
	}
	r.reopen()
	dying := r.Desk
	crashAfterDelivery(t, dying)
	r.consider(retraintest.Incident("killed-0", "killed"))
	if dying.Run(t.Context()) == nil {
		t.Error("an instance goes on without its ledger")
	}
	r.reopen()

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	instances := []*Desk{r.Desk}
	for range 3 {
		d, _ := r.another()
		instances = append(instances, d)
	}
	var running sync.WaitGroup
	for _, d := range instances {
		running.Go(func() {
			if err := runSeldom(ctx, t, d); err != nil {
				t.Error(err)
			}
		})
	}
	var mu sync.Mutex
	tell := func(d *Desk, first int, policy, signal string) {
		for n := range incidents {
			inc := retraintest.Incident(fmt.Sprintf("%s-%d", policy, (first+n)%incidents), policy)
			inc.Alarms = []alerts.Alarm{retraintest.Alarm(signal)}
			decision, err := d.Consider(ctx, inc, time.Time{})
			mu.Lock()
			if err != nil {
				t.Error(err)
			}
			if decision.Reason == ledger.Opened {
				opened++
			}
			mu.Unlock()
		}
	}
	for range incidents { // each round delivers what the previous one has opened
		var telling sync.WaitGroup
		telling.Go(disturb)
		for i, d := range instances {
			for _, policy := range []string{"a", "b", "c"} {
				telling.Go(func() { tell(d, i, policy, "return") })
				telling.Go(func() { tell(d, i, policy+"-seldom", "reward") })
			}
		}
		telling.Wait()
		r.pass(time.Hour)
		r.failJobs()
	}
	cancel()
	running.Wait()
	for _, d := range instances[1:] {
		check(t, d.Close())
	}
	r.reopen()
	all, err := r.Requests(t.Context(), 1000)
	check(t, err)
	if want := 3*incidents + 3 + 1; len(all) != want {
		t.Errorf("%d requests, want %d: one of each incident, and one of each policy with a cooldown", len(all), want)
	}
	r.checkRules(all)
	if len(trainer.overlaps) > 0 {
		t.Errorf("attempts overlapped at %v", trainer.overlaps)
	}
	if len(trainer.acted) != len(all) {
		t.Errorf("the trainer acted on %d ids, want %d", len(trainer.acted), len(all))
	}
	return opened + 1, len(all) // the dead instance opened one
}

// checkRules checks what must be true for any ledger whose requests have all been delivered.
func (r *rig) checkRules(all []ledger.Request) {
	r.t.Helper()
	bodies := map[string][]byte{}
	for _, a := range r.receiver.seen() {
		if before := bodies[a.id]; before != nil && !bytes.Equal(a.body, before) {
			r.t.Errorf("%s came with two bodies", a.id)
		}
		bodies[a.id] = a.body
	}
	incidents := map[string]bool{}
	closed := map[string]time.Time{}         // of the policy's previous request
	for _, q := range slices.Backward(all) { // the oldest first
		if incidents[q.Origin] || q.State != ledger.StateFailed || bodies[q.ID] == nil {
			r.t.Errorf("request %+v: want one of the incident, delivered, and its job failed", q)
		}
		if q.OpenedAt.Before(closed[q.Policy]) {
			r.t.Errorf("request %+v was opened while another one of its policy was", q)
		}
		incidents[q.Origin], closed[q.Policy] = true, q.ClosedAt
		history, err := r.History(r.t.Context(), q.ID)
		check(r.t, err)
		if len(history) != 3 || history[0].State != ledger.StateOpen || history[1].State != ledger.StateDelivered || history[2].By != "trainer" {
			r.t.Errorf("history of %s: %+v", q.ID, history)
		}
	}
}

// While the circuit of a target is open, one instance at a time tries it, with one request.
func testCircuitIsTriedByOne(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		other, _ := r.another()
		trainer := r.cfg.Targets[0]
		var ids []string
		for i := range ledger.CircuitFailures + 1 {
			ids = append(ids, r.consider(retraintest.Incident(fmt.Sprintf("i%d", i), fmt.Sprintf("policy-%d", i))).Request)
		}
		begin := func(d *Desk, id string) int {
			t.Helper()
			attempt, err := d.ledger.Begin(t.Context(), id, trainer)
			check(t, err)
			return attempt
		}
		for _, id := range ids[:ledger.CircuitFailures] {
			if attempt := begin(r.Desk, id); attempt != 1 {
				t.Fatalf("attempt %d while the circuit is closed", attempt)
			}
			now := time.Now()
			check(t, r.ledger.Finish(t.Context(), trainer, id, 1, target.Attempt{Result: target.ResultTimeout}, ledger.Step{State: ledger.StateOpen, Retry: now}, now))
		}
		if attempt := begin(other, ids[ledger.CircuitFailures]); attempt != 0 {
			t.Errorf("attempt %d while the circuit is open", attempt)
		}
		time.Sleep(ledger.CircuitPause)
		if attempt := begin(r.Desk, ids[0]); attempt != 2 {
			t.Errorf("attempt %d after the pause, want the second", attempt)
		}
		if attempt := begin(other, ids[ledger.CircuitFailures]); attempt != 0 {
			t.Errorf("attempt %d while another instance tries the target", attempt)
		}
		check(t, r.ledger.Finish(t.Context(), trainer, ids[0], 2, target.Attempt{Result: target.ResultDelivered}, ledger.Step{State: ledger.StateDelivered}, time.Now()))
		if attempt := begin(other, ids[ledger.CircuitFailures]); attempt != 1 {
			t.Errorf("attempt %d once the target is back, want the first", attempt)
		}
		check(t, other.Close())
	})
}

func testClaimIsHeldByOne(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		id := r.consider(retraintest.Incident("i1", "ranker")).Request
		other, _ := r.another()
		trainer := r.cfg.Targets[0]
		begin := func(d *Desk, want int) {
			t.Helper()
			if attempt, err := d.ledger.Begin(t.Context(), id, trainer); err != nil || attempt != want {
				t.Fatalf("begin gives attempt %d, %v, want %d", attempt, err, want)
			}
		}
		finish := func(d *Desk, attempt int, o target.Attempt, then ledger.Step) {
			t.Helper()
			check(t, d.ledger.Finish(t.Context(), trainer, id, attempt, o, then, time.Now()))
		}
		begin(r.Desk, 1)
		begin(other, 0)
		end := ledger.ClaimEnd(trainer, time.Now())
		if q := r.request(); !q.NextAttempt.Equal(end) {
			t.Errorf("next attempt at %s, want %s, when the claim ends", q.NextAttempt, end)
		}
		for attempt := 2; attempt <= 4; attempt++ {
			r.pass(time.Until(end))
			begin(other, attempt)
			begin(r.Desk, 0)
			end = ledger.ClaimEnd(trainer, time.Now())
		}

		// The instances that lost their claims were only slow.
		finish(r.Desk, 1, target.Attempt{Result: target.ResultTimeout}, ledger.Step{State: ledger.StateOpen, Retry: time.Now()})
		finish(other, 2, target.Attempt{Result: target.ResultTimeout}, ledger.Step{State: ledger.StateDeadLetter})
		if q := r.request(); q.State != ledger.StateOpen || !q.NextAttempt.Equal(end) {
			t.Errorf("request %+v after late failures, want open and claimed until %s", q, end)
		}
		finish(other, 3, target.Attempt{Result: target.ResultDelivered}, ledger.Step{State: ledger.StateDelivered})
		if q := r.request(); q.State != ledger.StateDelivered {
			t.Errorf("request %+v after a late success, want delivered", q)
		}
		finish(other, 4, target.Attempt{Result: target.ResultTimeout}, ledger.Step{State: ledger.StateOpen, Retry: time.Now()})
		if q := r.request(); q.State != ledger.StateDelivered {
			t.Errorf("request %+v after the failure of a repetition, want delivered", q)
		}
		if got, want := r.results(), []target.Result{target.ResultTimeout, target.ResultTimeout, target.ResultDelivered, target.ResultTimeout}; !slices.Equal(got, want) {
			t.Errorf("results %v, want %v", got, want)
		}
		check(t, other.Close())
	})
}

func testWithdrawnInFlight(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		inc := retraintest.Incident("i1", "ranker")
		id := r.consider(inc).Request
		_, err := r.ledger.Begin(t.Context(), id, r.cfg.Targets[0])
		check(t, err)
		inc.Cause = alerts.CauseRewardFunction
		r.consider(inc)
		r.reopen()
		if got, want := r.results(), []target.Result{target.ResultInFlight}; !slices.Equal(got, want) {
			t.Errorf("results %v at a start beside the attempt, want %v", got, want)
		}
		r.pass(time.Duration(target.MaxTimeout) + ledger.ClaimMargin)
		r.reopen()
		if got, want := r.results(), []target.Result{target.ResultInterrupted}; !slices.Equal(got, want) {
			t.Errorf("results %v at a start long after it, want %v", got, want)
		}
	})
}

// PostgreSQL cannot store a NUL in a text, and no text from telemetry or answers may end the service.
func testTextWithNUL(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("busy\x00")) })
		inc := retraintest.Incident("i1", "ran\x00ker")
		if d := r.consider(inc); d.Reason != ledger.Opened {
			t.Errorf("decision %+v, want opened", d)
		}
		r.run()
		r.pass(time.Minute)
		if q := r.request(); q.State != ledger.StateDelivered || q.Policy != "ran�ker" {
			t.Errorf("request %+v", q)
		}
		r.failJobs()
		again := retraintest.Incident("i2", "ran\x00ker")
		if d := r.consider(again); d.Reason != ledger.Cooldown {
			t.Errorf("decision %+v, want cooldown", d)
		}
		by := retraintest.Incident("i3", "bidder")
		r.stop()
		r.consider(by)
		by.Decisions = []alerts.Decision{{Kind: alerts.Accepted, By: "alice\x00", Why: "new prices"}}
		if d := r.consider(by); d.Reason != ledger.IncidentAccepted {
			t.Errorf("decision %+v, want incident_accepted", d)
		}
	})
}
