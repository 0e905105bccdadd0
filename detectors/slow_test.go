package detectors

import (
	"math"
	"math/rand/v2"
	"testing"
)

// What is tolerated follows values that have moved for long, on the side to which they have, and not the newest ones.
func TestSlowShiftsAreTolerated(t *testing.T) {
	const most, at = .3, 1000
	for name, c := range map[string]struct {
		shift, late   float64 // of all values, and of the newest in addition
		first         int64   // with a value
		higher, lower float64
	}{
		"none":             {0, 0, 0, 0, 0},
		"newest values":    {0, 5, 0, 0, 0},
		"a rise":           {.2, 0, 0, .2, 0},
		"a fall":           {-.2, 0, 0, 0, .2},
		"beyond the bound": {2, 0, 0, most, 0},
		"few values":       {0, 0, at - latelyUnits - leastSlow + 1, most, most},
	} {
		rng := rand.New(rand.NewPCG(5, 5))
		values := map[int64]float64{}
		for i := c.first; i < at; i++ {
			values[i] = 1 + c.shift + rng.NormFloat64()
			if i >= at-latelyUnits {
				values[i] += c.late
			}
		}
		got := Slow{}.At(at, func(i int64) float64 {
			if x, has := values[i]; has {
				return x
			}
			return math.NaN()
		}, 1, 1, most)
		near := func(got, want float64) bool { return math.Abs(got-want) <= (3+slowError)/math.Sqrt(slowUnits) }
		if !near(got.Higher, c.higher) || !near(got.Lower, c.lower) || max(got.Higher, got.Lower) > most || min(got.Higher, got.Lower) < 0 {
			t.Errorf("%s: %+v, want about %v and %v", name, got, c.higher, c.lower)
		}
	}
}
