package capacity

import (
	"container/list"
	"sync"
	"sync/atomic"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Residents lists the groups of all banks whose state is in memory, by last use. Their weights are estimates.
// Residents is safe for concurrent use.
type Residents struct {
	most int64
	last atomic.Pointer[list.Element] // the group used last, if no other method has changed the order since

	mu      sync.Mutex
	order   *list.List // of *resident, the least recently used first
	bytes   int64
	leaving int64 // bytes of the groups that were chosen to leave and have not left yet
	evicted int
}

// resident is one group in memory.
type resident struct {
	group   ingest.Group
	bytes   int64
	leaving bool
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

// Choose returns the least recently used groups to evict, until all leaving groups together take the given number
// of bytes. It does not return a group again until that group has been used or restored.
func (r *Residents) Choose(bytes int64) []ingest.Group {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last.Store(nil)
	var chosen []ingest.Group
	for e := r.order.Front(); e != nil && r.leaving < bytes; e = e.Next() {
		if m := e.Value.(*resident); !m.leaving {
			m.leaving = true
			r.leaving += m.bytes
			chosen = append(chosen, m.group)
		}
	}
	return chosen
}

// Full reports whether a resumed bank must leave further groups in the checkpoint.
func (r *Residents) Full() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bytes >= r.most
}

// Enter adds a group as the most recently used.
func (r *Residents) Enter(group ingest.Group, bytes int64) *list.Element {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last.Store(nil)
	r.bytes += bytes
	return r.order.PushBack(&resident{group: group, bytes: bytes})
}

// Use marks a group as the most recently used. Successive units often belong to the same group, so that case takes no
// lock.
func (r *Residents) Use(e *list.Element) {
	if r.last.Load() == e {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stay(e.Value.(*resident))
	r.order.MoveToBack(e)
	r.last.Store(e)
}

// Yield makes a group the first to leave.
func (r *Residents) Yield(e *list.Element) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last.Store(nil)
	r.order.MoveToFront(e)
}

// Keep cancels the choice of a group for eviction and leaves its place in the order.
func (r *Residents) Keep(e *list.Element) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stay(e.Value.(*resident))
}

// stay cancels the choice of a group for eviction.
func (r *Residents) stay(m *resident) {
	if m.leaving {
		m.leaving = false
		r.leaving -= m.bytes
	}
}

// Weigh updates the weight of a group.
func (r *Residents) Weigh(e *list.Element, bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := e.Value.(*resident)
	r.bytes += bytes - m.bytes
	if m.leaving {
		r.leaving += bytes - m.bytes
	}
	m.bytes = bytes
}

// Leave removes a group.
func (r *Residents) Leave(e *list.Element) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := e.Value.(*resident)
	r.stay(m)
	r.last.Store(nil)
	r.bytes -= m.bytes
	r.order.Remove(e)
}

// CountEvicted counts evicted groups; n is negative for groups that have returned.
func (r *Residents) CountEvicted(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.evicted += n
}
