// Package enginetest provides a standalone engine for tests.
package enginetest

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/outcome"
)

// Memory is a checkpoint store, and an audience that ignores everything.
type Memory struct{ *ingesttest.Store }

// NewMemory returns an empty Memory.
func NewMemory() *Memory { return &Memory{ingesttest.NewStore()} }

// Changed implements engine.Audience, as do the methods below.
func (m *Memory) Changed(context.Context, []alerts.Change) error { return nil }

// Awaited reports that no verification is awaited.
func (m *Memory) Awaited(context.Context, string) (ledger.Verification, bool) {
	return ledger.Verification{}, false
}

// Appeared reports that no request waits for a version.
func (m *Memory) Appeared(context.Context, string, string) (bool, error) { return false, nil }

// Concluded returns no consequence.
func (m *Memory) Concluded(context.Context, string, outcome.Verdict) (outcome.Consequence, error) {
	return outcome.NothingFollows, nil
}

// Worsened does nothing.
func (m *Memory) Worsened(context.Context, outcome.Setback) error { return nil }

// Restored does nothing.
func (m *Memory) Restored(*engine.Workers) {}

// Resumed does nothing.
func (m *Memory) Resumed(context.Context, *engine.Worker) error { return nil }

// Passed does nothing.
func (m *Memory) Passed(context.Context, *engine.Worker) error { return nil }

// Gone does nothing.
func (m *Memory) Gone(*engine.Workers) {}

// Forgotten does nothing.
func (m *Memory) Forgotten(string) {}

// Alone is the pipeline of a standalone instance, with its workers and its feeds.
type Alone struct {
	*engine.Pipeline
	*engine.Telemetry
	Workers *engine.Workers
}

// NewAlone returns an Alone that saves to store.
func NewAlone(ctx context.Context, cfg *engine.Settings, store ingest.CheckpointStore, a engine.Audience, reg prometheus.Registerer) *Alone {
	p := engine.NewPipeline(ctx, cfg, nil, nil, a, zerolog.Nop(), reg)
	d := p.NewWorkers(store, 0)
	return &Alone{Pipeline: p, Telemetry: engine.NewTelemetry(p, engine.Direct{Workers: d}), Workers: d}
}

// Judged returns the number of units that the banks of a pipeline have seen.
func Judged(p *engine.Pipeline) int64 {
	n := int64(0)
	for _, s := range p.Summaries() {
		for _, g := range s.Groups {
			n += g.Units
		}
	}
	return n
}

// Drift feeds 560 units of the policy "ranker", one per second. The last 60 drift and open an incident. It returns the
// processor of the partition and the time of the newest unit.
func (p *Alone) Drift(t *testing.T) (ingest.Processor, time.Time) {
	t.Helper()
	f := p.Feed(0)
	start := time.Now().Add(-time.Hour)
	for _, e := range ingesttest.Drift(start) {
		if err := f.Process(t.Context(), []ingest.Event{e}); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Eventually(t, "an incident", func() bool {
		return Judged(p.Pipeline) == 560 && len(p.All()[0].Worker.Shown.Load().Incidents) == 1
	})
	return f, start.Add(559 * time.Second)
}
