package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/assemble"
)

// recordings gives the units of the recorded telemetry that baselines are taken from. A file is read once.
type recordings struct {
	cfg   *Config
	mu    sync.Mutex
	files map[string]map[string][]*ingest.Unit // by file and policy
}

func newRecordings(cfg *Config) *recordings {
	return &recordings{cfg: cfg, files: map[string]map[string][]*ingest.Unit{}}
}

// teach gives a new bank its baseline from the file that its configuration names, if it names one.
func (r *recordings) teach(ctx context.Context, p *bank.Policy, name string, cfg bank.Config) error {
	if cfg.Baseline.From != bank.FromFile {
		return nil
	}
	units, err := r.units(ctx, cfg.Baseline.File)
	if err != nil {
		return fmt.Errorf("baseline of policy %q: %w", name, err)
	}
	for _, u := range units[name] {
		p.Learn(u)
	}
	p.Accept(time.Now())
	return nil
}

// readAll reads every file that the configuration names, so that a missing one is found at the start.
func (r *recordings) readAll() error {
	for _, p := range r.cfg.Policies {
		if p.Baseline.From == bank.FromFile {
			if _, err := r.units(context.Background(), p.Baseline.File); err != nil {
				return fmt.Errorf("baseline of policies %q: %w", p.Match, err)
			}
		}
	}
	return nil
}

func (r *recordings) units(ctx context.Context, file string) (map[string][]*ingest.Unit, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if units := r.files[file]; units != nil {
		return units, nil
	}
	c := &collector{episodes: newAssembler(r.cfg, assemble.NewMetrics(unregistered{})), units: map[string][]*ingest.Unit{}}
	if _, err := ingest.ReadFiles(ctx, ingest.FilesConfig{}, []string{file}, c); err != nil {
		return nil, err
	}
	r.files[file] = c.units
	return c.units, nil
}

// collector is a processor that keeps the units.
type collector struct {
	episodes *assemble.Assembler
	units    map[string][]*ingest.Unit
}

// Process implements ingest.Processor.
func (c *collector) Process(_ context.Context, batch []ingest.Event) error {
	for i := range batch {
		c.episodes.Fold(&batch[i], func(u *ingest.Unit) {
			c.units[u.Group.Policy] = append(c.units[u.Group.Policy], u)
		})
	}
	return nil
}

// Idle, Snapshot and Restore implement ingest.Processor; a file has no state to keep.
func (c *collector) Idle(context.Context) error { return nil }

// Snapshot implements ingest.Processor.
func (c *collector) Snapshot(io.Writer) error { return nil }

// Restore implements ingest.Processor.
func (c *collector) Restore(io.Reader) error { return nil }
