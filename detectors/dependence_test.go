package detectors

import (
	"math"
	"math/rand/v2"
	"testing"
)

// process is x_t = a1 x_{t-1} + a2 x_{t-2} + e_t + b e_{t-1}.
type process struct {
	name      string
	a1, a2, b float64
}

// values returns n values of the stationary distribution.
func (p process) values(rng *rand.Rand, n int) []float64 {
	const settle = 200
	x := make([]float64, n+settle)
	last := rng.NormFloat64()
	for i := 2; i < len(x); i++ {
		e := rng.NormFloat64()
		x[i], last = p.a1*x[i-1]+p.a2*x[i-2]+e+p.b*last, e
	}
	return x[settle:]
}

// correlations returns the autocorrelations of the lags 0 to n - 1, from the weights of the innovations.
func (p process) correlations(n int) []float64 {
	const terms = 2000
	weights := make([]float64, terms)
	weights[0], weights[1] = 1, p.a1+p.b
	for i := 2; i < terms; i++ {
		weights[i] = p.a1*weights[i-1] + p.a2*weights[i-2]
	}
	rho := make([]float64, n)
	for lag := range rho {
		for i := lag; i < terms; i++ {
			rho[lag] += weights[i] * weights[i-lag]
		}
	}
	for lag := n - 1; lag >= 0; lag-- {
		rho[lag] /= rho[0]
	}
	return rho
}

// truth returns the spectral density at 0, divided by the variance.
func (p process) truth() float64 {
	sum := 1.0
	for _, rho := range p.correlations(500)[1:] {
		sum += 2 * rho
	}
	return sum
}

// limit returns what AllowedFactor approaches in long samples: the larger of twenty lags of the process, and the
// reserve times five lags of the residuals of the first-order fit.
func (p process) limit() float64 {
	rho := p.correlations(dependenceLags + 1)
	a := rho[1]
	left := func(lag int) float64 { // covariance of the residuals
		return (1+a*a)*rho[lag] - a*(rho[lag+1]+rho[max(lag-1, 1-lag)])
	}
	rest := make([]float64, noticeLags)
	for i := range rest {
		rest[i] = left(i+1) / left(0)
	}
	return max(bartlett(rho[1:]), factorReserve*bartlett(rest)*left(0)/(1-a)/(1-a))
}

// With 500 values, the mean of the estimates is near its limit, less the bias due to estimated means. If much
// dependence is carried over, it is also less what exceeds two standard errors of twenty lags. Its standard
// deviation is near that of a Bartlett estimate of five lags, f sqrt(4 (L+1) / (3m)) (Priestley, Spectral Analysis
// and Time Series, 1981, 6.2.4).
func TestAllowedFactorOfKnownProcesses(t *testing.T) {
	const samples, n = 400, 500
	priestley := math.Sqrt(4. * (noticeLags + 1) / (3 * n))
	for i, c := range []struct {
		process
		bias  float64 // of the mean, in limits
		below float64 // largest share of samples with a factor below the truth
	}{
		{process{"AR(1) .3", .3, 0, 0}, .03, .3},
		{process{"AR(1) .5", .5, 0, 0}, .03, .3},
		{process{"AR(1) .8", .8, 0, 0}, .08, .5},
		{process{"MA(1) .5", 0, 0, .5}, .04, .1},
		{process{"AR(2) .3 .2", .3, .2, 0}, .03, .75}, // five lags do not cover what the fit leaves
		{process{"lag-1 .2, halving", .5, 0, -.3139}, .03, .55},
	} {
		rng := rand.New(rand.NewPCG(16, uint64(i)))
		truth, limit := c.truth(), c.limit()
		mean, squares, below, belowLong := 0.0, 0.0, 0.0, 0.0
		for range samples {
			x := c.values(rng, n)
			f := AllowedFactor(x)
			mean, squares = mean+f/samples, squares+f*f/samples
			if f < truth {
				below += 1. / samples
			}
			if DependenceFactor(x) < truth {
				belowLong += 1. / samples
			}
		}
		sd := math.Sqrt(squares - mean*mean)
		t.Logf("%s: %.3f ± %.3f of a true %.3f, limit %.3f; below the truth %.3f, by twenty lags %.3f", c.name, mean, sd, truth, limit, below, belowLong)
		if error, bias := 3*sd/math.Sqrt(samples), c.bias*limit; math.Abs(mean-limit) > error+bias {
			t.Errorf("%s: the mean is %.3f, want %.3f ± %.3f", c.name, mean, limit, error+bias)
		}
		if sd > 1.4*priestley*truth {
			t.Errorf("%s: a standard deviation of %.3f, want at most %.3f", c.name, sd, 1.4*priestley*truth)
		}
		if chance := 3 * math.Sqrt(.25/samples); below > c.below+chance || belowLong < .65-chance {
			t.Errorf("%s: %.3f of the samples are below the truth, want at most %.2f; by twenty lags %.3f", c.name, below, c.below, belowLong)
		}
	}
}

// Independent values have a factor above 1 in one sample of ten, the level at which dependence is noticed; the
// factor is then small.
func TestAllowedFactorOfIndependentValues(t *testing.T) {
	const samples, n = 1000, 500
	rng, above, mean := rand.New(rand.NewPCG(16, 100)), 0.0, 0.0
	for range samples {
		f := AllowedFactor(normal(rng, n))
		mean += f / samples
		if f > 1 {
			above += 1. / samples
		}
	}
	t.Logf("above 1 %.3f, mean %.3f", above, mean)
	if chance := 3 * math.Sqrt(.1*.9/samples); above > .1+chance || mean > 1.05 {
		t.Errorf("%.3f of the samples have a factor above 1, want at most .1; mean %.3f", above, mean)
	}
	if got := AllowedFactor([]float64{3, 3, 3}); got != 1 {
		t.Errorf("constant: %v", got)
	}
	saw := make([]float64, n)
	for i := range saw {
		saw[i] = float64(i % 13)
	}
	if got := AllowedFactor(saw); got != 1 { // neighbours are alike, but the mean of any 13 values is the same
		t.Errorf("a cycle of 13 values: %v", got)
	}
}

// The residuals of a trend are as dependent as without the trend. If the trend counted as dependence, the factor
// would be at least 7.
func TestDependenceAboutATrend(t *testing.T) {
	const m, runs = 500, 60
	for _, carried := range []float64{0, .5, .8} {
		want := (1 + carried) / (1 - carried)
		for name, trend := range map[string]func(i float64) float64{
			"none":  func(float64) float64 { return 0 },
			"line":  func(i float64) float64 { return 3 * i / m },
			"steep": func(i float64) float64 { return 20 * i / m },
			"bend":  func(i float64) float64 { return 10 * (1 - math.Exp(-i/100)) },
		} {
			mean, plain := 0., 0.
			for run := range uint64(runs) {
				rng := rand.New(rand.NewPCG(run, 78))
				x, sample := 0., make([]float64, m)
				for i := range sample {
					x = carried*x + math.Sqrt(1-carried*carried)*rng.NormFloat64()
					sample[i] = x + trend(float64(i))
				}
				mean += DependenceAbout(sample, NewRanks(sample)) / runs
				plain += Dependence(sample, NewRanks(sample)) / runs
			}
			if mean < .7*want || mean > 1.5*want+.5 {
				t.Errorf("%s, carried %v: %.2f on average, want %.2f", name, carried, mean, want)
			}
			if name != "none" && plain < 7 {
				t.Errorf("%s, carried %v: the trend counts for %.2f", name, carried, plain)
			}
		}
	}
}
