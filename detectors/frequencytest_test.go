package detectors

import (
	"math"
	"math/rand/v2"
	"testing"
)

// counted draws episodes of 5 to 30 steps at each of which something happens with probability p.
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
				t.Errorf("p = %v, %s: mean exp(g) = %v, want 1", p, b.Branch, mean)
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
		test.Observe(newHits[i], newSteps[i], int64(i), false)
		for k, b := range test.Branches {
			d := b.Param
			g := math.Min(2.5*math.Abs(d)-d*d/2, d/math.Sqrt(variance)*newHits[i]-test.Offsets[k]*newSteps[i])
			walks[k] = math.Max(0, walks[k]+(g-b.C-b.Kappa)/test.Factor)
			if math.Abs(walks[k]-b.Walk) > 1e-9 {
				t.Fatalf("%s after %d episodes: %v, want %v", b.Branch, i+1, b.Walk, walks[k])
			}
		}
	}
}

func TestFrequencyObserveAllocatesNothing(t *testing.T) {
	hits, steps := counted(rand.New(rand.NewPCG(92, 0)), 300, .3)
	test := NewFrequencyTest(hits, steps, 1)
	test.Arm(1e-6)
	if n := testing.AllocsPerRun(100, func() { test.Observe(3, 12, 1, false) }); n != 0 {
		t.Errorf("%v allocations an episode", n)
	}
}

// A prediction has one branch: the likelihood ratio itself, and no power of it.
func TestPredictionIsTheLikelihoodRatio(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 0))
	scores, steps := make([]float64, 500), make([]float64, 500)
	for i := range scores {
		scores[i], steps[i] = .3*rng.NormFloat64()-.045, 1
	}
	test := NewPredictionTest(scores, steps, 1)
	if len(test.Branches) != 1 || test.Branches[0].Branch != (Branch{Prediction, 1}) {
		t.Fatalf("branches %+v", test.Branches)
	}
	sum := 0.0
	for _, s := range scores {
		sum += math.Exp(s - test.Offsets[0])
	}
	if mean := sum / 500; math.Abs(mean-1) > 1e-9 {
		t.Errorf("the likelihood ratio has the mean %v over the baseline", mean)
	}
	form := newFrequencyBranch(test.Branches[0].Branch, test.SD)
	if x := form.increment(1.5, 1, .2); math.Abs(x-1.3) > 1e-12 {
		t.Errorf("a score of 1.5 adds %v", x)
	}
	if x := form.increment(50, 1, .2); x != predictionCap {
		t.Errorf("a score of 50 adds %v", x)
	}
}
