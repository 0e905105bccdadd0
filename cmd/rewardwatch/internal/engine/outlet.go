package engine

import (
	"context"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/order"
)

// Outlet is where the units of the telemetry go: to the workers of this process, or over the units topic to those of
// the whole cluster.
type Outlet interface {
	// Begin starts a generation with the given number of partitions of the telemetry topic.
	Begin(partitions int)
	// Confirm records that at the time at there were no other partitions.
	Confirm(at time.Time)
	// Assign returns the outlet of a partition that is read here from now on.
	Assign(partition int32) PartitionOutlet
	// Ending marks the end of the generation: nothing waits for room any longer.
	Ending()
}

// PartitionOutlet takes what one partition emits, in order. Only the goroutine of the partition may use it.
type PartitionOutlet interface {
	// Hand takes ownership of a unit. It waits for room.
	Hand(ctx context.Context, u *ingest.Unit) error
	// Mark records that all units before a moment have been handed on. If end is not zero, the partition held nothing
	// more at that time.
	Mark(ctx context.Context, at order.Moment, end, now time.Time) error
	// Keep makes sure that what was handed on is not lost. It returns the units that the partition's checkpoint must
	// keep for that. If Keep is not called, or fails, everything since the previous checkpoint must be handed on
	// again.
	Keep() ([]*ingest.Unit, error)
	// Resume takes the units that a checkpoint has kept, and the moment up to which the partition had been read.
	Resume(kept []*ingest.Unit, at order.Moment) error
	// KeepsLess reports whether Keep would return fewer units than last time, or than Resume took.
	KeepsLess() bool
	// Revoke releases the partition.
	Revoke()
}

// Direct is the outlet of a standalone instance, to the workers of this process.
type Direct struct{ Workers *Workers }

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
	return &directPartition{Delivery: NewDelivery(d.Workers, log), partition: partition}
}

// directPartition hands the units of a partition straight to the workers.
type directPartition struct {
	*Delivery
	partition int32
}

func (d *directPartition) Hand(ctx context.Context, u *ingest.Unit) error {
	return d.Delivery.Hand(ctx, u, time.Now(), d.room)
}

// room waits until fewer units than allowed are in flight and, as on a full disk, fewer than allowed are unsaved.
// Once the generation ends it no longer waits, and the batch in hand is finished. Units in flight do not hold up the
// partition that is furthest behind: it is the one that they wait for.
func (d *directPartition) room(ctx context.Context, w *Route) error {
	if err := d.SlowDown(ctx); err != nil {
		return err
	}
	for marks := d.Workers.Marks; !marks.Ending(); {
		pause := MergePulse
		switch {
		case d.Full(func() int { return 0 }), d.Crowded(!marks.HoldsUp(d.partition)):
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

func (d *directPartition) Mark(_ context.Context, at order.Moment, end, now time.Time) error {
	if !d.Workers.Marks.Ending() {
		d.Workers.Marks.Advance(d.partition, at, end, now)
	}
	return nil
}

func (d *directPartition) Keep() ([]*ingest.Unit, error) { return d.Kept(), nil }

func (d *directPartition) Resume(kept []*ingest.Unit, at order.Moment) error {
	for _, u := range kept {
		if err := d.Hand(d.Workers.Ctx, u); err != nil {
			return err
		}
	}
	d.Saved = len(kept)
	d.Workers.Marks.Assign(d.partition, at)
	return nil
}

func (d *directPartition) Revoke() {
	d.Workers.Marks.Revoke(d.partition)
	d.Delivery.Revoke()
}
