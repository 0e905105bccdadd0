package order

import "sync"

// Batches reuses the memory of batches whose units have been released. The zero value is ready to use, and safe for
// concurrent use.
type Batches struct {
	pool  sync.Pool // *[]WaitingUnit
	boxes sync.Pool // *[]WaitingUnit without memory, so that Put does not allocate
}

// leastPooled is the minimum capacity of a batch that is reused. Larger memory would be wasted on a policy whose units
// arrive one by one.
const leastPooled = 8

// Get returns an empty batch with memory for about the given number of units.
func (b *Batches) Get(units int) []WaitingUnit {
	if units >= leastPooled {
		if box, ok := b.pool.Get().(*[]WaitingUnit); ok {
			batch := *box
			*box = nil
			b.boxes.Put(box)
			return batch
		}
	}
	return make([]WaitingUnit, 0, units)
}

// Put takes back a batch. Nothing may refer to it any more.
func (b *Batches) Put(batch []WaitingUnit) {
	if cap(batch) < leastPooled {
		return
	}
	clear(batch)
	box, ok := b.boxes.Get().(*[]WaitingUnit)
	if !ok {
		box = new([]WaitingUnit)
	}
	*box = batch[:0]
	b.pool.Put(box)
}
