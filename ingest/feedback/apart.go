package feedback

import (
	"sync"
	"sync/atomic"
	"time"
)

// The limits of apart.
const (
	apartKeys    = 1 << 14 // of a generation, of which there are two
	apartSampled = 1<<3 - 1
)

// apart finds out whether feedback without a decision is in another partition than its decision: then the two are not
// keyed alike. It remembers the partitions in which a sample of the keys was decided, over all partitions that are read
// here. It is safe for concurrent use.
type apart struct {
	mask atomic.Uint64 // keys whose hash has these bits are sampled: fewer, where many are decided within a window

	mu     sync.Mutex
	now    map[uint64]int32 // partitions by hash of the key
	before map[uint64]int32 // the generation before
	since  int64            // when the generation began, by event time
}

func newApart() *apart {
	a := &apart{now: map[uint64]int32{}}
	a.mask.Store(apartSampled)
	return a
}

// sampled reports whether a key is one of the sample. The hash is mixed, as keys that count up differ in few of its bits.
func (a *apart) sampled(hash uint64) bool {
	mask := a.mask.Load()
	return hash*0x9e3779b97f4a7c15>>32&mask == mask
}

// decided notes where a decision is.
func (a *apart) decided(hash uint64, partition int32, ts int64, window time.Duration) {
	if !a.sampled(hash) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now[hash] = partition
	if len(a.now) < apartKeys {
		return
	}
	if age := ts - a.since; age >= 0 && age < int64(window) { // feedback would be given up after its decision is forgotten
		a.mask.Store(a.mask.Load()<<1 | 1)
		for hash := range a.now {
			if !a.sampled(hash) {
				delete(a.now, hash)
			}
		}
		return
	}
	a.before, a.now, a.since = a.now, map[uint64]int32{}, ts
}

// lost reports whether feedback without a decision is of the sample, and whether its decision is in another partition.
func (a *apart) lost(hash uint64, partition int32) (sampled, elsewhere bool) {
	if !a.sampled(hash) {
		return false, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	at, known := a.now[hash]
	if !known {
		at, known = a.before[hash]
	}
	return true, known && at != partition
}
