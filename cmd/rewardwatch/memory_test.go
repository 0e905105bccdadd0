package main

import (
	"bytes"
	"context"
	"encoding/gob"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/model"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/checkpoint"
)

// The fleet that is held against a ceiling: all groups see the same values, so that one calibration does for all, but for
// every so many, which drift.
const (
	ceilingPolicies = 12
	ceilingGroups   = 8
	ceilingDrifting = 16
	ceilingBurst    = 30 // units of a group in a row
)

// inUseNow is what the process takes once the garbage is collected.
func inUseNow() int64 {
	runtime.GC()
	c := newCeiling(0, prometheus.NewRegistry())
	c.measure()
	return c.inUse()
}

// ceilingRun is how a fleet was judged.
type ceilingRun struct {
	shown              map[string]string // by policy
	most               int64             // bytes in use after collecting the garbage
	evicted            int               // groups, in the end
	evictions, returns float64
}

// underCeiling judges the fleet with a limit of memory.
func underCeiling(t *testing.T, calibrations *bank.Calibrations, limit ingest.ByteSize, rounds int64) (out ceilingRun) {
	t.Helper()
	directory, err := checkpoint.NewDirectory(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer directory.Close()
	cfg := DefaultConfig()
	cfg.Limits.Memory, cfg.Checkpoint.Every = limit, model.Duration(time.Second)
	cfg.Policies = []PolicyConfig{{Match: "*", Config: bank.DefaultConfig()}}
	cfg.Policies[0].Baseline.Units = 100
	store := checkpoint.NewStore(directory, zerolog.Nop(), prometheus.NewRegistry())
	p := newPipeline(context.Background(), &cfg, store, newMemory(), zerolog.Nop(), prometheus.NewRegistry())
	p.calibrations = calibrations
	watching, stop := context.WithCancel(context.Background())
	var watch sync.WaitGroup
	watch.Go(func() { p.watchMemory(watching) })
	defer watch.Wait()
	defer stop()

	feed, handed := p.assign(0), int64(0)
	rngs := make([]*rand.Rand, ceilingPolicies*ceilingGroups)
	for i := range rngs {
		rngs[i] = rand.New(rand.NewPCG(1, 1))
	}
	for round := range rounds {
		for i, rng := range rngs {
			for k := range int64(ceilingBurst) {
				n := round*ceilingBurst + k
				u := benchUnit(fmt.Sprint("policy-", i/ceilingGroups), i%ceilingGroups, n, rng)
				u.Pos = ingest.Position{Offset: handed}
				u.First, u.Last, u.Agent = u.Pos, u.Pos, "agent"
				if i%ceilingDrifting == 0 && n >= 102 {
					u.Reward.Mean -= 2
					u.Return -= 2 * float64(u.Length)
				}
				if err := feed.hand(t.Context(), u); err != nil {
					t.Fatal(err)
				}
				handed++
			}
			for w := feed.known[fmt.Sprint("policy-", i/ceilingGroups)]; w.waiting.Load() > 0; { // units take memory too
				time.Sleep(time.Millisecond)
			}
			if i%ceilingGroups == 0 { // as the consumer does from time to time, and units that are safe are let go of
				if err := feed.Snapshot(new(bytes.Buffer)); err != nil {
					t.Fatal(err)
				}
				out.most = max(out.most, inUseNow())
			}
		}
	}
	for p.judged() < handed {
		time.Sleep(10 * time.Millisecond)
	}
	out.most = max(out.most, inUseNow())
	out.evicted = p.memory.residents.Evicted()
	out.evictions, out.returns = testutil.ToFloat64(p.memory.evictions), testutil.ToFloat64(p.memory.returns)
	out.shown = shownIn(t, p)
	return out
}

// besideGroups is what the process takes that is neither there at the start nor groups: units on their way, what is just being
// written and read, stacks.
const besideGroups = 20 << 20

// With a ceiling that has room for a tenth of what the groups take, all is found that is found without, and memory stays
// below it.
func TestTheCeilingHolds(t *testing.T) {
	rounds := int64(4)
	before := inUseNow()
	calibrations := bank.NewCalibrations()
	want := underCeiling(t, calibrations, 64*ingest.GiB, rounds)
	groups := want.most - before
	limit := ingest.ByteSize(before + groups/10 + besideGroups)
	if int64(limit) > want.most/2 {
		t.Fatalf("%d bytes are no ceiling for %d", limit, want.most)
	}
	begun := time.Now()
	got := underCeiling(t, calibrations, limit, rounds)
	t.Logf("%d KiB before, %d KiB of groups; with a ceiling of %d KiB at most %d KiB; %g evictions, %g returns, %d groups of %d evicted in the end; %v",
		before>>10, groups>>10, limit>>10, got.most>>10, got.evictions, got.returns, got.evicted, ceilingPolicies*ceilingGroups, time.Since(begun))
	if got.most > int64(limit) {
		t.Errorf("%d bytes in use, above the ceiling of %d", got.most, limit)
	}
	if got.evicted < ceilingPolicies*ceilingGroups*3/4 || got.returns < 100 || want.evictions > 0 {
		t.Errorf("%d groups were evicted in the end, %g came back; without a ceiling %g were evicted", got.evicted, got.returns, want.evictions)
	}
	incidents := 0
	for policy, state := range want.shown {
		if got.shown[policy] != state {
			t.Errorf("policy %s is another", policy)
		}
		var shown shownState
		if err := gob.NewDecoder(strings.NewReader(state)).Decode(&shown); err != nil {
			t.Fatal(err)
		}
		incidents += len(shown.Incidents)
	}
	if incidents < ceilingPolicies*ceilingGroups/ceilingDrifting {
		t.Errorf("%d incidents, too few", incidents)
	}
}
