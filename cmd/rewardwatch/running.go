package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// bankPrefix begins the names of the snapshots of desks.
const bankPrefix = "bank-"

// runningDesk is a desk with its goroutine.
type runningDesk struct {
	*desk
	name         string
	pipeline     *pipeline
	merger       *merger
	units        chan waitingUnit
	orders       chan func()                                // to be done between two units
	unshown      bool                                       // something has changed since it was last shown
	shownWaiting map[string]int                             // units of the desk that the metric counts, by reason
	once         bool                                       // what was saved last is in one save only
	newest       map[int32]bank.AppliedUnit                 // what the last save has applied, by partition
	safe         atomic.Pointer[map[int32]bank.AppliedUnit] // what both of the last two saves have applied
}

// hasSafe reports whether both of the last two saves of the desk have the unit applied, so that its partition need not keep
// it.
//
// That makes up for every fallback. Let a partition's checkpoint be made while the newest save of the desk is k: with the
// units that ended before its next offset it keeps all but those that saves k and k-1 have both applied. Whenever it is
// restored, the newest save is k or a later one, so that the desk, even where it has to fall back by one, stands at k-1 or
// later. What k-1 has not applied is either kept by the partition's checkpoint or read again after it; an older
// checkpoint of the partition was made at an earlier k and keeps more, and reads again from an earlier offset. And what
// the desk has applied already it ignores, however often it comes.
func (r *runningDesk) hasSafe(u *ingest.Unit) bool {
	applied, any := (*r.safe.Load())[u.Pos.Partition]
	return any && applied.Covers(u)
}

// run is the desk's goroutine. At a stop it judges what it has been given and can be released, and saves.
func (r *runningDesk) run() error {
	ctx := context.WithoutCancel(r.pipeline.ctx) // what has begun is finished
	pulse := time.NewTimer(deskPulse)
	defer pulse.Stop()
	shown, saved, ticked := time.Now(), time.Now(), time.Now()
	for {
		select {
		case <-r.pipeline.ctx.Done():
			err := errors.Join(r.release(ctx), r.apply(ctx, r.policy.Settle()))
			r.publish()
			return errors.Join(err, r.save())
		case do := <-r.orders:
			do()
			continue
		case u := <-r.units:
			r.merger.add(u)
		case <-pulse.C:
			pulse.Reset(r.nextPulse())
		}
		if err := r.release(ctx); err != nil {
			return err
		}
		now := time.Now()
		if now.Sub(shown) >= deskPulse {
			if err := r.endMutes(ctx, now); err != nil {
				return err
			}
			r.show()
			shown = now
		}
		if now.Sub(ticked) >= tickEvery && r.pipeline.marks.current(now) {
			if err := r.tick(ctx, now); err != nil {
				return err
			}
			ticked = now
		}
		if now.Sub(saved) >= time.Duration(r.pipeline.cfg.Checkpoint.Every) && !r.policy.Calibrating() {
			if err := r.save(); err != nil {
				r.pipeline.log.Error().Err(err).Str("policy", r.name).Msg("Saving the state of a policy failed, trying again")
			}
			saved = now
		}
	}
}

// nextPulse is soon where units wait for other partitions, which say nothing when they get on.
func (r *runningDesk) nextPulse() time.Duration {
	if r.merger.waiting() > 0 {
		return mergePulse
	}
	return deskPulse
}

// receive takes what has been handed on.
func (r *runningDesk) receive() {
	for n := len(r.units); n > 0; n-- {
		r.merger.add(<-r.units)
	}
}

// release judges all units that need not wait any longer. How far partitions have been read is asked before the
// channel is drained: a partition hands on its units before it says that it got that far.
func (r *runningDesk) release(ctx context.Context) error {
	low, now := r.pipeline.marks.low(), time.Now()
	r.receive()
	for {
		u := r.merger.release(low)
		if u == nil {
			break
		}
		r.unshown = true
		if err := r.observe(ctx, u, now); err != nil {
			return err
		}
	}
	if err := r.proceed(ctx); err != nil {
		return err
	}
	r.pipeline.metrics.late.Add(float64(r.merger.takeLate()))
	return nil
}

// What units wait for, the values of the label reason.
const (
	waitsForPartitions  = "partitions"
	waitsForCalibration = "calibration"
)

// showWaiting has the metric, which all desks share, count so many units of this one.
func (r *runningDesk) showWaiting(reason string, n int) {
	r.pipeline.metrics.waiting.WithLabelValues(reason).Add(float64(n - r.shownWaiting[reason]))
	r.shownWaiting[reason] = n
}

// show publishes what has changed since it last did.
func (r *runningDesk) show() {
	r.showWaiting(waitsForPartitions, r.merger.waiting())
	r.showWaiting(waitsForCalibration, r.policy.Pending())
	if r.unshown {
		r.publish()
		r.unshown = r.policy.Calibrating() // the bank shows nothing new before that is done
	}
}

// save makes the desk's state durable where it has changed, and remembers up to which units it is. Where nothing has
// changed since the last save, it is saved once more, so that a fallback would not need what partitions keep for it. A
// calibration is not waited for: the units that wait for it are in the checkpoints of their partitions.
func (r *runningDesk) save() error {
	changed := r.policy.Changed() || r.book.Changed()
	if !changed && !r.once || r.policy.Calibrating() {
		return nil
	}
	parts, gone, err := r.changes()
	if err != nil {
		return err
	}
	if err := r.pipeline.store.Save(bankPrefix+r.name, parts, gone); err != nil {
		if errors.Is(err, ingest.ErrPartsLost) {
			r.lost()
		}
		return fmt.Errorf("save: %w", err)
	}
	r.saved()
	r.once = changed
	safe, applied := r.newest, r.policy.Applied()
	r.newest = applied
	r.safe.Store(&safe)
	r.pipeline.metrics.saved.Inc()
	r.pipeline.metrics.savedAt.SetToCurrentTime()
	return nil
}
