package divergence

import (
	"math"
	"math/rand/v2"
	"testing"
)

// divergences holds the three divergences by name.
var divergences = map[string]func(baseline, current []int64) Distance{
	"PSI":            PSI,
	"Jensen-Shannon": JensenShannon,
	"G":              GStatistic,
}

// The values were computed by hand: with smoothing the shares of 9 and 1 against 4 and 6 are 9.5/11 and 1.5/11
// against 4.5/11 and 6.5/11.
func TestDivergencesOfKnownCounts(t *testing.T) {
	psi := (4.5-9.5)/11*math.Log(4.5/9.5) + (6.5-1.5)/11*math.Log(6.5/1.5)
	js := (.9*math.Log2(.9/.65) + .1*math.Log2(.1/.35) + .4*math.Log2(.4/.65) + .6*math.Log2(.6/.35)) / 2
	g := 2 * (9*math.Log(9/6.5) + 1*math.Log(1/3.5) + 4*math.Log(4/6.5) + 6*math.Log(6/3.5))
	for _, c := range []struct {
		name              string
		baseline, current []int64
		want              float64
	}{
		{"PSI", []int64{9, 1}, []int64{4, 6}, psi},
		{"Jensen-Shannon", []int64{9, 1}, []int64{4, 6}, js},
		{"G", []int64{9, 1}, []int64{4, 6}, g},
		{"PSI", []int64{9, 0, 1}, []int64{4, 0, 6}, psi},
		{"G", []int64{9, 0, 1}, []int64{4, 0, 6}, g},
		{"Jensen-Shannon", []int64{7, 0}, []int64{0, 3}, 1},
		{"PSI", []int64{20, 40}, []int64{20, 40}, 0},
		{"Jensen-Shannon", []int64{2, 4}, []int64{20, 40}, 0},
		{"G", []int64{2, 4}, []int64{20, 40}, 0},
		{"PSI", []int64{5, 0}, []int64{9, 0}, 0},
		{"G", []int64{5}, []int64{9}, 0},
		{"PSI", []int64{0, 0}, []int64{1, 2}, math.NaN()},
		{"Jensen-Shannon", []int64{1, 2}, []int64{0, 0}, math.NaN()},
		{"G", nil, nil, math.NaN()},
	} {
		got := divergences[c.name](c.baseline, c.current).Value
		if math.Abs(got-c.want) > 1e-12 || math.IsNaN(got) != math.IsNaN(c.want) {
			t.Errorf("%s of %v and %v: %v, want %v", c.name, c.baseline, c.current, got, c.want)
		}
	}
}

// 50 against 50 in ten bins exceed .68 by chance one time in twenty; three bins have the 95% point of chi^2(2), 5.991.
func TestChanceLevels(t *testing.T) {
	ten := []int64{5, 5, 5, 5, 5, 5, 5, 5, 5, 5}
	three, many := []int64{10, 10, 20}, []int64{30, 30, 60}
	for _, c := range []struct {
		name               string
		got                Distance
		expected, chance95 float64
	}{
		{"PSI of ten bins", PSI(ten, ten), 9 * 2.0 / 50, .6768},
		{"PSI of three", PSI(three, many), 2 * (1.0/40 + 1.0/120), 5.9915 * (1.0/40 + 1.0/120)},
		{"Jensen-Shannon of three", JensenShannon(three, many), 2.0 / 30 / 8 / math.Ln2, 5.9915 / 30 / 8 / math.Ln2},
		{"G of three", GStatistic(three, many), 2, 5.9915},
	} {
		if math.Abs(c.got.Expected/c.expected-1) > 1e-9 || math.Abs(c.got.Chance95/c.chance95-1) > 1e-4 {
			t.Errorf("%s: %+v, want %v and %v", c.name, c.got, c.expected, c.chance95)
		}
	}
}

// Samples of one distribution have the mean of the chance level and exceed its 95% point about one time in twenty.
func TestSimChanceLevelsAgreeWithSampling(t *testing.T) {
	const draws = 5000
	shares := []float64{.3, .2, .2, .15, .1, .05}
	rng := rand.New(rand.NewPCG(1, 43))
	for name, divergence := range divergences {
		sum, square, above := 0.0, 0.0, 0
		var level Distance
		for range draws {
			level = divergence(multinomial(rng, 1000, shares), multinomial(rng, 300, shares))
			sum += level.Value
			square += level.Value * level.Value
			if level.Value > level.Chance95 {
				above++
			}
		}
		mean := sum / draws
		standardError := math.Sqrt((square/draws - mean*mean) / draws)
		// The chi^2 distribution is the limit: about 1 % off at these sizes.
		if math.Abs(mean-level.Expected) > 4*standardError+.02*level.Expected {
			t.Errorf("%s: mean %v +- %v by chance, want %v", name, mean, standardError, level.Expected)
		}
		if rate := float64(above) / draws; math.Abs(rate-.05) > 4*math.Sqrt(.05*.95/draws)+.003 {
			t.Errorf("%s: %v of draws exceed the 95%% point", name, rate)
		}
		t.Logf("%s: mean %.5g, expected %.5g, above the 95%% point %.4f", name, mean, level.Expected, float64(above)/draws)
	}
}

// multinomial draws n categories and counts them.
func multinomial(rng *rand.Rand, n int, shares []float64) []int64 {
	counts := make([]int64, len(shares))
	for range n {
		u, i := rng.Float64(), 0
		for i < len(shares)-1 && u >= shares[i] {
			u -= shares[i]
			i++
		}
		counts[i]++
	}
	return counts
}

func TestDivergencesAllocateNothing(t *testing.T) {
	baseline, current := []int64{30, 20, 0, 4}, []int64{10, 20, 3, 0}
	for name, divergence := range divergences {
		if n := testing.AllocsPerRun(100, func() { divergence(baseline, current) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestEntropyOfKnownCounts(t *testing.T) {
	for _, c := range []struct {
		counts []int64
		want   float64
	}{
		{[]int64{3, 3, 3, 3}, 2},
		{[]int64{7, 0}, 0},
		{[]int64{1, 3}, .25*2 + .75*math.Log2(4.0/3)},
		{[]int64{0, 0}, math.NaN()},
		{nil, math.NaN()},
	} {
		if got := Entropy(c.counts); math.Abs(got-c.want) > 1e-12 || math.IsNaN(got) != math.IsNaN(c.want) {
			t.Errorf("entropy of %v: %v, want %v", c.counts, got, c.want)
		}
	}
}
