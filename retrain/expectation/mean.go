package expectation

import (
	"math"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// meanInterval is a confidence sequence for the mean of what m has summed up, which is known to range from low to high.
//
// It is the set of means that the t-test with a normal mixture over the effect does not reject, that is whose Bayes factor
//
//	(1+ng)^(-1/2) [(1 + T^2/v) / (1 + T^2/(v(1+ng)))]^(n/2),   v = n-1,   T^2 = n (mean - mu)^2 / s^2
//
// has stayed below 1/alpha (Gönen, Johnson, Lu & Westfall 2005; a test martingale for normal values: Lai 1976, Wang &
// Ramdas 2023, "Anytime-valid t-tests and confidence sequences for Gaussian means with unknown variance"). With more units it
// becomes the asymptotic confidence sequence of Waudby-Smith, Arbour, Sinha, Kennedy & Ramdas 2024 ("Time-uniform central
// limit theory and asymptotic confidence sequences"), for which values need only have a variance.
//
// Two allowances are added. n counts as n/f of independent units. And either bound is that of the values with one more, the
// worst one that is known for it, or few units of a skewed law, or none of a rare failure, would say too much: it only
// widens the interval.
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

// with gives the mean and the standard deviation (divisor N-1) of the values and one more.
func with(m *ingest.Moments, x float64) (mean, sd float64) {
	more := ingest.Moments{N: m.N, Mean: m.Mean, M2: m.M2, Min: m.Min, Max: m.Max}
	more.Add(x)
	return more.Mean, math.Sqrt(more.M2 / float64(m.N))
}

// sdInterval is the square root of a confidence sequence for the variance, the mean of the squared deviations that Welford's
// recurrence adds up: (x_i - mean_{i-1})^2 (i-1)/i, each of which has the variance for its mean, whatever the law. They are
// skewed as no return is, so that few units nearly always show less of the spread than there is: the upper bound is taken on
// the scale of the logarithm, and with one more deviation twice the largest. Both were found by simulation.
func (c *Check) sdInterval() (low, high float64) {
	s := &c.Squares
	low, high = c.meanInterval(s, 0, 2*s.Max)
	if s.Mean > 0 {
		high = s.Mean * math.Exp(high/s.Mean-1)
	}
	return math.Sqrt(max(0, low)), math.Sqrt(high)
}

// halfWidth is half the width of the interval in standard deviations, after n of so many units: infinite where n are too few.
func halfWidth(n, over float64) float64 {
	g := spread() / over
	ratio := math.Pow(math.Sqrt(1+n*g)/alpha, 2/n)
	if n <= 1 || ratio >= 1+n*g {
		return math.Inf(1)
	}
	return math.Sqrt((n - 1) / n * (ratio - 1) / (1 - ratio/(1+n*g)))
}

// spread is n*g, of which the interval is narrowest after n units, where the sd is known: y - 1 with y - log y = 1 - 2 log alpha
// (Howard, Ramdas, McAuliffe & Sekhon 2021).
func spread() float64 {
	y := 1.
	for range 50 {
		y = 1 - 2*math.Log(alpha) + math.Log(y)
	}
	return y - 1
}
