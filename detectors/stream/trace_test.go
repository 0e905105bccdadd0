package stream

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestTraceKnowsTheLastUnits(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	var tr Trace
	all := map[int64]float64{}
	ordinal := int64(17)
	for i := range 3000 {
		gap := int64(rng.IntN(4))
		if i%900 == 899 {
			gap += 400 * int64(rng.IntN(4))
		}
		ordinal += 1 + gap
		all[ordinal] = rng.Float64()
		tr.Add(all[ordinal], ordinal)
		since := ordinal - int64(rng.IntN(700))
		values, ordinals := tr.Since(since)
		n := 0
		for o := max(since, ordinal-TrailUnits+1); o <= ordinal; o++ {
			x, there := all[o]
			if !there {
				continue
			}
			if n >= len(values) || values[n] != x || ordinals[n] != o {
				t.Fatalf("value %d since unit %d is not that of unit %d", n, since, o)
			}
			n++
		}
		if n != len(values) || len(tr.Values) > TrailUnits {
			t.Fatalf("%d values since unit %d, want %d", len(values), since, n)
		}
		if newest := tr.appendNewest(nil, since); !slices.Equal(newest, values[max(0, n-CurrentUnits):]) {
			t.Fatalf("%d newest values since unit %d, which has %d", len(newest), since, n)
		}
	}
}
