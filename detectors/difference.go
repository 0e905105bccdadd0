package detectors

import "math"

// EquivalenceMargin is the difference of means, in standard deviations of the baseline, below which two distributions
// count as the same.
const EquivalenceMargin = .25

// DifferenceWidth returns the half-width w, in standard deviations of the baseline, of a time-uniform confidence
// sequence for the difference d between the mean of n values and that of the m of a frozen baseline. The probability
// that d is ever further than w from the difference of the two sample means, at any n, is at most alpha.
//
//	v0 = f (1/m + r^2/n),   v1 = v0 + tau^2,   w^2 = 2 v0 v1 / tau^2 * log(sqrt(v1/v0) / alpha)
//
// r is the standard deviation of the values in those of the baseline and f the dependence factor. The sequence is the
// normal mixture (Robbins, "Statistical methods related to the law of the iterated logarithm", 1970) of the likelihood
// ratio of the differences of sample means, mixed over d with the standard deviation tau = EquivalenceMargin. The last
// of these differences is sufficient, so that the ratio depends only on it. It is exact for independent normal values
// with known standard deviations. It holds asymptotically if these are estimates and for other distributions
// (Waudby-Smith, Arbour, Sinha, Kennedy & Ramdas, "Time-uniform central limit theory and asymptotic confidence
// sequences", Annals of Statistics 2024). The width is infinite without values.
func DifferenceWidth(m, n int64, r, f, alpha float64) float64 {
	if m <= 0 || n <= 0 {
		return math.Inf(1)
	}
	v0 := f * (1/float64(m) + r*r/float64(n))
	tau2 := EquivalenceMargin * EquivalenceMargin
	v1 := v0 + tau2
	return math.Sqrt(2 * v0 * v1 / tau2 * (math.Log(v1/v0)/2 - math.Log(alpha)))
}

// UnitsToEquivalence returns the approximate number of values after which half of all distributions equal to that of a
// baseline of m values are found to be the same. That is when the median of the difference of the sample means plus the
// half-width is at most EquivalenceMargin. It is 0 if the baseline is too small for any number of values.
func UnitsToEquivalence(m int64, r, f, alpha float64) int64 {
	const (
		medianDifference = .6745 // of a normal distribution, in its standard deviations
		most             = 1 << 40
	)
	tells := func(n int64) bool {
		sd := math.Sqrt(f * (1/float64(m) + r*r/float64(n)))
		return medianDifference*sd+DifferenceWidth(m, n, r, f, alpha) <= EquivalenceMargin
	}
	if m <= 0 || !tells(most) {
		return 0
	}
	low, high := int64(0), int64(most)
	for high-low > 1 {
		if n := (low + high) / 2; tells(n) {
			high = n
		} else {
			low = n
		}
	}
	return high
}
