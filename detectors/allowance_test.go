package detectors

import (
	"math"
	"math/rand/v2"
	"testing"
)

// repeated returns the drawn baseline itself: each unit as many times as it was drawn.
func repeated(x []float64, times []int32) []float64 {
	var out []float64
	for i, n := range times {
		for range n {
			out = append(out, x[i])
		}
	}
	return out
}

func armedRanks(sample []float64, rate float64) *RankTest {
	ranks := NewRanks(sample)
	test := NewRankTest(sample, ranks, 1)
	test.Arm(rate)
	return test
}

// The bootstrap computes a drawn baseline without building it. The result is the same as if it was built.
func TestDrawnBaselinesAreThoseOfTheTests(t *testing.T) {
	rng := rand.New(rand.NewPCG(100, 0))
	const m = 200
	times := make([]int32, m)
	drawUnits(times, rng)
	sample := tied(rng, m)
	view := viewsOf([]BaselineSample{{Values: sample, Rank: armedRanks(sample, 1e-6)}}, 0)[0]
	drawn := repeated(sample, times)
	ranks := NewRanks(drawn)
	rebuilt := NewRankTest(drawn, ranks, 1)
	for i, d := range view.draw(nil, times, &scratch{}) {
		b := view.armed[i].Branch()
		var cal Calibration
		for _, c := range rebuilt.Branches {
			if c.Branch() == b {
				cal = c.Calibration
			}
		}
		if want := cal.Chi / math.Sqrt(m); math.Abs(d.unit-want) > 1e-9 {
			t.Errorf("%s: allowance %v, want %v", b, d.unit, want)
		}
		for k, theta := range thetas {
			mean := 0.0
			for _, x := range sample {
				mean += math.Exp(theta*(b.increment(ranks.of(x))-cal.C)) / m
			}
			if want := math.Log(mean) / theta; math.Abs(d.slopes[k]-want) > 1e-9 {
				t.Errorf("%s: Lambda(%v)/%v = %v, want %v", b, theta, theta, d.slopes[k], want)
			}
		}
	}
}

func TestDrawnFrequenciesAreThoseOfTheTest(t *testing.T) {
	rng := rand.New(rand.NewPCG(101, 0))
	const m = 200
	times := make([]int32, m)
	drawUnits(times, rng)
	hits, steps := counted(rng, m, .3)
	test := NewFrequencyTest(hits, steps, 1)
	test.Arm(1e-6)
	view := viewsOf([]BaselineSample{{Values: hits, Steps: steps, Frequency: test}}, 0)[0]
	rebuilt := NewFrequencyTest(repeated(hits, times), repeated(steps, times), 1)
	for i, d := range view.draw(nil, times, &scratch{}) {
		var k int
		for rebuilt.Branches[k].Branch() != view.armed[i].Branch() {
			k++
		}
		b := rebuilt.Branches[k]
		if want := b.Chi / math.Sqrt(m); math.Abs(d.unit-want) > 1e-6 {
			t.Errorf("%s: allowance %v, want %v", b.Branch(), d.unit, want)
		}
		mean, theta := 0.0, thetas[6]
		for u := range hits {
			g := math.Min(capOf(b.Param), b.Param/rebuilt.SD*hits[u]-rebuilt.Offsets[k]*steps[u])
			mean += math.Exp(theta*g) / m
		}
		if want := math.Log(mean) / theta; math.Abs(d.slopes[6]-want) > 1e-6 {
			t.Errorf("%s: Lambda(1) = %v, want %v", b.Branch(), d.slopes[6], want)
		}
	}
}

// The rate of one branch under a known distribution agrees with simulated walks. The baseline is the whole truth,
// and the drawn baseline is the same.
func TestRateOfABranchAgreesWithWalking(t *testing.T) {
	rng := rand.New(rand.NewPCG(102, 0))
	sample := continuous(400)
	test := armedRanks(sample, 1./2000)
	b := &test.Branches[2] // location +0.8
	d := drawnBranch{unit: b.Chi / math.Sqrt(400), logA: b.LogA, height: b.Height}
	g := make([]float64, len(sample))
	weight := make([]float64, len(sample))
	for i, r := range test.ranks.ownAll(sample) {
		g[i], weight[i] = b.Branch().increment(r)-b.C, 1./400
	}
	d.slopes = lambdaSlopes(g, weight)
	for _, allowance := range []float64{0, 1} {
		const walks = 800
		units := 0.0
		for range walks {
			for s := 0.0; s < b.Height; units++ {
				s = max(0, s+g[rng.IntN(len(g))]-allowance*d.unit)
			}
		}
		// The time to a rare alarm is close to exponential; interpolating Lambda costs some percent.
		got, want := 1/d.rate(allowance), units/walks
		if math.Abs(got-want) > 4*want/math.Sqrt(walks)+.1*want {
			t.Errorf("allowance %v: %.0f units between false alarms, %.0f by walking", allowance, got, want)
		}
	}
}

func TestBootstrapDependsOnItsSeedAlone(t *testing.T) {
	rng := rand.New(rand.NewPCG(103, 0))
	sample := normal(rng, 300)
	of := []BaselineSample{{Values: sample, Rank: armedRanks(sample, 1e-5)}}
	first, again, other := Bootstrap(of, 300, 0, 1, 1, 2), Bootstrap(of, 300, 0, 1, 1, 3), Bootstrap(of, 300, 0, 1, 2, 2)
	if first != again {
		t.Errorf("the same seed gives %+v and %+v", first, again)
	}
	if first == other {
		t.Error("another seed gives the same draws")
	}
	if !(first.Low <= first.ARL0 && first.ARL0 <= first.High) || !first.Confirmed || first.Allowance <= leastAllowance {
		t.Errorf("a baseline of 300 normal values gives %+v", first)
	}
}

// Eight identical quantities raise alarms together, so their false alarms are as rare as those of one.
func TestOverlapOfOneQuantityEightTimes(t *testing.T) {
	rng := rand.New(rand.NewPCG(104, 0))
	sample := normal(rng, 500)
	one := BaselineSample{Values: sample, Rank: armedRanks(sample, 1./500/80)}
	of := make([]BaselineSample, 8)
	for i := range of {
		of[i] = one
	}
	single := one
	single.Rank = armedRanks(sample, 1./500/10)
	if got, own := Overlap(of, 500, 1, 2), Overlap([]BaselineSample{single}, 500, 1, 2); got < 4*own || got > 12*own {
		t.Errorf("overlap %.1f of eight, %.1f of one", got, own)
	}
}

func TestOverlapOfIndependentQuantitiesIsSmall(t *testing.T) {
	rng := rand.New(rand.NewPCG(105, 0))
	var of []BaselineSample
	for range 8 {
		sample := normal(rng, 500)
		test := NewRankTest(sample, NewRanks(sample), 1)
		test.Branches = test.Branches[5:6] // one branch each
		test.Arm(1. / 500 / 8)
		of = append(of, BaselineSample{Values: sample, Rank: test})
	}
	if got := Overlap(of, 500, 1, 2); got > 1.3 {
		t.Errorf("overlap %.2f of independent branches", got)
	}
}

// Tests that need no allowance have no overlap either: their false alarms occur at least at their rate.
func TestExactTestsDoNotOverlap(t *testing.T) {
	rng := rand.New(rand.NewPCG(106, 0))
	sample := normal(rng, 300)
	of := []BaselineSample{{Values: sample, Rank: armedRanks(sample, 1e-6)}}
	if got := Bootstrap(of, 300, 1e-3, 2, 1, 2); got.ARL0 > 1000 || got.ARL0 < 900 {
		t.Errorf("%.0f units between false alarms, of which the exact tests alone raise one in 1000", got.ARL0)
	}
}
