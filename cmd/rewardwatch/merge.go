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
// have been read to their ends, markPatience for a partition from which nothing is heard while others are, and
// clockTolerance is how far ahead of the present a time may be and still be believed.
const (
	watermarkDelay = 2 * time.Second
	markPatience   = 30 * time.Second
	clockTolerance = time.Minute
)

// watermarks says how far each partition of the topic has been read, in event time. It is shared by all goroutines.
type watermarks struct {
	mu    sync.Mutex
	marks map[int32]*watermark
	// heard is for how long partitions have been heard of, at most a pulse at a time: it stands still while nothing can
	// be read, be it that the brokers are away or that the process is stopped, or what came first after it would not
	// wait for the rest.
	heard time.Duration
	last  time.Time // something was heard
	over  bool      // the generation ends: what waits for others need not be waited for
}

type watermark struct {
	ts       int64         // largest event time read, in Unix nanoseconds
	end      time.Time     // up to which everything has been read; zero where more is known to be there
	heard    time.Duration // when something was last heard of it
	assigned bool          // to this instance, in this generation
	revoked  bool          // it is not read any more; the others still wait for what it had handed on
}

func newWatermarks() *watermarks { return &watermarks{marks: map[int32]*watermark{}} }

// begin starts a generation on a topic of so many partitions. Units wait for all of them, also for those that are not
// assigned: where an instance has died, the group goes on without its partitions until it notices, and would hand them
// to this one only then.
func (w *watermarks) begin(partitions int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = false
	clear(w.marks)
	for p := range int32(partitions) {
		w.marks[p] = &watermark{heard: w.heard}
	}
}

// assign says that a partition is read here, and has been up to event time ts. Until it is read to its end, units of
// other partitions that ended later wait for it.
func (w *watermarks) assign(partition int32, ts int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.marks[partition] = &watermark{ts: ts, heard: w.heard, assigned: true}
}

// revoke keeps the mark until the next generation begins, or units of the others would overtake those of this one that
// waited and are now forgotten until it is read again.
func (w *watermarks) revoke(partition int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m := w.marks[partition]; m != nil {
		m.end, m.revoked = time.Time{}, true
	}
}

// end says that the generation ends, with all its partitions.
func (w *watermarks) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
}

// ending reports whether the generation has been said to end, and no other one has begun.
func (w *watermarks) ending() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.over
}

// advance says that all units of a partition up to event time ts have been handed to their desks, and where end is not
// zero, that there were no more in it at that time.
func (w *watermarks) advance(partition int32, ts int64, end, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m := w.marks[partition]; m != nil {
		m.ts, m.end = max(m.ts, ts), end
		w.hear(m, now)
	}
}

// alive says that a partition is read, and that its units wait to be handed on.
func (w *watermarks) alive(partition int32, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m := w.marks[partition]; m != nil {
		w.hear(m, now)
	}
}

func (w *watermarks) hear(m *watermark, now time.Time) {
	w.heard += min(max(now.Sub(w.last), 0), deskPulse)
	w.last, m.heard = now, w.heard
}

// waitsForOthers reports whether units of the partition wait for another one that has been read less far. Where it is
// the last itself, its units wait for what it has yet to say after the batch in hand.
func (w *watermarks) waitsForOthers(partition int32) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.marks[partition]
	return m != nil && w.lowest() < m.read()
}

// low is the event time up to which no unit of any partition is missing. With a single partition there is nothing to
// wait for.
func (w *watermarks) low() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lowest()
}

// lowest is low for a caller that holds the lock.
func (w *watermarks) lowest() int64 {
	low := int64(math.MaxInt64)
	if len(w.marks) < 2 {
		return low
	}
	for _, m := range w.marks {
		if w.heard-m.heard <= markPatience {
			low = min(low, m.read())
		}
	}
	return low
}

// read is the event time up to which all units of the partition have been handed on.
func (m *watermark) read() int64 {
	if m.end.IsZero() {
		return m.ts
	}
	return max(m.ts, m.end.Add(-watermarkDelay).UnixNano())
}

// current reports whether every assigned partition has been read up to the present, so that silence means something.
func (w *watermarks) current(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	assigned := 0
	for _, m := range w.marks {
		if !m.assigned {
			continue
		}
		if m.revoked || m.read() < now.Add(-clockTolerance).UnixNano() {
			return false
		}
		assigned++
	}
	return assigned > 0
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

// drop forgets the waiting units of a partition that was revoked: its checkpoint has them. With them come again some that
// were released, which are not late for that.
func (m *merger) drop(partition int32) {
	delete(m.queues, partition)
	m.last = 0
}

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
