package engine

import (
	"context"
	"errors"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/order"
	"github.com/rewardwatch/rewardwatch/ingest/unitlog"
)

// Outlet sends the units of the telemetry to the workers of this process, or through the units topic to the workers of
// the whole cluster.
type Outlet interface {
	// Begin starts a generation with the given number of partitions of the telemetry topic.
	Begin(partitions int)
	// Confirm records that there were no other partitions at the given time.
	Confirm(at time.Time)
	// Assign returns the outlet of a partition that is read here from now on.
	Assign(partition int32) PartitionOutlet
	// Ending marks the end of the generation, after which nothing waits for space.
	Ending()
}

// PartitionOutlet accepts the units of one partition, in order. Only the goroutine of the partition may use it.
type PartitionOutlet interface {
	// Hand takes ownership of a unit. It waits for room.
	Hand(ctx context.Context, u *ingest.Unit) error
	// HandDecision does the same with a decision, which it copies.
	HandDecision(ctx context.Context, d *ingest.Decision) error
	// Mark records that all units before a moment have been delivered. If end is not zero, the partition contained
	// nothing more at that time.
	Mark(ctx context.Context, at order.Moment, end, now time.Time) error
	// Keep ensures that delivered units are not lost. It returns the units that the partition's checkpoint must contain
	// for this. If Keep is not called, or fails, everything since the previous checkpoint must be delivered again.
	Keep() (Kept, error)
	// Saved reports that the checkpoint with the last result of Keep is durable.
	Saved()
	// Resume accepts the units that a checkpoint has kept, and the moment up to which the partition had been read.
	Resume(kept Kept, at order.Moment) error
	// KeepsLess reports whether Keep would return fewer units than last time, or than Resume took.
	KeepsLess() bool
	// Revoke releases the partition.
	Revoke()
}

// Kept are the units that the checkpoint of a partition must keep: the units themselves, or their place in the log of
// the partition.
type Kept struct {
	Units []*ingest.Unit
	log   unitlog.State
}

// Direct is the outlet of a standalone instance, to the workers of this process.
type Direct struct {
	Workers *Workers
	// Log returns the directory for the unit log of a partition. The partition's checkpoint refers to the log, so the
	// two belong together. If Log is nil, the checkpoints contain the units.
	Log func(partition int32) string
}

// Begin implements Outlet.
func (d Direct) Begin(partitions int) { d.Workers.Marks.Begin(partitions) }

// Confirm implements Outlet.
func (d Direct) Confirm(at time.Time) { d.Workers.Marks.Confirm(at) }

// Ending implements Outlet.
func (d Direct) Ending() { d.Workers.Marks.End() }

// Assign implements Outlet.
func (d Direct) Assign(partition int32) PartitionOutlet {
	d.Workers.Marks.Assign(partition, order.Moment{})
	log := d.Workers.Pipeline.Log.With().Int32("partition", partition).Logger()
	var units *unitlog.Log
	if d.Log != nil {
		units = unitlog.New(d.Log(partition), unitlog.Segment, unitlog.Limit)
	}
	return &directPartition{Delivery: NewDelivery(d.Workers, log, units), partition: partition}
}

// directPartition passes the units of a partition directly to the workers.
type directPartition struct {
	*Delivery
	partition int32
	now       time.Time // a time that has passed
}

func (d *directPartition) Hand(ctx context.Context, u *ingest.Unit) error {
	w := order.NewWaitingUnit(u)
	return d.Delivery.Hand(ctx, &w, d.before(u.EndTS), d.room)
}

func (d *directPartition) HandDecision(ctx context.Context, made *ingest.Decision) error {
	if d.units == nil { // the checkpoint contains the units
		return d.Hand(ctx, made.Unit())
	}
	w := order.NewWaitingDecision(made)
	return d.Delivery.Hand(ctx, &w, d.before(made.TS), d.room)
}

// before returns a time that has passed: the last known one, or the current time if the unit's end is not credible by
// it.
func (d *directPartition) before(end int64) time.Time {
	if end > order.Believed(d.now) {
		d.now = time.Now()
	}
	return d.now
}

// room waits until fewer units than allowed are in flight and, for example on a full disk, fewer than allowed are
// unsaved. Once the generation ends, it no longer waits, and the current batch is finished. Units in flight do not hold
// up the partition that is furthest behind, because it is the one that they wait for.
func (d *directPartition) room(ctx context.Context, w *Route) error {
	if err := d.SlowDown(ctx); err != nil {
		return err
	}
	for marks := d.Workers.Marks; !marks.Ending(); {
		pause := MergePulse
		switch {
		case d.Full(func() int { return 0 }), d.Crowded(func() bool { return !marks.HoldsUp(d.partition) }):
			pause = WorkerPulse
		case w.waiting.Load() < FeedBacklog || !marks.WaitsForOthers(d.partition):
			return nil
		}
		now, err := d.Pause(ctx, pause)
		if err != nil {
			return err
		}
		marks.Alive(d.partition, now)
	}
	return nil
}

func (d *directPartition) Mark(ctx context.Context, at order.Moment, end, now time.Time) error {
	if err := d.Flush(ctx); err != nil {
		return err
	}
	if d.units != nil {
		d.units.At = at
	}
	if !d.Workers.Marks.Ending() {
		d.Workers.Marks.Advance(d.partition, at, end, now)
	}
	return nil
}

func (d *directPartition) Keep() (Kept, error) {
	if d.units == nil {
		return Kept{Units: d.Kept()}, nil
	}
	d.forgetSafe()
	log, err := d.units.Save()
	return Kept{log: log}, err
}

func (d *directPartition) Saved() {
	if d.units == nil {
		return
	}
	if err := d.units.Saved(); err != nil {
		d.Log.Warn().Err(err).Msg("failed to remove unneeded units, retrying with the next checkpoint")
	}
}

var errNoUnitLog = errors.New("its units are in a separate log, which is not used here")

func (d *directPartition) Resume(kept Kept, at order.Moment) error {
	if err := d.again(func() error { return d.handOnAgain(kept) }); err != nil {
		return err
	}
	d.Workers.Marks.Assign(d.partition, at)
	return nil
}

func (d *directPartition) handOnAgain(kept Kept) error {
	ctx := d.Workers.Ctx
	hand := func(u *ingest.Unit) error { return d.Hand(ctx, u) }
	for _, u := range kept.Units {
		if err := hand(u); err != nil {
			return err
		}
	}
	d.LastKept = len(kept.Units)
	switch {
	case d.units != nil:
		reached := func(at order.Moment) error { return d.Mark(ctx, at, time.Time{}, time.Now()) }
		if err := d.units.Resume(kept.log, hand, reached); err != nil {
			return err
		}
	case len(kept.log.Ranges) > 0:
		return errNoUnitLog
	}
	return d.Flush(ctx)
}

func (d *directPartition) Revoke() {
	d.Workers.Marks.Revoke(d.partition)
	d.Delivery.Revoke()
	if d.units == nil {
		return
	}
	if err := d.units.Close(); err != nil {
		d.Log.Warn().Err(err).Msg("failed to close the unit log")
	}
}
