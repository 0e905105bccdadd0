package rarity

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors"
)

// rareSample returns a sample of n values of which rare are 1 and the rest 0, spread evenly.
func rareSample(n, rare int) []float64 {
	sample := make([]float64, n)
	for i := range rare {
		sample[i*n/rare] = 1
	}
	return sample
}

func rareValue(rng *rand.Rand, rate float64) float64 {
	if rng.Float64() < rate {
		return 1
	}
	return 0
}

// armedRarity returns a test on a baseline of m units at the given rate; each walk may raise one false alarm in
// units.
func armedRarity(rng *rand.Rand, m int, rate, units float64) *Test {
	for {
		sample := make([]float64, m)
		for i := range sample {
			sample[i] = rareValue(rng, rate)
		}
		ranks := detectors.NewRanks(sample)
		if _, usual := ranks.Mode(); float64(m-usual) > MostShare*float64(m) {
			continue
		}
		if t := New(ranks, 1); t != nil {
			t.Arm(1 / units)
			return t
		}
	}
}

// until returns after how many units at a rate the test raises an alarm, at most most.
func (t *Test) until(rng *rand.Rand, rate float64, most int) int {
	for i := 1; i <= most; i++ {
		if t.Observe(rareValue(rng, rate), int64(i), false); t.Reached() {
			return i
		}
	}
	return most
}

// The mean time to a false alarm at the limits of the rate is measured by walks, one walk at a time; with a
// threshold one step lower, it would be too short.
func TestRarityRateIsExact(t *testing.T) {
	const units = 3000
	for i := range 3 {
		test := New(detectors.NewRanks(rareSample(500, 19)), 1)
		test.Arm(1. / units)
		w := &test.Walks[i]
		p := test.Low
		if w.Param > 0 {
			p = test.High
		}
		time := func(height int) float64 {
			if w.Param > 0 {
				return riseTime(p, w.Rare, height)
			}
			return fallTime(p, -w.Rare, height)
		}
		exact := time(w.Height)
		if exact < units || time(w.Height-1) >= units {
			t.Errorf("%v: threshold %d with %.0f units, one lower %.0f, want %d", w.Branch, w.Height, exact, time(w.Height-1), units)
		}
		rng := rand.New(rand.NewPCG(60, uint64(i)))
		const walks = 1500
		sum := 0.0
		for range walks {
			for w.Walk = 0; w.Walk < w.Height; sum++ {
				w.step(rng.Float64() < p, 0, false)
			}
		}
		if mean := sum / walks; math.Abs(mean-exact) > 4*exact/math.Sqrt(walks) {
			t.Errorf("%v: mean time %.0f by walking, %.0f by the formula", w.Branch, mean, exact)
		}
	}
}

// eliminated returns the mean time in which a walk climbs to a height, by elimination in its equations from 0
// upwards: t(i) = constant(i) + sum over k = 1..up of weight(i, k) t(i+k), in which nothing is ever subtracted.
func eliminated(p float64, up, height int) float64 {
	constants, weights := make([]float64, height), make([][]float64, height)
	for i := range height {
		weights[i] = make([]float64, up)
		left := p // the part of t(i) that is left on its own side
		constants[i] = 1
		if i > 0 {
			constants[i] += (1 - p) * constants[i-1]
			for k := 1; k < up; k++ {
				weights[i][k-1] = (1 - p) * weights[i-1][k]
				left += weights[i][k-1]
			}
		}
		weights[i][up-1] += p
		constants[i] /= left
		for k := range weights[i] {
			weights[i][k] /= left
		}
	}
	times := make([]float64, height+up)
	for i := height - 1; i >= 0; i-- {
		times[i] = constants[i]
		for k, w := range weights[i] {
			times[i] += w * times[i+k+1]
		}
	}
	return times[0]
}

func TestTimeOfARiseIsTheSolutionOfItsEquations(t *testing.T) {
	for _, c := range []struct {
		p          float64
		up, height int
	}{{.2, 1, 2}, {.2, 1, 40}, {.061, 14, 15}, {.061, 14, 150}, {.061, 14, 400}, {.006, 140, 3000}, {.3, 2, 60}} {
		got, want := riseTime(c.p, c.up, c.height), eliminated(c.p, c.up, c.height)
		if math.Abs(got/want-1) > 1e-9 {
			t.Errorf("p %v, %d up: %v units to %d, want %v", c.p, c.up, got, c.height, want)
		}
	}
}

// Thresholds are valid for every rate within the limits: false alarms are most frequent at the limit that they are
// set for.
func TestRarityRateIsLargestAtTheLimit(t *testing.T) {
	test := New(detectors.NewRanks(rareSample(500, 19)), 1)
	test.Arm(1e-6)
	last := 0.0
	for k := range 20 {
		p := test.High + float64(k)/19*(test.Low-test.High)
		fall := 1 / fallTime(p, -test.Walks[1].Rare, test.Walks[1].Height)
		if fall < last || fall > 1.000001e-6 {
			t.Errorf("at a rate of %.4f false alarms of a fall come at %.3g, at a larger rate at %.3g", p, fall, last)
		}
		last = fall
	}
}

func TestRarityFindsWhatTheRateBecomes(t *testing.T) {
	// 19 in 500 values are rare, and a walk may raise one false alarm in two million units. after is the number of
	// units at the rate of the baseline before the change.
	for _, c := range []struct {
		name               string
		after, most, later int // of 20 runs, later may be found later than after most units
		rate               float64
	}{
		{"nothing, at once", 0, 700, 0, 0},
		{"nothing", 15_500, 450, 0, 0},
		{"a half", 15_500, 5000, 1, .019},
		{"the double", 15_500, 1500, 1, .076},
	} {
		t.Run(c.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(61, 0))
			later := 0
			for run := range 20 {
				test := New(detectors.NewRanks(rareSample(500, 19)), 1)
				test.Arm(.5e-6)
				if got := test.until(rng, .038, c.after+1); got <= c.after {
					t.Fatalf("run %d: a false alarm after %d units", run, got)
				}
				if got := test.until(rng, c.rate, 2*c.most); got > c.most {
					later++
					t.Logf("run %d: found after %d units", run, got)
				}
			}
			if later > c.later {
				t.Errorf("%d of 20 runs took more than %d units", later, c.most)
			}
		})
	}
}

// Nine baselines in ten keep the false alarms of each walk within its rate, including the effect of later units on
// the limits. The bound is three standard errors below.
func TestSimNineBaselinesInTenKeepTheRateOfRareValues(t *testing.T) {
	const baselines, runs, units = 100, 20, 500
	for i, rate := range []float64{.01, .038, .049, .1, .2} {
		rng := rand.New(rand.NewPCG(62, uint64(i)))
		kept := 0
		for range baselines {
			baseline := armedRarity(rng, 500, rate, 3*units)
			alarms, all := 0, 0
			for range runs {
				test := *baseline
				n := test.until(rng, rate, 20*units)
				all += n
				if test.Reached() {
					alarms++
				}
			}
			if all >= units*alarms {
				kept++
			}
		}
		if least := .9 - 3*math.Sqrt(.9*.1/baselines); float64(kept)/baselines < least {
			t.Errorf("rate %v: %d of %d baselines keep the budget, want at least %.2f", rate, kept, baselines, least)
		}
	}
}

func TestRarityLimitsOnlyCloseIn(t *testing.T) {
	rng := rand.New(rand.NewPCG(63, 0))
	test := New(detectors.NewRanks(rareSample(500, 19)), 1)
	test.Arm(.5e-6)
	low, high := test.Low, test.High
	for range 20_000 {
		test.Observe(rareValue(rng, .038), 0, false)
		if test.Low < low || test.High > high {
			t.Fatalf("limits %v to %v became %v to %v", low, high, test.Low, test.High)
		}
		low, high = test.Low, test.High
	}
	if test.Units < 500<<doublings || test.Doublings != 0 || low < .032 || low > .038 || high < .038 || high > .044 {
		t.Errorf("limits %.4f to %.4f from %d units, want them close to .038 from %d at least", low, high, test.Units, 500<<doublings)
	}
}

func TestRarityLearnsNothingFrom(t *testing.T) {
	feed := map[string]func(*Test){
		"an incident": func(test *Test) {
			for range 1000 {
				test.Observe(0, 0, true)
			}
		},
		"half a stretch before an incident": func(test *Test) {
			for i := range 499 {
				test.Observe(float64(min(1, i%26)^1), 0, false)
			}
			test.Observe(0, 0, true)
			test.Observe(0, 0, false)
		},
		"a rate outside the limits": func(test *Test) {
			for i := range 500 {
				test.Observe(float64(min(1, i%9)^1), 0, false)
				test.Reset() // otherwise the walk would keep the limits as they are
			}
		},
	}
	for name, feed := range feed {
		t.Run(name, func(t *testing.T) {
			test := New(detectors.NewRanks(rareSample(500, 19)), 1)
			test.Arm(.5e-6)
			want := *test
			feed(test)
			if test.Units != 500 || test.Low != want.Low || test.High != want.High {
				t.Errorf("limits %v to %v from %d units, want %v to %v", test.Low, test.High, test.Units, want.Low, want.High)
			}
		})
	}
}

func TestRarityIsNotArmed(t *testing.T) {
	if New(detectors.NewRanks(rareSample(500, 4)), 1) != nil {
		t.Error("four rare values were enough")
	}
	if New(detectors.NewRanks(rareSample(500, 19)), 4.1) != nil {
		t.Error("a dependence factor above 4 was armed")
	}
}

// If values depend on one another, the limits are further apart and the thresholds higher.
func TestRarityAllowsForDependence(t *testing.T) {
	one, two := New(detectors.NewRanks(rareSample(500, 19)), 1), New(detectors.NewRanks(rareSample(500, 19)), 2)
	one.Arm(1e-6)
	two.Arm(1e-6)
	if two.Low >= one.Low || two.High <= one.High || two.Walks[0].Height < 2*one.Walks[0].Height {
		t.Errorf("with factor 1 %+v, with 2 %+v", one, two)
	}
}

func TestRarityObserveAllocatesNothing(t *testing.T) {
	test := New(detectors.NewRanks(rareSample(500, 19)), 1)
	test.Arm(1e-6)
	if n := testing.AllocsPerRun(100, func() { test.Observe(0, 1, false) }); n != 0 {
		t.Errorf("%v allocations a value", n)
	}
}

// Limits are recomputed on the goroutine that judges units.
func TestRarityRefinesWithoutAllocation(t *testing.T) {
	for _, c := range []struct{ units, rare int }{{500, 19}, {5000, 15}} {
		baseline := New(detectors.NewRanks(rareSample(c.units, c.rare)), 1)
		baseline.Arm(1e-6)
		each := c.units / c.rare
		var test Test
		n := testing.AllocsPerRun(10, func() {
			test = *baseline
			for i := range 2 * c.units {
				test.Observe(float64(min(1, i%each)^1), int64(i), false)
			}
		})
		if n != 0 || test.Doublings == doublings {
			t.Errorf("%d of %d: %v allocations, %d doublings left of %d", c.rare, c.units, n, test.Doublings, doublings)
		}
	}
}

// The evidence of a change that has just begun is not lost when the limits are recomputed.
func TestRarityRefinesOnTheWay(t *testing.T) {
	test := New(detectors.NewRanks(rareSample(500, 19)), 1)
	test.Arm(.5e-6)
	before := test.Walks
	for i := range 500 {
		before = test.Walks
		test.Observe(float64(min(1, i%26)^1)*float64(min(1, i/420)^1), int64(i), false) // none are rare in the last 80
	}
	if test.Units != 1000 {
		t.Fatalf("limits of %d units, want 1000", test.Units)
	}
	for i := range test.Walks[:2] {
		w, was := &test.Walks[i], &before[i]
		if math.Abs(w.Score()-was.Score()) > 1.5/float64(min(w.Height, was.Height)) || w.Walk == 0 || w.StartedAt != was.StartedAt {
			t.Errorf("%v: %d of %d from unit %d on, want as far on its way as %d of %d from %d on",
				w.Branch, w.Walk, w.Height, w.StartedAt, was.Walk, was.Height, was.StartedAt)
		}
	}
}

// Half the rate, soon after a baseline of 500 units: the bound is three standard errors below .73. With limits of
// the level .1/6 each, and walks that restarted with each of them, .39 of 200 runs found it within 5,000 units.
func TestRarityFindsHalfTheRateSoon(t *testing.T) {
	const runs = 200
	rng := rand.New(rand.NewPCG(64, 0))
	found := 0
	for range runs {
		test := armedRarity(rng, 500, .038, 825_000)
		if test.until(rng, .038, 500); test.Reached() {
			t.Fatal("a false alarm")
		}
		if test.until(rng, .019, 5000); test.Reached() {
			found++
		}
	}
	if least := .73 - 3*math.Sqrt(.73*.27/runs); float64(found)/runs < least {
		t.Errorf("%d of %d found, want at least %.2f of them", found, runs, least)
	}
}

// Once the rate is known, a fall to half of it is found in 99 of 100 cases by the time at which 190 rare values
// would be expected. The bound is three standard errors below.
func TestSimRarityKnowsItsRate(t *testing.T) {
	const runs = 500
	for i, rate := range []float64{.012, .038, .055, .08, .15, .25} {
		rng := rand.New(rand.NewPCG(66, uint64(i)))
		found := 0
		for done := 0; done < runs; {
			test := armedRarity(rng, 500, rate, 825_000)
			for n := int64(0); !test.Known() && !test.Reached(); n++ {
				if test.Observe(rareValue(rng, rate), n, false); n > 200_000 {
					t.Fatalf("rate %v: not known from %d rare values of %d", rate, test.Novel, test.Units)
				}
			}
			if test.Reached() {
				continue
			}
			if rare, left := test.Collected(); rare < KnownRare || left > 0 {
				t.Fatalf("rate %v: known with %d rare values, %d units before it is", rate, rare, left)
			}
			done++
			if test.until(rng, rate/2, int(190/rate)); test.Reached() {
				found++
			}
		}
		t.Logf("rate %v: %d of %d found", rate, found, runs)
		if least := .99 - 3*math.Sqrt(.99*.01/runs); float64(found)/runs < least {
			t.Errorf("rate %v: %d of %d found, want at least %.3f of them", rate, found, runs, least)
		}
	}
}

// The collection ends even if rare values hardly ever occur.
func TestRarityCollectsABoundedNumberOfUnits(t *testing.T) {
	test := New(detectors.NewRanks(rareSample(500, 5)), 1)
	test.Arm(.5e-6)
	for i := 0; test.Collects(); i++ {
		if test.Observe(float64(min(1, i%1000)^1), int64(i), false); i > 500<<(doublings+extraDoublings) {
			t.Fatalf("still collecting after %d units, %d doublings left", i, test.Doublings)
		}
		test.Reset() // otherwise the walk would keep the limits as they are
	}
	if _, left := test.Collected(); left != 0 || test.Known() || test.Units != 500<<(doublings+extraDoublings) {
		t.Errorf("%d units, %d until the rate is known, want none", test.Units, left)
	}
}
