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

	// vain is the feedback that waited in vain for a decision that was not read until then, by hash of the key: while a
	// topic is caught up with, its partitions are not read equally far. A generation before it is kept as well.
	vain, vainBefore map[uint64]inVain
}

type inVain struct {
	partition int32
	records   int64
}

func newApart() *apart {
	a := &apart{now: map[uint64]int32{}, vain: map[uint64]inVain{}}
	a.mask.Store(apartSampled)
	return a
}

// sampled reports whether a key is one of the sample. The hash is mixed, as keys that count up differ in few of its bits.
func (a *apart) sampled(hash uint64) bool {
	mask := a.mask.Load()
	return hash*0x9e3779b97f4a7c15>>32&mask == mask
}

// decided notes where a decision is. It returns how many records of feedback have waited for it in another partition, in
// vain.
func (a *apart) decided(hash uint64, partition int32, ts int64, window time.Duration) (elsewhere int64) {
	if !a.sampled(hash) {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, vain := range []map[uint64]inVain{a.vain, a.vainBefore} {
		if f, waited := vain[hash]; waited && f.partition != partition {
			elsewhere += f.records
		}
		delete(vain, hash)
	}
	a.note(hash, partition, ts, window)
	return elsewhere
}

// note remembers the partition of a decision.
func (a *apart) note(hash uint64, partition int32, ts int64, window time.Duration) {
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
// If the decision has not been read, decided will say so.
func (a *apart) lost(hash uint64, partition int32, records int64) (sampled, elsewhere bool) {
	if !a.sampled(hash) {
		return false, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	at, known := a.now[hash]
	if !known {
		at, known = a.before[hash]
	}
	if !known {
		if len(a.vain) == apartKeys {
			a.vain, a.vainBefore = map[uint64]inVain{}, a.vain
		}
		a.vain[hash] = inVain{partition, records}
	}
	return true, known && at != partition
}
