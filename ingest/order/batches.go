package order

import "sync"

// Batches holds the memory of batches whose units have left, for others. The zero value is ready to use, by several
// goroutines.
type Batches struct{ pool sync.Pool }

// leastPooled is for how many units the memory of a batch is worth keeping. Memory for many would be wasted on a policy
// whose units come one by one.
const leastPooled = 8

// Get returns an empty batch with memory for so many units, more or less.
func (b *Batches) Get(units int) []WaitingUnit {
	if units >= leastPooled {
		if batch, ok := b.pool.Get().(*[]WaitingUnit); ok {
			return *batch
		}
	}
	return make([]WaitingUnit, 0, units)
}

// Put takes back a batch that nothing refers to any more.
func (b *Batches) Put(batch []WaitingUnit) {
	if cap(batch) >= leastPooled {
		clear(batch)
		batch = batch[:0]
		b.pool.Put(&batch)
	}
}
