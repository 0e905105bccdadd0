package detectors

import "math"

// TwoSampleKS returns the two-sample Kolmogorov-Smirnov test of two sorted samples without NaN. d is the largest
// distance between their distribution functions, in [0, 1]. p is the probability of a distance at least as large if
// both are samples of one continuous distribution, from the asymptotic distribution Q(d sqrt(nm/(n+m))) with Q(x) = 2
// sum_k (-1)^(k-1) exp(-2 k^2 x^2) (Kolmogorov 1933, Smirnov 1939). With ties, p is too large rather than too small.
// Both are NaN if a sample is empty.
func TwoSampleKS(a, b []float64) (d, p float64) {
	if len(a) == 0 || len(b) == 0 {
		return math.NaN(), math.NaN()
	}
	n, m := float64(len(a)), float64(len(b))
	for i, k := 0, 0; i < len(a) && k < len(b); {
		x := min(a[i], b[k])
		for i < len(a) && a[i] == x {
			i++
		}
		for k < len(b) && b[k] == x {
			k++
		}
		d = max(d, math.Abs(float64(i)/n-float64(k)/m))
	}
	return d, kolmogorovTail(d * math.Sqrt(n*m/(n+m)))
}

// kolmogorovTail returns the probability that the Kolmogorov distribution exceeds x. Below .2 it is 1 to within 1e-12,
// and the series would need many terms.
func kolmogorovTail(x float64) float64 {
	if x < .2 {
		return 1
	}
	sum, sign := 0.0, 1.0
	for k := 1.0; k <= 100; k++ {
		term := math.Exp(-2 * k * k * x * x)
		sum += sign * term
		sign = -sign
		if term < 1e-17 {
			break
		}
	}
	return max(0, min(1, 2*sum))
}
