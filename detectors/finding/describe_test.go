package finding

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// TestHistogramCountsEachValue compares the histogram with the decile of each value.
func TestHistogramCountsEachValue(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 7))
	for _, grain := range []float64{0, .01, .5, 10} { // no ties, few, many, and a single value
		draw := func(n int, mean float64) []float64 {
			x := make([]float64, n)
			for i := range x {
				if x[i] = mean + rng.NormFloat64(); grain > 0 {
					x[i] = math.Round(x[i]/grain) * grain
				}
			}
			return x
		}
		for _, units := range []int{1, 2, 9, 10, 11, 20, 300} {
			ranks := detectors.NewRanks(draw(units, 0))
			for _, mean := range []float64{-9, 0, .5, 9} {
				x := append(draw(137, mean), ranks.Points...)
				var want [10]float64
				for _, v := range x {
					want[ranks.Decile(v)] += 1 / float64(len(x))
				}
				if d := DescribeSample(x, ranks); d.HistogramRatio != want || d.Units != len(x) {
					t.Errorf("grain %v, %d units, mean %v: %v, want %v", grain, units, mean, d.HistogramRatio, want)
				}
			}
			want := DescribeSample(ranks.Sample(), ranks)
			deciles := detectors.Quantiles(ranks.Sample(), .1, .2, .3, .4, .5, .6, .7, .8, .9)
			if d, q := DescribeBaseline(ranks); d != want || !slices.Equal(q[:], deciles) {
				t.Errorf("grain %v, baseline of %d units: %v with deciles %v, want %v with %v", grain, units, d, q, want, deciles)
			}
		}
	}
}

// BenchmarkDescribe describes a baseline and the last units.
func BenchmarkDescribe(b *testing.B) {
	rng, sample, last := rand.New(rand.NewPCG(2, 7)), make([]float64, 500), make([]float64, 200)
	for i := range sample {
		sample[i] = rng.NormFloat64()
	}
	for i := range last {
		last[i] = rng.NormFloat64()
	}
	ranks, x := detectors.NewRanks(sample), make([]float64, len(last))
	b.Run("baseline", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			DescribeBaseline(ranks)
		}
	})
	b.Run("current", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			copy(x, last)
			DescribeSample(x, ranks)
		}
	})
}

// Mean and standard deviation equal those of ingest.Moments, exactly if all values are equal.
func TestMeanAndSDAreThoseOfMoments(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	random := make([]float64, 500)
	for i := range random {
		random[i] = 1e6 + rng.NormFloat64()
	}
	for name, x := range map[string][]float64{
		"random": random, "one": {-3}, "two": {1, 2}, "equal": slices.Repeat([]float64{.1}, 499),
		"huge": {-math.MaxFloat64, 1, math.MaxFloat64}, "infinite": {math.Inf(-1), 1, 3}, "half infinite": {1, math.Inf(1), math.Inf(1)},
	} {
		var m ingest.Moments
		for _, v := range x {
			m.Add(v)
		}
		near := func(got, want float64) bool {
			return got == want || math.Abs(got-want) <= 1e-11*math.Abs(want) || math.IsNaN(got) && math.IsNaN(want)
		}
		if mean, sd := meanAndSD(x); !near(mean, m.Mean) || !near(sd, m.SD()) {
			t.Errorf("%s: %v and %v, want %v and %v", name, mean, sd, m.Mean, m.SD())
		}
	}
	if mean, sd := meanAndSD(slices.Repeat([]float64{.1}, 499)); mean != .1 || sd != 0 {
		t.Errorf("of equal values %v and %v", mean, sd)
	}
}

// A clause says where a quantity has moved, in the tense of the drift, and names a standard deviation that has clearly
// changed.
func TestClauseOfAnEffect(t *testing.T) {
	fell := Effect{Quantity: "return", BaselineMean: 480, CurrentMean: 430, BaselineSD: 20, CurrentSD: 25, StandardShift: -2.5, CurrentUnits: 66}
	wider := Effect{Quantity: "return", BaselineMean: 480, CurrentMean: 480, BaselineSD: 20, CurrentSD: 35, CurrentUnits: 1}
	near := Effect{Quantity: "return", BaselineMean: 10000.4, CurrentMean: 9999.6, BaselineSD: .2, CurrentSD: .2, StandardShift: -4, CurrentUnits: 40}
	constant := Effect{Quantity: "return", CurrentSD: 3, CurrentUnits: 40} // no longer
	rose := Effect{Quantity: "share of b", BaselineMean: .2, CurrentMean: .5, CurrentUnits: 9}
	for _, c := range []struct {
		signal    string
		of        Effect
		now, then string
	}{
		{
			"return", fell, "mean return is now 430, down from 480 in the baseline (-2.5 SD; 66 episodes since the onset)",
			"mean return fell from 480 in the baseline to 430 (-2.5 SD; 66 episodes since the onset)",
		},
		{
			"return", wider, "mean return is 480, as in the baseline (SD 35, was 20; 1 episode since the onset)",
			"mean return stayed at 480, as in the baseline (SD 35, was 20; 1 episode since the onset)",
		},
		{
			"action", rose, "share of b is now 0.5, up from 0.2 in the baseline (9 episodes since the onset)",
			"share of b rose from 0.2 in the baseline to 0.5 (9 episodes since the onset)",
		},
		{
			"return", near, "mean return is now 9999.6, down from 10000 in the baseline (-4 SD; 40 episodes since the onset)",
			"mean return fell from 10000 in the baseline to 9999.6 (-4 SD; 40 episodes since the onset)",
		},
		{
			"return", constant, "mean return is 0, as in the baseline (SD 3, was 0; 40 episodes since the onset)",
			"mean return stayed at 0, as in the baseline (SD 3, was 0; 40 episodes since the onset)",
		},
		{"return", Effect{}, "not measured", "not measured"},
	} {
		if got := c.of.ClauseOf(c.signal, Episodes()); got != c.now {
			t.Errorf("%q, want %q", got, c.now)
		}
		if got := c.of.PastClauseOf(c.signal, Episodes()); got != c.then {
			t.Errorf("%q, want %q", got, c.then)
		}
	}
}
