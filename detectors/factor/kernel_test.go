package factor

import (
	"math"
	"math/rand/v2"
	"slices"
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
		x := random(n)
		strips := random((&regression{p: n}).triangle().size())
		if got, want := squaredLength(strips, x), plainSquaredLength(strips, x); got != want {
			t.Errorf("%d numbers: squared length %v, want %v", n, got, want)
		}
		for q := range 20 {
			y, want := random(q+1), make([]float32, q)
			behind := y[q]
			strips := random(shape{rows: q, columns: n + 1}.size())
			linear(y[:q], strips, x)
			plainLinear(want, strips, x)
			if !slices.Equal(y[:q], want) || y[q] != behind {
				t.Errorf("%d numbers: predictions are %v, want %v and %v behind", n, y, want, behind)
			}
		}
	}
	for n := 1; n <= sketchSize; n++ {
		laws, keys := make([]int32, 9*n), make([]int32, 9)
		for i := range laws {
			laws[i] = int32(rng.Uint32())
		}
		for i := range keys {
			slices.Sort(laws[i*n : (i+1)*n])
			keys[i] = laws[i*n+rng.IntN(n)] + int32(rng.IntN(2))
		}
		got, want := make([]int32, 9), make([]int32, 9)
		ranks(got, laws, keys, n)
		plainRanks(want, laws, keys, n)
		if !slices.Equal(got, want) {
			t.Errorf("laws of %d values: ranks are %v, want %v", n, got, want)
		}
	}
}

// A matrix in strips can be converted back, and its product with a vector is correct.
func TestStrips(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		p, q := rng.IntN(20), 1+rng.IntN(20)
		x, numbers := make([]float32, p), make([]float32, q*(p+1))
		for i := range x {
			x[i] = float32(rng.NormFloat64())
		}
		for i := range numbers {
			numbers[i] = float32(rng.NormFloat64())
		}
		betas := shape{rows: q, columns: p + 1}
		y := make([]float32, q)
		linear(y, betas.strips(numbers), x)
		for k, got := range y {
			want := float64(numbers[k*(p+1)])
			for j, v := range x {
				want += float64(numbers[k*(p+1)+1+j]) * float64(v)
			}
			if math.Abs(float64(got)-want) > 1e-4 {
				t.Fatalf("%d numbers: prediction %d of %d is %v, want %v", p, k, q, got, want)
			}
		}
		if back := betas.numbers(betas.strips(numbers)); !slices.Equal(back, numbers) {
			t.Fatalf("a matrix of %d rows comes out of strips as %v, want %v", q, back, numbers)
		}
	}
}

// A triangular matrix in strips can be converted back, and the distance is the squared length of its product with x - mean.
func TestRegionInStrips(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for p := range maxFeatures + 1 {
		x, mean, numbers := make([]float32, p), make([]float32, p), make([]float32, p*(p+1)/2)
		for i := range x {
			x[i], mean[i] = float32(rng.NormFloat64()), float32(rng.NormFloat64())
		}
		for i := range numbers {
			numbers[i] = float32(rng.NormFloat64())
		}
		shape := (&regression{p: p}).triangle()
		strips := shape.strips(around(mean, numbers))
		want, at := 0., 0
		for i := range p {
			sum := 0.
			for j := range i + 1 {
				sum += float64(numbers[at]) * (float64(x[j]) - float64(mean[j]))
				at++
			}
			want += sum * sum
		}
		if got := float64(squaredLength(strips, x)); math.Abs(got-want) > 1e-4*(1+want) {
			t.Errorf("%d features: distance %v, want %v", p, got, want)
		}
		if back := triangleOf(shape.numbers(strips)); !slices.Equal(back, numbers) {
			t.Errorf("a triangle of %d rows comes out of strips as %v, want %v", p, back, numbers)
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
