package detectors

import (
	"math/rand/v2"
	"sort"
	"testing"
	"time"
)

// BenchmarkCosts is what the detectors cost a value or a unit, in nanoseconds and, since machines differ, in binary searches
// over 1,024 floats, timed in the same run.
func BenchmarkCosts(b *testing.B) {
	values := normal(rand.New(rand.NewPCG(1, 46)), 1<<16)
	points := sortedCopy(values[:1024])
	found := 0
	for _, c := range []struct {
		name    string
		prepare func(testing.TB) func(x float64)
	}{
		{"search of 1024", func(testing.TB) func(float64) {
			return func(x float64) { found += sort.SearchFloat64s(points, x) }
		}},
		{"110 rank branches", elevenRankTests},
		{"KS of 1024 and 1000", func(tb testing.TB) func(float64) { return slidingKS(tb, 1024) }},
		{"KS of 4096 and 1000", func(tb testing.TB) func(float64) { return slidingKS(tb, 4096) }},
		{"ADWIN", func(testing.TB) func(float64) {
			a := NewADWIN(ADWINDelta)
			return func(x float64) { a.Add(x) }
		}},
		{"Page-Hinkley", func(testing.TB) func(float64) {
			p := NewPageHinkley()
			return func(x float64) { p.Add(x) }
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			add := c.prepare(b)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				add(values[i&(1<<16-1)])
			}
			each := float64(b.Elapsed()) / float64(b.N)
			b.ReportMetric(each/searchTime(points, values), "searches/op")
		})
	}
}

// searchTime is the time of a binary search, in nanoseconds: the median of some rounds.
func searchTime(points, values []float64) float64 {
	var rounds []float64
	found := 0
	for range 7 {
		start := time.Now()
		for _, x := range values {
			found += sort.SearchFloat64s(points, x)
		}
		rounds = append(rounds, float64(time.Since(start))/float64(len(values)))
	}
	return Quantiles(rounds, .5)[0]
}

// elevenRankTests are the 110 branches of a unit with eleven quantities.
func elevenRankTests(testing.TB) func(float64) {
	rng := rand.New(rand.NewPCG(2, 46))
	var tests []*RankTest
	for range 11 {
		test := newTest(normal(rng, 500))
		test.Arm(1e-6)
		tests = append(tests, test)
	}
	ordinal := int64(0)
	return func(x float64) {
		ordinal++
		for _, test := range tests {
			test.Observe(x, ordinal, false)
		}
	}
}

func slidingKS(tb testing.TB, m int) func(float64) {
	k, _ := benchmarkKS(tb, m, 1000)
	return func(x float64) {
		k.Add(x)
		k.Statistic()
	}
}
