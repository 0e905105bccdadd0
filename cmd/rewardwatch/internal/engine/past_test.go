package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/budget"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

// waiting returns the worker of a policy, one of whose groups waits for a calibration, which in turn waits for a core
// until the service is to stop.
func waiting(t *testing.T) (_ *Pipeline, _ *RunningWorker, group ingest.Group, stop func()) {
	t.Helper()
	a := newTestPipeline(t, newMemory())
	r, err := a.workers.Worker(t.Context(), "p")
	if err != nil {
		t.Fatal(err)
	}
	var cores []*budget.Turn
	for range runtime.GOMAXPROCS(0) {
		cores = append(cores, a.calibrations.Enter("another", 0))
	}
	rng, waits := rand.New(rand.NewPCG(1, 3)), false
	err = r.Ask(t.Context(), func(context.Context) error {
		for i := range int64(101) {
			u := ingesttest.Unit("p", 0, i, rng)
			u.Pos, group = ingest.Position{Offset: i}, u.Group
			r.Policy.Observe(u, time.Time{})
		}
		waits = r.Policy.Calibrating()
		return nil
	})
	if err != nil || !waits {
		t.Fatalf("%v; a group waits: %v", err, waits)
	}
	return a.Pipeline, r, group, func() {
		for _, core := range cores {
			core.Leave()
		}
		if err := a.Stop(); err != nil {
			t.Error(err)
		}
	}
}

// Reading the history of a group does not wait for a calibration, nor hurry any: the policy judges its other groups in
// the meantime.
func TestPastIsReadWhileGroupsWaitForCalibrations(t *testing.T) {
	p, _, group, stop := waiting(t)
	defer stop()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	answer := make(chan error, 1)
	go func() {
		past, err := History(ctx, p, group)
		if n := len(past.Of("return")); err == nil && n == 0 {
			t.Error("nothing of the 100 units that were judged")
		}
		answer <- err
	}()
	select {
	case err := <-answer:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the page waits for a calibration, longer than it was to")
	}
}

// A decision that calibrations delay for longer than its person waits is not carried out later, and does not block the
// units of other groups any longer.
func TestDecisionIsNotCarriedOutLater(t *testing.T) {
	_, r, group, stop := waiting(t)
	defer stop()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	answer, ran := make(chan error, 1), atomic.Bool{}
	go func() {
		answer <- r.Ask(ctx, func(context.Context) error {
			ran.Store(true)
			return nil
		})
	}()
	select {
	case err := <-answer:
		if !errors.Is(err, ErrBusy) {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("a decision waits for a calibration, longer than it was to")
	}
	if _, _, err := r.history(t.Context(), group); err != nil { // once the worker is idle again
		t.Error(err)
	}
	if ran.Load() {
		t.Error("the decision was carried out all the same")
	}
}
