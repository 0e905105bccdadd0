package engine

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/order"
	"github.com/rewardwatch/rewardwatch/ingest/receive"
	"github.com/rewardwatch/rewardwatch/ingest/repartition"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
	"github.com/rewardwatch/rewardwatch/ingest/unitlog"
)

// Telemetry is the set of feeds, one for each partition of the telemetry topic, and the outlet that they share.
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
	f := &PartitionFeed{pipeline: t.pipeline, Out: t.outlet.Assign(partition), lane: t.pipeline.newLane(0), received: receive.Recent{Senders: t.pipeline.Cfg.Tenants.Has}}
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
		for _, l := range f.lanes() {
			l.Close()
		}
		delete(t.feeds, partition)
	}
}

// PartitionFeed is the processor of the partitions with one number. It has a lane for each topic, with the open
// episodes and open decisions of that topic's partition.
type PartitionFeed struct {
	pipeline *Pipeline
	Out      PartitionOutlet
	*lane                      // of the first topic that has a partition with the number
	others   []*lane           // of the other topics
	read     *order.Watermarks // how far each lane has been read, by index of its topic; nil for a single lane
	turn     uint64            // over all lanes, the number of the last decision with delayed feedback
	away     []laneState       // restored lanes of topics that cannot be read at the moment

	received receive.Recent
	sent     repartition.Follower // follows the telemetry that was forwarded by its key

	mu        sync.Mutex
	forgotten []forgetting // received, not carried out yet
	obeyed    []forgetting // carried out, oldest first; only for the goroutine of the partition
}

// Process turns a batch into units and passes them on.
func (f *PartitionFeed) Process(ctx context.Context, batch []ingest.Event) error {
	f.obey()
	l := f.lane
	if len(f.others) > 0 {
		l = f.of(batch[0].Pos.Partition.Topic())
	}
	var failed error
	emit := func(u *ingest.Unit) {
		if !l.Episodes.Admits(u.Group.Policy, u.EndTS, l.Clock.TS) {
			return
		}
		u.Reading, u.Run = l.reading, l.Clock.Run(u.EndTS)
		if failed == nil {
			failed = f.Out.Hand(ctx, u)
		}
	}
	decided := func(d *ingest.Decision) {
		if !l.Episodes.Admits(d.Shape.Group.Policy, d.TS, l.Clock.TS) {
			return
		}
		d.Reading, d.Run = l.reading, l.Clock.Run(d.TS)
		if failed == nil {
			failed = f.Out.HandDecision(ctx, d)
		}
	}
	now, clock := time.Now(), false
	believed := order.Believed(now)
	for i := range batch {
		clock = f.fold(l, &batch[i], believed, emit, decided) || clock
	}
	if failed != nil {
		return failed
	}
	f.received.Processed(l.topic)
	var end time.Time // how far the partition has been read, if the events do not show that
	if !clock {
		end = f.heldNoMore(now)
	}
	return f.mark(ctx, l, end, now)
}

// Seen implements ingest.Recognizer.
func (f *PartitionFeed) Seen(m *ingest.Message) bool { return f.sent.Seen(m) || f.received.Seen(m) }

// Idle implements ingest.Processor.
func (f *PartitionFeed) Idle(ctx context.Context, at time.Time) error {
	return f.mark(ctx, f.lane, f.heldNoMore(at), time.Now())
}

// heldNoMore returns the time at which there was no older telemetry, given the time at which the partition ended.
// Telemetry that is forwarded by its key may be in its topic, but not here yet. Only marks show how far it was
// forwarded; before the first one, nothing is known.
func (f *PartitionFeed) heldNoMore(end time.Time) time.Time {
	if sent := f.sent.ReadTo(); f.pipeline.Source.SentOn && sent.Before(end) {
		return sent
	}
	return end
}

// feedFormat is the format of a saved partition, followed by its open decisions and the units that are kept. In format
// 4, fields had names; in format 5, no decisions followed; in format 6, units were not in logs.
var feedFormat = saved.Format[feedState]{
	Version: 7,
	Before: map[byte]saved.Migration[feedState]{
		4: saved.Named[feedState], 5: saved.Same[feedState], 6: saved.Same[feedState],
	},
}

// feedState is the snapshot of a partition. Field numbers are never reused; package saved has the rules.
type feedState struct {
	Last      int64            `cbor:"1,keyasint"` // of EventClock, as are the next two
	Records   int64            `cbor:"2,keyasint"`
	Before    order.WireMoment `cbor:"3,keyasint"`
	Reading   int64            `cbor:"4,keyasint"`
	Episodes  []byte           `cbor:"5,keyasint"`
	Obeyed    []obeyedState    `cbor:"6,keyasint,omitzero"`
	Decisions []byte           `cbor:"7,keyasint,omitempty"` // open decisions, as earlier builds wrote them
	// Topic is the index of the first lane's topic. All fields but Obeyed, Others and Received belong to this lane.
	Topic  int         `cbor:"8,keyasint,omitzero"`
	Others []laneState `cbor:"9,keyasint,omitzero"`
	// Received are the last messages of batches that were received over HTTP.
	Received []uint64 `cbor:"10,keyasint,omitempty"`
	Joins    bool     `cbor:"11,keyasint,omitzero"` // as in laneState
	// Sent are the newest events of each telemetry partition, if telemetry is forwarded by its key.
	Sent []repartition.Newest `cbor:"12,keyasint,omitempty"`
	// Log says where the kept units are, if they do not follow.
	Log unitlog.State `cbor:"13,keyasint,omitzero"`
	// Senders are the equivalent of Received for tenants.
	Senders []receive.Sent `cbor:"14,keyasint,omitempty"`
}

// obeyedState is the saved form of forgetting.
type obeyedState struct {
	Policy string `cbor:"1,keyasint"`
	At     int64  `cbor:"2,keyasint"`
}

// Snapshot implements ingest.Processor.
func (f *PartitionFeed) Snapshot(w io.Writer) error {
	f.obey() // the topic of the orders may have been saved without them
	if share, tell := f.pipeline.intake.Apart(); tell {
		f.pipeline.Log.Error().Float64("share", share).
			Msg("feedback and its decision are in different partitions: write decisions and feedback with the same key and the same partitioner, or set ingest.kafka.repartition_topic")
	}
	first, err := f.state()
	if err != nil {
		return err
	}
	state := feedState{
		Last: first.Last, Records: first.Records, Before: first.Before, Reading: first.Reading, Episodes: first.Episodes,
		Joins: first.Joins, Topic: first.Topic, Others: slices.Clone(f.away),
		Obeyed: saved.Each(f.obeyed, func(o forgetting) obeyedState { return obeyedState(o) }),
	}
	for _, l := range f.others {
		other, err := l.state()
		if err != nil {
			return err
		}
		state.Others = append(state.Others, other)
	}
	kept, err := f.Out.Keep()
	if err != nil {
		return err
	}
	state.Received, state.Senders, state.Sent, state.Log = f.received.Saved(), f.received.SavedApart(), f.sent.Saved(), kept.log
	if err = feedFormat.WriteFrame(w, &state); err == nil {
		err = f.writeDecisions(w)
	}
	if err == nil {
		err = saved.WriteUnits(w, kept.Units)
	}
	if err != nil {
		return fmt.Errorf("write the state of a partition: %w", err)
	}
	return nil
}

// Saved implements ingest.Durable.
func (f *PartitionFeed) Saved() { f.Out.Saved() }

// Shrunk implements ingest.Shrinking. Even if no event arrives, kept units may no longer be needed, and a policy may
// have been forgotten.
func (f *PartitionFeed) Shrunk() bool { return f.isToForget() || f.Out.KeepsLess() }

// Restore implements ingest.Processor. It passes on again the units that a worker may need.
func (f *PartitionFeed) Restore(r io.Reader) error {
	if err := f.restore(r); err != nil {
		return fmt.Errorf("read the state of a partition: %w", err)
	}
	return nil
}

func (f *PartitionFeed) restore(r io.Reader) error {
	state, err := feedFormat.ReadFrame(r)
	if err != nil {
		return err
	}
	first := laneState{
		Topic: state.Topic, Last: state.Last, Records: state.Records, Before: state.Before, Reading: state.Reading, Episodes: state.Episodes,
		Decisions: state.Decisions, Joins: state.Joins,
	}
	if err := f.restoreLanes(append([]laneState{first}, state.Others...), r); err != nil {
		return err
	}
	kept, err := saved.ReadUnits(r)
	if err != nil {
		return err
	}
	f.obeyed = saved.Each(state.Obeyed, func(o obeyedState) forgetting { return forgetting(o) })
	f.received.Restore(state.Received, state.Senders...)
	f.sent.Restore(state.Sent)
	return f.Out.Resume(Kept{Units: kept, log: state.Log}, f.now())
}
