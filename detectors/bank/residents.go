package bank

import (
	"container/list"
	"sync"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// memoryPerByte is how many bytes of memory a group takes for each byte of its parts of the checkpoint: 1.7 with an accepted
// baseline, 2 while it is warming up.
const memoryPerByte = 1.8

// unsavedWeight is what a group is taken to weigh that was never saved.
const unsavedWeight = 64 << 10

// Residents are the groups of all banks whose state is in memory, by when they were last used. It may be shared by several
// goroutines. What they weigh is an estimate.
type Residents struct {
	most int64

	mu      sync.Mutex
	order   *list.List // of *resident, the least recently used first
	bytes   int64
	leaving int64 // bytes of those that were chosen to leave and have not
	evicted int
}

// resident is one of them.
type resident struct {
	group   ingest.Group
	bytes   int64
	leaving bool
}

// NewResidents makes the list. A bank that is resumed leaves its groups in the checkpoint once they take so many bytes.
func NewResidents(most int64) *Residents { return &Residents{most: most, order: list.New()} }

// Bytes is how much memory the groups take.
func (r *Residents) Bytes() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bytes
}

// Evicted is how many groups are in the checkpoint alone.
func (r *Residents) Evicted() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.evicted
}

// Choose gives the least recently used groups that are to leave, so that those which leave take so many bytes in all. A
// group is given once, until it has been used or has come back.
func (r *Residents) Choose(bytes int64) []ingest.Group {
	r.mu.Lock()
	defer r.mu.Unlock()
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

// full reports whether a bank that is resumed is to leave further groups in the checkpoint.
func (r *Residents) full() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bytes >= r.most
}

// enter adds a group as the one used last.
func (r *Residents) enter(group ingest.Group, bytes int64) *list.Element {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bytes += bytes
	return r.order.PushBack(&resident{group: group, bytes: bytes})
}

// use makes a group the one used last.
func (r *Residents) use(e *list.Element) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stay(e.Value.(*resident))
	r.order.MoveToBack(e)
}

// yield makes a group the first to leave.
func (r *Residents) yield(e *list.Element) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.order.MoveToFront(e)
}

// keep takes back that a group was chosen, and leaves it where it is in the order.
func (r *Residents) keep(e *list.Element) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stay(e.Value.(*resident))
}

// stay takes back that a group was chosen.
func (r *Residents) stay(m *resident) {
	if m.leaving {
		m.leaving = false
		r.leaving -= m.bytes
	}
}

// weigh says how much memory a group takes by now.
func (r *Residents) weigh(e *list.Element, bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := e.Value.(*resident)
	r.bytes += bytes - m.bytes
	if m.leaving {
		r.leaving += bytes - m.bytes
	}
	m.bytes = bytes
}

// leave takes out a group.
func (r *Residents) leave(e *list.Element) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := e.Value.(*resident)
	r.stay(m)
	r.bytes -= m.bytes
	r.order.Remove(e)
}

// countEvicted counts groups that are evicted, or less than none that have come back.
func (r *Residents) countEvicted(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.evicted += n
}
