// Package order puts the units of several partitions into one order by event time, regardless of who reads which
// partition when.
package order

import (
	"cmp"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Merger puts the units of one policy from several partitions into one order: by (moment of the end, agent, episode),
// keeping each partition's own order. So the same telemetry always has the same order, regardless of who reads which
// partition when.
type Merger struct {
	queues   map[ingest.Partition][]WaitingUnit
	sources  map[ingest.Partition]source             // the last source of each partition
	released map[ingest.Partition]ingest.AppliedUnit // the last unit of each partition
	last     int64                                   // largest end time released
	late     int                                     // units released after one that ended later, since the last TakeLate
}

// WaitingUnit is a unit on its way from a partition to the bank.
type WaitingUnit struct {
	*ingest.Unit
	at   Moment // its place in the order: its end, or 0 if that is not credible
	from source
}

// source delivers the units of one partition to one policy, while the partition is assigned. It counts the units in
// transit. Sources are compared: a different value is a new assignment, and units waiting from the previous one are
// dropped.
type source interface {
	Revoked() bool // the units in transit are obsolete
	Entered(u *ingest.Unit)
	Left(u *ingest.Unit)
}

// NewWaitingUnit counts a unit in. A unit that ends in the future would hold up all others until then, so it does not
// wait.
func NewWaitingUnit(u *ingest.Unit, from source, now time.Time) WaitingUnit {
	w := WaitingUnit{Unit: u, at: Moment{TS: u.EndTS, Run: u.Run}, from: from}
	if u.EndTS == 0 || u.EndTS > Believed(now) {
		w.at = Moment{}
	}
	from.Entered(u)
	return w
}

// Left counts a unit out that no longer waits.
func (w *WaitingUnit) Left() {
	w.from.Left(w.Unit)
}

// NewMerger returns an empty merger.
func NewMerger() *Merger {
	return &Merger{queues: map[ingest.Partition][]WaitingUnit{}, sources: map[ingest.Partition]source{}, released: map[ingest.Partition]ingest.AppliedUnit{}}
}

// Add adds a unit, unless its source has been revoked. When a partition is read again, all waiting units return, and
// some released ones, which Add drops.
func (m *Merger) Add(w WaitingUnit) {
	p, from := w.Pos.Partition, w.from
	if from.Revoked() {
		return
	}
	if before := m.sources[p]; before != from {
		m.sources[p] = from
		if before != nil {
			delete(m.queues, p)
		}
	}
	if newest, any := m.released[p]; any && newest.Covers(w.Unit) {
		w.Left()
		return
	}
	m.queues[p] = append(m.queues[p], w)
}

// Forget drops the waiting units of revoked partitions, which are in those partitions' checkpoints.
func (m *Merger) Forget() {
	for p, q := range m.queues {
		if q[0].from.Revoked() {
			delete(m.queues, p)
		}
	}
}

// Waiting returns the number of units that have not been released.
func (m *Merger) Waiting() int {
	n := 0
	for _, q := range m.queues {
		n += len(q)
	}
	return n
}

// Release returns the next unit that ended before low, nil if there is none. A unit without a clock does not wait.
func (m *Merger) Release(low Moment) *ingest.Unit {
	var first WaitingUnit
	for _, q := range m.queues {
		if q[0].at.Before(low) && (first.Unit == nil || endsBefore(q[0], first)) {
			first = q[0]
		}
	}
	if first.Unit == nil {
		return nil
	}
	p := first.Pos.Partition
	m.queues[p][0] = WaitingUnit{}
	if m.queues[p] = m.queues[p][1:]; len(m.queues[p]) == 0 {
		delete(m.queues, p)
	}
	first.Left()
	if first.at.TS > 0 && first.at.TS < m.last {
		m.late++
	}
	m.last = max(m.last, first.at.TS)
	m.released[p] = ingest.AppliedUnit{Pos: first.Pos, Ord: first.Ord, Reading: first.Reading}
	return first.Unit
}

// TakeLate returns the number of late units since the last call.
func (m *Merger) TakeLate() int {
	n := m.late
	m.late = 0
	return n
}

func endsBefore(a, b WaitingUnit) bool {
	if at := a.at.compare(b.at); at != 0 { // nearly always: the names are seldom read
		return at < 0
	}
	return cmp.Or(
		cmp.Compare(a.Agent, b.Agent),
		cmp.Compare(a.Episode, b.Episode),
		cmp.Compare(a.Pos.Partition, b.Pos.Partition),
	) < 0
}
