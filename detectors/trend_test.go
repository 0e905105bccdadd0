package detectors

import (
	"math"
	"math/rand/v2"
	"testing"
)

// plainSelfNormalised is the statistic written down as its formula says.
func plainSelfNormalised(x []float64) float64 {
	n := len(x)
	sum := func(from, to int) (s float64) {
		for _, v := range x[from:to] {
			s += v
		}
		return s
	}
	most := 0.0
	for k := 2; k <= n-2; k++ {
		v := 0.0
		for t := 1; t <= k; t++ {
			d := sum(0, t) - float64(t)/float64(k)*sum(0, k)
			v += d * d
		}
		for t := k + 1; t <= n; t++ {
			d := sum(t-1, n) - float64(n-t+1)/float64(n-k)*sum(k, n)
			v += d * d
		}
		t := sum(0, k) - float64(k)/float64(n)*sum(0, n)
		most = max(most, t*t/float64(n)/(v/float64(n)/float64(n)))
	}
	return most
}

func TestSelfNormalisedFollowsItsFormula(t *testing.T) {
	rng := rand.New(rand.NewPCG(60, 0))
	for range 5 {
		x := tied(rng, 60)
		for i := range x {
			x[i] += 4 * math.Floor(float64(i)/31) // p-values above 1 % are not distinguished
		}
		root := math.Sqrt(plainSelfNormalised(x))
		want := math.Pow(10, -2-(root-trendOnePercent)/trendDecade)
		if got := selfNormalised(x); root < trendOnePercent || math.Abs(got/want-1) > 1e-6 {
			t.Errorf("p = %v, want %v (root %v)", got, want, root)
		}
	}
}

// refused is the share of samples with a p-value below the level.
func refused(level float64, samples int, sample func() []float64) float64 {
	n := 0
	for range samples {
		x := sample()
		if Trend(x, NewRanks(x)) < level {
			n++
		}
	}
	return float64(n) / float64(samples)
}

func TestSimTrendKeepsItsLevel(t *testing.T) {
	rng := rand.New(rand.NewPCG(61, 0))
	const samples, level = 2000, .01
	most := level + 3*math.Sqrt(level*(1-level)/samples)
	if got := refused(level, samples, func() []float64 { return normal(rng, 500) }); got > most {
		t.Errorf("independent: %.4f of the samples are refused, want at most %.4f", got, most)
	}
	dependent := func() []float64 {
		x := normal(rng, 500)
		for i := 1; i < len(x); i++ {
			x[i] += .3 * x[i-1]
		}
		return x
	}
	// If the factor is not noticed, or is underestimated, there may be twice as many.
	if got := refused(level, samples, dependent); got > 2*most {
		t.Errorf("dependent: %.4f of the samples are refused, want at most %.4f", got, 2*most)
	}
}

func TestTrendIsSeen(t *testing.T) {
	rng := rand.New(rand.NewPCG(62, 0))
	for name, drift := range map[string]func(i int) float64{
		"slope of 1 sd": func(i int) float64 { return float64(i) / 500 },
		"step of .5 sd": func(i int) float64 { return math.Floor(float64(i)/250) / 2 },
	} {
		got := refused(.01, 200, func() []float64 {
			x := normal(rng, 500)
			for i := range x {
				x[i] += drift(i)
			}
			return x
		})
		if got < .8 {
			t.Errorf("%s: %.2f of the samples are refused, want at least .8", name, got)
		}
	}
	if Trend(make([]float64, 500), NewRanks(make([]float64, 500))) < 1 {
		t.Error("a constant sample is refused")
	}
}
