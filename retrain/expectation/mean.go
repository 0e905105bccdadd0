package expectation

import (
	"math"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// meanInterval returns a confidence sequence for the mean of the values that m aggregates, which are known to range
// from low to high.
//
// It is the set of means that the t-test with a normal mixture over the effect does not reject. Those are the means
// whose Bayes factor
//
//	(1+ng)^(-1/2) [(1 + T^2/v) / (1 + T^2/(v(1+ng)))]^(n/2),   v = n-1,   T^2 = n (mean - mu)^2 / s^2
//
// has stayed below 1/alpha (Gönen, Johnson, Lu & Westfall 2005; a test martingale for normal values: Lai 1976, Wang &
// Ramdas 2023, "Anytime-valid t-tests and confidence sequences for Gaussian means with unknown variance"). As units
// grow, it becomes the asymptotic confidence sequence of Waudby-Smith, Arbour, Sinha, Kennedy & Ramdas 2024
// ("Time-uniform central limit theory and asymptotic confidence sequences"), for which values need only have a
// variance.
//
// Two allowances are added. First, n counts as n/f independent units. Second, each bound is computed with one
// additional value, the worst known one for that bound. Otherwise few units of a skewed distribution, or none of a rare
// failure, would claim too much. The allowance only widens the interval.
func (c *Check) meanInterval(m *ingest.Moments, low, high float64) (from, to float64) {
	if c.Units() < leastUnits {
		return math.Inf(-1), math.Inf(1)
	}
	width := halfWidth(float64(m.N)/c.Factor, float64(c.Condition.Over)/c.Factor)
	if math.IsInf(width, 1) {
		return math.Inf(-1), math.Inf(1)
	}
	mean, sd := with(m, low)
	from = mean - width*sd
	mean, sd = with(m, high)
	return from, mean + width*sd
}

// with returns the mean and the standard deviation (divisor N-1) of the values and x.
func with(m *ingest.Moments, x float64) (mean, sd float64) {
	more := ingest.Moments{N: m.N, Mean: m.Mean, M2: m.M2, Min: m.Min, Max: m.Max}
	more.Add(x)
	return more.Mean, math.Sqrt(more.M2 / float64(m.N))
}

// sdInterval returns the square root of a confidence sequence for the variance. The variance is the mean of the squared
// deviations that Welford's recurrence adds up: (x_i - mean_{i-1})^2 (i-1)/i, each of which has the variance as its
// mean for any distribution. They are far more skewed than returns, so that few units nearly always show less of the
// spread than there is. Therefore the upper bound uses the logarithmic scale, and one additional deviation of twice the
// largest. Both were found by simulation.
func (c *Check) sdInterval() (low, high float64) {
	s := &c.Squares
	low, high = c.meanInterval(s, 0, 2*s.Max)
	if s.Mean > 0 {
		high = s.Mean * math.Exp(high/s.Mean-1)
	}
	return math.Sqrt(max(0, low)), math.Sqrt(high)
}

// halfWidth returns half the width of the interval in standard deviations after n units: infinite if n is too small.
func halfWidth(n, over float64) float64 {
	g := spread() / over
	ratio := math.Pow(math.Sqrt(1+n*g)/alpha, 2/n)
	if n <= 1 || ratio >= 1+n*g {
		return math.Inf(1)
	}
	return math.Sqrt((n - 1) / n * (ratio - 1) / (1 - ratio/(1+n*g)))
}

// spread returns n*g. With a known sd, the interval is narrowest after n units if this is y - 1 with y - log y = 1 - 2
// log alpha (Howard, Ramdas, McAuliffe & Sekhon 2021).
func spread() float64 {
	y := 1.
	for range 50 {
		y = 1 - 2*math.Log(alpha) + math.Log(y)
	}
	return y - 1
}
