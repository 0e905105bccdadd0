package progress

import (
	"math/rand/v2"
	"testing"
)

// stretches returns the past of values in stretches of 37, with noise of 1 SD that has the given correlation.
func stretches(seed uint64, units int, correlation float64, level func(i int) float64) (past []Point) {
	rng := rand.New(rand.NewPCG(seed, 11))
	noise := 0.
	for start := 0; start < units; start += 37 {
		p := Point{SD: 1}
		for i := start; i < min(start+37, units); i++ {
			noise = correlation*noise + rng.NormFloat64()
			p.Mean += (level(i) + noise - p.Mean) / (p.Units + 1)
			p.Units++
		}
		past = append(past, p)
	}
	return past
}

func TestStepsAreToldFromRises(t *testing.T) {
	for name, c := range map[string]struct {
		correlation float64
		level       func(i int) float64
		want        bool
	}{
		"a step of 1 SD in the middle":      {0, func(i int) float64 { return float64(i / 1000) }, true},
		"a step of 2 SD within a stretch":   {0, func(i int) float64 { return 2 * float64(i/1388%2) }, true},
		"a step of 2 SD of related values":  {.5, func(i int) float64 { return 2 * float64(i/1000) }, true},
		"a step down":                       {0, func(i int) float64 { return -float64(i / 1000) }, true},
		"a rise of 1 SD":                    {0, func(i int) float64 { return float64(i) / 2000 }, false},
		"a rise of 2 SD over a fourth":      {0, func(i int) float64 { return 2 * min(1, max(0, float64(i-700)/500)) }, false},
		"a rise of 2 SD of related values":  {.5, func(i int) float64 { return float64(i) / 1000 }, false},
		"a rise of 3 SD in the first tenth": {0, func(i int) float64 { return 3 * min(1, float64(i)/300) }, false},
	} {
		right := 0
		for seed := range uint64(100) {
			if IsStep(stretches(seed, 2000, c.correlation, c.level)) == c.want {
				right++
			}
		}
		if t.Logf("%s: %d of 100", name, right); right < 90 {
			t.Errorf("%s: right in %d of 100 runs", name, right)
		}
	}
}

func TestStepOfNoPast(t *testing.T) {
	if IsStep(nil) || IsStep([]Point{{Units: 5}}) {
		t.Error("a step without a past")
	}
}
