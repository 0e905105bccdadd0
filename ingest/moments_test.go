package ingest

import (
	"math/rand/v2"
	"testing"
)

// MergeOne has the same result as Merge, bit for bit.
func TestMergeOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(16, 1))
	for range 200 {
		var one, other Moments
		one.NonFinite, other.NonFinite = 2, 2
		for range rng.IntN(300) {
			x := []float64{0, 1, rng.NormFloat64(), -1e6 * rng.Float64(), 1e-300}[rng.IntN(5)]
			one.MergeOne(x)
			other.Merge(momentsOf(x))
			if one != other {
				t.Fatalf("%+v, want %+v", one, other)
			}
		}
	}
}
