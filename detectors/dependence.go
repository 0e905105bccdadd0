package detectors

import (
	"maps"
	"math"
	"slices"
)

// dependenceLags is the number of lags in the dependence factor.
const dependenceLags = 20

// Dependence counts as detected if the factor over the first noticeLags lags, where most of it is, is at least
// noticeErrors standard errors above 1. One independent sample in ten reaches that.
const (
	noticeLags   = 5
	noticeErrors = 1.28
)

// DependenceFactor returns f = max(1, 1 + 2 sum_{l=1..20} (1 - l/21) rho_l), the factor by which dependence between
// successive values inflates the variance of their mean (Bartlett's weights; Newey & West 1987). It returns 1 if no
// dependence is detected: over 20 lags the estimate has a standard error of 5/sqrt(m), and thresholds that followed
// its noise would cost independent data half of its sensitivity. rho_l is the lag-l autocorrelation of x, in time
// order. A constant series has f = 1.
func DependenceFactor(x []float64) float64 {
	rho := autocorrelations(x, dependenceLags)
	if !noticeable(rho, len(x)) {
		return 1
	}
	return max(1, bartlett(rho))
}

// AllowedFactor returns the factor by which a test divides its evidence: the larger of DependenceFactor, and, if
// dependence is detected, the prewhitened estimate with a reserve of a tenth. If the factor is too small, the number of
// false alarms grows exponentially; if it is too large, only the delay increases.
//
// Prewhitening (Andrews & Monahan, Econometrica 1992) fits x_t = a x_{t-1} + e_t and returns the long-run variance
// of e over five lags, times 1/(1-a)^2, divided by the variance of x. If dependence fades within a few values, its
// standard error is about half that of the estimate over twenty lags. If dependence lasts, the twenty lags cover
// more of it; if it changes sign within them, as in a cycle of 13 values, the fit is wrong. So the prewhitened
// estimate counts only up to allowedErrors standard errors above the estimate over twenty lags, each f sqrt(4 (L+1)
// / (3m)) (Priestley, Spectral Analysis and Time Series, 1981, 6.2.4).
func AllowedFactor(x []float64) float64 {
	rho := autocorrelations(x, dependenceLags)
	if !noticeable(rho, len(x)) {
		return 1
	}
	a := min(rho[0], mostCarried)
	rest, before := make([]float64, len(x)-1), x[0]
	for i, v := range x[1:] {
		rest[i], before = v-a*before, v
	}
	_, variance := meanVariance(x)
	_, left := meanVariance(rest)
	whitened := bartlett(autocorrelations(rest, noticeLags)) * left / variance / (1 - a) / (1 - a)
	long := bartlett(rho)
	most := long * (1 + allowedErrors*math.Sqrt(4*(dependenceLags+1)/(3*float64(len(x)))))
	return max(1, long, min(factorReserve*whitened, most))
}

const (
	// mostCarried bounds a, as in Andrews & Monahan: near 1, the estimate consists mostly of the error of a.
	mostCarried = .97
	// factorReserve is about half a standard error of the prewhitened estimate at 500 values and a factor of 2.
	factorReserve = 1.1
	allowedErrors = 2
)

// noticeable reports whether the given autocorrelations of m values show dependence in the first lags.
func noticeable(rho []float64, m int) bool {
	return bartlett(rho[:min(noticeLags, len(rho))])-1 >= noticeErrors*FactorError(m)
}

// FactorError returns the standard error of a factor over five lags of m independent values, as returned by
// SequenceFactor: that of each autocorrelation is 1/sqrt(m).
func FactorError(m int) float64 {
	sum := 0.0
	for lag := 1; lag <= noticeLags; lag++ {
		w := 1 - float64(lag)/(noticeLags+1)
		sum += w * w
	}
	return 2 * math.Sqrt(sum/float64(m))
}

// bartlett returns 1 + 2 sum (1 - l/(L+1)) rho_l over the L given autocorrelations.
func bartlett(rho []float64) float64 {
	sum := 0.0
	for i, r := range rho {
		sum += (1 - float64(i+1)/float64(len(rho)+1)) * r
	}
	return 1 + 2*sum
}

// autocorrelations returns the autocorrelations of the lags 1 to most, as far as x is long enough; zeros for a constant
// series.
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

// SequenceFactor returns the dependence factor of values from several sequences that are independent of each other:
// 1 + 2 sum_{l=1..5} (1 - l/6) rho_l, at least 1, with rho_l over the pairs of values of one sequence that are l
// apart, about the means of the sequences. of names the sequence of each value of x, which is in time order. The
// mean of a sequence of n values removes 1/n of each covariance, which is added back. The factor is 1 if no
// sequence has two values. With only five lags, its error is half that of DependenceFactor, but it misses
// dependence over longer lags.
func SequenceFactor(x []float64, of []int32) float64 {
	sequences := map[int32][]float64{}
	for i, s := range of {
		sequences[s] = append(sequences[s], x[i])
	}
	squares, freedom := 0.0, 0
	var products, pairs, lost [noticeLags]float64
	for _, s := range slices.Sorted(maps.Keys(sequences)) { // sorted, or the sums would differ in their last bits
		values := sequences[s]
		mean, _ := meanVariance(values)
		n := len(values)
		freedom += n - 1
		for k, v := range values {
			squares += (v - mean) * (v - mean)
			for lag := 1; lag <= min(noticeLags, k); lag++ {
				products[lag-1] += (v - mean) * (values[k-lag] - mean)
				pairs[lag-1]++
				lost[lag-1] += 1 / float64(n)
			}
		}
	}
	if squares == 0 {
		return 1
	}
	variance := squares / float64(freedom)
	rho := make([]float64, noticeLags)
	for i := range rho {
		if pairs[i] > 0 {
			rho[i] = (products[i]/variance + lost[i]) / pairs[i]
		}
	}
	return max(1, bartlett(rho))
}

// DependenceWithin returns the SequenceFactor of a sample with the given ranks: the larger of the factors of its
// normal scores and of their squares. A straight line is removed from both, so that a trend does not count as
// dependence.
func DependenceWithin(sample []float64, ranks *Ranks, of []int32) float64 {
	z, square := normalScores(sample, ranks)
	return max(SequenceFactor(straightened(z), of), SequenceFactor(straightened(square), of))
}

// DependenceAbout returns the Dependence of the sample after removing a trend. It is for a level that is judged on only
// one side while it moves to the other: if the trend counted as dependence, it would hide a fall below its start.
//
// The trend is a straight line or, where it bends, a line in each piece of bentPieces values. Lines in short pieces
// also remove part of the dependence, up to a quarter if it lasts over several values; bentReserve makes up for it.
func DependenceAbout(sample []float64, ranks *Ranks) float64 {
	z, square := normalScores(sample, ranks)
	return max(factorAbout(z), factorAbout(square))
}

const (
	bentPieces  = 100
	bentReserve = 1.25
)

func factorAbout(z []float64) float64 {
	var bent []float64
	for piece := range slices.Chunk(z, bentPieces) {
		bent = append(bent, straightened(piece)...)
	}
	return min(AllowedFactor(straightened(z)), bentReserve*AllowedFactor(bent))
}
