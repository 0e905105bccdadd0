package feedback

import (
	"math/rand/v2"
	"testing"
)

// places returns the same as a map, even if hashes collide, cells wrap around the end, and entries are removed.
func TestSimPlacesAreThoseOfAMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	hashes := make([]uint64, 5000)
	p := places{hash: func(slot uint32) uint64 { return hashes[slot] }}
	want := map[uint64]uint32{}
	for range 200_000 {
		slot := uint32(rng.IntN(len(hashes)))
		if _, taken := want[hashes[slot]]; taken && want[hashes[slot]] == slot {
			p.remove(hashes[slot])
			delete(want, hashes[slot])
			continue
		}
		hash := rng.Uint64N(64) | rng.Uint64N(4096)<<52 | uint64(rng.IntN(2))*(fewestCells-1)
		if _, taken := want[hash]; !taken {
			hashes[slot] = hash
			p.put(hash, slot)
			want[hash] = slot
		}
	}
	if len(want) < 1000 || p.n != len(want) {
		t.Fatalf("%d are there, want %d and many", p.n, len(want))
	}
	for slot, hash := range hashes {
		at, taken := want[hash]
		if got, found := p.find(hash); found != taken || found && got != at {
			t.Errorf("hash %x of slot %d is at %d (%t), want %d (%t)", hash, slot, got, found, at, taken)
		}
	}
}
