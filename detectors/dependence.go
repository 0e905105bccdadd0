package detectors

import "math"

// dependenceLags is how many lags the dependence factor looks at.
const dependenceLags = 20

// Dependence is noticed in the first noticeLags lags, where most of it is: a factor over them that is noticeErrors
// standard errors above 1, which one independent sample in ten reaches.
const (
	noticeLags   = 5
	noticeErrors = 1.28
)

// DependenceFactor is f = max(1, 1 + 2 sum_{l=1..20} (1 - l/21) rho_l), the factor by which dependence between
// successive values inflates the variance of their mean (Bartlett's weights; Newey & West 1987), where dependence is
// noticed at all, and else 1: over so many lags the estimate has a standard error of 5/sqrt(m), and thresholds that
// followed its noise would cost independent data half of its sensitivity. rho_l is the lag-l autocorrelation of x, in
// time order. A constant series has f = 1.
func DependenceFactor(x []float64) float64 {
	rho := autocorrelations(x, dependenceLags)
	if bartlett(rho[:min(noticeLags, len(rho))])-1 < noticeErrors*noticeError(len(x)) {
		return 1
	}
	return max(1, bartlett(rho))
}

// noticeError is the standard error of the factor over the first noticeLags lags of m independent values: that of each
// autocorrelation is 1/sqrt(m).
func noticeError(m int) float64 {
	sum := 0.0
	for lag := 1; lag <= noticeLags; lag++ {
		w := 1 - float64(lag)/(noticeLags+1)
		sum += w * w
	}
	return 2 * math.Sqrt(sum/float64(m))
}

// bartlett is 1 + 2 sum (1 - l/(L+1)) rho_l over the L autocorrelations given.
func bartlett(rho []float64) float64 {
	sum := 0.0
	for i, r := range rho {
		sum += (1 - float64(i+1)/float64(len(rho)+1)) * r
	}
	return 1 + 2*sum
}

// autocorrelations of the lags 1 to most, as far as x is long enough; zeros of a constant series.
func autocorrelations(x []float64, most int) []float64 {
	mean := 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	variance := 0.0
	for _, v := range x {
		variance += (v - mean) * (v - mean)
	}
	rho := make([]float64, max(0, min(most, len(x)-1)))
	if variance == 0 {
		return rho
	}
	for i := range rho {
		for k := i + 1; k < len(x); k++ {
			rho[i] += (x[k] - mean) * (x[k-i-1] - mean) / variance
		}
	}
	return rho
}
