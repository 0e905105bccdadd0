package assemble

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"
)

// TestQuantilesOfShortSequencesAreExact compares quantiles with gonum's interpolation between the same order
// statistics.
func TestQuantilesOfShortSequencesAreExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := 1; n <= sampleSize; n++ {
		var s sample
		s.reset()
		var x []float64
		for range n {
			v := math.Round(10 * r.NormFloat64())
			x = append(x, v)
			s.add(v)
		}
		slices.Sort(x)
		q10, q90 := s.quantiles()
		if !close(q10, type7(x, .1)) || !close(q90, type7(x, .9)) {
			t.Fatalf("n=%d: %v %v, want %v %v", n, q10, q90, type7(x, .1), type7(x, .9))
		}
	}
}

// TestTailsAreSortedAsAWhole compares sortTails with sorting, for the sizes that quantiles uses.
func TestTailsAreSortedAsAWhole(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for size := 1; size <= sampleSize; size++ {
		for range 50 {
			x := make([]float64, size)
			for i := range x {
				x[i] = math.Round(float64(size) * r.NormFloat64()) // with ties
			}
			sorted, q := slices.Sorted(slices.Values(x)), &sample{Kept: x}
			if q10, q90 := q.quantiles(); q10 != quantile(sorted, .1) || q90 != quantile(sorted, .9) {
				t.Fatalf("%v: %v %v, want %v %v", x, q10, q90, quantile(sorted, .1), quantile(sorted, .9))
			}
			n := size/10 + 2
			sortTails(x, n)
			if n = min(n, size); !slices.Equal(x[:n], sorted[:n]) || !slices.Equal(x[size-n:], sorted[size-n:]) {
				t.Fatalf("the tails of %v are %v", sorted, x)
			}
			if slices.Sort(x); !slices.Equal(x, sorted) {
				t.Fatalf("%v has become %v", sorted, x)
			}
		}
	}
}

// type7 is the definition: the p-quantile is at position (n-1)p of the sorted values.
func type7(sorted []float64, p float64) float64 {
	at := float64(len(sorted)-1) * p
	low, high := sorted[int(math.Floor(at))], sorted[int(math.Ceil(at))]
	return low + (at-math.Floor(at))*(high-low)
}

func close(a, b float64) bool { return math.Abs(a-b) < 1e-12 }

func TestSampleIsEvenlySpaced(t *testing.T) {
	var s sample
	s.reset()
	for i := range 10_000 {
		s.add(float64(i))
		if len(s.Kept) > sampleSize {
			t.Fatalf("%d values are kept", len(s.Kept))
		}
		for j, x := range s.Kept {
			if x != float64(int64(j)*s.Stride) {
				t.Fatalf("after %d values: number %d is %v with stride %d", i+1, j, x, s.Stride)
			}
		}
		if i >= sampleSize && len(s.Kept) < sampleSize/2 {
			t.Fatalf("after %d values only %d are kept", i+1, len(s.Kept))
		}
	}
}

func TestQuantilesOfLongSequencesAreNear(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{100, 1000, 20_000} {
		var s sample
		s.reset()
		var x []float64
		for range n {
			v := r.Float64()
			x = append(x, v)
			s.add(v)
		}
		slices.Sort(x)
		q10, q90 := s.quantiles()
		for _, c := range [][2]float64{{q10, .1}, {q90, .9}} {
			if got := stat.CDF(c[0], stat.Empirical, x, nil); math.Abs(got-c[1]) > .15 { // 3 standard errors of 32 values
				t.Errorf("n=%d: the %v quantile lies at %v", n, c[1], got)
			}
		}
	}
}
