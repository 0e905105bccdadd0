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

// A search that begins at another number's slot finds the same as one without it, however far away that number is.
func TestSlotNearAnother(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for n := 1; n < 70; n++ {
		sample := make([]float64, n)
		for i := range sample {
			sample[i] = float64(rng.IntN(40))
		}
		r := NewRanks(sample)
		for _, x := range []float64{float64(rng.IntN(40)), 40 * rng.Float64(), -1, 0, 39, 41, math.Inf(-1), math.Inf(1)} {
			for known := range 2*r.Distinct() + 1 {
				if got, want := SlotNear(r, x, known), r.Slot(x); got != want {
					t.Fatalf("%v among %v, from slot %d on: slot %d, want %d", x, r.Points, known, got, want)
				}
			}
		}
	}
}
