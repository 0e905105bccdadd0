package ingest

import (
	"maps"
	"math/rand/v2"
	"testing"
)

// Partitions are found by index or in a map, with the same result, and each keeps its own last unit.
func TestAppliedUnits(t *testing.T) {
	rng := rand.New(rand.NewPCG(14, 1))
	var a AppliedUnits
	want := map[Partition]AppliedUnit{}
	for range 5000 {
		u := AppliedUnit{
			Pos: Position{Partition: Partition(rng.IntN(2 * mostNear)), Offset: rng.Int64N(50)}, Ord: rng.Int32N(3), Reading: rng.Int64N(2),
		}
		last, any := want[u.Pos.Partition]
		has := any && last.Reaches(u)
		if a.Has(u) != has {
			t.Fatalf("%+v: has %t, want %t", u, !has, has)
		}
		switch {
		case rng.IntN(10) == 0:
			a.Set(u)
			want[u.Pos.Partition] = u
		case a.Apply(u) == has:
			t.Fatalf("%+v was applied: %t", u, has)
		case !has:
			want[u.Pos.Partition] = u
		}
	}
	if got := a.All(); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
