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

// How a desk works: how many units fit in its channel, how often one with waiting units looks for those that it can
// release and how often it looks after all else, and how often it looks for silence.
const (
	deskBacklog = 512
	mergePulse  = 50 * time.Millisecond
	deskPulse   = time.Second
	tickEvery   = 10 * time.Second
)

// bankPrefix begins the names of the snapshots of desks.
const bankPrefix = "bank-"

// runningDesk is a desk with its goroutine.
type runningDesk struct {
	*desk
	desks        *desks
	merger       *merger
	units        chan waitingUnit
	orders       chan func()         // to be done between two units
	leaving      chan []ingest.Group // groups that are to be evicted
	saving       bool
	unshown      bool                                       // something has changed since it was last shown
	ends         []int64                                    // when the units ended that the bank was given and has not judged, 0 without a clock
	shownWaiting map[string]int                             // units of the desk that the metric counts, by reason
	once         bool                                       // what was saved last is in one save only
	newest       map[int32]bank.AppliedUnit                 // what the last save has applied, by partition
	safe         atomic.Pointer[map[int32]bank.AppliedUnit] // what both of the last two saves have applied
}

func newRunningDesk(d *desk, of *desks) *runningDesk {
	r := &runningDesk{
		desk: d, desks: of, merger: newMerger(),
		units: make(chan waitingUnit, deskBacklog), orders: make(chan func()), leaving: make(chan []ingest.Group, 1), shownWaiting: map[string]int{},
	}
	d.load, d.scores = r.load, of.pipeline.scores
	if d.resumed { // from the newest save, or from the one before
		r.newest, r.once = d.policy.Applied(), true
	}
	r.safe.Store(&map[int32]bank.AppliedUnit{})
	return r
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
	defer r.showNothing()
	defer r.desks.pipeline.scores.Forget(r.name)
	ctx := r.desks.work
	if r.resumed {
		if err := r.desks.pipeline.audience.resumed(ctx, r.desk); err != nil {
			return err
		}
	}
	pulse := time.NewTimer(deskPulse)
	defer pulse.Stop()
	shown, saved, ticked := time.Now(), time.Now(), time.Now()
	for {
		select {
		case <-r.desks.ctx.Done():
			return r.finish(ctx)
		case do := <-r.orders:
			do()
			continue
		case groups := <-r.leaving:
			r.evict(groups)
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
			if err := r.desks.pipeline.audience.passed(ctx, r.desk); err != nil {
				return err
			}
			r.attend(ctx)
			r.show()
			shown = now
		}
		if now.Sub(ticked) >= tickEvery && r.desks.marks.current(now) {
			if err := r.tick(ctx, now); err != nil {
				return err
			}
			ticked = now
		}
		if now.Sub(saved) >= time.Duration(r.desks.pipeline.cfg.Checkpoint.Every) && !r.policy.Calibrating() {
			if err := r.save(); err != nil && !errors.Is(err, ingest.ErrFenced) { // its partition lets go of it, and says so
				r.desks.pipeline.log.Error().Err(err).Str("policy", r.name).Msg("Saving the state of a policy failed, trying again")
			}
			saved = now
		}
	}
}

// finish judges what can be released, and saves, unless it is to give up.
func (r *runningDesk) finish(ctx context.Context) error {
	err := errors.Join(r.release(ctx), r.apply(ctx, r.policy.Settle()))
	r.showDelays()
	if ctx.Err() != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	r.publish()
	return errors.Join(err, r.save())
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
	low, now := r.desks.marks.low(), time.Now()
	r.receive()
	r.merger.forget()
	for {
		u := r.merger.release(low)
		if u == nil {
			break
		}
		r.unshown = true
		if !r.policy.Has(u) {
			r.ends = append(r.ends, u.EndTS)
		}
		if err := r.observe(ctx, u, now); err != nil {
			return err
		}
		r.showDelays()
	}
	if err := r.proceed(ctx); err != nil {
		return err
	}
	r.showDelays()
	r.desks.pipeline.metrics.late.Add(float64(r.merger.takeLate()))
	return nil
}

// showDelays counts the delays of the units that the bank has judged since it last did. They are judged in the order in which
// they are given; those that wait for a calibration have not been.
func (r *runningDesk) showDelays() {
	judged := len(r.ends) - r.policy.Pending()
	for _, end := range r.ends[:judged] {
		if end != 0 { // an agent whose clock is ahead has no negative delay
			r.desks.pipeline.metrics.delay.Observe(max(0, time.Since(time.Unix(0, end)).Seconds()))
		}
	}
	r.ends = r.ends[:copy(r.ends, r.ends[judged:])]
}

// What units wait for, the values of the label reason.
const (
	waitsForPartitions  = "partitions"
	waitsForCalibration = "calibration"
)

// showWaiting has the metric, which all desks share, count so many units of this one.
func (r *runningDesk) showWaiting(reason string, n int) {
	r.desks.pipeline.metrics.waiting.WithLabelValues(reason).Add(float64(n - r.shownWaiting[reason]))
	r.shownWaiting[reason] = n
}

// showNothing takes what waits at a desk that stops out of the metric.
func (r *runningDesk) showNothing() {
	r.showWaiting(waitsForPartitions, 0)
	r.showWaiting(waitsForCalibration, 0)
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
	changed := r.policy.Changed() || r.book.Changed() || r.closing.changed
	if !changed && !r.once || r.policy.Calibrating() {
		return nil
	}
	end, err := r.beginSave()
	if err != nil {
		return err
	}
	defer end()
	parts, gone, err := r.changes()
	if err != nil {
		return err
	}
	if err := r.desks.store.Save(bankPrefix+r.name, parts, gone); err != nil {
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
	r.desks.pipeline.metrics.saved.Inc()
	r.desks.pipeline.metrics.savedAt.SetToCurrentTime()
	return nil
}
