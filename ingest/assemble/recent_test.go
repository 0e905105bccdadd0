package assemble

import (
	"math/rand/v2"
	"testing"
)

// used returns the number of occupied slots.
func (m *memory) used() (n int) {
	for _, place := range m.places {
		if place != 0 {
			n++
		}
	}
	return n
}

// TestMemoryFindsWhatAMapWould adds, finds and forgets keys in random order. Few keys are repeated, and the searches
// for many begin in the same slots.
func TestMemoryFindsWhatAMapWould(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	m := newMemory()
	type added struct {
		key uint64
		n   int64
	}
	var ring []added // most recent ones, oldest first
	newest := map[uint64]int64{}
	for n := range int64(100_000) {
		key := rng.Uint64N(6000)
		if rng.IntN(4) == 0 {
			key = 1 << 60 * rng.Uint64N(16) // products of these have the same few high bits
		}
		switch rng.IntN(4) {
		case 0:
			m.forget(key)
			delete(newest, key)
		case 1:
			was := m.find(key)
			want, known := newest[key]
			if known != (was != nil) || known && was.Step != want {
				t.Fatalf("after %d changes, key %d: %v, want step %d, known: %t", n, key, was, want, known)
			}
		default:
			m.add(ended{Key: key, Step: n})
			newest[key] = n
			if ring = append(ring, added{key, n}); len(ring) > remembered {
				if old := ring[0]; newest[old.key] == old.n {
					delete(newest, old.key)
				}
				ring = ring[1:]
			}
		}
	}
	if m.used() != len(newest) {
		t.Errorf("%d slots are used for %d keys", m.used(), len(newest))
	}
}
