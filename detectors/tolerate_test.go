package detectors

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A tolerated shift raises no more false alarms than no shift, and a larger one is found.
func TestToleratedShift(t *testing.T) {
	const m, rate, units = 500, 1. / 200, 20_000
	rng := rand.New(rand.NewPCG(77, 1))
	sample := make([]float64, m)
	for i := range sample {
		sample[i] = rng.NormFloat64()
	}
	alarms := func(by, shift float64) int {
		w := NewRankTest(sample, NewRanks(sample), 1)
		w.Tolerate(by)
		w.Arm(rate / float64(w.Carrying()))
		n := 0
		for i := range units {
			x := rng.NormFloat64() + shift
			if w.ObserveWithin(-1, x-by, x+by, int64(i), false) {
				w.Reset()
				n++
			}
		}
		return n
	}
	const allowed = units * rate
	for _, shift := range []float64{-2, -1, 1, 2} {
		if n := alarms(math.Abs(shift), shift); float64(n) > allowed+3*math.Sqrt(allowed) {
			t.Errorf("%d alarms of a shift of %v that is tolerated, where %v are allowed", n, shift, allowed)
		}
		if n := alarms(0, shift); n < units/20 {
			t.Errorf("%d alarms of a shift of %v that is not tolerated", n, shift)
		}
	}
	// The part of a shift beyond what is tolerated is found as fast as if it were the whole shift.
	for _, side := range []float64{-1, 1} {
		alone := float64(alarms(0, side))
		if n := float64(alarms(2, 3*side)); n < .9*alone-3*math.Sqrt(alone) {
			t.Errorf("%v alarms of a shift of %v of which 2 are tolerated, %v of the rest alone", n, 3*side, alone)
		}
	}
}
