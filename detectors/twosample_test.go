package detectors

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"
)

// The tail is compared with points of the Kolmogorov distribution from tables (Smirnov 1948).
func TestKolmogorovTail(t *testing.T) {
	for _, tt := range []struct{ x, want float64 }{
		{0, 1}, {.2, 1}, {.5, .963945}, {.82757, .5}, {1, .269999}, {1.2238, .1}, {1.3581, .05}, {1.6276, .01}, {1.9495, .001}, {20, 0},
	} {
		if got := kolmogorovTail(tt.x); math.Abs(got-tt.want) > 5e-5*max(1, tt.want) {
			t.Errorf("tail at %v is %v, want %v", tt.x, got, tt.want)
		}
	}
}

// The distance is compared with gonum's, on samples with ties, one of which may lie beyond the other.
func TestTwoSampleKSAgainstGonum(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		a, b := make([]float64, 1+rng.IntN(40)), make([]float64, 1+rng.IntN(40))
		levels, shift := 1+rng.IntN(30), rng.IntN(5)
		for i := range a {
			a[i] = float64(rng.IntN(levels))
		}
		for i := range b {
			b[i] = float64(rng.IntN(levels) + shift)
		}
		slices.Sort(a)
		slices.Sort(b)
		d, p := TwoSampleKS(a, b)
		if want := stat.KolmogorovSmirnov(a, nil, b, nil); math.Abs(d-want) > 1e-12 {
			t.Fatalf("distance of %v and %v is %v, gonum says %v", a, b, d, want)
		}
		if p < 0 || p > 1 {
			t.Fatalf("p = %v", p)
		}
	}
	if d, p := TwoSampleKS(nil, []float64{1}); !math.IsNaN(d) || !math.IsNaN(p) {
		t.Errorf("an empty sample gives %v, %v", d, p)
	}
}

// Under one continuous distribution p is uniform: a share q of the tests has p <= q, within four standard errors
// and a slack for the limit, which is approached from above.
func TestTwoSampleKSUnderOneLaw(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	const runs, n = 2000, 500
	below := map[float64]int{.05: 0, .5: 0}
	for range runs {
		a, b := make([]float64, n), make([]float64, n)
		for i := range n {
			a[i], b[i] = rng.NormFloat64(), rng.NormFloat64()
		}
		slices.Sort(a)
		slices.Sort(b)
		_, p := TwoSampleKS(a, b)
		for q := range below {
			if p <= q {
				below[q]++
			}
		}
	}
	for q, count := range below {
		share, se := float64(count)/runs, math.Sqrt(q*(1-q)/runs)
		if share > q+4*se || share < q-4*se-.05*q-.01 {
			t.Errorf("p <= %v in a share of %v", q, share)
		}
	}
}
