package detectors

import (
	"math"
	"math/rand/v2"
	"testing"
)

// daily makes 14 days of 40 values, of which each day has a level of its own.
func daily(rng *rand.Rand, level float64) (x []float64, day []int64) {
	for d := range int64(14) {
		of := level * rng.NormFloat64()
		for range 40 {
			x, day = append(x, of+rng.NormFloat64()), append(day, d)
		}
	}
	return x, day
}

func TestDayFactorOfEqualDays(t *testing.T) {
	rng := rand.New(rand.NewPCG(70, 0))
	const runs, level = 2000, .01
	refused, sum := 0.0, 0.0
	for range runs {
		f, p := DayFactor(daily(rng, 0))
		sum += f / runs
		if p < level {
			refused++
		}
	}
	if most := level + 3*math.Sqrt(level*(1-level)/runs); refused/runs > most {
		t.Errorf("%.4f of equal days differ, want at most %.4f", refused/runs, most)
	}
	// chi-square over its 13 degrees of freedom: variance 2/13.
	if math.Abs(sum-1) > 4*math.Sqrt(2./13/runs)+.01 {
		t.Errorf("mean factor %.3f, want 1", sum)
	}
}

func TestDayFactorOfDifferentDays(t *testing.T) {
	rng := rand.New(rand.NewPCG(71, 0))
	const level = .4 // the mean of a day of 40 values then has the variance 1/40 + .16
	sum := 0.0
	const runs = 400
	for range runs {
		f, p := DayFactor(daily(rng, level))
		sum += f / runs
		if p > .01 {
			t.Fatalf("factor %.2f has p = %.3f", f, p)
		}
	}
	want := (1 + 40*level*level) / (1 + level*level)
	if math.Abs(sum-want) > .1*want {
		t.Errorf("mean factor %.2f, want about %.2f", sum, want)
	}
	if f, p := DayFactor([]float64{1, 2, 3, 4}, []int64{0, 0, 1, 1}); f != 1 || p != 1 {
		t.Errorf("two days give %v, %v", f, p)
	}
}
