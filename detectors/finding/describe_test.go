package finding

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors"
)

// TestHistogramCountsEachValue holds the histogram against asking for the decile of each value.
func TestHistogramCountsEachValue(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 7))
	for _, grain := range []float64{.01, .5, 10} { // few ties, many, and a single value
		draw := func(n int, mean float64) []float64 {
			x := make([]float64, n)
			for i := range x {
				x[i] = math.Round((mean+rng.NormFloat64())/grain) * grain
			}
			return x
		}
		ranks := detectors.NewRanks(draw(300, 0))
		for _, mean := range []float64{-9, 0, .5, 9} {
			x := draw(137, mean)
			var want [10]float64
			for _, v := range x {
				want[ranks.Decile(v)] += 1 / float64(len(x))
			}
			if d := DescribeSample(x, ranks); d.HistogramRatio != want || d.Units != len(x) {
				t.Errorf("grain %v, mean %v: %v, want %v", grain, mean, d.HistogramRatio, want)
			}
		}
	}
}
