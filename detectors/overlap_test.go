package detectors

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// overlapOneByOne is the textbook form of Overlap: the tests themselves observe one unit after the other.
func overlapOneByOne(samples []BaselineSample, units int, seed uint64) float64 {
	rate := 0.0
	for i := range samples {
		rate += armedRate(samples[i].walks().Branches)
	}
	if rate == 0 {
		return 1
	}
	at := max(rate, 1./overlapUnits)
	total, alarms := 0, 0
	for part := range overlapParts {
		rng := rand.New(rand.NewPCG(seed, uint64(part)))
		own := make([]BaselineSample, len(samples))
		for i := range own {
			own[i] = lowered(samples[i], math.Log(at/rate))
		}
		for found, n := 0, 0; found < overlapAlarms/overlapParts && n < int(5*overlapAlarms/overlapParts/at); n++ {
			total++
			if unit := rng.IntN(units); observedBy(own, unit) {
				found++
				alarms++
				for i := range own {
					own[i].walks().Reset()
				}
			}
		}
	}
	ratio := float64(total) / float64(max(1, alarms)) * at / (1 + 1/math.Sqrt(overlapAlarms))
	return max(1, 1+(ratio-1)*max(0, 1-overlapDecay*math.Log10(at/rate)))
}

// lowered returns the sample with a copy of its test without allowance and dependence factor, and with thresholds
// lowered by the given number of nats.
func lowered(s BaselineSample, by float64) BaselineSample {
	if s.Rank != nil {
		s.Rank = &RankTest{Walks: s.Rank.Walks, ranks: s.Rank.ranks}
	} else {
		test := *s.Frequency
		s.Frequency = &test
	}
	walks := s.walks()
	walks.Branches, walks.Factor = slices.Clone(walks.Branches), 1
	for i := range walks.Branches {
		b := &walks.Branches[i]
		b.Kappa, b.Walk = 0, 0
		if b.Height > 0 {
			b.Height = max(.5, b.Height-by)
		}
	}
	walks.prepare()
	return s
}

// observedBy passes a unit of the baseline to all tests and reports whether a walk has reached its threshold.
func observedBy(samples []BaselineSample, unit int) (alarm bool) {
	for i := range samples {
		s := &samples[i]
		switch x := s.Values[unit]; {
		case math.IsNaN(x):
		case s.Rank != nil:
			alarm = s.Rank.observe(s.Rank.ranks.own(x), 0, false) || alarm
		default:
			alarm = s.Frequency.Observe(x, s.Steps[unit], -1, 0, false) || alarm
		}
	}
	return alarm
}

// armedSamples returns samples of several distributions with their tests: with ties, with a gap in every seventh
// unit, one of them twice, and two of frequencies. All tests together spend one false alarm in n units.
func armedSamples(rng *rand.Rand, m int, n float64) (of []BaselineSample) {
	ranked := func(values []float64) {
		present := slices.DeleteFunc(slices.Clone(values), math.IsNaN)
		of = append(of, BaselineSample{Values: values, Rank: NewRankTest(present, NewRanks(present), 1.2)})
	}
	laws := samplesOfLaws(rng, m)
	for _, law := range []string{"normal", "tied", "skewed", "coarse", "binary"} {
		ranked(laws[law])
	}
	ranked(laws["skewed"])
	gaps := normal(rng, m)
	for i := 0; i < m; i += 7 {
		gaps[i] = math.NaN()
	}
	ranked(gaps)
	for _, p := range []float64{.1, .6} {
		hits, steps := counted(rng, m, p)
		of = append(of, BaselineSample{Values: hits, Steps: steps, Frequency: NewFrequencyTest(hits, steps, 1)})
	}
	carrying := 0
	for i := range of {
		carrying += of[i].walks().Carrying()
	}
	for i := range of {
		of[i].walks().Arm(1 / n / float64(carrying))
	}
	return of
}

func TestSimOverlapAgreesWithTheTests(t *testing.T) {
	for _, m := range []int{100, 500} {
		for _, n := range []float64{300, 2000, 20_000, 1e6} {
			of := armedSamples(rand.New(rand.NewPCG(130, uint64(m))), m, n)
			for seed := range uint64(2) {
				if got, want := Overlap(of, m, seed, 2), overlapOneByOne(of, m, seed); got != want {
					t.Errorf("%d units, one alarm in %v, seed %d: overlap %v, want %v", m, n, seed, got, want)
				}
			}
		}
	}
}

func TestOverlapOfNothingArmed(t *testing.T) {
	sample := continuous(100)
	of := []BaselineSample{{Values: sample, Rank: NewRankTest(sample, NewRanks(sample), 1)}}
	if got := Overlap(of, 100, 1, 2); got != 1 {
		t.Errorf("overlap %v, want 1", got)
	}
}

func BenchmarkOverlap(b *testing.B) {
	of := armedSamples(rand.New(rand.NewPCG(131, 0)), 500, 20_000)
	for b.Loop() {
		Overlap(of, 500, 1, 2)
	}
}
