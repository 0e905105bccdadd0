package engine

import "sync"

// keptShare is the share of limits.memory for units that are in flight, or not in both of the last two saves of their
// policies, over all partitions.
const keptShare = .15

// keptUnits counts the units that the deliveries of a process keep. It is safe for concurrent use.
type keptUnits struct {
	most int64 // bytes

	mu sync.Mutex
	by map[*Delivery]bool
}

func newKeptUnits(limit int64) *keptUnits {
	return &keptUnits{most: int64(keptShare * float64(limit)), by: map[*Delivery]bool{}}
}

func (k *keptUnits) add(d *Delivery) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.by[d] = true
}

func (k *keptUnits) remove(d *Delivery) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.by, d)
}

// bytes returns how much memory the units take, and how much of it belongs to units in flight.
func (k *keptUnits) bytes() (all, waiting int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for d := range k.by {
		all += d.keptBytes.Load()
		waiting += d.waitingBytes.Load()
	}
	return all, waiting
}

// full reports whether they take as much as they may, with or without those in flight.
func (k *keptUnits) full(withWaiting bool) bool {
	all, waiting := k.bytes()
	if !withWaiting {
		all -= waiting
	}
	return all >= k.most
}

// pressing reports whether they take so much that policies should be saved early.
func (k *keptUnits) pressing() bool {
	all, _ := k.bytes()
	return 2*all >= k.most
}
