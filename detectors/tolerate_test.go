package detectors

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A shift that is tolerated raises no more false alarms than none would, and a larger one is found.
func TestToleratedShift(t *testing.T) {
	const m, tolerated, rate, units = 500, 1., 1. / 200, 20_000
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
			if w.Observe(rng.NormFloat64()+shift, int64(i), false) {
				w.Reset()
				n++
			}
		}
		return n
	}
	const allowed = units * rate
	if n := alarms(tolerated, tolerated); float64(n) > allowed+3*math.Sqrt(allowed) {
		t.Errorf("%d alarms of the shift that is tolerated, where %v are allowed", n, allowed)
	}
	if n := alarms(0, tolerated); n < units/20 {
		t.Errorf("%d alarms of that shift where it is not tolerated", n)
	}
	if n := alarms(tolerated, 2.2); n < units/40 {
		t.Errorf("%d alarms of a larger shift", n)
	}
}
