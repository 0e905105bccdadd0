package detectors

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// bootstrapPlainly is the textbook form of Bootstrap: each branch of each drawn baseline is computed from its
// increments.
func bootstrapPlainly(samples []BaselineSample, units int, spent, overlap float64, seed uint64) Bootstrapped {
	views := viewsOf(samples, math.Log(overlap))
	for i := range views {
		v := &views[i]
		v.laws, v.twin = lawsWithGaps(v.armed, v.weight), 0
		if s := samples[v.sample]; s.Frequency != nil {
			v.laws = lawsOfEpisodes(v, s)
		}
	}
	return bootstrapViews(views, units, spent, overlap, seed, 1)
}

// lawsOfEpisodes computes the branches of a frequency test on the drawn episodes.
func lawsOfEpisodes(v *view, of BaselineSample) laws {
	e := episodes{make([]float64, len(v.weight)), make([]float64, len(v.weight))}
	for unit, at := range v.place {
		if at >= 0 {
			e.hits[at], e.steps[at] = of.Values[unit], of.Steps[unit]
		}
	}
	return func(times []float64, m float64, _ *scratch) func(int) law {
		weights := make([]float64, len(times))
		for i, n := range times {
			weights[i] = n / m
		}
		sd := e.weightedSD(weights)
		return func(branch int) law {
			f := newFrequencyBranch(v.armed[branch].Branch(), sd)
			low, high := -100., 100.
			for range 60 {
				k, sum := (low+high)/2, 0.0
				for i, w := range weights {
					sum += w * math.Exp(f.increment(e.hits[i], e.steps[i], k))
				}
				if sum > 1 {
					low = k
				} else {
					high = k
				}
			}
			g, second := make([]float64, len(weights)), 0.0
			for i, w := range weights {
				g[i] = f.increment(e.hits[i], e.steps[i], high)
				second += w * math.Exp(2*g[i])
			}
			return law{math.Sqrt(second - 1), lambdaSlopes(g, v.weight)}
		}
	}
}

func TestBootstrapAgreesWithItsTextbookForm(t *testing.T) {
	for _, m := range []int{100, 500} {
		for _, n := range []float64{2000, 1e6} {
			of := armedSamples(rand.New(rand.NewPCG(140, uint64(m))), m, n)
			for seed := range uint64(2) {
				got, want := Bootstrap(of, m, 1e-7, 1.3, seed, 2), bootstrapPlainly(of, m, 1e-7, 1.3, seed)
				for name, of := range map[string][2]float64{
					"allowance": {got.Allowance, want.Allowance}, "weakest part": {got.Weakest.Part, want.Weakest.Part},
					"ARL0": {got.ARL0, want.ARL0}, "low": {got.Low, want.Low}, "high": {got.High, want.High},
				} {
					if !(math.Abs(of[0]-of[1]) <= 1e-8*of[1]) {
						t.Errorf("%d units, one alarm in %v, seed %d: %s %v, want %v", m, n, seed, name, of[0], of[1])
					}
				}
				if got.Confirmed != want.Confirmed || got.Weakest.Sample != want.Weakest.Sample || got.Weakest.Branch != want.Weakest.Branch {
					t.Errorf("%d units, one alarm in %v, seed %d: %+v, want %+v", m, n, seed, got, want)
				}
			}
		}
	}
}

// The laws of counts equal those with exponentials computed one by one, even if these would overflow as factors.
func TestLawsOfCountsAgreeWithTheirEpisodes(t *testing.T) {
	rng := rand.New(rand.NewPCG(142, 0))
	few, fewSteps := counted(rng, 300, .3)
	many, manySteps := make([]float64, 300), make([]float64, 300)
	long, longSteps := make([]float64, 300), make([]float64, 300)
	for i := range many {
		manySteps[i], longSteps[i] = float64(2000+rng.IntN(400)), float64(100+rng.IntN(100_000))
		many[i], long[i] = math.Round(manySteps[i]*(.4+.05*rng.NormFloat64())), math.Round(longSteps[i]/2)
	}
	for name, c := range map[string]struct {
		hits, steps []float64
		fits        bool
	}{"few": {few, fewSteps, true}, "many": {many, manySteps, true}, "long": {long, longSteps, false}} {
		e, weight, _ := episodes{c.hits, c.steps}.distinct()
		g, sd := newCountGrid(e), e.weightedSD(weight)
		for _, b := range shiftBranches(Frequency) {
			f := newFrequencyBranch(b, sd)
			if got := g.fits(f); got != c.fits && math.Abs(b.Param) == 1.6 {
				t.Fatalf("%s, %s: fits %v, want %v", name, b, got, c.fits)
			}
			got, want := g.laws([]CUSUM{{Family: b.Family, Param: b.Param}}, weight)(slices.Clone(weight), 1, &scratch{})(0), e.law(f, sd, weight, weight, &scratch{})
			for k := range thetas {
				if !(math.Abs(got.slopes[k]-want.slopes[k]) < 1e-9) || !(math.Abs(got.chi-want.chi) < 1e-9) {
					t.Fatalf("%s, %s: %v, want %v", name, b, got, want)
				}
			}
		}
	}
}

func BenchmarkBootstrap(b *testing.B) {
	of := armedSamples(rand.New(rand.NewPCG(141, 0)), 500, 20_000)
	b.ReportAllocs()
	for b.Loop() {
		Bootstrap(of, 500, 0, 1.2, 1, 2)
	}
}
