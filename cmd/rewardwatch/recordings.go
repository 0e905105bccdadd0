package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/assemble"
)

// recordings gives the units of the recorded telemetry that baselines are taken from: files, and ranges of what is read.
// Each is read once.
type recordings struct {
	cfg    *Config
	pinned rangeReader
	mu     sync.Mutex
	read   map[string]map[string][]*ingest.Unit // by source and policy
	gone   map[string]error                     // by source, of those that will never be read
}

func newRecordings(cfg *Config, pinned rangeReader) *recordings {
	return &recordings{cfg: cfg, pinned: pinned, read: map[string]map[string][]*ingest.Unit{}, gone: map[string]error{}}
}

// teach gives a new bank its baseline from the recording that its configuration names, if it names one.
func (r *recordings) teach(ctx context.Context, p *bank.Policy, name string, cfg bank.Config) error {
	if cfg.Baseline.From == bank.FromWarmup {
		return nil
	}
	units, err := r.units(ctx, cfg.Baseline)
	if err != nil {
		return fmt.Errorf("baseline of policy %q: %w", name, err)
	}
	for _, u := range units[name] {
		p.Learn(u)
	}
	p.Accept(time.Now())
	return nil
}

// readAll reads every recording that the configuration names, so that a missing one is found at the start. Pinned
// offsets of policies that have been seen are not looked for: their baselines are part of the saved state, and the topic
// need not hold their telemetry for ever.
func (r *recordings) readAll(ctx context.Context, seen []string) error {
	return r.readSome(ctx, func(i int) bool {
		return slices.ContainsFunc(seen, func(policy string) bool { return r.cfg.entry(policy) == i })
	})
}

// readFiles reads the recordings that are files, and leaves what is pinned for the policies that need it.
func (r *recordings) readFiles(ctx context.Context) error {
	return r.readSome(ctx, func(int) bool { return true })
}

// readSome reads the recordings of the entries that have one, but for pinned ones of those that are known.
func (r *recordings) readSome(ctx context.Context, known func(entry int) bool) error {
	for i, p := range r.cfg.Policies {
		if p.Baseline.From == bank.FromWarmup || p.Baseline.From == bank.FromPinned && known(i) {
			continue
		}
		if _, err := r.units(ctx, p.Baseline); err != nil {
			return fmt.Errorf("baseline of policies %q: %w", p.Match, err)
		}
	}
	return nil
}

// errPinned says that the recording that a baseline is taken from cannot be read, and errPinnedGone that it never will.
var (
	errPinned     = errors.New("the pinned offsets cannot be read")
	errPinnedGone = errors.New("the pinned offsets are of no use any more")
)

// units gives the units of a recording by policy. Of pinned offsets the error is errPinned or errPinnedGone.
func (r *recordings) units(ctx context.Context, from bank.BaselineConfig) (map[string][]*ingest.Unit, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	source := fmt.Sprint(from.File, from.Offsets)
	if units, err := r.read[source], r.gone[source]; units != nil || err != nil {
		return units, err
	}
	units := map[string][]*ingest.Unit{}
	keep := func(u *ingest.Unit) { units[u.Group.Policy] = append(units[u.Group.Policy], u) }
	var err error
	if from.From == bank.FromPinned {
		if err = r.readPinned(ctx, from.Offsets, keep); errors.Is(err, errPinnedGone) {
			r.gone[source] = err
		}
	} else {
		c := newCollector(r.cfg, keep)
		_, err = ingest.ReadFiles(ctx, ingest.FilesConfig{}, []string{from.File}, &c)
	}
	if err != nil {
		return nil, err
	}
	r.read[source] = units
	return units, nil
}

// errNoPinnedUnit says that pinned offsets are of no use.
var errNoPinnedUnit = errors.New("no whole episode lies within the pinned offsets")

// readPinned reads ranges, each by itself: what lies between two of them is missing.
func (r *recordings) readPinned(ctx context.Context, ranges []ingest.Range, emit func(*ingest.Unit)) error {
	found := false
	for _, of := range ranges {
		x := newExcerpt(r.cfg, func(u *ingest.Unit) {
			found = true
			emit(u)
		})
		if err := r.pinned(ctx, of, x); errors.Is(err, ingest.ErrRangeGone) {
			return fmt.Errorf("%w: %w", errPinnedGone, err)
		} else if err != nil {
			return fmt.Errorf("%w: %w", errPinned, err)
		}
	}
	if !found {
		return fmt.Errorf("%w: %w", errPinnedGone, errNoPinnedUnit)
	}
	return nil
}

// collector is a processor that hands the units on. Without an assembler it does nothing.
type collector struct {
	episodes *assemble.Assembler
	emit     func(*ingest.Unit)
}

func newCollector(cfg *Config, emit func(*ingest.Unit)) collector {
	return collector{episodes: newAssembler(cfg, assemble.NewMetrics(unregistered{})), emit: emit}
}

// Process implements ingest.Processor.
func (c *collector) Process(_ context.Context, batch []ingest.Event) error {
	if c.episodes == nil {
		return nil
	}
	for i := range batch {
		c.episodes.Fold(&batch[i], c.emit)
	}
	return nil
}

// Idle, Snapshot and Restore implement ingest.Processor; a recording has no state to keep.
func (c *collector) Idle(context.Context, time.Time) error { return nil }

// Snapshot implements ingest.Processor.
func (c *collector) Snapshot(io.Writer) error { return nil }

// Restore implements ingest.Processor.
func (c *collector) Restore(io.Reader) error { return nil }
