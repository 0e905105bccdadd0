package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// How many units may be on their way: to a desk from one delivery, where its desks wait for other partitions, and for
// desks that have not saved them twice.
const (
	feedBacklog = 8192
	mostUnsafe  = 400_000
)

// baselinePause lies between two tries to read the baseline that is pinned for a policy.
const baselinePause = 5 * time.Second

// delivery hands the units of a partition to the desks of their policies, and keeps those that a desk may need again: they
// are part of the partition's checkpoint. All but revoke is for the goroutine of the partition.
type delivery struct {
	desks   *desks
	log     zerolog.Logger
	known   map[string]*way // by policy
	refused map[string]bool // policies without a baseline
	unsafe  []*ingest.Unit  // not in both of the last two saves of their desks
	told    bool            // that it is full
	slowed  int             // units handed on while the limit of memory was passed
	revoked atomic.Bool     // units on their way are to be forgotten
}

// way is the way of a delivery's units to the desk of their policy.
type way struct {
	from    *delivery
	desk    *runningDesk
	waiting atomic.Int64 // units on the way
}

func newDelivery(d *desks, log zerolog.Logger) *delivery {
	return &delivery{desks: d, log: log, known: map[string]*way{}, refused: map[string]bool{}}
}

// revoke has the desks forget the units that still wait: the checkpoint of their partition has them. It waits for nothing.
func (d *delivery) revoke() { d.revoked.Store(true) }

// hand gives a unit to the desk of its policy. It waits while room says that there is none, and until the desk takes the
// unit, which may be busy; but not once the generation ends: then the unit is only kept, and handed on by who restores
// the partition's checkpoint. now is the present by the clock that the telemetry's is held against.
func (d *delivery) hand(ctx context.Context, u *ingest.Unit, now time.Time, room func(context.Context, *way) error) error {
	w, err := d.way(ctx, u.Group.Policy)
	switch {
	case errors.Is(err, errUnmatched), errors.Is(err, errStreamLimit), errors.Is(err, errNoBaseline):
		d.desks.pipeline.metrics.dropped.WithLabelValues(err.Error()).Inc()
		return nil
	case errors.Is(err, errPinned):
		d.unsafe = append(d.unsafe, u) // the generation ends
		return nil
	case err != nil:
		return err
	}
	if err := room(ctx, w); err != nil {
		return err
	}
	d.unsafe = append(d.unsafe, u)
	if d.desks.marks.ending() {
		return nil
	}
	select {
	case w.desk.units <- newWaitingUnit(u, w, now):
		return nil
	case <-d.desks.marks.ended():
		return nil
	case <-d.desks.ctx.Done():
		return context.Cause(d.desks.ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// way finds the way to the desk of a policy. While the baseline that is pinned for it cannot be read, it tries again; only
// where the generation ends meanwhile, the error is errPinned.
func (d *delivery) way(ctx context.Context, policy string) (*way, error) {
	if w := d.known[policy]; w != nil {
		return w, nil
	}
	if d.refused[policy] {
		return nil, errNoBaseline
	}
	reading, stop := d.desks.marks.whileOpen(d.desks.ctx)
	defer stop()
	for {
		r, err := d.desks.desk(reading, policy)
		switch {
		case err == nil:
			d.known[policy] = &way{from: d, desk: r}
			return d.known[policy], nil
		case errors.Is(err, errPinnedGone):
			d.log.Error().Err(err).Str("policy", policy).
				Msg("A policy is not judged, as there is no baseline for it: pin other offsets, and start anew")
			d.refused[policy] = true
			return nil, errNoBaseline
		case !errors.Is(err, errPinned) || d.desks.marks.ending():
			return nil, err
		}
		d.log.Warn().Err(err).Str("policy", policy).Msg("The baseline of a policy cannot be read, trying again")
		if _, err := d.pause(ctx, baselinePause); err != nil {
			return nil, err
		}
	}
}

// pause waits before a partition looks again whether there is room.
func (d *delivery) pause(ctx context.Context, long time.Duration) (time.Time, error) {
	select {
	case now := <-time.After(long):
		return now, nil
	case <-d.desks.marks.ended():
		return time.Now(), nil
	case <-ctx.Done():
		return time.Time{}, context.Cause(ctx)
	case <-d.desks.ctx.Done():
		return time.Time{}, context.Cause(d.desks.ctx)
	}
}

// full reports whether as many units as are allowed wait for a state that cannot be saved, as on a full disk. onTheWay gives
// how many of those that are kept are not to be counted.
func (d *delivery) full(onTheWay func() int) bool {
	full := false
	if most := d.desks.pipeline.unsafeBacklog; len(d.unsafe) >= most {
		d.forgetSafe()
		full = len(d.unsafe) >= most && len(d.unsafe)-onTheWay() >= most
	}
	if full && !d.told {
		d.log.Error().Int("units", len(d.unsafe)).Msg("Reading waits: what was judged since cannot be saved")
	}
	d.told = full
	return full
}

// waiting counts the units that are on their way to a desk, or wait there.
func (d *delivery) waiting() int {
	n := int64(0)
	for _, w := range d.known {
		n += w.waiting.Load()
	}
	return int(n)
}

// kept gives the units that a desk may need again.
func (d *delivery) kept() []*ingest.Unit {
	d.forgetSafe()
	return d.unsafe
}

// forgetSafe drops the units that their desks have saved twice.
func (d *delivery) forgetSafe() {
	kept := d.unsafe[:0]
	for _, u := range d.unsafe {
		if w := d.known[u.Group.Policy]; w == nil || !w.desk.hasSafe(u) {
			kept = append(kept, u)
		}
	}
	clear(d.unsafe[len(kept):])
	d.unsafe = kept
}
