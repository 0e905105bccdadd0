package engine

import (
	"context"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"gonum.org/v1/gonum/stat"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/checkpoint"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

// hangingStore does not read parts while it hangs.
type hangingStore struct {
	*checkpoint.Store
	hangs  atomic.Bool
	asked  chan struct{}
	leaves chan struct{}
}

func (h *hangingStore) LoadParts(name string, parts []string) (ingest.Parts, error) {
	if h.hangs.Load() {
		h.asked <- struct{}{}
		<-h.leaves
	}
	return h.Store.LoadParts(name, parts)
}

// ofEnv returns an episode of the policy ranker in an environment.
func ofEnv(offset int64, env string) ingest.Event {
	e := ingesttest.Episode(0, offset, "ranker", time.Now().Add(-time.Minute))
	if e.Env = env; env == "us" {
		e.Return += 10
	}
	return e
}

// twoGroups returns a service with two groups of one policy, which have provisional baselines.
func twoGroups(t *testing.T) (*alone, *Pipeline, ingest.Processor, *hangingStore) {
	t.Helper()
	cfg := DefaultSettings()
	cfg.Checkpoint.Every = 1 << 60
	store := &hangingStore{
		Store: checkpoint.NewStore(ingesttest.NewSegments(), zerolog.Nop(), prometheus.NewRegistry()),
		asked: make(chan struct{}), leaves: make(chan struct{}),
	}
	p := newAlone(t.Context(), &cfg, store, newMemory(), prometheus.NewRegistry())
	f := p.Feed(0)
	for i := range int64(240) {
		if err := f.Process(t.Context(), []ingest.Event{ofEnv(i, []string{"eu", "us"}[i%2])}); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Eventually(t, "units", func() bool { return p.judged() == 240 && len(p.Summaries()[0].Groups) == 2 })
	return p, p.Pipeline, f, store
}

// Reading the values of a baseline does not wait for other work of the policy.
func TestBaselinesAreReadWhileThePolicyIsBusy(t *testing.T) {
	t.Parallel()
	p, a, _, _ := twoGroups(t)
	r := p.All()[0]
	ids := []string{p.Summaries()[0].Groups[0].Baseline.ID, p.Summaries()[0].Groups[1].Baseline.ID}
	err := r.Ask(t.Context(), func(context.Context) error {
		r.evict([]ingest.Group{p.Summaries()[0].Groups[1].Group})
		return nil
	})
	if err != nil || p.Memory.residents.Evicted() != 1 {
		t.Fatal(err, p.Memory.residents.Evicted())
	}
	busy, idle := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- r.Ask(t.Context(), func(context.Context) error {
			close(busy)
			<-idle
			return nil
		})
	}()
	<-busy
	var details [][]finding.QuantitySample
	for i, id := range ids {
		sample, err := a.Sample(t.Context(), id)
		if err != nil || len(sample) == 0 || len(sample[0].Values) != p.Summaries()[0].Groups[i].Baseline.Units {
			t.Fatalf("%v: %+v", err, sample)
		}
		details = append(details, sample)
	}
	close(idle)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	mean := func(sample []finding.QuantitySample) float64 {
		at := slices.IndexFunc(sample, func(q finding.QuantitySample) bool { return q.Signal == "return" })
		return stat.Mean(sample[at].Values, nil)
	}
	if math.Abs(mean(details[1])-mean(details[0])-10) > .5 {
		t.Errorf("the returns differ by 10, and their means are %v and %v", mean(details[0]), mean(details[1]))
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
}

// While values are read from a checkpoint that hangs, all other groups of the policy are judged.
func TestJudgingGoesOnWhileBaselinesAreRead(t *testing.T) {
	t.Parallel()
	p, a, f, store := twoGroups(t)
	r := p.All()[0]
	gone := p.Summaries()[0].Groups[0]
	err := r.Ask(t.Context(), func(context.Context) error {
		r.evict([]ingest.Group{gone.Group})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	store.hangs.Store(true)
	answers := make(chan error, 4)
	for range cap(answers) {
		go func() {
			_, err := a.Sample(t.Context(), gone.Baseline.ID)
			answers <- err
		}()
	}
	<-store.asked
	for i := range int64(100) {
		if err := f.Process(t.Context(), []ingest.Event{ofEnv(240+i, "us")}); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Sample(t.Context(), p.Summaries()[0].Groups[1].Baseline.ID); err != nil {
			t.Fatalf("the baseline of a group in memory: %v", err)
		}
	}
	testkit.Eventually(t, "all units", func() bool { return p.judged() == 340 })
	store.hangs.Store(false)
	close(store.leaves)
	for range cap(answers) {
		if err := <-answers; err != nil {
			t.Errorf("the baseline of an evicted group: %v", err)
		}
	}
	if p.Memory.residents.Evicted() != 1 {
		t.Error("reading has brought back the group")
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
}

// What is offered to readers follows the group: through a reset, an eviction, a restoration and its end.
func TestSamplesFollowTheGroup(t *testing.T) {
	t.Parallel()
	p, a, f, _ := twoGroups(t)
	r := p.All()[0]
	first := p.Summaries()[0].Groups[0]
	want, err := a.Sample(t.Context(), first.Baseline.ID)
	if err != nil {
		t.Fatal(err)
	}
	same := func(when string) {
		t.Helper()
		got, err := a.Sample(t.Context(), first.Baseline.ID)
		if err != nil || !slices.EqualFunc(got, want, func(a, b finding.QuantitySample) bool {
			return a.Signal == b.Signal && a.Quantity == b.Quantity && slices.Equal(a.Values, b.Values)
		}) {
			t.Errorf("%s: %v, %v", when, got, err)
		}
	}
	evictAll(t, r)
	same("evicted")
	if err := f.Process(t.Context(), []ingest.Event{ofEnv(1000, "eu")}); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "it is back", func() bool { return p.judged() == 241 })
	same("back")
	if _, err := a.Reset(t.Context(), "ranker", first.Group.Map(), testkit.DecisionOf("reset", time.Time{})); err != nil {
		t.Fatal(err)
	}
	same("of the past")
	evictAll(t, r)
	same("of the past, evicted")
	if err := r.Ask(t.Context(), func(context.Context) error { r.Policy.Forget([]ingest.Group{first.Group}); return nil }); err != nil {
		t.Fatal(err)
	}
	if got, err := a.Sample(t.Context(), first.Baseline.ID); err == nil {
		t.Errorf("of a group that is forgotten: %v", got)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
}
