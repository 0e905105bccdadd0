package main

import (
	"cmp"
	"math"
	"sync"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// watermarkDelay is how long a unit of a policy that lies in several partitions waits for units of the others that
// ended earlier, once these have been read to their ends.
const watermarkDelay = 2 * time.Second

// watermarks says how far each assigned partition has been read, in event time. It is shared by all goroutines.
type watermarks struct {
	mu    sync.Mutex
	marks map[int32]*watermark
}

type watermark struct {
	ts      int64 // largest event time read, in Unix nanoseconds
	idle    bool  // everything there was has been read
	revoked bool  // it is not read any more; the others still wait for what it had handed on
}

func newWatermarks() *watermarks { return &watermarks{marks: map[int32]*watermark{}} }

// assign adds a partition that has been read up to event time ts. Until it is read to its end, units of other
// partitions that ended later wait for it.
func (w *watermarks) assign(partition int32, ts int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.allRevoked() { // a new generation begins, which need not have the same partitions
		clear(w.marks)
	}
	w.marks[partition] = &watermark{ts: ts}
}

// revoke keeps the mark until the last partition of the generation has been revoked, or units of the others would
// overtake those of this one that waited and are now forgotten until it is read again.
func (w *watermarks) revoke(partition int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m := w.marks[partition]; m != nil {
		m.idle, m.revoked = false, true
	}
}

func (w *watermarks) allRevoked() bool {
	for _, m := range w.marks {
		if !m.revoked {
			return false
		}
	}
	return true
}

// advance says that all units of a partition up to event time ts have been handed to their desks.
func (w *watermarks) advance(partition int32, ts int64, idle bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m := w.marks[partition]; m != nil {
		m.ts, m.idle = max(m.ts, ts), idle
	}
}

// low is the event time up to which no unit of any partition is missing. With a single partition there is nothing to
// wait for.
func (w *watermarks) low(now time.Time) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	low := int64(math.MaxInt64)
	if len(w.marks) < 2 {
		return low
	}
	for _, m := range w.marks {
		ts := m.ts
		if m.idle {
			ts = max(ts, now.Add(-watermarkDelay).UnixNano())
		}
		low = min(low, ts)
	}
	return low
}

// idle reports whether every assigned partition has been read to its end.
func (w *watermarks) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.marks {
		if !m.idle {
			return false
		}
	}
	return len(w.marks) > 0
}

// merger puts the units of one policy from several partitions into one order: by (end time, agent, episode), each
// partition's own order kept. So the same telemetry gives the same order, whoever read which partition when.
type merger struct {
	queues map[int32][]*ingest.Unit
	last   int64 // largest end time released
	late   int   // units released after a unit that ended later, since the last take
}

func newMerger() *merger { return &merger{queues: map[int32][]*ingest.Unit{}} }

func (m *merger) add(u *ingest.Unit) {
	p := u.Pos.Partition
	m.queues[p] = append(m.queues[p], u)
}

// drop forgets the waiting units of a partition that was revoked: its checkpoint has them.
func (m *merger) drop(partition int32) { delete(m.queues, partition) }

// waiting is the number of units that have not been released.
func (m *merger) waiting() int {
	n := 0
	for _, q := range m.queues {
		n += len(q)
	}
	return n
}

// release gives the next unit that ended before low, nil where there is none. A unit without a clock does not
// wait.
func (m *merger) release(low int64) *ingest.Unit {
	var first *ingest.Unit
	for _, q := range m.queues {
		if len(q) > 0 && q[0].EndTS < low && (first == nil || endsBefore(q[0], first)) {
			first = q[0]
		}
	}
	if first == nil {
		return nil
	}
	p := first.Pos.Partition
	m.queues[p][0] = nil
	if m.queues[p] = m.queues[p][1:]; len(m.queues[p]) == 0 {
		delete(m.queues, p)
	}
	if first.EndTS > 0 && first.EndTS < m.last {
		m.late++
	}
	m.last = max(m.last, first.EndTS)
	return first
}

// takeLate gives the number of late units since the last call.
func (m *merger) takeLate() int {
	n := m.late
	m.late = 0
	return n
}

func endsBefore(a, b *ingest.Unit) bool {
	return cmp.Or(
		cmp.Compare(a.EndTS, b.EndTS),
		cmp.Compare(a.Agent, b.Agent),
		cmp.Compare(a.Episode, b.Episode),
		cmp.Compare(a.Pos.Partition, b.Pos.Partition),
	) < 0
}
