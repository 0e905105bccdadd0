package order

import "sync"

// Batches holds the memory of batches whose units have left, for others. The zero value is ready to use, by several
// goroutines.
type Batches struct {
	pool  sync.Pool // *[]WaitingUnit
	boxes sync.Pool // *[]WaitingUnit without memory, so that putting a batch back takes none
}

// leastPooled is for how many units the memory of a batch is worth keeping. Memory for many would be wasted on a policy
// whose units come one by one.
const leastPooled = 8

// Get returns an empty batch with memory for so many units, more or less.
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

// Put takes back a batch that nothing refers to any more.
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
