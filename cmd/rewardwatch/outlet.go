package main

import (
	"context"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// outlet is where the units of the telemetry go: to the desks of this process, or to the units topic and on to those of
// the group.
type outlet interface {
	// begin says that a generation begins, on so many partitions of the telemetry topic.
	begin(partitions int)
	// assign gives the outlet of a partition that is read here from now on.
	assign(partition int32) partitionOutlet
	// ending says that the generation ends: nothing waits for room any longer.
	ending()
}

// partitionOutlet takes what one partition gives, in this order. It is for the goroutine of the partition.
type partitionOutlet interface {
	// hand takes a unit and owns it from then on. It waits for room.
	hand(ctx context.Context, u *ingest.Unit) error
	// mark says that all units before a moment have been handed on, and where end is not zero, that there was no more in
	// the partition at that time.
	mark(ctx context.Context, at moment, end, now time.Time) error
	// keep makes sure that what was handed on is not lost, and gives those units of it that are to be kept in the
	// partition's checkpoint for that. Without it, or where it fails, all is to be handed on again from the checkpoint
	// before.
	keep() ([]*ingest.Unit, error)
	// resume takes the units that a checkpoint has kept, and the moment up to which it had read.
	resume(kept []*ingest.Unit, at moment) error
	// revoke lets go of the partition.
	revoke()
}

// direct is the outlet to the desks of this process, which judge alone.
type direct struct{ desks *desks }

func (d direct) begin(partitions int) { d.desks.marks.begin(partitions) }

func (d direct) ending() { d.desks.marks.end() }

func (d direct) assign(partition int32) partitionOutlet {
	d.desks.marks.assign(partition, moment{})
	log := d.desks.pipeline.log.With().Int32("partition", partition).Logger()
	return &directPartition{delivery: newDelivery(d.desks, log), partition: partition}
}

// directPartition hands the units of a partition straight to the desks.
type directPartition struct {
	*delivery
	partition int32
}

func (d *directPartition) hand(ctx context.Context, u *ingest.Unit) error {
	return d.delivery.hand(ctx, u, time.Now(), d.room)
}

// room waits until fewer units than allowed are on the way, and fewer than allowed are not saved, as on a full disk; or
// until the generation ends: then the batch in hand is finished. A partition that no other one is behind is not held up by
// the units on the way: it is the one that they wait for.
func (d *directPartition) room(ctx context.Context, w *way) error {
	if err := d.slowDown(ctx); err != nil {
		return err
	}
	for marks := d.desks.marks; !marks.ending(); {
		pause := mergePulse
		switch {
		case d.full(func() int { return 0 }):
			pause = deskPulse
		case w.waiting.Load() < feedBacklog || !marks.waitsForOthers(d.partition):
			return nil
		}
		now, err := d.pause(ctx, pause)
		if err != nil {
			return err
		}
		marks.alive(d.partition, now)
	}
	return nil
}

func (d *directPartition) mark(_ context.Context, at moment, end, now time.Time) error {
	if !d.desks.marks.ending() {
		d.desks.marks.advance(d.partition, at, end, now)
	}
	return nil
}

func (d *directPartition) keep() ([]*ingest.Unit, error) { return d.kept(), nil }

func (d *directPartition) resume(kept []*ingest.Unit, at moment) error {
	for _, u := range kept {
		if err := d.hand(d.desks.ctx, u); err != nil {
			return err
		}
	}
	d.desks.marks.assign(d.partition, at)
	return nil
}

func (d *directPartition) revoke() {
	d.desks.marks.revoke(d.partition)
	d.delivery.revoke()
}
