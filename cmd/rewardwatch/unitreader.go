package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// leavePatience is how long desks that stop for a rebalance may take. It is well below what the group waits for a member.
const leavePatience = 10 * time.Second

// namedStore is a store that can be asked for the desks that are saved in it.
type namedStore interface {
	ingest.CheckpointStore
	Names(prefix string) ([]string, error)
}

// unitReaders gives each partition of the units topic its reader, and the desks of the policies that lie in it. It
// implements ingest.Handler.
type unitReaders struct {
	pipeline *pipeline
	records  *ingest.UnitRecords
	written  func() int // partitions of the units topic that this process writes to

	mu      sync.Mutex
	found   int // partitions of the units topic in this generation
	readers map[int32]*unitReader
}

func newUnitReaders(p *pipeline, records *ingest.UnitRecords, written func() int) *unitReaders {
	return &unitReaders{pipeline: p, records: records, written: written, readers: map[int32]*unitReader{}}
}

// Begin implements ingest.Handler.
func (t *unitReaders) Begin(partitions int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.found = partitions
}

// Assign implements ingest.Handler. It takes up the desks as the owner before has saved them.
func (t *unitReaders) Assign(partition int32, store ingest.CheckpointStore) (ingest.State, error) {
	t.mu.Lock()
	found := t.found
	t.mu.Unlock()
	if written := t.written(); found != written {
		return nil, regrown(found, written)
	}
	named, ok := store.(namedStore)
	if !ok {
		return nil, fmt.Errorf("a store of checkpoints that cannot name them: %T", store)
	}
	names, err := named.Names(bankPrefix)
	if err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	log := t.pipeline.log.With().Int32("units_partition", partition).Logger()
	d := t.pipeline.newDesks(store, partition)
	if err := d.restore(names); err != nil {
		return nil, errors.Join(err, d.leave(leavePatience))
	}
	r := &unitReader{
		delivery: newDelivery(d, log), records: t.records, partitions: found, newest: map[int32]bank.AppliedUnit{},
		damaged: log.Sample(&zerolog.BurstSampler{Burst: 5, Period: time.Minute}),
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.readers[partition] = r
	return r, nil
}

// regrown is the error for a units topic that has not the number of partitions that it had.
func regrown(now, before int) error {
	return fmt.Errorf("the units topic has %d partitions and had %d, so that policies would be judged in other partitions than those that have "+
		"their baselines; stop all instances and name a new topic in cluster.units_topic: policies then warm up new baselines", now, before)
}

// Ending implements ingest.Handler.
func (t *unitReaders) Ending() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.readers {
		r.desks.marks.end()
	}
}

// Revoke implements ingest.Handler. It saves and forgets the desks of the partition.
func (t *unitReaders) Revoke(partition int32) {
	t.mu.Lock()
	r := t.readers[partition]
	delete(t.readers, partition)
	t.mu.Unlock()
	if err := r.desks.leave(leavePatience); err != nil {
		r.log.Warn().Err(err).Msg("Not all policies of a partition could be saved as they were: the next owner judges again what came since")
	}
}

// unitReader hands the units of one partition of the units topic to their desks, and has the desks know how far each
// partition of the telemetry has been read. Units come again where their partition of the telemetry was read again; they
// are the same, in the same order, and are left out here.
type unitReader struct {
	*delivery
	records    *ingest.UnitRecords
	partitions int                        // of the units topic
	newest     map[int32]bank.AppliedUnit // that came from each partition of the telemetry
	damaged    zerolog.Logger             // a few times a minute
}

// ProcessMessages implements ingest.MessageProcessor.
func (r *unitReader) ProcessMessages(ctx context.Context, batch []ingest.Message) error {
	for _, m := range batch {
		unit, mark, err := r.records.Read(m.Value)
		switch {
		case errors.Is(err, ingest.ErrUnitDamaged):
			r.desks.pipeline.metrics.dropped.WithLabelValues(errDamagedUnit.Error()).Inc()
			r.damaged.Error().Err(err).Int64("offset", m.Pos.Offset).Msg("A record of the units topic is left out")
		case err != nil:
			return fmt.Errorf("offset %d of partition %d of the units topic: %w", m.Pos.Offset, m.Pos.Partition, err)
		case mark != nil:
			r.desks.marks.take(mark)
		case r.isNew(unit):
			if err := r.take(ctx, unit, r.desks.marks.clock()); err != nil {
				return err
			}
		}
	}
	return nil
}

// isNew reports whether a unit has not come before, nor one of its partition that ended later.
func (r *unitReader) isNew(u *ingest.Unit) bool {
	newest, any := r.newest[u.Pos.Partition]
	if any && (u.Reading < newest.Reading || newest.Covers(u)) {
		return false
	}
	r.newest[u.Pos.Partition] = bank.AppliedUnit{Pos: u.Pos, Ord: u.Ord, Reading: u.Reading}
	return true
}

// take hands a unit on. The clock is that of the log, so that a unit of the future is one for all who read it.
func (r *unitReader) take(ctx context.Context, u *ingest.Unit, now time.Time) error {
	if now.IsZero() { // retention has removed the marks before it
		now = time.Now()
	}
	return r.hand(ctx, u, now, r.room)
}

// room waits while too many units that were judged are not saved. Those that wait for partitions that have been read less
// far are not held against it: what they wait for is further on in this partition. Nor is the reading slow while many of
// them do: they would only be longer in memory.
func (r *unitReader) room(ctx context.Context, _ *way) error {
	if r.waiting() < feedBacklog {
		if err := r.slowDown(ctx); err != nil {
			return err
		}
	}
	for !r.desks.marks.ending() && r.full(r.waiting) {
		if _, err := r.pause(ctx, deskPulse); err != nil {
			return err
		}
	}
	return nil
}

// Idle implements ingest.State: how far the telemetry has been read only its marks say.
func (r *unitReader) Idle(context.Context, time.Time) error { return nil }

// readerVersion is the format of readerState. Another one is refused.
const readerVersion = 1

// readerState is the snapshot of a partition of the units topic.
type readerState struct {
	Partitions int
	Marks      marksState
	Newest     map[int32]bank.AppliedUnit
	Unsafe     []*ingest.Unit
	Shadows    []int `cbor:",omitempty"` // see ingest.Shadows
}

// Snapshot implements ingest.State.
func (r *unitReader) Snapshot(w io.Writer) error {
	kept := r.kept()
	state := readerState{r.partitions, r.desks.marks.state(), r.newest, kept, ingest.Shadows(kept)}
	if err := ingest.WriteState(w, readerVersion, state); err != nil {
		return fmt.Errorf("write the state of a partition of the units topic: %w", err)
	}
	return nil
}

// Restore implements ingest.State. Units that a desk may need again are handed on again, before the desks learn how far
// the telemetry has been read.
func (r *unitReader) Restore(from io.Reader) error {
	var state readerState
	err := ingest.ReadState(from, readerVersion, &state)
	if err == nil && slices.Contains(state.Unsafe, nil) {
		err = errors.New("it contradicts itself")
	}
	if err = errors.Join(err, ingest.SetShadows(state.Unsafe, state.Shadows)); err != nil {
		return fmt.Errorf("read the state of a partition of the units topic: %w", err)
	}
	if state.Partitions != r.partitions {
		return regrown(r.partitions, state.Partitions)
	}
	if state.Newest != nil {
		r.newest = state.Newest
	}
	for _, u := range state.Unsafe {
		if err := r.take(r.desks.ctx, u, fromUnixNano(state.Marks.Last)); err != nil {
			return err
		}
	}
	r.desks.marks.restore(state.Marks)
	return nil
}
