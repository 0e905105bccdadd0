package feedback

import (
	"sync"
	"sync/atomic"
	"time"
)

// The limits of apart.
const (
	apartKeys    = 1 << 14 // keys per generation; two generations are kept
	apartSampled = 1<<3 - 1
)

// apart detects whether feedback without a decision is in a different partition than its decision, which means that the
// two have different keys. It remembers the partition of a sample of decisions, for all partitions that this instance
// reads. It is safe for concurrent use.
type apart struct {
	mask atomic.Uint64 // keys whose hash has all of these bits are sampled; more bits are set if there are many decisions per window

	mu     sync.Mutex
	now    map[uint64]int32 // partitions of decisions by hash of the key
	before map[uint64]int32 // previous generation
	since  int64            // start of the generation in event time

	// vain contains feedback that was given up before its decision was read, by hash of the key. This happens because the
	// partitions of a topic advance at different speeds while the consumer catches up. vainBefore is the previous
	// generation.
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

// sampled reports whether a key is part of the sample. The hash is mixed, because consecutive keys differ only in a few
// of its bits.
func (a *apart) sampled(hash uint64) bool {
	mask := a.mask.Load()
	return hash*0x9e3779b97f4a7c15>>32&mask == mask
}

// decided records the partition of a decision. It returns the number of feedback records for it that were given up in
// another partition.
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

// note stores the partition of a decision.
func (a *apart) note(hash uint64, partition int32, ts int64, window time.Duration) {
	a.now[hash] = partition
	if len(a.now) < apartKeys {
		return
	}
	if age := ts - a.since; age >= 0 && age < int64(window) { // otherwise, decisions would be forgotten before feedback is given up
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

// lost reports whether feedback without a decision is part of the sample, and whether its decision is in another
// partition. If the decision has not been read yet, decided reports this later.
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
