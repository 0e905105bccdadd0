package main

import (
	"cmp"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// How units of a policy that lies in several partitions wait for each other: watermarkDelay for those of partitions that
// have been read to their ends, markPatience for a partition from which nothing has been heard, and clockTolerance is how
// far ahead of the present a time may be and still be believed.
const (
	watermarkDelay = 2 * time.Second
	markPatience   = 30 * time.Second
	clockTolerance = time.Minute
)

// watermarks says how far each assigned partition has been read, in event time. It is shared by all goroutines.
type watermarks struct {
	mu    sync.Mutex
	marks map[int32]*watermark
}

type watermark struct {
	ts      int64     // largest event time read, in Unix nanoseconds
	idle    bool      // everything there was has been read, or what was read has no clock
	heard   time.Time // of the partition
	revoked bool      // it is not read any more; the others still wait for what it had handed on
}

func newWatermarks() *watermarks { return &watermarks{marks: map[int32]*watermark{}} }

// assign adds a partition that has been read up to event time ts. Until it is read to its end, units of other
// partitions that ended later wait for it.
func (w *watermarks) assign(partition int32, ts int64, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.allRevoked() { // a new generation begins, which need not have the same partitions
		clear(w.marks)
	}
	w.marks[partition] = &watermark{ts: ts, heard: now}
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

// ending reports whether the generation is ending: a partition has been revoked, and the others are about to be.
func (w *watermarks) ending() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.marks {
		if m.revoked {
			return true
		}
	}
	return false
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
func (w *watermarks) advance(partition int32, ts int64, idle bool, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m := w.marks[partition]; m != nil {
		m.ts, m.idle, m.heard = max(m.ts, ts), idle, now
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
		if m.idle || now.Sub(m.heard) > markPatience {
			ts = max(ts, now.Add(-watermarkDelay).UnixNano())
		}
		low = min(low, ts)
	}
	return low
}

// current reports whether every assigned partition has been read up to the present, so that silence means something.
func (w *watermarks) current(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.marks {
		if now.Sub(m.heard) > markPatience || !m.idle && m.ts < now.Add(-clockTolerance).UnixNano() {
			return false
		}
	}
	return len(w.marks) > 0
}

// merger puts the units of one policy from several partitions into one order: by (end time, agent, episode), each
// partition's own order kept. So the same telemetry gives the same order, whoever read which partition when.
type merger struct {
	queues map[int32][]waitingUnit
	last   int64 // largest end time released
	late   int   // units released after a unit that ended later, since the last take
}

// waitingUnit is a unit on its way from a partition to the bank.
type waitingUnit struct {
	*ingest.Unit
	ts      int64         // that it is ordered by: its end, or 0 where that cannot be believed
	waiting *atomic.Int64 // units of the partition and the policy on this way
}

// newWaitingUnit counts a unit in. One that ends in the future would hold up all others until then: it does not wait.
func newWaitingUnit(u *ingest.Unit, waiting *atomic.Int64, now time.Time) waitingUnit {
	w := waitingUnit{Unit: u, ts: u.EndTS, waiting: waiting}
	if w.ts > now.Add(clockTolerance).UnixNano() {
		w.ts = 0
	}
	waiting.Add(1)
	return w
}

func newMerger() *merger { return &merger{queues: map[int32][]waitingUnit{}} }

func (m *merger) add(w waitingUnit) {
	p := w.Pos.Partition
	m.queues[p] = append(m.queues[p], w)
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

// release gives the next unit that ended before low, nil where there is none. A unit without a clock does not wait.
func (m *merger) release(low int64) *ingest.Unit {
	var first waitingUnit
	for _, q := range m.queues {
		if q[0].ts < low && (first.Unit == nil || endsBefore(q[0], first)) {
			first = q[0]
		}
	}
	if first.Unit == nil {
		return nil
	}
	p := first.Pos.Partition
	m.queues[p][0] = waitingUnit{}
	if m.queues[p] = m.queues[p][1:]; len(m.queues[p]) == 0 {
		delete(m.queues, p)
	}
	first.waiting.Add(-1)
	if first.ts > 0 && first.ts < m.last {
		m.late++
	}
	m.last = max(m.last, first.ts)
	return first.Unit
}

// takeLate gives the number of late units since the last call.
func (m *merger) takeLate() int {
	n := m.late
	m.late = 0
	return n
}

func endsBefore(a, b waitingUnit) bool {
	return cmp.Or(
		cmp.Compare(a.ts, b.ts),
		cmp.Compare(a.Agent, b.Agent),
		cmp.Compare(a.Episode, b.Episode),
		cmp.Compare(a.Pos.Partition, b.Pos.Partition),
	) < 0
}
