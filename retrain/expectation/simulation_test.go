package expectation

import (
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
)

// law is the distribution of the units of a simulated version.
type law struct {
	name     string
	factor   float64                             // passed to the check
	draws    func(rng *rand.Rand) func() float64 // for one run
	mean, sd float64
	quantile func(p float64) float64
}

func independent(draw func(rng *rand.Rand) float64) func(rng *rand.Rand) func() float64 {
	return func(rng *rand.Rand) func() float64 { return func() float64 { return draw(rng) } }
}

// autoregressive returns values of unit variance with lag-1 correlation phi.
func autoregressive(phi float64) func(rng *rand.Rand) func() float64 {
	return func(rng *rand.Rand) func() float64 {
		x := rng.NormFloat64()
		return func() float64 {
			x = phi*x + math.Sqrt(1-phi*phi)*rng.NormFloat64()
			return x
		}
	}
}

func bernoulli(p float64) law {
	return law{
		factor: 1, mean: p, sd: math.Sqrt(p * (1 - p)),
		draws: independent(func(rng *rand.Rand) float64 {
			if rng.Float64() < p {
				return 1
			}
			return 0
		}),
	}
}

func t3(rng *rand.Rand) float64 {
	chi := 0.
	for range 3 {
		z := rng.NormFloat64()
		chi += z * z
	}
	return rng.NormFloat64() / math.Sqrt(chi/3)
}

func normalQuantile(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

// t3Quantile inverts F(t) = 1/2 + (atan(t/sqrt 3) + t sqrt 3/(t^2+3))/pi.
func t3Quantile(p float64) float64 {
	return bisect(-50, 50, func(t float64) bool {
		return .5+(math.Atan(t/math.Sqrt(3))+t*math.Sqrt(3)/(t*t+3))/math.Pi >= p
	})
}

func laws() []law {
	ninety, fifty := bernoulli(.9), bernoulli(.5)
	ninety.name, fifty.name = "0/1, 90% ones", "0/1, 50% ones"
	return []law{
		{name: "normal", factor: 1, sd: 1, draws: independent((*rand.Rand).NormFloat64), quantile: normalQuantile},
		{
			name: "exponential", factor: 1, mean: 1, sd: 1, draws: independent((*rand.Rand).ExpFloat64),
			quantile: func(p float64) float64 { return -math.Log1p(-p) },
		},
		fifty,
		ninety,
		{name: "t, 3 degrees of freedom", factor: 1, sd: math.Sqrt(3), draws: independent(t3), quantile: t3Quantile},
		{name: "AR(1) .2, f = 1.5", factor: 1.5, sd: 1, draws: autoregressive(.2), quantile: normalQuantile},
		{name: "AR(1) .2, f not known", factor: 1, sd: 1, draws: autoregressive(.2), quantile: normalQuantile},
	}
}

// truth returns the statistic of a law; false if it is not simulated.
func (l law) truth(statistic string) (float64, bool) {
	switch p, is := (Condition{Statistic: statistic}).share(); {
	case is && l.quantile == nil:
		return 0, false
	case is:
		return l.quantile(p), true
	case statistic == "sd":
		return l.sd, l.quantile != nil
	}
	return l.mean, true
}

// result is how often checks reached a verdict, and after how many units those with the verdict met did.
type result struct {
	runs        int
	met, missed float64 // shares of the runs
	units       float64 // mean, for runs with the verdict met; NaN if there are none
}

// simulate checks units of a law, shifted by the given number of standard deviations, against the value that its
// statistic has without the shift, and reads the check after each unit. For an sd the law is stretched instead.
func (l law) simulate(statistic string, over, runs int, shift float64) result {
	value, _ := l.truth(statistic)
	verdicts, units := make([]Verdict, runs), make([]int, runs)
	parallel(runs, func(i int) {
		rng := rand.New(rand.NewPCG(uint64(i), 815))
		draw := l.draws(rng)
		c := New(Condition{Statistic: statistic, Comparison: ">", Value: value, Over: over})
		c.Refer(l.factor, math.Inf(1), math.Inf(-1))
		for c.Verdict == Open {
			x := draw()
			if statistic == "sd" {
				x *= 1 + shift
			} else {
				x += shift * l.sd
			}
			c.Add(x)
		}
		verdicts[i], units[i] = c.Verdict, c.Units()
	})
	r := result{runs: runs}
	for i, v := range verdicts {
		switch v {
		case Met:
			r.met += 1 / float64(runs)
			r.units += float64(units[i]) / float64(runs)
		case Missed:
			r.missed += 1 / float64(runs)
		}
	}
	r.units /= r.met
	return r
}

func parallel(n int, do func(i int)) {
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		wg.Go(func() {
			for i := w; i < n; i += workers {
				do(i)
			}
		})
	}
	wg.Wait()
}

// beyond reports whether nothing is promised: if dependence is unknown, and for the sd if squares have no variance.
func (l law) beyond(statistic string) bool {
	return l.name == "AR(1) .2, f not known" || statistic == "sd" && l.name == "t, 3 degrees of freedom"
}
