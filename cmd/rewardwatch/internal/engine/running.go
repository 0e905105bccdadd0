package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/pace"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/order"
)

// How a worker runs: the capacity of its channel in batches, each of which has only one unit if telemetry is slow; how
// often a worker with waiting units looks for units that it can release; how often it checks everything else; and how
// often it looks for silence.
const (
	workerBacklog = 64
	MergePulse    = 50 * time.Millisecond
	WorkerPulse   = order.LongestPulse
	tickEvery     = 10 * time.Second
)

// BankPrefix is the prefix of the names of workers' snapshots.
const BankPrefix = "bank-"

// RunningWorker is a worker with its goroutine, which does everything that concerns a policy: units, orders, saves and
// evictions. It is large because one goroutine does all of this, so that none of it needs a lock.
type RunningWorker struct {
	*Worker
	workers      *Workers
	merger       *order.Merger
	units        chan []order.WaitingUnit // from one partition each
	decision     ingest.DecisionUnit      // the decision that is being judged
	delays       delays                   // of the units judged since they were last shown
	orders       chan func()              // run between two units
	leaving      chan []ingest.Group      // groups to evict
	gone         chan struct{}            // closed when the policy is forgotten
	saving       bool
	full         bool                                                    // a unit was dropped for lack of room during shutdown: no later unit may be judged, or the dropped one would count as judged too
	unshown      bool                                                    // something has changed since shown
	shown        time.Time                                               // when the state was last published
	pendingBytes int64                                                   // memory of the units that wait for calibrations, as counted for all workers
	shownWaiting map[string]int                                          // number of the worker's units in the metric, by reason
	saves, shows pace.Turns                                              // measure how long saves and publications take, and whether they fail
	once         bool                                                    // the last saved state is in only one save
	invalid      int64                                                   // number of values that guards had ignored when that was last logged
	newest       map[ingest.Partition]ingest.AppliedUnit                 // units that the last save has applied, by partition
	safe         atomic.Pointer[map[ingest.Partition]ingest.AppliedUnit] // units that both of the last two saves have applied
}

func newRunningWorker(d *Worker, of *Workers) *RunningWorker {
	r := &RunningWorker{
		Worker: d, workers: of, merger: order.NewMerger(&of.Pipeline.batches),
		units:  make(chan []order.WaitingUnit, workerBacklog),
		orders: make(chan func()), leaving: make(chan []ingest.Group, 1), gone: make(chan struct{}), shownWaiting: map[string]int{},
		saves: of.Pipeline.pace.Policy(), shows: of.Pipeline.shows.Policy(),
	}
	d.load, d.room, d.scores = r.load, r.makeRoom, of.Pipeline.scores
	if d.resumed { // from the newest save, or the one before
		r.newest, r.once = d.Policy.Applied(), true
	}
	r.safe.Store(&map[ingest.Partition]ingest.AppliedUnit{})
	return r
}

// hasSafe reports whether both of the last two saves of the worker have applied a unit, and with it all earlier units
// of its partition, so that the partition need not keep them.
//
// This makes every fallback safe. Let k be the newest save of the worker when a partition's checkpoint is made. Of the
// units that ended before its next offset, the checkpoint keeps all except those that saves k and k-1 have both
// applied. Whenever it is restored, the newest save is k or a later one. So even a worker that must fall back by one
// save is at k-1 or later. Units that k-1 has not applied are either in the partition's checkpoint or read again after
// it. An older checkpoint of the partition was made at an earlier k: it keeps more, and reads again from an earlier
// offset. A worker ignores units that it has already applied, however often they arrive.
func (r *RunningWorker) hasSafe(u ingest.AppliedUnit) bool {
	applied, any := (*r.safe.Load())[u.Pos.Partition]
	return any && applied.Reaches(u)
}

// run is the worker's goroutine. On shutdown, it judges the units that it has and can release, and saves.
func (r *RunningWorker) run() error {
	defer r.showNothing()
	if r.scores != nil {
		defer r.scores.Forget(r.Name)
	}
	ctx := r.workers.work
	if r.resumed {
		if err := r.workers.Pipeline.audience.Resumed(ctx, r.Worker); err != nil {
			return err
		}
	}
	pulse := time.NewTimer(WorkerPulse)
	defer pulse.Stop()
	pulsed, saved, ticked := time.Now(), time.Now(), time.Now()
	for {
		select {
		case <-r.workers.Ctx.Done():
			return r.finish(ctx)
		case do := <-r.orders:
			do()
			if r.isGone() {
				return nil
			}
			continue
		case groups := <-r.leaving:
			r.evict(groups)
			continue
		case batch := <-r.units:
			r.merger.Add(batch)
		case <-r.Policy.Calibrated():
		case <-pulse.C:
			pulse.Reset(WorkerPulse)
		}
		if err := r.release(ctx); err != nil {
			return err
		}
		r.hasten(pulse)
		now := time.Now()
		if now.Sub(pulsed) >= WorkerPulse {
			if err := r.atPulse(ctx, now); err != nil {
				return err
			}
			pulsed = now
		}
		if now.Sub(ticked) >= tickEvery && r.workers.Marks.Current(now) {
			if err := r.tick(ctx, now); err != nil {
				return err
			}
			ticked = now
		}
		if since := now.Sub(saved); (since >= r.saveAfter() || r.guards.Urgent(since)) && r.mayBeSaved(since) {
			r.leave() // the same save covers the groups that leave
			r.guards.Tried()
			if err := r.save(); err != nil && !errors.Is(err, ingest.ErrFenced) { // its partition releases it, and logs that
				r.workers.Pipeline.Log.Error().Err(err).Str("policy", r.Name).Msg("failed to save the state of a policy, retrying")
			}
			r.Policy.Drain(false)
			saved = now
		}
	}
}

// unsavedLongest is the maximum time for which a policy is not saved because some of its groups wait for calibrations.
// After that, no other group begins to wait until the policy is saved.
const unsavedLongest = 10 * time.Minute

// mayBeSaved reports whether no group waits for a calibration. If the policy has not been saved for long, units that
// wait for saves take much memory, or a guard has tripped, it ensures that soon no group does.
func (r *RunningWorker) mayBeSaved(unsaved time.Duration) bool {
	if !r.Policy.Calibrating() {
		return true
	}
	if unsaved >= unsavedLongest || r.workers.Pipeline.kept.pressing() || r.guards.Urgent(unsaved) {
		r.Policy.Drain(true)
	}
	return false
}

// atPulse does everything that must happen even if no unit arrives: it ends mutes, follows retrainings and publishes
// the state.
func (r *RunningWorker) atPulse(ctx context.Context, now time.Time) error {
	if err := r.endMutes(ctx, now); err != nil {
		return err
	}
	if err := r.workers.Pipeline.audience.Passed(ctx, r.Worker); err != nil {
		return err
	}
	r.outcome.Attend(ctx)
	r.workers.Pipeline.queue.at(now)
	warnOfInvalid(r)
	r.show(now)
	return nil
}

// saveAfter returns the interval between two saves. It is at most a pulse if the units that partitions keep until the
// save take much memory. It is longer if saves take a long time and these units are in logs, unless the last save
// failed.
func (r *RunningWorker) saveAfter() time.Duration {
	every := time.Duration(r.workers.Pipeline.Cfg.Checkpoint.Every)
	if every > WorkerPulse && r.workers.Pipeline.kept.pressing() {
		return WorkerPulse
	}
	if r.workers.Pipeline.kept.inLogs() {
		return r.saves.After(every)
	}
	return every
}

// finish judges the units that can be released, and saves, unless the worker must stop at once.
func (r *RunningWorker) finish(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	err := errors.Join(r.release(ctx), r.settle(ctx, ctx))
	r.showDelays(time.Now())
	if ctx.Err() != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	r.Publish()
	return errors.Join(err, r.save())
}

// settle waits until no group waits for a calibration, or until patience ends.
func (r *RunningWorker) settle(ctx, patience context.Context) error {
	r.Policy.Drain(false)
	for {
		err := r.proceed(ctx)
		if err != nil || !r.Policy.Calibrating() {
			return err
		}
		select {
		case <-r.Policy.Hurry():
		case <-patience.Done():
			return context.Cause(patience)
		}
	}
}

// hasten brings the next pulse forward while units wait for other partitions, which do not signal their progress.
func (r *RunningWorker) hasten(pulse *time.Timer) {
	if r.merger.Waiting() > 0 {
		pulse.Reset(MergePulse)
	}
}

// receive takes the units from the channel.
func (r *RunningWorker) receive() {
	for n := len(r.units); n > 0; n-- {
		r.merger.Add(<-r.units)
	}
}

// askedEvery is the number of units that a worker judges between two readings of the clock for their delays.
const askedEvery = 32

// release judges all units that need not wait any longer. It reads how far partitions have been read before it drains
// the channel, because a partition passes on its units before it reports its position.
func (r *RunningWorker) release(ctx context.Context) error {
	if r.full {
		return nil
	}
	low, now := r.workers.Marks.Low(), time.Now()
	r.receive()
	r.merger.Forget()
	at := now
	for n := 1; ; n++ {
		next := r.merger.Release(low)
		if next == nil {
			break
		}
		if r.workers.Ctx.Err() != nil && r.lacksRoom(next.Group()) {
			r.full = true
			break
		}
		r.unshown = true
		if next.Unit == nil && r.Join(&next.Decision, now) {
			r.delays.add(next.Decision.TS, at)
		} else if err := r.judge(ctx, next.In(&r.decision), now, at); err != nil {
			return err
		}
		if n%askedEvery == 0 {
			at = time.Now()
			r.showDelays(at)
		}
	}
	if err := r.proceed(ctx); err != nil {
		return err
	}
	r.showDelays(time.Now())
	r.workers.Pipeline.Metrics.Late.Add(float64(r.merger.TakeLate()))
	return nil
}

// judge judges a unit, and counts its delay as of at unless the unit waits for a calibration.
func (r *RunningWorker) judge(ctx context.Context, u *ingest.Unit, now, at time.Time) error {
	known := r.Policy.Has(u)
	waited, _ := r.Policy.Pending()
	if err := r.Observe(ctx, u, now); err != nil {
		return err
	}
	if waits, _ := r.Policy.Pending(); !known && waits == waited && u.End != ingest.EndOpen {
		r.delays.add(u.EndTS, at)
	}
	return nil
}

// showDelays records the delays of the units that were judged since the last call, and the memory of those that wait for
// calibrations.
func (r *RunningWorker) showDelays(now time.Time) {
	for _, end := range r.Policy.JudgedLate() {
		r.delays.add(end, now)
	}
	r.workers.Pipeline.Metrics.delay.take(&r.delays)
	_, bytes := r.Policy.Pending()
	r.workers.Pipeline.kept.pending.Add(bytes - r.pendingBytes)
	r.pendingBytes = bytes
}

// Values of the label reason: what units wait for.
const (
	waitsForPartitions  = "partitions"
	waitsForCalibration = "calibration"
)

// showWaiting sets this worker's part of the metric of waiting units, which all workers share.
func (r *RunningWorker) showWaiting(reason string, n int) {
	r.workers.Pipeline.Metrics.waiting.WithLabelValues(reason).Add(float64(n - r.shownWaiting[reason]))
	r.shownWaiting[reason] = n
}

// showNothing removes a stopping worker's part from the metrics of all workers.
func (r *RunningWorker) showNothing() {
	r.saves.Gone()
	r.shows.Gone()
	r.workers.Pipeline.kept.pending.Add(-r.pendingBytes)
	r.pendingBytes = 0
	r.showWaiting(waitsForPartitions, 0)
	r.showWaiting(waitsForCalibration, 0)
}

// show publishes the changed state, unless it was published a short time ago.
func (r *RunningWorker) show(now time.Time) {
	r.showWaiting(waitsForPartitions, r.merger.Waiting())
	waits, _ := r.Policy.Pending()
	r.showWaiting(waitsForCalibration, waits)
	if r.unshown && now.Sub(r.shown) >= r.shows.After(WorkerPulse) {
		begun := time.Now()
		r.Publish()
		r.shows.Ended(begun, nil)
		r.shown = now
		r.unshown = r.Policy.Calibrating() // until then, the bank has nothing new to show
	}
}

// save makes the worker's state durable if it has changed, and remembers which units it has applied. If nothing has
// changed since the last save, it saves once more, so that a fallback does not need the units that partitions keep for
// it. It does not wait for a calibration: the units that wait for one are in the checkpoints of their partitions.
func (r *RunningWorker) save() (err error) {
	changed := r.Policy.Changed() || r.tracker.Changed() || r.outcome.Changed() || r.guards.Changed()
	if !changed && !r.once || r.Policy.Calibrating() {
		return nil
	}
	end, err := r.beginSave()
	if err != nil {
		return err
	}
	defer end()
	defer func(begun time.Time) { r.saves.Ended(begun, err) }(time.Now())
	parts, gone, err := r.Changes()
	if err != nil {
		return err
	}
	if err := r.workers.Store.Save(BankPrefix+r.Name, parts, gone); err != nil {
		if errors.Is(err, ingest.ErrPartsLost) {
			r.lost()
		}
		return fmt.Errorf("save: %w", err)
	}
	r.saved()
	r.once = changed
	safe, applied := r.newest, r.Policy.Applied()
	r.newest = applied
	r.safe.Store(&safe)
	r.workers.Pipeline.Metrics.Saved.Inc()
	r.workers.Pipeline.Metrics.savedAt.SetToCurrentTime()
	return nil
}
