package main

import (
	"cmp"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// merger puts the units of one policy from several partitions into one order: by (moment of the end, agent, episode), each
// partition's own order kept. So the same telemetry gives the same order, whoever read which partition when.
type merger struct {
	queues  map[int32][]waitingUnit
	sources map[int32]*delivery // that the units of a partition came from last
	last    int64               // largest end time released
	late    int                 // units released after a unit that ended later, since the last take
}

// waitingUnit is a unit on its way from a partition to the bank.
type waitingUnit struct {
	*ingest.Unit
	at  moment // that it is ordered by: its end, or 0 where that cannot be believed
	way *way
}

// newWaitingUnit counts a unit in. One that ends in the future would hold up all others until then: it does not wait.
func newWaitingUnit(u *ingest.Unit, way *way, now time.Time) waitingUnit {
	w := waitingUnit{Unit: u, at: moment{u.EndTS, u.Run}, way: way}
	if u.EndTS == 0 || u.EndTS > now.Add(clockTolerance).UnixNano() {
		w.at = moment{}
	}
	way.waiting.Add(1)
	return w
}

func newMerger() *merger {
	return &merger{queues: map[int32][]waitingUnit{}, sources: map[int32]*delivery{}}
}

// add takes a unit in, unless its delivery has been revoked. Where a partition is read anew, some come again that were
// released, which are not late for that, and all that waited.
func (m *merger) add(w waitingUnit) {
	p, from := w.Pos.Partition, w.way.from
	if from.revoked.Load() {
		return
	}
	if before := m.sources[p]; before != from {
		m.sources[p] = from
		if before != nil {
			delete(m.queues, p)
			m.last = 0
		}
	}
	m.queues[p] = append(m.queues[p], w)
}

// forget drops the waiting units of partitions that were revoked: their checkpoints have them.
func (m *merger) forget() {
	for p, q := range m.queues {
		if q[0].way.from.revoked.Load() {
			delete(m.queues, p)
		}
	}
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
func (m *merger) release(low moment) *ingest.Unit {
	var first waitingUnit
	for _, q := range m.queues {
		if q[0].at.before(low) && (first.Unit == nil || endsBefore(q[0], first)) {
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
	first.way.waiting.Add(-1)
	if first.at.TS > 0 && first.at.TS < m.last {
		m.late++
	}
	m.last = max(m.last, first.at.TS)
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
		a.at.compare(b.at),
		cmp.Compare(a.Agent, b.Agent),
		cmp.Compare(a.Episode, b.Episode),
		cmp.Compare(a.Pos.Partition, b.Pos.Partition),
	) < 0
}
