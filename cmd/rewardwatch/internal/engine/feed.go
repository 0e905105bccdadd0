package engine

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/order"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

// Telemetry holds the feed of each partition of the telemetry topic, and the outlet that they share.
type Telemetry struct {
	pipeline *Pipeline
	outlet   Outlet

	mu    sync.Mutex
	feeds map[int32]*PartitionFeed
}

// NewTelemetry returns the Telemetry of a pipeline, with no partition assigned.
func NewTelemetry(p *Pipeline, o Outlet) *Telemetry {
	return &Telemetry{pipeline: p, outlet: o, feeds: map[int32]*PartitionFeed{}}
}

// Begin implements ingest.Handler.
func (t *Telemetry) Begin(partitions int) { t.outlet.Begin(partitions) }

// Confirm implements ingest.Handler.
func (t *Telemetry) Confirm(at time.Time) { t.outlet.Confirm(at) }

// Assign implements ingest.Handler.
func (t *Telemetry) Assign(partition int32, _ ingest.CheckpointStore) (ingest.State, error) {
	return t.Feed(partition), nil
}

// Feed returns a new feed of a partition.
func (t *Telemetry) Feed(partition int32) *PartitionFeed {
	f := &PartitionFeed{
		Out: t.outlet.Assign(partition), Intake: NewIntake(t.pipeline.Cfg, t.pipeline.intake),
		reading: time.Now().UnixNano(),
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.feeds[partition] = f
	return f
}

// Ending implements ingest.Handler.
func (t *Telemetry) Ending() { t.outlet.Ending() }

// Revoke implements ingest.Handler.
func (t *Telemetry) Revoke(partition int32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f := t.feeds[partition]; f != nil {
		f.Out.Revoke()
		f.close()
		delete(t.feeds, partition)
	}
}

// PartitionFeed is the processor of one partition of the telemetry: it holds the partition's open episodes, open
// decisions and read position.
type PartitionFeed struct {
	*Intake
	Out PartitionOutlet

	mu        sync.Mutex
	forgotten []forgetting // received, not carried out yet
	obeyed    []forgetting // carried out, oldest first; only for the goroutine of the partition

	reading int64 // when reading began without a checkpoint; what banks know of the partition from before is void
}

// Process folds a batch into units and hands them on.
func (f *PartitionFeed) Process(ctx context.Context, batch []ingest.Event) error {
	f.obey()
	var failed error
	emit := func(u *ingest.Unit) {
		u.Reading, u.Run = f.reading, f.clock.Run(u.EndTS)
		if failed == nil {
			failed = f.Out.Hand(ctx, u)
		}
	}
	now, clock := time.Now(), false
	believed := order.Believed(now)
	for i := range batch {
		clock = f.Fold(&batch[i], believed, emit) || clock
	}
	if failed != nil {
		return failed
	}
	var end time.Time // how far the partition has been read, if the events do not say it
	if !clock {
		end = now
	}
	return f.Out.Mark(ctx, f.clock.Now(), end, now)
}

// Idle implements ingest.Processor.
func (f *PartitionFeed) Idle(ctx context.Context, at time.Time) error {
	return f.Out.Mark(ctx, f.clock.Now(), at, time.Now())
}

// feedFormat is the format of a saved partition. The units that are kept follow it. In format 4 fields had names.
var feedFormat = saved.Format[feedState]{Version: 5, Before: map[byte]saved.Migration[feedState]{4: saved.Named[feedState]}}

// feedState is the snapshot of a partition. Field numbers are never reused; package saved has the rules.
type feedState struct {
	Last     int64            `cbor:"1,keyasint"` // of EventClock, as are the next two
	Records  int64            `cbor:"2,keyasint"`
	Before   order.WireMoment `cbor:"3,keyasint"`
	Reading  int64            `cbor:"4,keyasint"`
	Episodes []byte           `cbor:"5,keyasint"`
	Obeyed   []obeyedState    `cbor:"6,keyasint,omitzero"`
	// Decisions are open, and wait for feedback.
	Decisions []byte `cbor:"7,keyasint,omitempty"`
}

// obeyedState is the saved form of forgetting.
type obeyedState struct {
	Policy string `cbor:"1,keyasint"`
	At     int64  `cbor:"2,keyasint"`
}

// Snapshot implements ingest.Processor.
func (f *PartitionFeed) Snapshot(w io.Writer) error {
	f.obey() // the topic of the orders may have been saved without them
	var episodes bytes.Buffer
	if err := f.Episodes.Snapshot(&episodes); err != nil {
		return err
	}
	var decisions []byte
	if f.Decisions != nil {
		var err error
		if decisions, err = f.Decisions.Snapshot(); err != nil {
			return err
		}
	}
	kept, err := f.Out.Keep()
	if err != nil {
		return err
	}
	c := f.clock
	state := feedState{
		Last: c.TS, Records: c.Records, Before: order.WireMoment(c.Before), Reading: f.reading, Episodes: episodes.Bytes(),
		Decisions: decisions,
		Obeyed:    saved.Each(f.obeyed, func(o forgetting) obeyedState { return obeyedState(o) }),
	}
	if err = feedFormat.WriteFrame(w, &state); err == nil {
		err = saved.WriteUnits(w, kept)
	}
	if err != nil {
		return fmt.Errorf("write the state of a partition: %w", err)
	}
	return nil
}

// Shrunk implements ingest.Shrinking. Even if no event arrives, kept units may have become safe, and a policy may
// have been forgotten.
func (f *PartitionFeed) Shrunk() bool { return f.isToForget() || f.Out.KeepsLess() }

// Restore implements ingest.Processor. It hands on again the units that a worker may need again.
func (f *PartitionFeed) Restore(r io.Reader) error {
	var kept []*ingest.Unit
	state, err := feedFormat.ReadFrame(r)
	if err == nil {
		kept, err = saved.ReadUnits(r)
	}
	if err != nil {
		return fmt.Errorf("read the state of a partition: %w", err)
	}
	if err := f.Episodes.Restore(bytes.NewReader(state.Episodes)); err != nil {
		return err
	}
	if f.Decisions != nil {
		if err := f.Decisions.Restore(state.Decisions, state.Last); err != nil {
			return err
		}
	}
	f.obeyed = saved.Each(state.Obeyed, func(o obeyedState) forgetting { return forgetting(o) })
	f.clock, f.reading = order.EventClock{TS: state.Last, Records: state.Records, Before: order.Moment(state.Before)}, state.Reading
	return f.Out.Resume(kept, f.clock.Now())
}
