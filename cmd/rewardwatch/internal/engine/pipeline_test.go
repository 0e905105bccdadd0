package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/outcome"
)

// memory is a checkpoint store, with effects that do nothing.
type memory struct{ *ingesttest.Store }

func newMemory() *memory { return &memory{ingesttest.NewStore()} }

func (m *memory) Changed(context.Context, []alerts.Change) error { return nil }

func (m *memory) Awaited(context.Context, string) (ledger.Verification, bool) {
	return ledger.Verification{}, false
}

func (m *memory) Appeared(context.Context, string, string) (bool, error) { return false, nil }

func (m *memory) Concluded(context.Context, string, outcome.Verdict) (outcome.Consequence, error) {
	return outcome.NothingFollows, nil
}

func (m *memory) Worsened(context.Context, outcome.Setback) error { return nil }

func (m *memory) Restored(*Workers) {}

func (m *memory) Resumed(context.Context, *Worker) error { return nil }

func (m *memory) Passed(context.Context, *Worker) error { return nil }

func (m *memory) Gone(*Workers) {}

func (m *memory) Forgotten(string) {}

// alone is the pipeline of a single instance, with its workers and its feeds.
type alone struct {
	*Pipeline
	*Telemetry
	workers *Workers
}

func newAlone(ctx context.Context, cfg *Settings, store ingest.CheckpointStore, a Audience, reg prometheus.Registerer) *alone {
	p := NewPipeline(ctx, cfg, nil, nil, a, zerolog.Nop(), reg)
	d := p.NewWorkers(store, 0)
	return &alone{Pipeline: p, Telemetry: NewTelemetry(p, Direct{Workers: d}), workers: d}
}

// logTo makes the partitions keep their units in logs below a directory.
func (a *alone) logTo(directory string) {
	a.Telemetry = NewTelemetry(a.Pipeline, Direct{Workers: a.workers, Log: func(partition int32) string {
		return filepath.Join(directory, fmt.Sprint(partition))
	}})
}

func newTestPipeline(t *testing.T, m *memory) *alone {
	t.Helper()
	cfg := DefaultSettings()
	return newAlone(t.Context(), &cfg, m, m, prometheus.NewRegistry())
}

// judged returns the number of units that the banks have seen.
func (p *Pipeline) judged() int64 {
	n := int64(0)
	for _, s := range p.Summaries() {
		for _, g := range s.Groups {
			n += g.Units
		}
	}
	return n
}

// However a rebalance splits the stream, every unit is judged once.
func TestRebalancesLoseNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	m := newMemory()
	p := newTestPipeline(t, m)
	rng := rand.New(rand.NewPCG(1, 1))
	start := time.Now().Add(-time.Hour)
	const rounds, partitions, each = 12, 3, 120
	next := make([]int64, partitions)
	for range rounds {
		p.Begin(partitions)
		feeds := make([]ingest.Processor, partitions)
		for i := range feeds {
			feeds[i] = p.Feed(int32(i))
		}
		for i, f := range feeds {
			if saved, err := m.Load(fmt.Sprint("partition-", i)); err == nil {
				if err := f.Restore(bytes.NewReader(saved["state"])); err != nil {
					t.Fatal(err)
				}
			}
		}
		for n := 0; n < partitions*each; n++ {
			i := rng.IntN(partitions)
			e := ingesttest.Episode(int32(i), next[i], "ranker", start.Add(time.Duration(next[i])*time.Second))
			if err := feeds[i].Process(t.Context(), []ingest.Event{e}); err != nil {
				t.Fatal(err)
			}
			next[i]++
		}
		p.Ending()
		for i, f := range feeds {
			var image bytes.Buffer
			if err := f.Snapshot(&image); err != nil {
				t.Fatal(err)
			}
			if err := m.Save(fmt.Sprint("partition-", i), ingest.Parts{"state": image.Bytes()}, nil); err != nil {
				t.Fatal(err)
			}
			p.Revoke(int32(i))
		}
	}
	p.Begin(partitions)
	for i := range partitions {
		f := p.Feed(int32(i))
		saved, err := m.Load(fmt.Sprint("partition-", i))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.Restore(bytes.NewReader(saved["state"])), f.Idle(t.Context(), time.Now())); err != nil {
			t.Fatal(err)
		}
	}
	const want = rounds * partitions * each
	testkit.Eventually(t, "every unit", func() bool { return p.judged() >= want })
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if got := p.judged(); got != want {
		t.Errorf("%d units judged, want %d", got, want)
	}
}

// A policy whose telemetry has a clock is judged beside one without a clock, and beside a unit from the future.
func TestPoliciesDoNotHoldEachOtherUp(t *testing.T) {
	t.Parallel()
	p := newTestPipeline(t, newMemory())
	defer func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	}()
	clocked := p.Feed(0)
	clockless := p.Feed(1)
	start := time.Now().Add(-time.Hour)
	for i := range int64(500) {
		e := ingesttest.Episode(0, i, "ranker", start.Add(time.Duration(i)*time.Second))
		if i == 100 {
			e.TS = time.Now().Add(24 * time.Hour).UnixNano()
		}
		other := ingesttest.Episode(1, i, "lander", time.Unix(0, 0))
		other.TS = 0
		if err := errors.Join(clocked.Process(t.Context(), []ingest.Event{e}), clockless.Process(t.Context(), []ingest.Event{other})); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(clocked.Idle(t.Context(), time.Now()), clockless.Idle(t.Context(), time.Now())); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "both policies", func() bool { return p.judged() == 1000 })
}

// The delay of a unit counts once it is judged, even if it has waited for the calibration of the baseline, but not if
// it has no clock.
func TestDelayOfUnits(t *testing.T) {
	t.Parallel()
	p := newTestPipeline(t, newMemory())
	f := p.Feed(0)
	const old, fresh, clockless = 550, 150, 20
	for i := range int64(old + fresh + clockless) {
		e := ingesttest.Episode(0, i, "ranker", time.Now().Add(-10*time.Minute+time.Duration(i)*time.Millisecond))
		switch {
		case i >= old+fresh:
			e.TS = 0
		case i >= old:
			e.TS = time.Now().Add(-20 * time.Second).UnixNano()
		}
		if err := f.Process(t.Context(), []ingest.Event{e}); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Idle(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "every unit", func() bool { return p.judged() == old+fresh+clockless })
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	shown := collected(t, p.Metrics.delay)
	got := map[float64]uint64{}
	for _, b := range shown.GetHistogram().GetBucket() {
		got[b.GetUpperBound()] = b.GetCumulativeCount()
	}
	if got[15] != 0 || got[alerts.FreshWithin] != fresh || got[300] != fresh || got[1800] != old+fresh || shown.GetHistogram().GetSampleCount() != old+fresh {
		t.Errorf("%d delays, by their bounds %v", shown.GetHistogram().GetSampleCount(), got)
	}
}

func TestFailedSaveIsTriedAgainAndReported(t *testing.T) {
	t.Parallel()
	m := newMemory()
	m.Fill()
	p := newTestPipeline(t, m)
	f := p.Feed(0)
	if err := f.Process(t.Context(), []ingest.Event{ingesttest.Episode(0, 1, "ranker", time.Now())}); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the unit", func() bool { return p.judged() == 1 })
	if err := p.Stop(); !errors.Is(err, ingesttest.ErrDiskFull) {
		t.Errorf("a stop that could not save gives %v", err)
	}
	r := p.All()[0]
	m.Free()
	if err := r.save(); err != nil || m.Saves() != 1 {
		t.Errorf("the second try made %d saves, error %v", m.Saves(), err)
	}
}

// Names that come and go must not cost a goroutine and a file each.
func TestPoliciesBeyondTheLimitAreDropped(t *testing.T) {
	t.Parallel()
	m := newMemory()
	cfg := DefaultSettings()
	cfg.Limits.Streams = 10
	p := newAlone(t.Context(), &cfg, m, m, prometheus.NewRegistry())
	f := p.Feed(0)
	start := time.Now().Add(-time.Hour)
	for i := range int64(2000) {
		e := ingesttest.Episode(0, i, fmt.Sprint("policy-", i), start)
		if err := f.Process(t.Context(), []ingest.Event{e}); err != nil {
			t.Fatal(err)
		}
		if i < 20 { // so that the first ones are counted before the others arrive
			testkit.Eventually(t, "the first policies", func() bool { return p.judged() >= min(i+1, 6) })
		}
	}
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if n := len(p.All()); n > 20 {
		t.Errorf("%d policies are watched at a limit of 10 streams", n)
	}
}

// A partition that waits for another one stops waiting immediately when the generation ends.
func TestStopDoesNotWaitForOtherPartitions(t *testing.T) {
	p := newTestPipeline(t, newMemory())
	ahead := p.Feed(0)
	p.Feed(1) // never read
	start := time.Now().Add(-time.Hour)
	stuck := make(chan error, 1)
	began := make(chan struct{})
	go func() {
		for i := range int64(FeedBacklog + 10) {
			if i == FeedBacklog-1 {
				close(began)
			}
			if err := ahead.Process(context.WithoutCancel(t.Context()), []ingest.Event{ingesttest.Episode(0, i, "ranker", start.Add(time.Duration(i)*time.Millisecond))}); err != nil {
				stuck <- err
				return
			}
		}
		stuck <- nil
	}()
	<-began
	ended := time.Now()
	p.Ending()
	if err := <-stuck; err != nil {
		t.Error(err)
	}
	if took := time.Since(ended); took > 10*time.Second {
		t.Errorf("the partition let go after %s", took)
	}
	p.Revoke(1)
	p.Revoke(0)
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
}

// While nothing can be saved, reading continues until so much is unsaved that it waits. Once the disk has room again,
// it continues and has lost nothing; a stop ends the wait.
func TestReadingWaitsForAFullDisk(t *testing.T) {
	t.Parallel()
	for _, freed := range []bool{true, false} {
		m := newMemory()
		m.Fill()
		p := newTestPipeline(t, m)
		p.unsafeBacklog = 20_000
		p.Cfg.Checkpoint.Every = model.Duration(100 * time.Millisecond)
		f := p.Feed(0)
		const batches = 21
		var read atomic.Int64
		done := make(chan error, 1)
		go func() {
			batch := make([]ingest.Event, 1000)
			for i := range int64(batches) {
				for k := range batch {
					batch[k] = ingesttest.Episode(0, 1000*i+int64(k), "ranker", time.Now().Add(-time.Minute))
				}
				if err := f.Process(t.Context(), batch); err != nil {
					done <- err
					return
				}
				read.Add(1)
			}
			done <- nil
		}()
		testkit.Eventually(t, "a full backlog", func() bool { return read.Load() == batches-1 })
		select {
		case err := <-done:
			t.Fatalf("reading did not wait: %v", err)
		case <-time.After(3 * WorkerPulse):
		}
		if freed {
			m.Free()
		} else {
			p.Ending() // as in a rebalance or a stop
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if freed {
			testkit.Eventually(t, "every unit", func() bool { return p.judged() == 1000*batches })
		}
		if err := p.Stop(); (err == nil) != freed {
			t.Errorf("the stop ends with %v", err)
		}
	}
}

// A partition waits for others but not for itself: it reports its own progress after the batch.
func TestPartitionDoesNotWaitForItself(t *testing.T) {
	t.Parallel()
	const units = 2 * FeedBacklog
	start := time.Now().Add(-time.Hour)
	batch := make([]ingest.Event, units)
	for i := range batch {
		batch[i] = ingesttest.Episode(0, int64(i), "ranker", start.Add(time.Duration(i)*time.Millisecond))
	}
	m := newMemory()
	p := newTestPipeline(t, m)
	within := func(what string, do func() error) {
		t.Helper()
		done := make(chan error, 1)
		go func() { done <- do() }()
		select {
		case err := <-done:
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		case <-time.After(2 * time.Minute):
			t.Fatalf("%s waits for itself", what)
		}
	}
	assign := func() (feeds [2]ingest.Processor) {
		p.Begin(2)
		for i := range feeds {
			feeds[i] = p.Feed(int32(i))
		}
		if err := feeds[1].Idle(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
		return feeds
	}
	feeds := assign()
	within("a large message", func() error { return feeds[0].Process(t.Context(), batch) })
	var image bytes.Buffer
	if err := feeds[0].Snapshot(&image); err != nil {
		t.Fatal(err)
	}
	p.Ending()
	p.Revoke(0)
	p.Revoke(1)
	feeds = assign()
	within("a restore", func() error { return feeds[0].Restore(&image) })
	if err := errors.Join(feeds[0].Idle(t.Context(), time.Now()), feeds[1].Idle(t.Context(), time.Now())); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "every unit", func() bool { return p.judged() >= units })
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if got := p.judged(); got != units {
		t.Errorf("%d units judged, want %d", got, units)
	}
}
