package factor

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The sums of products in assembly equal the plain ones to the last bit, for all lengths.
func TestKernels(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	random := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(rng.NormFloat64())
		}
		return x
	}
	for n := range maxFeatures + 1 {
		triangle, x := random(n*(n+1)/2), random(n)
		whole := plainSquaredLength(triangle, x, math.MaxFloat32)
		if got := squaredLength(triangle, x, math.MaxFloat32); got != whole {
			t.Errorf("%d numbers: squared length %v, want %v", n, got, whole)
		}
		if n > 1 {
			if got := squaredLength(triangle, x, whole/2); got <= whole/2 || got > whole {
				t.Errorf("%d numbers: squared length %v above a bound of %v, want up to %v", n, got, whole/2, whole)
			}
		}
		for q := range 10 {
			beta, y, want := random(q*(n+1)), make([]float32, q), make([]float32, q)
			linear(y, beta, x)
			plainLinear(want, beta, x)
			for k := range y {
				if y[k] != want[k] {
					t.Errorf("%d numbers: prediction %d of %d is %v, want %v", n, k, q, y[k], want[k])
				}
			}
		}
	}
}

// rank counts the values below, with ties, beyond the ends, and in laws of any size.
func TestRank(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		sample := make([]float64, leastSketch+rng.IntN(80))
		for i := range sample {
			sample[i] = float64(rng.IntN(40) - 20)
		}
		numbers := evenly(sample, sketchSize)
		x := float32(rng.IntN(48) - 24)
		want := 0
		for _, v := range numbers {
			if v < x {
				want++
			}
		}
		if got := rank(keys(numbers), keyOf(x)); got != want {
			t.Fatalf("rank of %v in %v is %d, want %d", x, numbers, got, want)
		}
	}
}
