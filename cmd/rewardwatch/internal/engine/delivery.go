package engine

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/order"
	"github.com/rewardwatch/rewardwatch/ingest/unitlog"
)

// Limits on the units in flight from one delivery to one worker, which wait for other partitions, and on the units that
// workers have not saved twice.
const (
	FeedBacklog = 8192
	mostUnsafe  = 400_000
)

// handedTogether is the maximum number of units that a worker receives at once. A worker that judges several units of a
// group in a row finds the group in the caches of its core.
const handedTogether = 64

// baselinePause is the pause between two attempts to read the pinned baseline of a policy.
const baselinePause = 5 * time.Second

// Delivery passes the units of a partition to the workers of their policies. It keeps the units that a worker may need
// again: in the log of the partition, whose batches the partition's checkpoint names, or in Unsafe, which is part of
// the checkpoint. Only the goroutine of the partition may call its methods, except Revoke.
type Delivery struct {
	Workers  *Workers
	Log      zerolog.Logger
	Known    map[string]*Route         // by policy
	refused  map[string]bool           // policies without a baseline
	recent   *Route                    // of the last unit
	open     []*Route                  // routes with units that have not been passed on yet
	Unsafe   []*ingest.Unit            // units that are in no log, and not in both of the last two saves of their workers
	LastKept int                       // length of Unsafe at its last save
	handed   int                       // units taken since the memory of all partitions' units was last checked
	told     bool                      // whether it has logged that it is full
	slowed   int                       // units passed on while memory was above its limit
	revoked  atomic.Bool               // whether workers must drop the units in flight
	units    *unitlog.Log              // log of the partition, nil if its checkpoint contains the units
	first    map[string]*RunningWorker // by policy, the workers at the beginning of passing units on again; nil otherwise

	keptBytes, waitingBytes atomic.Int64 // bytes of the units in Unsafe, and of the units in flight
}

// Route leads from a delivery to the worker of one policy.
type Route struct {
	From    *Delivery
	worker  *RunningWorker
	waiting atomic.Int64 // units in flight
	open    []order.WaitingUnit
	usual   int    // number of units in the last batch that was passed on
	next    *Route // of the unit that followed the last unit of this route
}

// Revoked implements order.Source.
func (w *Route) Revoked() bool { return w.From.revoked.Load() }

// Entered implements order.Source.
func (w *Route) Entered(bytes int64) {
	w.waiting.Add(1)
	w.From.waitingBytes.Add(bytes)
}

// Left implements order.Source.
func (w *Route) Left(units int, bytes int64) {
	w.waiting.Add(-int64(units))
	w.From.waitingBytes.Add(-bytes)
}

// NewDelivery returns the delivery of one partition. units is nil if the units are not in a log.
func NewDelivery(d *Workers, log zerolog.Logger, units *unitlog.Log) *Delivery {
	made := &Delivery{Workers: d, units: units, Log: log, Known: map[string]*Route{}, refused: map[string]bool{}}
	d.Pipeline.kept.add(made)
	return made
}

// Revoke makes the workers drop the units that are still waiting, which are in the checkpoint of their partition. It
// does not block.
func (d *Delivery) Revoke() {
	d.revoked.Store(true)
	d.Workers.Pipeline.kept.remove(d)
}

// Hand accepts a unit for the worker of its policy, which receives it together with others, at the latest on Flush.
// Hand waits until room finds space, and until the worker, which may be busy, accepts the units. Once the generation
// ends, it no longer waits: it only keeps the unit, and the instance that restores the partition's checkpoint delivers
// it. now is the current time by the clock that telemetry time is compared with. Without a log, the unit must not be a
// decision.
func (d *Delivery) Hand(ctx context.Context, u *order.WaitingUnit, now time.Time, room func(context.Context, *Route) error) error {
	w, err := d.follow(ctx, u.Group().Policy)
	if err != nil {
		return d.notHanded(u, err)
	}
	d.handed++
	if err := room(ctx, w); err != nil {
		return err
	}
	d.keep(u)
	if d.Workers.Marks.Ending() {
		return nil
	}
	if len(w.open) == 0 {
		d.open, w.open = append(d.open, w), d.Workers.Pipeline.batches.Get(w.usual)
	}
	u.Enter(w, now)
	if w.open = append(w.open, *u); len(w.open) < handedTogether {
		return nil
	}
	return d.Flush(ctx)
}

// notHanded deals with a unit to which no route leads.
func (d *Delivery) notHanded(u *order.WaitingUnit, err error) error {
	switch {
	case errors.Is(err, errForgotten):
		return nil
	case errors.Is(err, ErrUnmatched), errors.Is(err, errStreamLimit), errors.Is(err, errTenantPolicies), errors.Is(err, errNoBaseline):
		d.Workers.Pipeline.Metrics.Dropped.WithLabelValues(err.Error()).Inc()
		return nil
	case errors.Is(err, errPinned):
		d.keep(u) // the generation has ended
		return nil
	}
	return err
}

// Flush delivers the units that Hand has accepted. Call it before a watermark passes them.
func (d *Delivery) Flush(ctx context.Context) error {
	for len(d.open) > 0 {
		w := d.open[0]
		d.open = d.open[:copy(d.open, d.open[1:])]
		batch := w.open
		w.open, w.usual = nil, len(batch)
		if err := d.send(ctx, w, batch); err != nil {
			return err
		}
	}
	return nil
}

// send passes units to a worker. If the worker has left, it drops the units, like those that it has already received.
func (d *Delivery) send(ctx context.Context, w *Route, batch []order.WaitingUnit) error {
	select {
	case w.worker.units <- batch:
		return nil
	case <-w.worker.gone:
		for i := range batch {
			batch[i].Left()
		}
		return nil
	case <-d.Workers.Marks.Ended():
		return nil
	case <-d.Workers.Ctx.Done():
		return context.Cause(d.Workers.Ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// keep adds a unit to those that a worker may need again.
func (d *Delivery) keep(u *order.WaitingUnit) {
	if d.units != nil {
		d.units.Add(u)
		return
	}
	d.Unsafe = append(d.Unsafe, u.Unit)
	d.keptBytes.Add(u.Unit.Bytes())
}

// crowdedEvery is the number of units that a partition passes on between two checks of the memory for the units of all
// partitions.
const crowdedEvery = 64

// Crowded reports whether the units that all partitions keep take as much memory as they may. countsWaiting returns
// whether units in flight count. They must not count for a partition that others may be waiting for, or no partition
// would make progress.
func (d *Delivery) Crowded(countsWaiting func() bool) bool {
	if d.handed < crowdedEvery {
		return false
	}
	kept, withWaiting := d.Workers.Pipeline.kept, countsWaiting()
	if !kept.full(withWaiting) {
		d.handed = 0
		return false
	}
	d.forgetSafe()
	return kept.full(withWaiting)
}

// errForgotten means that a policy was forgotten after one of its units was made.
var errForgotten = errors.New("the policy was forgotten")

// again passes units on that were passed on before. Units of a policy that is forgotten meanwhile are void.
func (d *Delivery) again(handOn func() error) error {
	d.first = map[string]*RunningWorker{}
	for _, r := range d.Workers.List() {
		d.first[r.Name] = r
	}
	defer func() { d.first = nil }()
	return handOn()
}

// follow is like route. The units of policies often arrive in the same order, so the route is mostly the one that
// followed the last route before.
func (d *Delivery) follow(ctx context.Context, policy string) (*Route, error) {
	if last := d.recent; last != nil {
		switch w := last.next; {
		case w == nil || w.worker.Name != policy:
		case w.worker.isGone():
			last.next = nil
		default:
			d.recent = w
			return w, nil
		}
	}
	w, err := d.route(ctx, policy)
	if err != nil {
		return nil, err
	}
	if d.recent != nil {
		d.recent.next = w
	}
	d.recent = w
	return w, nil
}

// route returns the route to the worker of a policy. It retries while the policy's pinned baseline cannot be read, and
// returns errPinned only if the generation ends meanwhile.
func (d *Delivery) route(ctx context.Context, policy string) (*Route, error) {
	if w := d.Known[policy]; w != nil && !w.worker.isGone() {
		return w, nil
	} else if w != nil {
		d.letGo(policy)
	}
	if r := d.first[policy]; r != nil && r.isGone() {
		d.letGo(policy)
		return nil, errForgotten
	}
	if d.refused[policy] {
		return nil, errNoBaseline
	}
	reading, stop := d.Workers.Marks.WhileOpen(d.Workers.Ctx)
	defer stop()
	for {
		r, err := d.Workers.Worker(reading, policy)
		switch {
		case err == nil:
			d.Known[policy] = &Route{From: d, worker: r}
			if d.first != nil {
				d.first[policy] = r
			}
			return d.Known[policy], nil
		case errors.Is(err, errPinnedGone):
			d.Log.Error().Err(err).Str("policy", policy).
				Msg("a policy is not judged because it has no baseline: pin other offsets and restart")
			d.refused[policy] = true
			return nil, errNoBaseline
		case !errors.Is(err, errPinned) || d.Workers.Marks.Ending():
			return nil, err
		}
		d.Log.Warn().Err(err).Str("policy", policy).Msg("the baseline of a policy cannot be read, retrying")
		if _, err := d.Pause(ctx, baselinePause); err != nil {
			return nil, err
		}
	}
}

// Pause waits before a partition checks for space again. It first flushes, because undelivered units would otherwise
// occupy that space forever.
func (d *Delivery) Pause(ctx context.Context, long time.Duration) (time.Time, error) {
	if err := d.Flush(ctx); err != nil {
		return time.Time{}, err
	}
	select {
	case now := <-time.After(long):
		return now, nil
	case <-d.Workers.Marks.Ended():
		return time.Now(), nil
	case <-ctx.Done():
		return time.Time{}, context.Cause(ctx)
	case <-d.Workers.Ctx.Done():
		return time.Time{}, context.Cause(d.Workers.Ctx)
	}
}

// Full reports whether the maximum number of units is waiting for a save, which happens if the state cannot be saved,
// for example on a full disk. onTheWay returns how many of the kept units do not count.
func (d *Delivery) Full(onTheWay func() int) bool {
	full := d.units != nil && d.units.IsFull(d.isSafe)
	if most := d.Workers.Pipeline.unsafeBacklog; len(d.Unsafe) >= most {
		d.forgetSafe()
		full = len(d.Unsafe) >= most && len(d.Unsafe)-onTheWay() >= most
	}
	if full && !d.told {
		event := d.Log.Error().Int("units", len(d.Unsafe))
		if d.units != nil {
			event = d.Log.Error().Int64("bytes", d.units.Needed()).Int("unwritten_bytes", d.units.Unwritten())
		}
		event.Msg("reading is paused: judged episodes or blocks cannot be saved")
	}
	d.told = full
	return full
}

// inMemory returns the number of bytes that the delivery's units take in memory, and how many belong to units in
// flight.
func (d *Delivery) inMemory() (all, waiting int64) {
	waiting = d.waitingBytes.Load()
	if d.units != nil {
		return d.units.Memory() + waiting, waiting
	}
	return d.keptBytes.Load(), waiting
}

// Waiting returns the number of units in flight to a worker or waiting there.
func (d *Delivery) Waiting() int {
	n := int64(0)
	for _, w := range d.Known {
		n += w.waiting.Load()
	}
	return int(n)
}

// Kept returns the units that a worker may need again.
func (d *Delivery) Kept() []*ingest.Unit {
	d.forgetSafe()
	d.LastKept = len(d.Unsafe)
	return d.Unsafe
}

// KeepsLess reports whether units that were saved with the partition are no longer needed.
func (d *Delivery) KeepsLess() bool {
	d.forgetSafe()
	if d.units != nil {
		return d.units.NeedsLess()
	}
	return len(d.Unsafe) < d.LastKept
}

// forgetSafe drops the units that their workers have saved twice, and those of forgotten policies.
func (d *Delivery) forgetSafe() {
	for policy, w := range d.Known {
		if w.worker.isGone() {
			d.letGo(policy)
		}
	}
	if d.units != nil {
		d.units.Trim(d.isSafe)
		return
	}
	d.forget(func(u *ingest.Unit) bool {
		return d.isSafe(unitlog.End{Policy: u.Group.Policy, Last: ingest.AppliedUnitOf(u)})
	})
}

// isSafe reports whether the worker of a policy has saved a unit twice.
func (d *Delivery) isSafe(u unitlog.End) bool {
	w := d.Known[u.Policy]
	return w != nil && w.worker.hasSafe(u.Last)
}

// forget drops the kept units that match which.
func (d *Delivery) forget(which func(*ingest.Unit) bool) {
	kept := d.Unsafe[:0]
	for _, u := range d.Unsafe {
		if which(u) {
			d.keptBytes.Add(-u.Bytes())
		} else {
			kept = append(kept, u)
		}
	}
	clear(d.Unsafe[len(kept):])
	if d.Unsafe = kept; 4*len(kept) < cap(kept) {
		d.Unsafe = slices.Clone(kept) // otherwise the memory of a burst would never be freed
	}
}
