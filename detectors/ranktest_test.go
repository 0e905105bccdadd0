package detectors

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// tied draws values with many ties.
func tied(rng *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = math.Round(3*rng.NormFloat64()) / 2
	}
	return x
}

func normal(rng *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = rng.NormFloat64()
	}
	return x
}

// countRank is the mid-rank by counting: less, and equal, in the sample.
func countRank(sample []float64, x float64) (less, equal float64) {
	for _, s := range sample {
		if s < x {
			less++
		} else if s == x {
			equal++
		}
	}
	return less, equal
}

func TestRanksAgreeWithCounting(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, sample := range [][]float64{tied(rng, 101), normal(rng, 64), {5}, {2, 2, 2}} {
		ranks := NewRanks(sample)
		m := float64(len(sample))
		for _, x := range append(tied(rng, 200), sample...) {
			less, equal := countRank(sample, x)
			if got, want := ranks.of(x).u, (less+equal/2+.5)/(m+1); math.Abs(got-want) > 1e-15 {
				t.Fatalf("rank of new %v: %v, want %v", x, got, want)
			}
		}
		for _, x := range sample {
			less, equal := countRank(sample, x)
			if got, want := ranks.own(x).u, (less+(equal-1)/2+.5)/m; math.Abs(got-want) > 1e-15 {
				t.Fatalf("rank of own %v: %v, want %v", x, got, want)
			}
		}
	}
}

func TestRanksGiveTheirSampleBack(t *testing.T) {
	sample := []float64{3, 1, 2, 2, -1}
	ranks := NewRanks(sample)
	want := []float64{-1, 1, 2, 2, 3}
	got := ranks.Sample()
	if len(got) != len(want) {
		t.Fatalf("sample %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("sample %v, want %v", got, want)
		}
	}
	if mode, n := ranks.Mode(); mode != 2 || n != 2 {
		t.Errorf("mode %v in %d points, want 2 in 2", mode, n)
	}
}

// continuous returns a sample of m distinct values, whose ranks are the same for every distribution.
func continuous(m int) []float64 {
	x := make([]float64, m)
	for i := range x {
		x[i] = float64(i)
	}
	return x
}

func ownRanks(sample []float64) []rank {
	ranks := NewRanks(sample)
	own := make([]rank, len(sample))
	for i, x := range sample {
		own[i] = ranks.own(x)
	}
	return own
}

// increments returns the increments of a branch, normalized over the sample itself, and the normalization.
func increments(b Branch, own []rank) ([]float64, Calibration) {
	g := make([]float64, len(own))
	for i, r := range own {
		g[i] = b.increment(r)
	}
	cal := calibrate(g, evenly(len(g)))
	for i := range g {
		g[i] -= cal.C
	}
	return g, cal
}

// The prefactors were computed independently for continuous data in the limit of a large baseline.
func TestPrefactorsOfContinuousData(t *testing.T) {
	own := ownRanks(continuous(2000))
	want := map[Branch]float64{
		{Location, .4}: -2.96, {Location, .8}: -2.02, {Location, 1.6}: -1.47,
		{Spread, 1.6}: -2.78, {Spread, .5}: -1.63, {Wilcoxon, 1.5}: -1.86,
	}
	for b, logA := range want {
		g, _ := increments(b, own)
		if got := prefactor(g, evenly(len(g))); math.Abs(got-logA) > .006 {
			t.Errorf("%s: log A = %.4f, want %.2f", b, got, logA)
		}
	}
}

func TestIncrementsAreNormalised(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for _, sample := range [][]float64{normal(rng, 300), tied(rng, 300)} {
		own := ownRanks(sample)
		for _, b := range allBranches() {
			g, _ := increments(b, own)
			mean := 0.0
			for _, x := range g {
				mean += math.Exp(x) / float64(len(own))
			}
			if math.Abs(mean-1) > 1e-12 {
				t.Errorf("%s: mean exp(g-C) = %v, want 1", b, mean)
			}
		}
	}
}

// A branch is armed from the baseline size at which its allowance leaves at least half of its information.
func TestArmingByBaselineSize(t *testing.T) {
	want := []struct {
		branch Branch
		about  int
	}{
		{Branch{Location, 1.6}, 36},
		{Branch{Spread, .5}, 45},
		{Branch{Wilcoxon, 1.5}, 63},
		{Branch{Location, .8}, 76},
		{Branch{Spread, 1.6}, 199},
		{Branch{Location, .4}, 250},
	}
	for _, w := range want {
		carries := func(m int) bool {
			_, cal := increments(w.branch, ownRanks(continuous(m)))
			return cal.carries(m, 1)
		}
		if carries(w.about - 3) {
			t.Errorf("%s is armed with %d units already", w.branch, w.about-3)
		}
		if !carries(w.about + 3) {
			t.Errorf("%s is not armed with %d units", w.branch, w.about+3)
		}
	}
}

// The chain's mean time is checked against simulated walks, on increments with a coarse distribution so that few
// walks are enough.
func TestSimChainAgreesWithWalking(t *testing.T) {
	own := ownRanks(continuous(200))
	b := Branch{Location, 1.6}
	g, _ := increments(b, own)
	rng := rand.New(rand.NewPCG(3, 3))
	const walks = 3000
	sum, square := 0.0, 0.0
	for range walks {
		s, n := 0.0, 0.0
		for s < chainHeight {
			s = max(0, s+g[rng.IntN(len(g))])
			n++
		}
		sum += n
		square += n * n
	}
	mean := sum / walks
	standardError := math.Sqrt((square/walks - mean*mean) / walks)
	exact := math.Exp(chainHeight - prefactor(g, evenly(len(g))))
	if math.Abs(mean-exact) > 4*standardError+.01*exact {
		t.Errorf("mean time %.0f +- %.0f by walking, %.0f by the chain", mean, standardError, exact)
	}
}

func TestDependenceFactor(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	const n = 20000
	x := make([]float64, n)
	for i := 1; i < n; i++ {
		x[i] = .5*x[i-1] + rng.NormFloat64()
	}
	want := 1.0
	for lag := 1; lag <= dependenceLags; lag++ {
		want += 2 * (1 - float64(lag)/(dependenceLags+1)) * math.Pow(.5, float64(lag))
	}
	if got := DependenceFactor(x); math.Abs(got-want) > .15 {
		t.Errorf("AR(1) with .5: f = %.3f, want %.3f", got, want)
	}
	if got := DependenceFactor([]float64{3, 3, 3}); got != 1 {
		t.Errorf("constant: f = %v, want 1", got)
	}
	if got := DependenceFactor(normal(rng, n)); got > 1.1 {
		t.Errorf("independent: f = %.3f, want about 1", got)
	}
}

func newTest(sample []float64) *RankTest {
	ranks := NewRanks(sample)
	return NewRankTest(sample, ranks, Dependence(sample, ranks))
}

// textbook is the walk computed as its formula says.
func textbook(sample []float64, b CUSUM, factor float64, xs []float64) []float64 {
	s, out := 0.0, make([]float64, len(xs))
	m := float64(len(sample))
	for i, x := range xs {
		less, equal := countRank(sample, x)
		u := (less + equal/2 + .5) / (m + 1)
		g := b.Branch().increment(rank{u, NormalScore(u)})
		s = math.Max(0, s+(g-b.C-b.Kappa)/factor)
		out[i] = s
	}
	return out
}

func TestWalksFollowTheirFormula(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	sample, xs := tied(rng, 300), tied(rng, 500)
	test := newTest(sample)
	test.Arm(1e-6)
	walks := make([][]float64, len(test.Branches))
	for i, x := range xs {
		test.Observe(x, int64(i), false)
		for k := range test.Branches {
			walks[k] = append(walks[k], test.Branches[k].Walk)
		}
	}
	for k, b := range test.Branches {
		if b.Height == 0 {
			t.Errorf("%s is not armed by 300 units", b.Branch())
			continue
		}
		for i, want := range textbook(sample, b, test.Factor, xs) {
			if math.Abs(walks[k][i]-want) > 1e-9 {
				t.Fatalf("%s after %d values: %v, want %v", b.Branch(), i+1, walks[k][i], want)
			}
		}
	}
}

func TestHeldWalksStopAtTheirThreshold(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	sample := normal(rng, 500)
	test := newTest(sample)
	test.Arm(1e-6)
	for i := range 500 {
		test.Observe(3, int64(i), true)
	}
	for i := range test.Branches {
		if b := &test.Branches[i]; b.Score() > 1 {
			t.Errorf("%s went to %v of its threshold", b.Branch(), b.Score())
		}
	}
	test.Reset()
	for i := range test.Branches {
		if test.Branches[i].Walk != 0 {
			t.Errorf("%s stands at %v after a reset", test.Branches[i].Branch(), test.Branches[i].Walk)
		}
	}
}

func TestTwoValuedSampleArmsLocationAlone(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	sample := make([]float64, 500)
	for i := range sample {
		sample[i] = float64(rng.IntN(2))
	}
	for _, b := range newTest(sample).Branches {
		if b.Family != Location {
			t.Errorf("a sample of two values has the branch %s", b.Branch())
		}
	}
}

func TestDependentUnitsArmNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	sample := make([]float64, 500)
	for i := 1; i < len(sample); i++ {
		sample[i] = .9*sample[i-1] + rng.NormFloat64()
	}
	test := newTest(sample)
	if !test.TooDependent() || test.Carrying() > 0 {
		t.Errorf("f = %.1f carries %d branches, want none above 4", test.Factor, test.Carrying())
	}
}

// 300 equal returns are healthy: the fourth novel unit in a row alarms, the first three do not.
func TestNoveltyOfAConstantBaseline(t *testing.T) {
	sample := make([]float64, 300)
	for i := range sample {
		sample[i] = 500
	}
	ranks := NewRanks(sample)
	if !NearlyConstant(ranks) {
		t.Fatal("a constant sample does not count as nearly constant")
	}
	test := NewNovelty(ranks)
	if !test.Arm(1.0 / 110 / 1e6) {
		t.Fatal("no threshold")
	}
	for i := range 1000 {
		test.Observe(500, int64(i), false)
	}
	for i := range 4 {
		if test.Score() >= 1 {
			t.Fatalf("alarm after %d novel units", i)
		}
		test.Observe(12, int64(1000+i), false)
	}
	if test.Score() < 1 {
		t.Errorf("score %v after four novel units in a row, want an alarm", test.Score())
	}
	if test.StartedAt != 1000 {
		t.Errorf("walk started at %d, want 1000", test.StartedAt)
	}
}

// The false alarm rate of the armed threshold is measured by walks at a rate that is high enough to measure, and
// stays below that rate; with a threshold one step lower it would not.
func TestSimNoveltyRateIsExact(t *testing.T) {
	sample := append(continuous(8), make([]float64, 292)...)
	test := NewNovelty(NewRanks(sample))
	const rate = 1e-4
	if !test.Arm(rate) {
		t.Fatal("no threshold")
	}
	if test.meanTime(test.Height-1)*rate >= 1 {
		t.Errorf("a threshold of %d would have done too", test.Height-1)
	}
	rng := rand.New(rand.NewPCG(9, 9))
	const walks = 1500
	sum := 0.0
	for range walks {
		test.Reset()
		for test.Walk < test.Height {
			x := 0.0
			if rng.Float64() < test.Rate {
				x = 1
			}
			test.Observe(x, 0, false)
			sum++
		}
	}
	mean, exact := sum/walks, test.meanTime(test.Height)
	// The time to a rare alarm is close to exponential: its standard deviation is its mean.
	if math.Abs(mean-exact) > 4*exact/math.Sqrt(walks) {
		t.Errorf("mean time %.0f by walking, %.0f by the chain", mean, exact)
	}
}

func TestQuantilesInterpolate(t *testing.T) {
	got := Quantiles([]float64{4, 1, 3, 2}, 0, .5, 1, .1)
	for i, want := range []float64{1, 2.5, 4, 1.3} {
		if math.Abs(got[i]-want) > 1e-12 {
			t.Errorf("quantile %d: %v, want %v", i, got[i], want)
		}
	}
}

func TestObserveAllocatesNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(10, 10))
	sample := normal(rng, 500)
	test := newTest(sample)
	test.Arm(1e-6)
	if n := testing.AllocsPerRun(100, func() { test.Observe(.3, 1, false) }); n != 0 {
		t.Errorf("%v allocations a value", n)
	}
}

// However small N is, one novel unit never raises an alarm; and a sample too small to bound the rate arms nothing.
func TestNoveltyNeedsMoreThanOneUnit(t *testing.T) {
	test := NewNovelty(NewRanks(make([]float64, 300)))
	if !test.Arm(.1) {
		t.Fatal("no threshold")
	}
	test.Observe(1, 0, false)
	if test.Score() >= 1 {
		t.Error("one novel unit alarms")
	}
	if NewNovelty(NewRanks([]float64{7, 7})).Arm(1e-6) {
		t.Error("a sample of two values was armed")
	}
}

// If sequences take turns, dependence is measured within each: an AR(1) of .5 has 1 + 2 sum (1 - l/6) .5^l = 2.344
// over five lags, whatever the sequences' means and number are.
func TestSequenceFactor(t *testing.T) {
	const want = 2.34375
	for _, sequences := range []int{1, 10, 400} {
		rng := rand.New(rand.NewPCG(31, uint64(sequences)))
		n := 40_000
		x, of, last := make([]float64, n), make([]int32, n), make([]float64, sequences)
		independent := make([]float64, n)
		for i := range last {
			last[i] = rng.NormFloat64()
		}
		for i := range x {
			s := i % sequences
			last[s] = .5*last[s] + math.Sqrt(.75)*rng.NormFloat64()
			x[i], of[i] = last[s]+float64(s), int32(s)
			independent[i] = rng.NormFloat64() + float64(s)
		}
		if got := SequenceFactor(x, of); math.Abs(got-want) > .12 {
			t.Errorf("%d sequences: %.3f, want %.3f", sequences, got, want)
		}
		if got, most := SequenceFactor(independent, of), 1+3*FactorError(n); got > most {
			t.Errorf("%d independent sequences: %.3f, want at most %.3f", sequences, got, most)
		}
	}
	if got := SequenceFactor([]float64{1, 2, 3}, []int32{0, 1, 2}); got != 1 {
		t.Errorf("sequences of one value: %v", got)
	}
}

// Ranks of mid-ranks return the mid-ranks themselves, for new values and for the sample's own.
func TestRanksOfMidRanks(t *testing.T) {
	r := NewUniformRanks([]float64{.1, .3, .3, .9})
	for _, u := range []float64{.05, .3, .95} {
		want := rank{u, NormalScore(u)}
		if r.of(u) != want || r.own(u) != want {
			t.Errorf("%v ranks as %v, %v", u, r.of(u), r.own(u))
		}
	}
}

// Most values at night are 0, and those of the day differ. Within their strata, the ranks at night are skewed, so a
// test that normalizes all alike raises more false alarms at night than it may.
func TestTiesOfAStratumKeepTheRate(t *testing.T) {
	const m, rate, stretches, stretch = 20_000, 1e-4, 600, 400
	rng := rand.New(rand.NewPCG(88, 1))
	draw := func(night bool) float64 {
		switch {
		case !night:
			return rng.NormFloat64()
		case rng.Float64() < .85:
			return 0
		}
		return 1 + rng.Float64()
	}
	of := make([][]float64, 2)
	for i := range m {
		of[i%2] = append(of[i%2], draw(i%2 == 1))
	}
	strata := []*Ranks{NewRanks(of[0]), NewRanks(of[1])}
	var sample []float64
	for i, s := range strata {
		for _, x := range of[i] {
			sample = append(sample, s.OwnRank(x))
		}
	}
	alarms := func(test *RankTest) (n int) {
		test.Arm(rate / float64(len(test.Branches)))
		for i := range stretches {
			for range stretch {
				if test.ObserveIn(i%2, strata[i%2].Rank(draw(i%2 == 1)), 0, false) {
					test.Reset()
					n++
				}
			}
		}
		return n
	}
	// Some values of the baseline have no time, and so no stratum. Nor do the values of a producer that stops
	// sending times.
	all := NewRanks(slices.Concat(of...))
	for range m / 500 {
		sample = append(sample, all.Rank(draw(rng.IntN(2) == 1)))
	}
	alike := alarms(NewRankTest(sample, NewUniformRanks(sample), 1))
	within := alarms(NewStratifiedRankTest(sample, NewUniformRanks(sample), 1, strata, all))
	t.Logf("%d alarms within strata, %d of all alike, %g allowed", within, alike, rate*stretches*stretch)
	allowed := rate * stretches * stretch
	if most := allowed + 3*math.Sqrt(allowed); float64(within) > most {
		t.Errorf("%d alarms within strata, want at most %.0f", within, most)
	}
	test, timeless := NewStratifiedRankTest(sample, NewUniformRanks(sample), 1, strata, all), 0
	test.Arm(rate / float64(len(test.Branches)))
	for range stretches * stretch {
		if test.ObserveIn(-1, all.Rank(draw(rng.IntN(2) == 1)), 0, false) {
			test.Reset()
			timeless++
		}
	}
	if most := allowed + 3*math.Sqrt(allowed); float64(timeless) > most {
		t.Errorf("%d alarms of values without a time, want at most %.0f", timeless, most)
	}
	if alike < 2*within {
		t.Errorf("%d alarms of all alike: the strata do not matter", alike)
	}
}

// A test with ranks attached again, or with only some branches kept, judges as before.
func TestStratifiedRankTestGoesOn(t *testing.T) {
	rng := rand.New(rand.NewPCG(88, 2))
	strata := []*Ranks{NewRanks(tied(rng, 400)), NewRanks(normal(rng, 400))}
	var sample []float64
	for _, s := range strata {
		for _, x := range s.Sample() {
			sample = append(sample, s.OwnRank(x))
		}
	}
	ranks := NewUniformRanks(sample)
	all := NewRanks(append(strata[0].Sample(), strata[1].Sample()...))
	test := NewStratifiedRankTest(sample, ranks, 1.3, strata, all)
	test.Keep(func(b Branch) bool { return b.Param > 0 })
	test.Arm(1e-4)
	again := *test
	again.Branches, again.tolls = append([]CUSUM{}, test.Branches...), nil
	again.Attach(ranks, strata, all)
	for i := range 500 {
		x, in := strata[i%2].Rank(rng.NormFloat64()+.5), i%3-1
		test.ObserveIn(in, x, int64(i), false)
		again.ObserveIn(in, x, int64(i), false)
		for b := range test.Branches {
			if test.Branches[b].Walk != again.Branches[b].Walk {
				t.Fatalf("unit %d: %v at %v, want %v", i, test.Branches[b].Branch(), again.Branches[b].Walk, test.Branches[b].Walk)
			}
		}
	}
	if test.Branches[0].Walk == 0 {
		t.Error("a shift does not move the walk")
	}
}
