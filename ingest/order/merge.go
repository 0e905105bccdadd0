// Package order merges the units of several partitions into one order by event time. The order does not depend on which
// process reads which partition, and when.
package order

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Merger merges the units of one policy from several partitions. It orders them by end time, agent and episode, but
// keeps the order within each partition. The same telemetry therefore always has the same order, regardless of which
// process reads which partition, and when.
type Merger struct {
	batches *Batches
	queues  map[ingest.Partition]*queue
	waiting []*queue      // queues that are not empty, ordered by their first units
	leaving []*queue      // queues with released units that their sources may still count
	spent   []WaitingUnit // batch of the last unit released, if that was its last unit
	last    int64         // latest end time released
	late    int           // units released after one that ended later, since the last TakeLate
}

// queue contains the waiting units of one partition.
type queue struct {
	batches  [][]WaitingUnit // none is empty, starting at head
	head     int             // index of the first batch
	next     int             // index of the first unit in the first batch
	units    int
	at       Moment              // of the first unit; copied because the unit itself is seldom in the CPU caches
	from     source              // source of the last batch
	released *ingest.AppliedUnit // last unit released; nil before the first

	left  int   // units released that the source still counts
	bytes int64 // their memory
}

// fewBatches is the maximum capacity that an empty queue keeps. It frees larger memory after a burst.
const fewBatches = 16

func (q *queue) first() *WaitingUnit { return &q.batches[q.head][q.next] }

func (q *queue) push(batch []WaitingUnit) {
	if q.head > 0 && len(q.batches) == cap(q.batches) {
		n := copy(q.batches, q.batches[q.head:])
		clear(q.batches[n:])
		q.batches, q.head = q.batches[:n], 0
	}
	q.batches = append(q.batches, batch)
	if q.units == 0 {
		q.at = batch[0].at
	}
	q.units += len(batch)
}

// pop removes the first unit. It returns the batch of the unit if this was its last unit, otherwise nil.
func (q *queue) pop() (spent []WaitingUnit) {
	q.units--
	if q.next++; q.next < len(q.batches[q.head]) {
		q.at = q.first().at
		return nil
	}
	spent = q.batches[q.head]
	q.batches[q.head] = nil
	if q.head, q.next = q.head+1, 0; q.units == 0 {
		q.clear()
	} else {
		q.at = q.first().at
	}
	return spent
}

// leave tells the source which units have been released. It is called for several units at once, because the counts are
// in the caches of another core.
func (q *queue) leave() {
	if q.left > 0 {
		q.from.Left(q.left, q.bytes)
		q.left, q.bytes = 0, 0
	}
}

func (q *queue) clear() {
	clear(q.batches)
	if q.batches, q.head, q.next, q.units = q.batches[:0], 0, 0, 0; cap(q.batches) > fewBatches {
		q.batches = nil
	}
}

// WaitingUnit is a unit on its way from a partition to the bank. It contains either a decision, or another unit, in
// which case Decision contains the fields that determine the order. They are copied because the unit itself is no
// longer in the CPU caches when it is its turn.
type WaitingUnit struct {
	Unit     *ingest.Unit // nil for a decision
	Decision ingest.Decision
	at       Moment // its place in the order: its end, or 0 if the end is not credible
	from     source
	bytes    int64
}

// source delivers the units of one partition to one policy while the partition is assigned. It counts the units in
// transit. Sources are compared: a different value means a new assignment, and units that wait from the previous
// assignment are dropped.
type source interface {
	Revoked() bool // reports whether the units in transit are obsolete
	Entered(bytes int64)
	Left(units int, bytes int64)
}

// NewWaitingUnit returns a WaitingUnit for a unit.
func NewWaitingUnit(u *ingest.Unit) WaitingUnit {
	return WaitingUnit{Unit: u, bytes: u.Bytes(), Decision: ingest.Decision{
		Agent: u.Agent, Episode: u.Episode, TS: u.EndTS, Pos: u.Pos, Ord: u.Ord, Reading: u.Reading, Run: u.Run,
	}}
}

// NewWaitingDecision returns a WaitingUnit for a decision.
func NewWaitingDecision(d *ingest.Decision) WaitingUnit {
	return WaitingUnit{Decision: *d, bytes: d.Bytes()}
}

// Enter counts the unit as in transit from a source. A unit with an end time in the future does not wait, because it
// would delay all others until then.
func (w *WaitingUnit) Enter(from source, now time.Time) {
	w.from = from
	if end := w.Decision.TS; end != 0 && end <= Believed(now) {
		w.at = Moment{TS: end, Run: w.Decision.Run}
	}
	from.Entered(w.bytes)
}

// Group returns the group of the unit.
func (w *WaitingUnit) Group() ingest.Group {
	if w.Unit != nil {
		return w.Unit.Group
	}
	return w.Decision.Shape.Group
}

// Place returns the position of the unit in its partition.
func (w *WaitingUnit) Place() ingest.AppliedUnit { return w.Decision.Place() }

// isOpen reports whether the unit is a step of an open episode.
func (w *WaitingUnit) isOpen() bool {
	if w.Unit != nil {
		return w.Unit.End == ingest.EndOpen
	}
	return w.Decision.Shape != nil && w.Decision.Shape.End == ingest.EndOpen
}

// In returns the unit. If it is a decision, it uses the given memory.
func (w *WaitingUnit) In(memory *ingest.DecisionUnit) *ingest.Unit {
	if w.Unit != nil {
		return w.Unit
	}
	return memory.Of(&w.Decision)
}

// Left counts the unit as no longer in transit.
func (w *WaitingUnit) Left() {
	w.from.Left(1, w.bytes)
}

// NewMerger returns an empty merger. It returns the memory of batches to b.
func NewMerger(b *Batches) *Merger {
	return &Merger{batches: b, queues: map[ingest.Partition]*queue{}}
}

// Add adds a batch of units that have entered from one source, unless the source has been revoked. When a partition is
// read again, all waiting units arrive again, and some released ones, which Add drops.
func (m *Merger) Add(batch []WaitingUnit) {
	for len(batch) > 0 {
		n, of := 1, batch[0].Decision.Pos.Partition
		for n < len(batch) && batch[n].Decision.Pos.Partition == of {
			n++
		}
		if n == len(batch) {
			m.add(of, batch)
			return
		}
		m.add(of, batch[:n:n])
		batch = batch[n:]
	}
}

// add adds units of one partition.
func (m *Merger) add(of ingest.Partition, batch []WaitingUnit) {
	from := batch[0].from
	if from.Revoked() {
		return
	}
	q := m.queues[of]
	if q == nil {
		q = &queue{}
		m.queues[of] = q
	}
	if q.from != from {
		q.leave()
		q.from = from
		q.clear()
		m.forgetEmpty()
	}
	for q.released != nil && len(batch) > 0 && q.released.Reaches(batch[0].Place()) {
		batch[0].Left()
		batch = batch[1:]
	}
	if len(batch) == 0 {
		return
	}
	if q.push(batch); q.units == len(batch) {
		m.place(q)
	}
}

// place inserts a queue that is no longer empty into m.waiting.
func (m *Merger) place(q *queue) {
	at, _ := slices.BinarySearchFunc(m.waiting, q, inOrder)
	m.waiting = slices.Insert(m.waiting, at, q)
}

// fewPartitions is the number of queues up to which comparing all of them is faster than a binary search.
const fewPartitions = 8

// advance moves the first queue in m.waiting, whose first unit has changed, to its new place.
func (m *Merger) advance() {
	q, rest := m.waiting[0], m.waiting[1:]
	at := 0
	if len(rest) > fewPartitions {
		at, _ = slices.BinarySearchFunc(rest, q, inOrder)
		copy(m.waiting, rest[:at])
	} else {
		for ; at < len(rest) && inOrder(rest[at], q) < 0; at++ {
			m.waiting[at] = rest[at]
		}
	}
	m.waiting[at] = q
}

func (m *Merger) forgetEmpty() {
	m.waiting = slices.DeleteFunc(m.waiting, func(q *queue) bool { return q.units == 0 })
}

// Forget drops the waiting units of revoked partitions. They are in the checkpoints of those partitions.
func (m *Merger) Forget() {
	for _, q := range m.waiting {
		if q.from.Revoked() {
			q.clear()
		}
	}
	m.forgetEmpty()
}

// Waiting returns the number of units that have not been released.
func (m *Merger) Waiting() int {
	n := 0
	for _, q := range m.waiting {
		n += q.units
	}
	return n
}

// Release returns the next unit that ended before low, or nil if there is none. The unit is valid until the next call.
// Units without a time do not wait.
func (m *Merger) Release(low Moment) *WaitingUnit {
	if m.spent != nil {
		m.batches.Put(m.spent)
		m.spent = nil
	}
	if len(m.waiting) == 0 || !m.waiting[0].at.Before(low) {
		m.leave()
		return nil
	}
	of := m.waiting[0]
	first := of.first()
	if of.left == 0 {
		m.leaving = append(m.leaving, of)
	}
	of.left, of.bytes = of.left+1, of.bytes+first.bytes
	if m.spent = of.pop(); m.spent != nil {
		of.leave()
	}
	if of.units == 0 {
		m.waiting = slices.Delete(m.waiting, 0, 1)
	} else {
		m.advance()
	}
	if first.at.TS > 0 && first.at.TS < m.last && !first.isOpen() {
		m.late++
	}
	m.last = max(m.last, first.at.TS)
	if of.released == nil {
		of.released = &ingest.AppliedUnit{}
	}
	*of.released = first.Place()
	return first
}

// leave tells all sources which units have been released.
func (m *Merger) leave() {
	for _, q := range m.leaving {
		q.leave()
	}
	clear(m.leaving)
	m.leaving = m.leaving[:0]
}

// TakeLate returns the number of late units since the last call.
func (m *Merger) TakeLate() int {
	n := m.late
	m.late = 0
	return n
}

// inOrder compares queues by their first units. No two are equal, because each queue has a different partition. With
// thousands of units per second, many end at the same time, so agents and episodes are compared only if needed.
func inOrder(p, q *queue) int {
	switch {
	case p.at.TS < q.at.TS:
		return -1
	case p.at.TS > q.at.TS:
		return 1
	case p.at.Run != q.at.Run:
		return cmp.Compare(p.at.Run, q.at.Run)
	}
	a, b := p.first(), q.first()
	if agent := strings.Compare(a.Decision.Agent, b.Decision.Agent); agent != 0 {
		return agent
	}
	if episode := strings.Compare(a.Decision.Episode, b.Decision.Episode); episode != 0 {
		return episode
	}
	return cmp.Compare(a.Decision.Pos.Partition, b.Decision.Pos.Partition)
}
