package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/order"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

// leavePatience limits how long workers may take to stop for a rebalance. It is well below the time that the group
// waits for a member.
const leavePatience = 10 * time.Second

// namedStore is a store that can list the workers saved in it.
type namedStore interface {
	ingest.CheckpointStore
	Names(prefix string) ([]string, error)
}

// unitReaders creates the reader of each partition of the units topic, and the workers of the policies in it. It
// implements ingest.Handler.
type unitReaders struct {
	pipeline *engine.Pipeline
	records  *ingest.UnitRecords
	written  func() int                        // partitions of the units topic that this process writes to
	drop     func(policy string, at time.Time) // makes the telemetry readers of this process drop the open episodes of a policy, once for each order

	mu      sync.Mutex
	found   int // partitions of the units topic in this generation
	readers map[int32]*unitReader
}

func newUnitReaders(p *engine.Pipeline, records *ingest.UnitRecords, written func() int, drop func(policy string, at time.Time)) *unitReaders {
	return &unitReaders{pipeline: p, records: records, written: written, drop: drop, readers: map[int32]*unitReader{}}
}

// Begin implements ingest.Handler.
func (t *unitReaders) Begin(partitions int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.found = partitions
}

// Confirm implements ingest.Handler: the units topic never gets more partitions.
func (t *unitReaders) Confirm(time.Time) {}

// Assign implements ingest.Handler. It restores the workers as the previous owner saved them.
func (t *unitReaders) Assign(partition int32, store ingest.CheckpointStore) (ingest.State, error) {
	t.mu.Lock()
	found := t.found
	t.mu.Unlock()
	if written := t.written(); found != written {
		return nil, regrown(found, written)
	}
	named, ok := store.(namedStore)
	if !ok {
		return nil, fmt.Errorf("the checkpoint store %T cannot list checkpoints", store)
	}
	names, err := named.Names(engine.BankPrefix)
	if err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	log := t.pipeline.Log.With().Int32("units_partition", partition).Logger()
	d := t.pipeline.NewWorkers(store, partition)
	if err := d.Restore(d.Ctx, names); err != nil {
		return nil, errors.Join(err, d.Leave(leavePatience))
	}
	r := &unitReader{
		Delivery: engine.NewDelivery(d, log, nil), records: t.records, partition: partition, partitions: found, drop: t.drop, newest: map[ingest.Partition]ingest.AppliedUnit{},
		damaged: log.Sample(&zerolog.BurstSampler{Burst: 5, Period: time.Minute}),
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.readers[partition] = r
	return r, nil
}

// regrown returns the error for a units topic whose number of partitions has changed.
func regrown(now, before int) error {
	return fmt.Errorf("the units topic now has %d partitions instead of %d, so policies would no longer be judged in the partitions that contain their baselines; stop all instances and set cluster.units_topic to a new topic; policies then collect new baselines", now, before)
}

// Ending implements ingest.Handler.
func (t *unitReaders) Ending() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.readers {
		r.Workers.Marks.End()
	}
}

// Revoke implements ingest.Handler. It saves and drops the workers of the partition.
func (t *unitReaders) Revoke(partition int32) {
	t.mu.Lock()
	r := t.readers[partition]
	delete(t.readers, partition)
	t.mu.Unlock()
	if err := r.Workers.Leave(leavePatience); err != nil {
		r.Log.Warn().Err(err).Msg("some policies in a partition could not be saved: its next owner will judge all units received since the last save again")
	}
	r.Revoke() // otherwise the units that it keeps would count towards the limit of kept units forever
}

// unitReader passes the units of one partition of the units topic to their workers, and tells the workers how far each
// partition of the telemetry has been read. If a partition of the telemetry is read again, its units arrive again,
// unchanged and in the same order, and unitReader skips them.
type unitReader struct {
	*engine.Delivery
	records    *ingest.UnitRecords
	partition  int32
	partitions int                                     // of the units topic
	newest     map[ingest.Partition]ingest.AppliedUnit // newest unit from each partition of the telemetry
	damaged    zerolog.Logger                          // limited to a few messages per minute
	drop       func(policy string, at time.Time)
	forgetting []ingest.ForgetOrder // received, but not yet carried out by a worker
}

// ProcessMessages implements ingest.MessageProcessor.
func (r *unitReader) ProcessMessages(ctx context.Context, batch []ingest.Message) error {
	for _, m := range batch {
		if order := r.records.ReadForget(m.Value); order != nil {
			if err := r.Flush(ctx); err != nil {
				return err
			}
			r.forget(*order)
			continue
		}
		unit, mark, err := r.records.Read(m.Value)
		switch {
		case errors.Is(err, ingest.ErrUnitDamaged):
			r.Workers.Pipeline.Metrics.Dropped.WithLabelValues(engine.ErrDamagedUnit.Error()).Inc()
			r.damaged.Error().Err(err).Int64("offset", m.Pos.Offset).Msg("skipped a record in the units topic")
		case err != nil:
			return fmt.Errorf("offset %d in partition %d of the units topic: %w", m.Pos.Offset, m.Pos.Partition, err)
		case mark != nil:
			if err := r.Flush(ctx); err != nil {
				return err
			}
			r.Workers.Marks.Take(mark)
		case r.isNew(unit):
			if err := r.take(ctx, unit, r.Workers.Marks.Clock()); err != nil {
				return err
			}
		}
	}
	return r.Flush(ctx)
}

// isNew reports whether a unit arrives for the first time: neither it nor a later unit of its partition has arrived
// before.
func (r *unitReader) isNew(u *ingest.Unit) bool {
	newest, any := r.newest[u.Pos.Partition]
	if any && (u.Reading < newest.Reading || newest.Covers(u)) {
		return false
	}
	r.newest[u.Pos.Partition] = ingest.AppliedUnit{Pos: u.Pos, Ord: u.Ord, Reading: u.Reading}
	return true
}

// take passes a unit on. It uses the clock of the log, so that all readers agree on which units are in the future.
func (r *unitReader) take(ctx context.Context, u *ingest.Unit, now time.Time) error {
	if now.IsZero() { // the marks before it are no longer retained
		now = time.Now()
	}
	w := order.NewWaitingUnit(u)
	return r.Hand(ctx, &w, now, r.room)
}

// room waits while too many judged units are not saved. Units that wait for partitions that are further behind do not
// count, because what they wait for comes later in this partition. For the same reason, reading does not slow down
// while many units wait: they would only stay in memory for longer.
func (r *unitReader) room(ctx context.Context, _ *engine.Route) error {
	if r.Waiting() < engine.FeedBacklog {
		if err := r.SlowDown(ctx); err != nil {
			return err
		}
	}
	for !r.Workers.Marks.Ending() && (r.Full(r.Waiting) || r.Crowded(func() bool { return false })) {
		if _, err := r.Pause(ctx, engine.WorkerPulse); err != nil {
			return err
		}
	}
	return nil
}

// Idle implements ingest.State. Only marks say how far the telemetry has been read. Idle retries orders that could
// not be carried out.
func (r *unitReader) Idle(context.Context, time.Time) error {
	r.carryOut()
	return nil
}

// readerFormat is the format of a saved partition of the units topic, followed by the units that are kept. In format 2,
// fields had names.
var readerFormat = saved.Format[readerState]{Version: 3, Before: map[byte]saved.Migration[readerState]{2: saved.Named[readerState]}}

// readerState is the snapshot of a partition of the units topic. Field numbers are never reused; package saved has
// the rules.
type readerState struct {
	Partitions int                                    `cbor:"1,keyasint"`
	Marks      order.MarksState                       `cbor:"2,keyasint"`
	Newest     map[ingest.Partition]saved.AppliedUnit `cbor:"3,keyasint,omitzero"`
	Forgetting []ingest.ForgetOrder                   `cbor:"4,keyasint,omitzero"` // as the topic has them
}

// Snapshot implements ingest.State.
func (r *unitReader) Snapshot(w io.Writer) error {
	state := readerState{
		Partitions: r.partitions, Marks: r.Workers.Marks.State(), Newest: map[ingest.Partition]saved.AppliedUnit{}, Forgetting: r.forgetting,
	}
	for partition, a := range r.newest {
		state.Newest[partition] = saved.AppliedUnitOf(a)
	}
	err := readerFormat.WriteFrame(w, &state)
	if err == nil {
		err = saved.WriteUnits(w, r.Kept())
	}
	if err != nil {
		return fmt.Errorf("write the state of a units topic partition: %w", err)
	}
	return nil
}

// Shrunk implements ingest.Shrinking: kept units may no longer be needed.
func (r *unitReader) Shrunk() bool { return r.KeepsLess() }

// Restore implements ingest.State. It passes on again the units that a worker may need, before the workers learn how
// far the telemetry has been read.
func (r *unitReader) Restore(from io.Reader) error {
	var kept []*ingest.Unit
	state, err := readerFormat.ReadFrame(from)
	if err == nil {
		kept, err = saved.ReadUnits(from)
	}
	if err != nil {
		return fmt.Errorf("read the state of a units topic partition: %w", err)
	}
	if state.Partitions != r.partitions {
		return regrown(r.partitions, state.Partitions)
	}
	for partition, a := range state.Newest {
		r.newest[partition] = a.Live()
	}
	for _, u := range kept {
		if err := r.take(r.Workers.Ctx, u, order.FromUnixNano(state.Marks.Last)); err != nil {
			return err
		}
	}
	if err := r.Flush(r.Workers.Ctx); err != nil {
		return err
	}
	r.LastKept = len(kept)
	r.forgetting = state.Forgetting
	r.carryOut()
	r.Workers.Marks.Restore(state.Marks)
	return nil
}
