package detectors

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Four searches at once find the same as four separate searches.
func TestSlotsOfFourValues(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for n := 1; n < 70; n++ {
		sample := make([]float64, n)
		for i := range sample {
			sample[i] = float64(rng.IntN(40))
		}
		r := NewRanks(sample)
		for range 50 {
			values := [4]float64{float64(rng.IntN(40)), 40 * rng.Float64(), math.Inf(2*rng.IntN(2) - 1), math.NaN()}
			rng.Shuffle(4, func(i, j int) { values[i], values[j] = values[j], values[i] })
			for i, got := range slotsOf(r.Points, values) {
				if want := r.Slot(values[i]); got != want {
					t.Fatalf("%v among %v: slot %d, want %d", values[i], r.Points, got, want)
				}
			}
		}
	}
}
