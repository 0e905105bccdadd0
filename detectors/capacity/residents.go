package capacity

import (
	"container/list"
	"sync"
	"sync/atomic"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Residents lists the groups of all banks whose state is in memory, roughly by last use: it only remembers whether a group
// was used since the last call of Choose or Age. Their weights are estimates. Residents is safe for concurrent use.
type Residents struct {
	most int64

	mu      sync.Mutex
	order   *list.List // of *Resident, those that leave next first
	bytes   int64
	leaving int64 // bytes of the groups that were chosen to leave and have not left yet
	evicted int
}

// Resident is one group in memory.
type Resident struct {
	used    atomic.Bool // since the last call of Choose or Age
	group   ingest.Group
	bytes   int64
	leaving bool
	at      *list.Element
}

// NewResidents returns an empty list. Once the groups take the given number of bytes, a bank that is resumed leaves
// its other groups in the checkpoint.
func NewResidents(most int64) *Residents { return &Residents{most: most, order: list.New()} }

// Allow changes how many bytes of groups resumed banks may load into memory.
func (r *Residents) Allow(most int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.most = most
}

// Bytes returns the memory that the groups take.
func (r *Residents) Bytes() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bytes
}

// Evicted returns the number of groups that exist only in the checkpoint.
func (r *Residents) Evicted() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.evicted
}

// Choose returns the groups to evict, until all leaving groups together take the given number of bytes. Groups that were
// used since the last call are the last to be returned. It does not return a group again until that group has been used
// or restored.
func (r *Residents) Choose(bytes int64) []ingest.Group {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.age()
	var chosen []ingest.Group
	for e := r.order.Front(); e != nil && r.leaving < bytes; e = e.Next() {
		if m := e.Value.(*Resident); !m.leaving {
			m.leaving = true
			r.leaving += m.bytes
			chosen = append(chosen, m.group)
		}
	}
	return chosen
}

// Age moves the groups that were used since the last call behind the others. If it is called regularly, groups leave
// roughly by the time of their last use even after a long time in which none had to leave.
func (r *Residents) Age() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.age()
}

func (r *Residents) age() {
	for e, left := r.order.Front(), r.order.Len(); left > 0; left-- {
		m := e.Value.(*Resident)
		e = e.Next()
		if m.used.Swap(false) {
			r.order.MoveToBack(m.at)
		}
	}
}

// Full reports whether a resumed bank must leave further groups in the checkpoint.
func (r *Residents) Full() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bytes >= r.most
}

// Enter adds a group behind all others.
func (r *Residents) Enter(group ingest.Group, bytes int64) *Resident {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bytes += bytes
	m := &Resident{group: group, bytes: bytes}
	m.at = r.order.PushBack(m)
	return m
}

// Use records that a group is used, so that it does not leave. It is called for each unit, and mostly takes no lock.
func (r *Residents) Use(m *Resident) {
	if m.used.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stay(m)
	m.used.Store(true)
}

// Yield makes a group the first to leave.
func (r *Residents) Yield(m *Resident) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m.used.Store(false)
	r.order.MoveToFront(m.at)
}

// Keep cancels the choice of a group for eviction and leaves its place in the order.
func (r *Residents) Keep(m *Resident) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stay(m)
}

// stay cancels the choice of a group for eviction.
func (r *Residents) stay(m *Resident) {
	if m.leaving {
		m.leaving = false
		r.leaving -= m.bytes
	}
}

// Weigh updates the weight of a group.
func (r *Residents) Weigh(m *Resident, bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bytes += bytes - m.bytes
	if m.leaving {
		r.leaving += bytes - m.bytes
	}
	m.bytes = bytes
}

// Leave removes a group.
func (r *Residents) Leave(m *Resident) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stay(m)
	r.bytes -= m.bytes
	r.order.Remove(m.at)
}

// CountEvicted counts evicted groups; n is negative for groups that have returned.
func (r *Residents) CountEvicted(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.evicted += n
}
