package engine

import (
	"context"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

// Who looks at the past of a group waits for no calibration, and hurries none: the policy judges its other groups
// meanwhile.
func TestPastIsReadWhileGroupsWaitForCalibrations(t *testing.T) {
	a := newTestPipeline(t, newMemory())
	r, err := a.workers.Worker(t.Context(), "p")
	if err != nil {
		t.Fatal(err)
	}
	for range runtime.GOMAXPROCS(0) { // no core is free
		turn := a.calibrations.Enter("another", 0)
		defer turn.Leave()
	}
	rng := rand.New(rand.NewPCG(1, 3))
	var group ingest.Group
	waits := false
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
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	answer := make(chan error, 1)
	go func() {
		past, err := History(ctx, a.Pipeline, group)
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
