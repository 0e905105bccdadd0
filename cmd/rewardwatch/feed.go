package main

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/assemble"
)

// partitionFeed is the processor of one partition: its open episodes, and the units that it handed to desks which may need
// them again.
type partitionFeed struct {
	pipeline  *pipeline
	partition int32
	episodes  *assemble.Assembler
	known     map[string]*way // by policy
	told      bool            // that it is full
	unsafe    []*ingest.Unit  // not in both of the last two saves of their desks
	last      int64           // largest event time read that can be believed
	reading   int64           // when it was begun to be read without a checkpoint: what banks know of it before is of no account
}

// way is the way of a partition's units to the desk of their policy.
type way struct {
	desk    *runningDesk
	waiting atomic.Int64 // units on the way
}

// Process folds a batch into units and hands them on.
func (f *partitionFeed) Process(ctx context.Context, batch []ingest.Event) error {
	var failed error
	emit := func(u *ingest.Unit) {
		u.Reading = f.reading
		if failed == nil {
			failed = f.hand(ctx, u)
		}
	}
	now, clock := time.Now(), false
	believed := now.Add(clockTolerance).UnixNano()
	for i := range batch {
		if ts := batch[i].TS; ts != 0 && ts <= believed {
			f.last, clock = max(f.last, ts), true
		}
		f.episodes.Fold(&batch[i], emit)
	}
	var end time.Time // that the partition has been read to, where the events do not say it
	if !clock {
		end = now
	}
	f.pipeline.marks.advance(f.partition, f.last, end, now)
	return failed
}

// Idle implements ingest.Processor.
func (f *partitionFeed) Idle(_ context.Context, at time.Time) error {
	f.pipeline.marks.advance(f.partition, f.last, at, time.Now())
	return nil
}

// hand gives a unit to the desk of its policy, and waits while too many of this partition are on their way there.
func (f *partitionFeed) hand(ctx context.Context, u *ingest.Unit) error {
	w, err := f.way(u.Group.Policy)
	if errors.Is(err, errUnmatched) || errors.Is(err, errStreamLimit) {
		f.pipeline.metrics.dropped.WithLabelValues(err.Error()).Inc()
		return nil
	}
	if err != nil {
		return err
	}
	if err := f.room(ctx, w); err != nil {
		return err
	}
	f.unsafe = append(f.unsafe, u)
	select {
	case w.desk.units <- newWaitingUnit(u, &w.waiting, time.Now()):
		return nil
	case <-f.pipeline.ctx.Done():
		return context.Cause(f.pipeline.ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// way finds the way to the desk of a policy.
func (f *partitionFeed) way(policy string) (*way, error) {
	if w := f.known[policy]; w != nil {
		return w, nil
	}
	r, err := f.pipeline.desk(policy)
	if err != nil {
		return nil, err
	}
	f.known[policy] = &way{desk: r}
	return f.known[policy], nil
}

// room waits until fewer units than allowed are on the way, and fewer than allowed are not saved, as on a full disk; or
// until the generation ends: then the batch in hand is finished. A partition that no other one is behind is not held up by
// the units on the way: it is the one that they wait for.
func (f *partitionFeed) room(ctx context.Context, w *way) error {
	for {
		full := f.full()
		held := w.waiting.Load() >= feedBacklog && f.pipeline.marks.waitsForOthers(f.partition)
		if !full && !held || f.pipeline.marks.ending() {
			return nil
		}
		pause := mergePulse
		if full {
			pause = deskPulse
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-f.pipeline.ctx.Done():
			return context.Cause(f.pipeline.ctx)
		case now := <-time.After(pause):
			f.pipeline.marks.alive(f.partition, now)
		}
	}
}

// full reports whether as many units as are allowed wait for a state that cannot be saved.
func (f *partitionFeed) full() bool {
	if len(f.unsafe) < f.pipeline.unsafeBacklog {
		f.told = false
		return false
	}
	f.forgetSafe()
	full := len(f.unsafe) >= f.pipeline.unsafeBacklog
	if full && !f.told {
		f.pipeline.log.Error().Int32("partition", f.partition).Int("units", len(f.unsafe)).
			Msg("Reading waits: what was judged since cannot be saved")
	}
	f.told = full
	return full
}

// feedVersion is the format of feedState. Another one is refused, with its number.
const feedVersion = 2

// feedState is the snapshot of a partition.
type feedState struct {
	Version  int
	Last     int64
	Reading  int64
	Episodes []byte
	Unsafe   []*ingest.Unit
}

// Snapshot implements ingest.Processor.
func (f *partitionFeed) Snapshot(w io.Writer) error {
	var episodes bytes.Buffer
	if err := f.episodes.Snapshot(&episodes); err != nil {
		return err
	}
	f.forgetSafe()
	if err := gob.NewEncoder(w).Encode(feedState{feedVersion, f.last, f.reading, episodes.Bytes(), f.unsafe}); err != nil {
		return fmt.Errorf("write the state of a partition: %w", err)
	}
	return nil
}

// forgetSafe drops the units that their desks have saved twice.
func (f *partitionFeed) forgetSafe() {
	kept := f.unsafe[:0]
	for _, u := range f.unsafe {
		if !f.known[u.Group.Policy].desk.hasSafe(u) {
			kept = append(kept, u)
		}
	}
	clear(f.unsafe[len(kept):])
	f.unsafe = kept
}

// Restore implements ingest.Processor. Units that a desk may need again are handed on again.
func (f *partitionFeed) Restore(r io.Reader) error {
	var state feedState
	if err := gob.NewDecoder(r).Decode(&state); err != nil {
		return fmt.Errorf("read the state of a partition: %w", err)
	}
	if state.Version != feedVersion {
		return fmt.Errorf("read the state of a partition: its format is %d, and this build reads format %d; start the build that wrote it, "+
			"or move its checkpoint away to go on at the committed offset", state.Version, feedVersion)
	}
	if err := f.episodes.Restore(bytes.NewReader(state.Episodes)); err != nil {
		return err
	}
	f.last, f.reading = state.Last, state.Reading
	for _, u := range state.Unsafe {
		if err := f.hand(f.pipeline.ctx, u); err != nil {
			return err
		}
	}
	f.pipeline.marks.assign(f.partition, f.last)
	return nil
}
