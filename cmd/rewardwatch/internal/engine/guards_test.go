package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/detectors/guard"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/checkpoint"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
	"github.com/rewardwatch/rewardwatch/ingest/order"
)

// guarded returns settings with which the action "drop" is never allowed.
func guarded() Settings {
	cfg := DefaultSettings()
	c := watch.DefaultConfig()
	c.Guards.Limits = []watch.GuardLimit{{Name: "never", Actions: []string{"drop"}, Alpha: .01, Then: watch.GuardFallback}}
	cfg.Policies = []PolicyConfig{{Match: "*", Config: c}}
	return cfg
}

// acted returns a completed one-step episode with an action.
func acted(i int64, action string) ingest.Event {
	e := ingesttest.Episode(0, i, "ranker", time.Now())
	e.HasEpisode, e.Terminated, e.Step, e.HasReward, e.Reward = false, true, 0, true, 1
	e.EpisodeID = fmt.Sprint("e", i)
	e.Action = ingest.Action{Kind: ingest.ActionCategory, Category: action}
	return e
}

// TestATrippedGuardSurvivesACrashAndIsReleased trips a guard, drops the process without a final save, and releases the
// guard from the restored state.
func TestATrippedGuardSurvivesACrashAndIsReleased(t *testing.T) {
	t.Parallel()
	n := &noting{memory: *newMemory()}
	cfg := guarded()
	p := newAlone(t.Context(), &cfg, &n.memory, n, prometheus.NewRegistry())
	if s, known := p.Guards("ranker"); !known || s.State != guard.OK || len(s.Guards) != 1 {
		t.Errorf("before any telemetry: %+v, %v", s, known)
	}
	f := p.Feed(0)
	for i := range int64(20) {
		action := "keep"
		if i == 15 {
			action = "drop"
		}
		if err := f.Process(t.Context(), []ingest.Event{acted(i, action)}); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Eventually(t, "the guard trips, and that is saved", func() bool {
		s, _ := p.Guards("ranker")
		parts, err := n.Load(BankPrefix + "ranker")
		return s.State == guard.Fallback && err == nil && parts["guards"] != nil
	})
	incidents, _ := p.workers.Findings()
	if len(incidents) != 1 || incidents[0].Severity != alerts.Critical || incidents[0].Guard() == nil || incidents[0].Group.String() != `ranker{guard="never"}` {
		t.Fatalf("incidents %+v", incidents)
	}
	p.workers.Abandon(ErrGivenUp) // as in a crash
	p.workers.end(ErrGivenUp)
	p.workers.Wg.Wait()

	q := newAlone(t.Context(), &cfg, &n.memory, n, prometheus.NewRegistry())
	if err := q.workers.Restore(t.Context(), []string{BankPrefix + "ranker"}); err != nil {
		t.Fatal(err)
	}
	if s, _ := q.Guards("ranker"); s.State != guard.Fallback || s.Guards[0].Why == "" {
		t.Errorf("after the crash: %+v", s)
	}
	for name, want := range map[string]error{"other": ErrUnknownGuard, "never": nil} {
		if _, err := q.Release(t.Context(), "ranker", name, testkit.DecisionOf(alerts.Released, time.Time{})); !errors.Is(err, want) {
			t.Errorf("release %s: %v, want %v", name, err, want)
		}
	}
	if _, err := q.Release(t.Context(), "ranker", "never", testkit.DecisionOf(alerts.Released, time.Time{})); !errors.Is(err, ErrGuardNotTripped) {
		t.Errorf("a second release: %v", err)
	}
	s, _ := q.Guards("ranker")
	incidents, _ = q.workers.Findings()
	if s.State != guard.OK || len(incidents) != 1 || !incidents[0].Closed || len(incidents[0].Decisions) != 1 || incidents[0].Decisions[0].Kind != alerts.Released {
		t.Errorf("released: %+v, %+v", s, incidents)
	}
	if err := q.Stop(); err != nil {
		t.Error(err)
	}
}

// tried counts the attempts to save policies.
type tried struct {
	*memory
	n atomic.Int64
}

func (c *tried) Save(name string, changed ingest.Parts, gone []string) error {
	if strings.HasPrefix(name, BankPrefix) {
		c.n.Add(1)
	}
	return c.memory.Save(name, changed, gone)
}

// TestATripOnAFullDiskIsNotSavedWithEachUnit trips a guard while nothing can be saved. The save must not be repeated
// with each later unit, or a full disk would slow down judging and fill the log.
func TestATripOnAFullDiskIsNotSavedWithEachUnit(t *testing.T) {
	t.Parallel()
	const units = 300
	store := &tried{memory: newMemory()}
	store.Fill()
	cfg := guarded()
	p := newAlone(t.Context(), &cfg, store, store.memory, prometheus.NewRegistry())
	begun, f := time.Now(), p.Feed(0)
	for i := range int64(units) {
		if err := f.Process(t.Context(), []ingest.Event{acted(i, "drop")}); err != nil {
			t.Fatal(err)
		}
		if r := p.worker("ranker"); r != nil { // it waits, so that the worker takes few units at once
			must(t, r.Ask(t.Context(), func(context.Context) error { return nil }))
		}
	}
	testkit.Eventually(t, "the units after the trip", func() bool {
		s, _ := p.Guards("ranker")
		return s.State == guard.Fallback && s.Guards[0].Values >= units-2
	})
	if n, most := store.n.Load(), 2+int64(time.Since(begun)/WorkerPulse); n == 0 || n > most {
		t.Errorf("%d attempts to save %d units, want at least one and at most %d", n, units, most)
	}
	store.Free()
	testkit.Eventually(t, "the trip is saved", func() bool {
		parts, err := store.Load(BankPrefix + "ranker")
		return err == nil && parts["guards"] != nil
	})
	must(t, p.Stop())
}

// TestATripIsSavedWithoutNewCalibrations trips a guard while a baseline is calibrated. A crash would lose the trip, so
// no other group may begin to wait until it is saved.
func TestATripIsSavedWithoutNewCalibrations(t *testing.T) {
	t.Parallel()
	cfg := guarded()
	p := newAlone(t.Context(), &cfg, newMemory(), newMemory(), prometheus.NewRegistry())
	r, err := p.workers.Worker(t.Context(), "ranker")
	must(t, err)
	rng := rand.New(rand.NewPCG(1, 3))
	must(t, r.Ask(t.Context(), func(ctx context.Context) error {
		next := int64(0)
		judge := func(group int, action string) (waits int) {
			u := ingesttest.Unit("ranker", group, next, rng)
			u.Pos, u.Actions = ingest.Position{Offset: next}, []ingest.Count{{Name: action, N: 1}}
			next++
			must(t, r.Observe(ctx, u, time.Now()))
			waits, _ = r.Policy.Pending()
			return waits
		}
		for !r.Policy.Calibrating() {
			judge(1, "keep")
		}
		if r.mayBeSaved(0) || judge(2, "keep") != 0 {
			t.Error("before the trip the policy may be saved, or a group waits whose baseline is not due")
		}
		judge(2, "drop")
		if r.mayBeSaved(0) || judge(2, "keep") != 1 {
			t.Error("after the trip the policy may be saved while a group waits, or other groups go on")
		}
		return nil
	}))
	testkit.Eventually(t, "the trip is saved, and no unit waits", func() bool {
		saved := false
		must(t, r.Ask(t.Context(), func(context.Context) error {
			waits, _ := r.Policy.Pending()
			saved = waits == 0 && !r.guards.Urgent(0)
			return nil
		}))
		return saved
	})
	must(t, p.Stop())
}

// TestALoneUnitIsJudgedSoon lets a policy act rarely. Its units wait until no partition can have earlier ones, and no
// other unit wakes the worker then.
func TestALoneUnitIsJudgedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := guarded()
		p := newAlone(t.Context(), &cfg, newMemory(), newMemory(), prometheus.NewRegistry())
		p.Begin(1)
		f := p.Feed(0)
		for i := range int64(20) {
			must(t, f.Process(t.Context(), []ingest.Event{acted(i, "keep")}))
			for pulse := range 26 { // 1.3 s, so that units arrive at any time between two pulses of the worker
				time.Sleep(order.SendDelay)
				p.Confirm(time.Now())
				synctest.Wait()
				if pulse != 3 {
					continue
				}
				must(t, p.worker("ranker").Ask(t.Context(), func(context.Context) error {
					if n := p.worker("ranker").merger.Waiting(); n > 0 {
						t.Errorf("unit %d waits for longer than %s", i, 4*order.SendDelay)
					}
					return nil
				}))
			}
		}
		must(t, p.Stop())
	})
}

// TestUnitsThatWaitCountOnce lets units wait as during a save: that save must not have counted them, since they are
// read again after a restart.
func TestUnitsThatWaitCountOnce(t *testing.T) {
	t.Parallel()
	cfg := guarded()
	c, _ := cfg.Policy("ranker")
	d := NewWorker("ranker", c, capacity.NewStreamLimit(100), newMemory())
	d.Policy.InBackground()
	d.Policy.Drain(true)
	u := &ingest.Unit{Group: ingest.NewGroup("ranker"), Length: 1, Actions: []ingest.Count{{Name: "keep", N: 1}}}
	for range 2 { // it is delivered again after a rebalance
		if err := d.Observe(t.Context(), u, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	if n := d.guards.Summary().Guards[0].Values; n != 0 {
		t.Errorf("%v units counted while they wait", n)
	}
	d.Policy.Drain(false)
	if err := d.proceed(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := d.guards.Summary().Guards[0].Values; n != 1 {
		t.Errorf("%v units counted, want 1", n)
	}
}

// TestATrippedPolicyIsForgottenOnlyOnRequest looks for groups to forget while a guard has tripped, and then forgets the
// policy on request.
func TestATrippedPolicyIsForgottenOnlyOnRequest(t *testing.T) {
	t.Parallel()
	cfg := guarded()
	n := &noting{memory: *newMemory()}
	store := checkpoint.NewStore(ingesttest.NewSegments(), zerolog.Nop(), prometheus.NewRegistry())
	p := newAlone(t.Context(), &cfg, store, n, prometheus.NewRegistry())
	f := p.Feed(0)
	for i := range int64(3) {
		if err := f.Process(t.Context(), []ingest.Event{acted(i, "drop")}); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Eventually(t, "the guard trips", func() bool {
		s, _ := p.Guards("ranker")
		return s.State == guard.Fallback
	})
	r := p.worker("ranker")
	if err := r.Ask(t.Context(), func(ctx context.Context) error { return r.expire(ctx, time.Now().Add(1000*24*time.Hour)) }); err != nil {
		t.Fatal(err)
	}
	if s, _ := p.Guards("ranker"); s.State != guard.Fallback || len(r.Policy.Summary().Groups) > 0 {
		t.Errorf("state %s, %d groups after they were forgotten: no one has released the guard", s.State, len(r.Policy.Summary().Groups))
	}
	if err := r.Ask(t.Context(), func(ctx context.Context) error { return r.Forget(ctx, testkit.DecisionOf(alerts.Reset, time.Time{})) }); err != nil {
		t.Fatal(err)
	}
	if open := p.worker("ranker"); open != nil {
		t.Error("the policy is not forgotten")
	}
	if s := r.Shown.Load(); len(s.Incidents) != 1 || !s.Incidents[0].Closed {
		t.Errorf("incidents %+v", s.Incidents)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
}

func TestOtherInstancesKnowTheGuardsOfTheirPolicies(t *testing.T) {
	t.Parallel()
	cfg := guarded()
	p := newAlone(t.Context(), &cfg, newMemory(), newMemory(), prometheus.NewRegistry())
	p.Source.Shared = true
	if s, known := p.Guards("ranker"); known {
		t.Errorf("an instance that does not judge the policy answers %+v", s)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
}

// TestValuesThatAGuardLeavesOutAreLogged lets an outcome leave the range from 0 to 1. One log line represents many such
// values.
func TestValuesThatAGuardLeavesOutAreLogged(t *testing.T) {
	t.Parallel()
	cfg := guarded()
	cfg.Policies[0].Guards.Limits = []watch.GuardLimit{{Name: "cost", Outcome: "cost", Share: .1, Alpha: .01, Then: watch.GuardHold}}
	p := newAlone(t.Context(), &cfg, newMemory(), newMemory(), prometheus.NewRegistry())
	var log bytes.Buffer
	p.Log = zerolog.New(&log)
	f := p.Feed(0)
	for i := range int64(20) {
		e := acted(i, "keep")
		e.Outcomes = []ingest.Value{{Name: "cost", X: 2}}
		must(t, f.Process(t.Context(), []ingest.Event{e}))
	}
	testkit.Eventually(t, "all values", func() bool { return p.judged() == 20 })
	must(t, p.worker("ranker").Ask(t.Context(), func(context.Context) error {
		r := p.worker("ranker")
		r.Publish()
		for range 5 {
			warnOfInvalid(r)
		}
		return nil
	}))
	must(t, p.Stop())
	if n := strings.Count(log.String(), `"guard":"cost"`); n < 1 || n > 5 || !strings.Contains(log.String(), `"values":20`) && !strings.Contains(log.String(), `"values":1`) {
		t.Errorf("%d lines of 20 values:\n%s", n, log.String())
	}
}

// TestAnIncidentTripsAGuardOnce hacks the reward. It crashes after the trip, once with a save from before the trip, so
// that the guard trips again, and then with one from after it, and reads the same episodes again. A person releases the
// guard while the incident is open.
func TestAnIncidentTripsAGuardOnce(t *testing.T) {
	t.Parallel()
	c := watch.DefaultConfig()
	c.Direction = watch.Directions{"outcome.*": watch.DirectionUp}
	c.Guards.Limits = []watch.GuardLimit{{Name: "hacking", Causes: []string{string(alerts.CauseRewardHacking)}, Then: watch.GuardHold}}
	const before, all = 600, 900
	var units []*ingest.Unit
	rng := rand.New(rand.NewPCG(19, 5))
	for i := range int64(all) {
		u := ingesttest.Unit("ranker", 0, i, rng)
		u.Numeric = append(u.Numeric, ingest.NamedMoments{Signal: "outcome.satisfaction"})
		satisfied, more := &u.Numeric[len(u.Numeric)-1].Moments, 0.
		if i >= before {
			more = 1
		}
		u.Return, u.Reward.Mean = u.Return+20*more, u.Reward.Mean+more
		for range 5 {
			satisfied.Add(rng.NormFloat64() - more)
		}
		units = append(units, u)
	}
	d := NewWorker("ranker", c, capacity.NewStreamLimit(100), newMemory())
	save := func() ingest.Parts {
		d.lost()
		parts, _, err := d.Changes()
		must(t, err)
		return parts
	}
	crash := func(saved ingest.Parts) {
		d = NewWorker("ranker", c, capacity.NewStreamLimit(100), newMemory())
		must(t, d.restore(saved, time.Now()))
	}
	observe := func(from, to int) {
		for _, u := range units[from:to] {
			must(t, d.Observe(t.Context(), u, time.Now()))
		}
	}
	trips := func() (ids []string) {
		for _, i := range d.tracker.Incidents() {
			if i.Guard() != nil {
				ids = append(ids, i.ID)
			}
		}
		return ids
	}
	at := 0
	var earlier ingest.Parts
	for ; at < all && len(trips()) == 0; at++ {
		observe(at, at+1)
		if at == before {
			earlier = save()
			crash(earlier)
		}
	}
	first := trips()
	if at <= before || at > before+60 || len(first) != 1 {
		t.Fatalf("tripped %v at %d, want once from %d to %d", first, at, before, before+60)
	}
	tripped := *d.guards.Summary()
	if tripped.State != guard.Hold || tripped.Seq != 1 || len(tripped.Events) != 1 || !strings.Contains(tripped.Guards[0].Why, "has the cause reward_hacking: ") {
		t.Errorf("%+v", tripped)
	}
	crash(earlier)
	if s := d.guards.Summary(); s.State != guard.OK || len(s.Events) > 0 || len(trips()) > 0 {
		t.Errorf("before the trip: %+v, %v", s, trips())
	}
	observe(before-50, at) // the earlier ones are known
	if s := *d.guards.Summary(); !reflect.DeepEqual(s, tripped) || !slices.Equal(trips(), first) {
		t.Errorf("read again: %+v and %v, want %+v and %v", s, trips(), tripped, first)
	}
	crash(save())
	observe(at-50, at+25)
	must(t, d.accept(t.Context(), first[0], testkit.DecisionOf(alerts.Released, time.Time{})))
	crash(save())
	observe(at+25, all)
	s := d.guards.Summary()
	if got := trips(); s.State != guard.OK || len(s.Events) != 2 || len(got) != 1 || got[0] != first[0] {
		t.Errorf("incidents of guards %v, %s, %+v; want no more trips", got, s.State, s.Events)
	}
	for _, i := range d.tracker.Incidents() {
		if open := i.Guard() == nil; open == i.Closed || i.Cause != alerts.CauseRewardHacking {
			t.Errorf("incident %+v", i)
		}
	}
}

func TestGuardsKnowTheCausesOfIncidents(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, c := range watch.GuardCauses() {
		known[c] = true
	}
	for _, c := range alerts.Causes() {
		if !known[string(c)] {
			t.Errorf("no limit can name the cause %s", c)
		}
		delete(known, string(c))
	}
	if len(known) > 0 {
		t.Errorf("no incident has the causes %v", known)
	}
}
