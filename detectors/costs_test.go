package detectors

import (
	"math"
	"math/rand/v2"
	"sort"
	"testing"
	"time"
)

// BenchmarkCosts measures what the detectors cost per value or unit, in nanoseconds and, because machines differ,
// in binary searches over 1,024 floats, timed in the same run.
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
		{"frequency branches, a step", frequencySteps},
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
			inSearches(b, values, add)
		})
	}
}

// inSearches reports the cost of a value in binary searches over 1,024 floats. The two are timed in turns, and the
// fastest turn of each counts, because other work on the machine only adds time.
func inSearches(b *testing.B, values []float64, add func(x float64)) {
	points := sortedCopy(values[:1024])
	found := 0
	each, search := math.Inf(1), math.Inf(1)
	for turn := range 64 {
		part := values[turn<<10 : (turn+1)<<10]
		search = min(search, timeOf(part, func(x float64) { found += sort.SearchFloat64s(points, x) }))
		each = min(each, timeOf(part, add))
	}
	b.ReportMetric(each, "fastest-ns/op")
	b.ReportMetric(each/search, "searches/op")
}

// timeOf returns the time of one call, in nanoseconds.
func timeOf(values []float64, call func(x float64)) float64 {
	start := time.Now()
	for _, x := range values {
		call(x)
	}
	return float64(time.Since(start)) / float64(len(values))
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

// frequencySteps are the 102 branches for 17 actions. They judge an episode of 50 steps at its end; a call is one
// step.
func frequencySteps(testing.TB) func(float64) {
	const actions, length = 17, 50
	rng := rand.New(rand.NewPCG(3, 46))
	var tests []*FrequencyTest
	for range actions {
		hits, steps := make([]float64, 500), make([]float64, 500)
		for i := range hits {
			steps[i] = length
			for range length {
				hits[i] += math.Floor(rng.Float64() + 1./actions)
			}
		}
		test := NewFrequencyTest(hits, steps, 1)
		test.Arm(1e-6)
		tests = append(tests, test)
	}
	step := int64(0)
	return func(x float64) {
		if step++; step%length != 0 {
			return
		}
		for i, test := range tests {
			test.Observe(math.Floor(math.Abs(x)*float64(i%7)), length, -1, step, false)
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
