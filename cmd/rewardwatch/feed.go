package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/assemble"
)

// telemetry gives each partition of the telemetry topic its feed, and all of them one outlet.
type telemetry struct {
	pipeline *pipeline
	outlet   outlet

	mu    sync.Mutex
	feeds map[int32]*partitionFeed
}

func newTelemetry(p *pipeline, o outlet) *telemetry {
	return &telemetry{pipeline: p, outlet: o, feeds: map[int32]*partitionFeed{}}
}

// Begin implements ingest.Handler.
func (t *telemetry) Begin(partitions int) { t.outlet.begin(partitions) }

// Assign implements ingest.Handler.
func (t *telemetry) Assign(partition int32, _ ingest.CheckpointStore) (ingest.State, error) {
	return t.assign(partition), nil
}

func (t *telemetry) assign(partition int32) *partitionFeed {
	f := &partitionFeed{
		out: t.outlet.assign(partition), episodes: newAssembler(t.pipeline.cfg, t.pipeline.episodes),
		reading: time.Now().UnixNano(),
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.feeds[partition] = f
	return f
}

// Ending implements ingest.Handler.
func (t *telemetry) Ending() { t.outlet.ending() }

// Revoke implements ingest.Handler.
func (t *telemetry) Revoke(partition int32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f := t.feeds[partition]; f != nil {
		f.out.revoke()
		f.episodes.Close()
		delete(t.feeds, partition)
	}
}

// newAssembler makes the first stage of a partition, or of a file.
func newAssembler(cfg *Config, m *assemble.Metrics) *assemble.Assembler {
	return assemble.New(assemble.Config{
		MaxOpen: cfg.Limits.OpenEpisodes,
		GroupBy: func(policy string) []string {
			c, _ := cfg.policy(policy)
			return c.GroupBy
		},
	}, m)
}

// partitionFeed is the processor of one partition of the telemetry: its open episodes, and how far it has been read.
type partitionFeed struct {
	out      partitionOutlet
	episodes *assemble.Assembler
	clock    eventClock
	reading  int64 // when it was begun to be read without a checkpoint: what banks know of it before is of no account
}

// Process folds a batch into units and hands them on.
func (f *partitionFeed) Process(ctx context.Context, batch []ingest.Event) error {
	var failed error
	emit := func(u *ingest.Unit) {
		u.Reading, u.Run = f.reading, f.clock.run(u.EndTS)
		if failed == nil {
			failed = f.out.hand(ctx, u)
		}
	}
	now, clock := time.Now(), false
	believed := now.Add(clockTolerance).UnixNano()
	for i := range batch {
		clock = f.clock.read(batch[i].TS, believed) || clock
		f.episodes.Fold(&batch[i], emit)
	}
	if failed != nil {
		return failed
	}
	var end time.Time // that the partition has been read to, where the events do not say it
	if !clock {
		end = now
	}
	return f.out.mark(ctx, f.clock.now(), end, now)
}

// Idle implements ingest.Processor.
func (f *partitionFeed) Idle(ctx context.Context, at time.Time) error {
	return f.out.mark(ctx, f.clock.now(), at, time.Now())
}

// feedVersion is the format of feedState. Another one is refused.
const feedVersion = 3

// feedState is the snapshot of a partition.
type feedState struct {
	Last     int64 // of eventClock, as the next two
	Records  int64
	Before   moment
	Reading  int64
	Episodes []byte
	Unsafe   []*ingest.Unit
	Shadows  []int `cbor:",omitempty"` // see ingest.Shadows
}

// Snapshot implements ingest.Processor.
func (f *partitionFeed) Snapshot(w io.Writer) error {
	var episodes bytes.Buffer
	if err := f.episodes.Snapshot(&episodes); err != nil {
		return err
	}
	kept, err := f.out.keep()
	if err != nil {
		return err
	}
	c := f.clock
	state := feedState{c.TS, c.Records, c.Before, f.reading, episodes.Bytes(), kept, ingest.Shadows(kept)}
	if err := ingest.WriteState(w, feedVersion, state); err != nil {
		return fmt.Errorf("write the state of a partition: %w", err)
	}
	return nil
}

// Restore implements ingest.Processor. Units that a desk may need again are handed on again.
func (f *partitionFeed) Restore(r io.Reader) error {
	var state feedState
	err := ingest.ReadState(r, feedVersion, &state)
	if err == nil && slices.Contains(state.Unsafe, nil) {
		err = errors.New("it contradicts itself")
	}
	if err = errors.Join(err, ingest.SetShadows(state.Unsafe, state.Shadows)); err != nil {
		return fmt.Errorf("read the state of a partition: %w", err)
	}
	if err := f.episodes.Restore(bytes.NewReader(state.Episodes)); err != nil {
		return err
	}
	f.clock, f.reading = eventClock{state.Last, state.Records, state.Before}, state.Reading
	return f.out.resume(state.Unsafe, f.clock.now())
}
