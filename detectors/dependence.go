package detectors

// dependenceLags is how many lags the dependence factor looks at.
const dependenceLags = 20

// maxFactor is the dependence factor above which no promise is made: the units are too dependent to count in.
const maxFactor = 4

// DependenceFactor is f = max(1, 1 + 2 sum_{l=1..20} (1 - l/21) rho_l), the factor by which dependence between
// successive values inflates the variance of their mean (Bartlett's weights; Newey & West 1987). rho_l is the lag-l
// autocorrelation of x, in time order. A constant series has f = 1.
func DependenceFactor(x []float64) float64 {
	mean := 0.0
	for _, v := range x {
		mean += v
	}
	mean /= float64(len(x))
	variance := 0.0
	for _, v := range x {
		variance += (v - mean) * (v - mean)
	}
	if variance == 0 {
		return 1
	}
	sum := 0.0
	for lag := 1; lag <= min(dependenceLags, len(x)-1); lag++ {
		covariance := 0.0
		for i := lag; i < len(x); i++ {
			covariance += (x[i] - mean) * (x[i-lag] - mean)
		}
		sum += (1 - float64(lag)/(dependenceLags+1)) * covariance / variance
	}
	return max(1, 1+2*sum)
}
