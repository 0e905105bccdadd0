package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/order"
	"github.com/rewardwatch/rewardwatch/ingest/recording"
)

// Recordings reads the units of the recorded telemetry from which baselines are taken: files, and ranges of the
// telemetry topic. Each recording is read once.
type Recordings struct {
	cfg    *Settings
	Pinned RangeReader
	mu     sync.Mutex
	read   map[string]map[string][]*ingest.Unit // by source and policy
	gone   map[string]error                     // by source, the errors of recordings that can never be read
}

// NewRecordings returns the recordings that a configuration names. pinned reads offsets.
func NewRecordings(cfg *Settings, pinned RangeReader) *Recordings {
	return &Recordings{cfg: cfg, Pinned: pinned, read: map[string]map[string][]*ingest.Unit{}, gone: map[string]error{}}
}

// Teach sets the baseline of a new bank from the recording that its configuration names, if it names one.
func (r *Recordings) Teach(ctx context.Context, p *bank.Policy, name string, cfg watch.Config) error {
	if cfg.Baseline.From == watch.FromWarmup {
		return nil
	}
	units, err := r.Units(ctx, cfg.Baseline)
	if err != nil {
		return fmt.Errorf("baseline of policy %q: %w", name, err)
	}
	for _, u := range units[name] {
		p.Learn(u)
	}
	p.Accept(time.Now())
	return nil
}

// ReadAll reads every recording that the configuration names, so that a missing one is reported at startup. It skips
// the pinned offsets of the policies in seen: their baselines are part of the saved state, and the topic no longer
// needs to have their telemetry.
func (r *Recordings) ReadAll(ctx context.Context, seen []string) error {
	return r.readSome(ctx, func(i int) bool {
		return slices.ContainsFunc(seen, func(policy string) bool { return r.cfg.entry(policy) == i })
	})
}

// ReadFiles reads the recordings that are files. Pinned offsets are read when a policy needs them.
func (r *Recordings) ReadFiles(ctx context.Context) error {
	return r.readSome(ctx, func(int) bool { return true })
}

// readSome reads the recordings of the entries that have one, except for the pinned ones of known entries.
func (r *Recordings) readSome(ctx context.Context, known func(entry int) bool) error {
	for i, p := range r.cfg.Policies {
		if p.Baseline.From == watch.FromWarmup || p.Baseline.From == watch.FromPinned && known(i) {
			continue
		}
		if _, err := r.Units(ctx, p.Baseline); err != nil {
			return fmt.Errorf("baseline of policies %q: %w", p.Match, err)
		}
	}
	return nil
}

// errPinned means that the recording of a baseline cannot be read now, and errPinnedGone that it can never be read.
var (
	errPinned     = errors.New("the pinned offsets cannot be read")
	errPinnedGone = errors.New("the pinned offsets are no longer usable")
)

// Units returns the units of a recording by policy. For pinned offsets it fails with errPinned or errPinnedGone.
func (r *Recordings) Units(ctx context.Context, from watch.BaselineConfig) (map[string][]*ingest.Unit, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	source := fmt.Sprint(from.File, from.Offsets)
	if units, err := r.read[source], r.gone[source]; units != nil || err != nil {
		return units, err
	}
	units := map[string][]*ingest.Unit{}
	keep := func(u *ingest.Unit) { units[u.Group.Policy] = append(units[u.Group.Policy], u) }
	var err error
	if from.From == watch.FromPinned {
		if err = r.readPinned(ctx, from.Offsets, keep); errors.Is(err, errPinnedGone) {
			r.gone[source] = err
		}
	} else {
		c := NewCollector(r.cfg, keep)
		_, err = recording.ReadFiles(ctx, recording.FilesConfig{}, []string{from.File}, &c)
	}
	if err != nil {
		return nil, err
	}
	r.read[source] = units
	return units, nil
}

// ErrNoPinnedUnit is returned for pinned offsets that contain no whole episode.
var ErrNoPinnedUnit = errors.New("the pinned offsets contain no complete episode")

// readPinned reads each range separately, because the telemetry between two ranges is missing.
func (r *Recordings) readPinned(ctx context.Context, ranges []ingest.Range, emit func(*ingest.Unit)) error {
	found := false
	for _, of := range ranges {
		x := newExcerpt(r.cfg, func(u *ingest.Unit) {
			found = true
			emit(u)
		})
		if err := r.Pinned(ctx, of, x); errors.Is(err, recording.ErrRangeGone) {
			return fmt.Errorf("%w: %w", errPinnedGone, err)
		} else if err != nil {
			return fmt.Errorf("%w: %w", errPinned, err)
		}
	}
	if !found {
		return fmt.Errorf("%w: %w", errPinnedGone, ErrNoPinnedUnit)
	}
	return nil
}

// Collector is a processor that passes on the units of the events. Without a first stage, it does nothing.
type Collector struct {
	intake *Intake
	emit   func(*ingest.Unit)
}

// NewCollector returns a collector that passes units to emit, except for steps of open episodes.
func NewCollector(cfg *Settings, emit func(*ingest.Unit)) Collector {
	return Collector{intake: NewIntake(cfg, NewIntakeMetrics(Unregistered{})), emit: func(u *ingest.Unit) {
		if u.End != ingest.EndOpen {
			emit(u)
		}
	}}
}

// Process implements ingest.Processor.
func (c *Collector) Process(_ context.Context, batch []ingest.Event) error {
	if c.intake == nil {
		return nil
	}
	now := order.Believed(time.Now())
	for i := range batch {
		c.intake.Fold(&batch[i], now, c.emit)
	}
	return nil
}

// Idle implements ingest.Processor.
func (c *Collector) Idle(context.Context, time.Time) error { return nil }

// Snapshot implements ingest.Processor. A recording has no state to keep.
func (c *Collector) Snapshot(io.Writer) error { return nil }

// Restore implements ingest.Processor.
func (c *Collector) Restore(io.Reader) error { return nil }
