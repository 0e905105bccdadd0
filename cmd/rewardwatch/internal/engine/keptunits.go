package engine

import (
	"sync"
	"sync/atomic"
)

// keptShare is the share of limits.memory, over all partitions, for units that are in flight or that are kept in memory
// because they are not in both of the last two saves of their policies.
const keptShare = .15

// keptUnits counts the units that the deliveries of a process keep. It is safe for concurrent use.
type keptUnits struct {
	most    int64        // bytes
	pending atomic.Int64 // bytes of the packed units that wait for calibrations

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

// bytes returns the memory of the units, and how much of it belongs to units in flight.
func (k *keptUnits) bytes() (all, waiting int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for d := range k.by {
		its, inFlight := d.inMemory()
		all, waiting = all+its, waiting+inFlight
	}
	return all + k.pending.Load(), waiting
}

// full reports whether the units take as much memory as they may, with or without those in flight.
func (k *keptUnits) full(withWaiting bool) bool {
	all, waiting := k.bytes()
	if !withWaiting {
		all -= waiting
	}
	return all >= k.most
}

// pressing reports whether the units that wait for saves take so much space, in memory together or in the log of one
// partition, that policies should be saved early.
func (k *keptUnits) pressing() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := int64(0)
	for d := range k.by {
		all += d.keptBytes.Load()
		if d.units != nil {
			if d.units.HalfFull() {
				return true
			}
			all += d.units.Ends()
		}
	}
	return 2*all >= k.most
}

// inLogs reports whether all partitions keep their units in logs instead of in memory.
func (k *keptUnits) inLogs() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for d := range k.by {
		if d.units == nil {
			return false
		}
	}
	return true
}

// logged returns the size of the logs of all partitions, in bytes.
func (k *keptUnits) logged() (bytes int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for d := range k.by {
		if d.units != nil {
			bytes += d.units.Size()
		}
	}
	return bytes
}
