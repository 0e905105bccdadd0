package detectors

import (
	"math"
	"math/rand/v2"
	"testing"
)

// counted draws episodes of 5 to 30 steps; at each step an event happens with probability p.
func counted(rng *rand.Rand, n int, p float64) (hits, steps []float64) {
	for range n {
		length, count := 5+rng.IntN(26), 0.
		for range length {
			if rng.Float64() < p {
				count++
			}
		}
		hits, steps = append(hits, count), append(steps, float64(length))
	}
	return hits, steps
}

func TestFrequencyIncrementsAreNormalised(t *testing.T) {
	rng := rand.New(rand.NewPCG(90, 0))
	for _, p := range []float64{.02, .4, .97} {
		hits, steps := counted(rng, 300, p)
		test := NewFrequencyTest(hits, steps, 1)
		for k, b := range test.Branches {
			mean := 0.0
			for i := range hits {
				g := math.Min(2.5*math.Abs(b.Param)-b.Param*b.Param/2, b.Param/test.SD*hits[i]-test.Offsets[k]*steps[i])
				mean += math.Exp(g) / float64(len(hits))
			}
			if math.Abs(mean-1) > 1e-9 {
				t.Errorf("p = %v, %s: mean exp(g) = %v, want 1", p, b.Branch(), mean)
			}
		}
	}
}

func TestFrequencyWalksFollowTheirFormula(t *testing.T) {
	rng := rand.New(rand.NewPCG(91, 0))
	hits, steps := counted(rng, 400, .3)
	test := NewFrequencyTest(hits, steps, 1.5)
	if test.Factor < 1.5 {
		t.Fatalf("factor %v, want the least of 1.5", test.Factor)
	}
	test.Arm(1e-7)
	share, total := 0.0, 0.0
	for i := range hits {
		share += hits[i]
		total += steps[i]
	}
	share /= total
	variance := 0.0
	for i := range hits {
		d := hits[i] - share*steps[i]
		variance += d * d / float64(len(hits))
	}
	walks := make([]float64, len(test.Branches))
	newHits, newSteps := counted(rng, 300, .5)
	for i := range newHits {
		test.Observe(newHits[i], newSteps[i], -1, int64(i), false)
		for k, b := range test.Branches {
			d := b.Param
			g := math.Min(2.5*math.Abs(d)-d*d/2, d/math.Sqrt(variance)*newHits[i]-test.Offsets[k]*newSteps[i])
			walks[k] = math.Max(0, walks[k]+(g-b.C-b.Kappa)/test.Factor)
			if math.Abs(walks[k]-b.Walk) > 1e-9 {
				t.Fatalf("%s after %d episodes: %v, want %v", b.Branch(), i+1, b.Walk, walks[k])
			}
		}
	}
}

func TestFrequencyObserveAllocatesNothing(t *testing.T) {
	hits, steps := counted(rand.New(rand.NewPCG(92, 0)), 300, .3)
	test := NewFrequencyTest(hits, steps, 1)
	test.Arm(1e-6)
	if n := testing.AllocsPerRun(100, func() { test.Observe(3, 12, -1, 1, false) }); n != 0 {
		t.Errorf("%v allocations an episode", n)
	}
}

// A prediction has one branch: the likelihood ratio itself, not a power of it.
func TestPredictionIsTheLikelihoodRatio(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 0))
	scores, steps := make([]float64, 500), make([]float64, 500)
	for i := range scores {
		scores[i], steps[i] = .3*rng.NormFloat64()-.045, 1
	}
	test := NewPredictionTest(scores, steps, 1)
	if len(test.Branches) != 1 || test.Branches[0].Branch() != (Branch{Prediction, 1}) {
		t.Fatalf("branches %+v", test.Branches)
	}
	sum := 0.0
	for _, s := range scores {
		sum += math.Exp(s - test.Offsets[0])
	}
	if mean := sum / 500; math.Abs(mean-1) > 1e-9 {
		t.Errorf("the likelihood ratio has the mean %v over the baseline", mean)
	}
	form := newFrequencyBranch(test.Branches[0].Branch(), test.SD)
	if x := form.increment(1.5, 1, .2); math.Abs(x-1.3) > 1e-12 {
		t.Errorf("a score of 1.5 adds %v", x)
	}
	if x := form.increment(50, 1, .2); x != predictionCap {
		t.Errorf("a score of 50 adds %v", x)
	}
}

// The likelihood ratio of a branch has mean 1 in each stratum, and a single stratum equals no strata.
func TestFrequencyWithinStrata(t *testing.T) {
	rng := rand.New(rand.NewPCG(75, 0))
	var hits, steps []float64
	var strata []int
	for i := range 1200 {
		n, p := 1+float64(rng.IntN(10)), []float64{.1, .3, .6}[i%3]
		s := 0.0
		for range int(n) {
			if rng.Float64() < p {
				s++
			}
		}
		hits, steps, strata = append(hits, s), append(steps, n), append(strata, i%3)
	}
	test := NewFrequencyTestWithin(hits, steps, strata, 1)
	for k, b := range test.Branches {
		for stratum, of := range test.Strata {
			sum, units := 0.0, 0.0
			for i, s := range hits {
				if strata[i] == stratum {
					sum += math.Exp(math.Min(capOf(b.Param), b.Param/of.SD*s-of.Offsets[k]*steps[i]))
					units++
				}
			}
			if got := sum / units; math.Abs(got-1) > 1e-9 {
				t.Errorf("branch %v, stratum %d: mean likelihood ratio %v", b.Branch(), stratum, got)
			}
		}
	}
	one, plain := NewFrequencyTestWithin(hits, steps, make([]int, len(hits)), 1), NewFrequencyTest(hits, steps, 1)
	for k, b := range plain.Branches {
		if got := one.Branches[k].Calibration; got != b.Calibration || one.Strata[0].Offsets[k] != plain.Offsets[k] {
			t.Errorf("branch %v: calibrated as %+v in one stratum, %+v without", b.Branch(), got, b.Calibration)
		}
	}
}

// Bootstrap and overlap of one stratum equal those without strata.
func TestBootstrapWithinOneStratum(t *testing.T) {
	rng := rand.New(rand.NewPCG(76, 0))
	hits, steps := make([]float64, 400), make([]float64, 400)
	for i := range hits {
		steps[i] = 10
		for range 10 {
			if rng.Float64() < .3 {
				hits[i]++
			}
		}
	}
	plain, within := NewFrequencyTest(hits, steps, 1), NewFrequencyTestWithin(hits, steps, make([]int, len(hits)), 1)
	plain.Arm(1e-5)
	within.Arm(1e-5)
	a := []BaselineSample{{Values: hits, Steps: steps, Frequency: plain}}
	b := []BaselineSample{{Values: hits, Steps: steps, Frequency: within, Strata: make([]int, len(hits))}}
	x, y := Bootstrap(a, len(hits), 0, 1, 3, 1), Bootstrap(b, len(hits), 0, 1, 3, 1)
	if math.Abs(x.ARL0/y.ARL0-1) > 1e-6 || math.Abs(x.Allowance-y.Allowance) > 1e-6 {
		t.Errorf("bootstrapped %+v in one stratum, %+v without", y, x)
	}
	if v, w := Overlap(a, len(hits), 3, 1), Overlap(b, len(hits), 3, 1); v != w {
		t.Errorf("overlap %v in one stratum, %v without", w, v)
	}
}
