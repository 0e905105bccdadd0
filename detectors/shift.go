package detectors

import (
	"math"

	"gonum.org/v1/gonum/stat"
)

// Displacement is how far a sample lies from another, in the unit of the values unless stated otherwise.
type Displacement struct {
	Median      float64 // shift of the median
	Q10, Q90    float64 // shifts of the outer deciles
	SpreadRatio float64 // ratio of the standard deviations, without a unit; NaN if the baseline's is 0
	// Wasserstein is the 1-Wasserstein distance, the area between the two distribution functions: the average distance
	// that a value has moved if the values are paired in order.
	Wasserstein float64
}

// NewDisplacement compares a current sample with a baseline, both sorted in place and finite. Quantiles are those of
// Quantiles. Everything is NaN if one of the samples is empty. It takes O(n log n).
func NewDisplacement(baseline, current []float64) Displacement {
	if len(baseline) == 0 || len(current) == 0 {
		nan := math.NaN()
		return Displacement{nan, nan, nan, nan, nan}
	}
	before := Quantiles(baseline, .1, .5, .9)
	after := Quantiles(current, .1, .5, .9)
	d := Displacement{
		Q10: after[0] - before[0], Median: after[1] - before[1], Q90: after[2] - before[2],
		SpreadRatio: math.NaN(), Wasserstein: wasserstein(baseline, current),
	}
	if baseline[0] < baseline[len(baseline)-1] {
		d.SpreadRatio = stat.PopStdDev(current, nil) / stat.PopStdDev(baseline, nil)
	}
	return d
}

// wasserstein returns the integral of |F - G| over the line, with F and G the distribution functions of two sorted
// samples that are not empty (Vallender 1974).
func wasserstein(a, b []float64) float64 {
	sum, last := 0.0, min(a[0], b[0])
	for i, j := 0, 0; i < len(a) || j < len(b); {
		next := math.Inf(1)
		if i < len(a) {
			next = a[i]
		}
		if j < len(b) {
			next = min(next, b[j])
		}
		sum += (next - last) * math.Abs(float64(i)/float64(len(a))-float64(j)/float64(len(b)))
		for i < len(a) && a[i] == next {
			i++
		}
		for j < len(b) && b[j] == next {
			j++
		}
		last = next
	}
	return sum
}
