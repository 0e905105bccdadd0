package detectors

import (
	"math"
	"math/rand/v2"
	"testing"
)

// pairedDistance is the mean distance of two samples paired in order, each repeated as often as the other is long.
func pairedDistance(a, b []float64) float64 {
	n := len(a) * len(b)
	sum := 0.0
	a, b = sortedCopy(a), sortedCopy(b)
	for i := range n {
		sum += math.Abs(a[i/len(b)]-b[i/len(a)]) / float64(n)
	}
	return sum
}

// plainSpread is the root of half the mean squared difference of all pairs.
func plainSpread(x []float64) float64 {
	sum := 0.0
	for _, a := range x {
		for _, b := range x {
			sum += (a - b) * (a - b)
		}
	}
	return math.Sqrt(sum/2) / float64(len(x))
}

func TestDisplacementAgreesWithPlainCode(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, size := range [][2]int{{1, 1}, {2, 1}, {1, 7}, {50, 50}, {101, 40}, {60, 200}} {
		for _, draw := range []func(*rand.Rand, int) []float64{normal, tied} {
			before, after := draw(rng, size[0]), draw(rng, size[1])
			for i := range after {
				after[i] = 1.5*after[i] + 1
			}
			d := NewDisplacement(before, after)
			if want := pairedDistance(before, after); math.Abs(d.Wasserstein-want) > 1e-12 {
				t.Errorf("%v: Wasserstein distance %v, want %v", size, d.Wasserstein, want)
			}
			for p, got := range map[float64]float64{.1: d.Q10, .5: d.Median, .9: d.Q90} {
				if want := Quantiles(after, p)[0] - Quantiles(before, p)[0]; got != want {
					t.Errorf("%v: shift of the quantile %v is %v, want %v", size, p, got, want)
				}
			}
			if want := plainSpread(after) / plainSpread(before); size[0] > 1 && math.Abs(d.SpreadRatio-want) > 1e-12 {
				t.Errorf("%v: ratio of spread %v, want %v", size, d.SpreadRatio, want)
			}
		}
	}
}

func TestDisplacementOfASampleFromItself(t *testing.T) {
	x := tied(rand.New(rand.NewPCG(2, 2)), 100)
	if d := NewDisplacement(x, sortedCopy(x)); d != (Displacement{SpreadRatio: 1}) {
		t.Errorf("%+v", d)
	}
}

func TestDisplacementThatCannotBeTold(t *testing.T) {
	for _, d := range []Displacement{NewDisplacement(nil, []float64{1}), NewDisplacement([]float64{1}, nil)} {
		for _, x := range []float64{d.Median, d.Q10, d.Q90, d.SpreadRatio, d.Wasserstein} {
			if !math.IsNaN(x) {
				t.Errorf("%+v of an empty sample, want NaN", d)
			}
		}
	}
	d := NewDisplacement([]float64{.1, .1, .1}, []float64{1.1, 2.1})
	if !math.IsNaN(d.SpreadRatio) || math.Abs(d.Median-1.5) > 1e-15 || math.Abs(d.Wasserstein-1.5) > 1e-15 {
		t.Errorf("%+v from a constant sample", d)
	}
}
