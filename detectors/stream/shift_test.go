package stream

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors"
)

// The variance of normal scores about their mean tells values that scatter from values at another level. Scores are
// clipped to +-2.5, so it is below that of the values.
func TestVarianceOfAShift(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 1))
	draw := func(n int, mean, sd float64) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = mean + sd*rng.NormFloat64()
		}
		return x
	}
	baseline := detectors.NewRanks(draw(1000, 0, 1))
	for _, c := range []struct{ mean, sd, low, high float64 }{
		{0, 1, .85, 1.15}, // a variance of n = 400 normal values has a standard error of .07
		{1, 1, .6, 1.1},
		{5, 1, 0, .8},
		{0, 3, 3, 5},
		{1, 3, 2.5, 5},
	} {
		s := ShiftAgainst(baseline, draw(400, c.mean, c.sd), 1)
		if v := s.Variance(); math.IsNaN(v) || v < c.low || v > c.high {
			t.Errorf("values with mean %v and SD %v have a variance of %v, want %v to %v", c.mean, c.sd, v, c.low, c.high)
		}
	}
}
