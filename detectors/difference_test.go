package detectors

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestSimDifferenceHoldsAtAllTimes draws baselines and values of one distribution and checks the interval after
// each value.
func TestSimDifferenceHoldsAtAllTimes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	const (
		runs, m, longest = 2000, 500, 2000
		first            = 30
		alpha            = .05
	)
	laws := []struct {
		name string
		draw func(*rand.Rand) float64
	}{
		{"normal", (*rand.Rand).NormFloat64},
		{"exponential", (*rand.Rand).ExpFloat64},
		{"0 or 1, one in twenty", func(r *rand.Rand) float64 { return indicator(r.Float64() < .05) }},
		{"two levels, one in fifty lower", func(r *rand.Rand) float64 { return -indicator(r.Float64() < .02) }},
		{"Student's t, 3 degrees", func(r *rand.Rand) float64 {
			return r.NormFloat64() / math.Sqrt((sq(r.NormFloat64())+sq(r.NormFloat64())+sq(r.NormFloat64()))/3)
		}},
	}
	for k, law := range laws {
		rng := rand.New(rand.NewPCG(uint64(k), 17))
		low, high := 0, 0
		for range runs {
			var sum, squares float64
			for range m {
				x := law.draw(rng)
				sum, squares = sum+x, squares+x*x
			}
			mean := sum / m
			sd := math.Sqrt(squares/m - mean*mean)
			sum, squares = 0, 0
			for n := int64(1); n <= longest; n++ {
				x := (law.draw(rng) - mean) / sd
				sum, squares = sum+x, squares+x*x
				if n < first {
					continue
				}
				d := sum / float64(n)
				r := max(1, math.Sqrt(squares/float64(n)-d*d))
				if w := DifferenceWidth(m, n, r, 1, alpha); math.Abs(d) > w {
					if d < 0 {
						low++
					} else {
						high++
					}
					break
				}
			}
		}
		share := float64(low+high) / runs
		t.Logf("%s: %.4f below, %.4f above", law.name, float64(low)/runs, float64(high)/runs)
		if bound := alpha + 3*math.Sqrt(alpha*(1-alpha)/runs); share > bound {
			t.Errorf("%s: %.4f of the runs ever exclude the truth, more than %.4f", law.name, share, bound)
		}
	}
}

func indicator(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func sq(x float64) float64 { return x * x }

func TestUnitsToEquivalence(t *testing.T) {
	n := UnitsToEquivalence(500, 1, 1, .05)
	sd := math.Sqrt(1./500 + 1/float64(n))
	if at := .6745*sd + DifferenceWidth(500, n, 1, 1, .05); at > EquivalenceMargin || at < EquivalenceMargin-.001 {
		t.Errorf("%d units: %.4f", n, at)
	}
	if n := UnitsToEquivalence(100, 1, 1, .05); n != 0 {
		t.Errorf("a baseline of 100 units tells after %d", n)
	}
	if !math.IsInf(DifferenceWidth(500, 0, 1, 1, .05), 1) {
		t.Error("no values tell something")
	}
}
