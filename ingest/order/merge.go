// Package order puts the units of several partitions into one order by event time, regardless of who reads which
// partition when.
package order

import (
	"cmp"
	"slices"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Merger puts the units of one policy from several partitions into one order: by (moment of the end, agent, episode),
// keeping each partition's own order. So the same telemetry always has the same order, regardless of who reads which
// partition when.
type Merger struct {
	queues   map[ingest.Partition]*queue
	recent   *queue      // that the last unit was added to
	waiting  []*queue    // those that are not empty
	released WaitingUnit // last
	last     int64       // largest end time released
	late     int         // units released after one that ended later, since the last TakeLate
}

// queue holds the waiting units of one partition.
type queue struct {
	of       ingest.Partition
	units    []WaitingUnit
	next     int                 // index of the first unit
	from     source              // the last one
	released *ingest.AppliedUnit // the last unit, nil before the first
}

// keptEmpty is for how many units an empty queue keeps memory.
const keptEmpty = 64

func (q *queue) first() *WaitingUnit { return &q.units[q.next] }

// pop removes the first unit. It moves the others to the front once they are fewer than those that have left.
func (q *queue) pop() {
	q.units[q.next] = WaitingUnit{}
	if q.next++; 2*q.next < len(q.units) {
		return
	}
	left := copy(q.units, q.units[q.next:])
	clear(q.units[left:])
	if q.units, q.next = q.units[:left], 0; left == 0 && cap(q.units) > keptEmpty {
		q.units = nil // otherwise the memory of a burst would never be freed
	}
}

func (q *queue) clear() {
	clear(q.units)
	q.units, q.next = q.units[:0], 0
}

// WaitingUnit is a unit on its way from a partition to the bank: a decision, or another unit, of which the decision has
// what the order depends on. The unit itself has left the caches of the core by the time that its turn comes.
type WaitingUnit struct {
	Unit     *ingest.Unit // nil if it is a decision
	Decision ingest.Decision
	at       Moment // its place in the order: its end, or 0 if that is not credible
	from     source
	bytes    int64
}

// source delivers the units of one partition to one policy, while the partition is assigned. It counts the units in
// transit. Sources are compared: a different value is a new assignment, and units waiting from the previous one are
// dropped.
type source interface {
	Revoked() bool // the units in transit are obsolete
	Entered(bytes int64)
	Left(bytes int64)
}

// NewWaitingUnit returns a unit that is to wait.
func NewWaitingUnit(u *ingest.Unit) WaitingUnit {
	return WaitingUnit{Unit: u, bytes: u.Bytes(), Decision: ingest.Decision{
		Agent: u.Agent, Episode: u.Episode, TS: u.EndTS, Pos: u.Pos, Ord: u.Ord, Reading: u.Reading, Run: u.Run,
	}}
}

// NewWaitingDecision returns a decision that is to wait.
func NewWaitingDecision(d *ingest.Decision) WaitingUnit {
	return WaitingUnit{Decision: *d, bytes: d.Bytes()}
}

// Enter counts the unit in. One that ends in the future would hold up all others until then, so it does not wait.
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

// Place returns the place of the unit among those of its partition.
func (w *WaitingUnit) Place() ingest.AppliedUnit {
	return ingest.AppliedUnit{Pos: w.Decision.Pos, Ord: w.Decision.Ord, Reading: w.Decision.Reading}
}

// In returns the unit, in the given memory if it is a decision.
func (w *WaitingUnit) In(memory *ingest.DecisionUnit) *ingest.Unit {
	if w.Unit != nil {
		return w.Unit
	}
	return memory.Of(&w.Decision)
}

// Left counts a unit out that no longer waits.
func (w *WaitingUnit) Left() {
	w.from.Left(w.bytes)
}

// NewMerger returns an empty merger.
func NewMerger() *Merger {
	return &Merger{queues: map[ingest.Partition]*queue{}}
}

// Add adds a unit that has entered, unless its source has been revoked. When a partition is read again, all waiting units return, and
// some released ones, which Add drops.
func (m *Merger) Add(w WaitingUnit) {
	if w.from.Revoked() {
		return
	}
	q := m.queue(w.Decision.Pos.Partition)
	if q.from != w.from {
		q.from = w.from
		q.clear()
		m.forgetEmpty()
	}
	if q.released != nil && q.released.Reaches(w.Place()) {
		w.Left()
		return
	}
	if len(q.units) == 0 {
		m.waiting = append(m.waiting, q)
	}
	q.units = append(q.units, w)
}

// queue returns the queue of a partition, nearly always that of the last unit.
func (m *Merger) queue(of ingest.Partition) *queue {
	if m.recent != nil && m.recent.of == of {
		return m.recent
	}
	q := m.queues[of]
	if q == nil {
		q = &queue{of: of}
		m.queues[of] = q
	}
	m.recent = q
	return q
}

func (m *Merger) forgetEmpty() {
	m.waiting = slices.DeleteFunc(m.waiting, func(q *queue) bool { return len(q.units) == 0 })
}

// Forget drops the waiting units of revoked partitions, which are in those partitions' checkpoints.
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
		n += len(q.units) - q.next
	}
	return n
}

// Release returns the next unit that ended before low, nil if there is none. It is valid until the next call. A unit
// without a clock does not wait.
func (m *Merger) Release(low Moment) *WaitingUnit {
	var of *queue
	for _, q := range m.waiting {
		if q.first().at.Before(low) && (of == nil || endsBefore(q.first(), of.first())) {
			of = q
		}
	}
	if of == nil {
		return nil
	}
	first := &m.released
	*first = *of.first()
	of.pop()
	if len(of.units) == 0 {
		m.forgetEmpty()
	}
	first.Left()
	if first.at.TS > 0 && first.at.TS < m.last {
		m.late++
	}
	m.last = max(m.last, first.at.TS)
	if of.released == nil {
		of.released = &ingest.AppliedUnit{}
	}
	*of.released = first.Place()
	return first
}

// TakeLate returns the number of late units since the last call.
func (m *Merger) TakeLate() int {
	n := m.late
	m.late = 0
	return n
}

func endsBefore(a, b *WaitingUnit) bool {
	if at := a.at.compare(b.at); at != 0 { // nearly always: the names are seldom read
		return at < 0
	}
	return cmp.Or(
		cmp.Compare(a.Decision.Agent, b.Decision.Agent),
		cmp.Compare(a.Decision.Episode, b.Decision.Episode),
		cmp.Compare(a.Decision.Pos.Partition, b.Decision.Pos.Partition),
	) < 0
}
