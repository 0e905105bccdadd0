package detectors

import (
	"math"
	"math/rand/v2"
	"testing"
)

// plainShift is the textbook form of Ranks.Shift: every value is ranked by counting.
func plainShift(sample, recent []float64) (location, spread float64) {
	score := func(x float64) float64 {
		rank := .5
		for _, y := range sample {
			switch {
			case y < x:
				rank++
			case y == x:
				rank += .5
			}
		}
		return NormalScore(rank / float64(len(sample)+1))
	}
	distance := func(f func(float64) float64) float64 {
		var sum, squares, now float64
		for _, x := range sample {
			sum += f(x)
		}
		mean := sum / float64(len(sample))
		for _, x := range sample {
			squares += (f(x) - mean) * (f(x) - mean)
		}
		for _, x := range recent {
			now += f(x) / float64(len(recent))
		}
		sd := math.Sqrt(squares / float64(len(sample)))
		if sd < 1e-6 {
			return 0
		}
		return (now - mean) / sd
	}
	return distance(score), distance(func(x float64) float64 { return score(x) * score(x) })
}

func TestShiftIsThePlainOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 1))
	for _, levels := range []int{1, 2, 5, 1_000_000} {
		for range 50 {
			sample, recent := make([]float64, 30+rng.IntN(100)), make([]float64, 1+rng.IntN(40))
			for i := range sample {
				sample[i] = float64(rng.IntN(levels))
			}
			for i := range recent {
				recent[i] = float64(rng.IntN(levels)) + .5*float64(rng.IntN(2))
			}
			location, spread := NewRanks(sample).Shift(recent)
			wantLocation, wantSpread := plainShift(sample, recent)
			if math.Abs(location-wantLocation) > 1e-9 || math.Abs(spread-wantSpread) > 1e-6 {
				t.Fatalf("%d levels: %v, %v, want %v, %v", levels, location, spread, wantLocation, wantSpread)
			}
		}
	}
}

// With n recent values and a sample of m, both shifts have mean 0 and variance 1/n + 1/m if nothing has moved. New
// values lie beyond the sample's ends once in m/2 values, which affects the spread of scores by some hundredths of
// its error.
func TestShiftOfTheSameLaw(t *testing.T) {
	const m, n, runs = 200, 50, 2000
	rng := rand.New(rand.NewPCG(8, 1))
	for name, draw := range map[string]func() float64{
		"normal": rng.NormFloat64, "ties": func() float64 { return float64(rng.IntN(4)) },
		"heavy tails": func() float64 { return rng.NormFloat64() / (rng.Float64() + .01) },
	} {
		var sum, squares [2]float64
		for range runs {
			x := make([]float64, m+n)
			for i := range x {
				x[i] = draw()
			}
			var got [2]float64
			got[0], got[1] = NewRanks(x[:m]).Shift(x[m:])
			for k, v := range got {
				v /= math.Sqrt(1./n + 1./m)
				sum[k] += v / runs
				squares[k] += v * v / runs
			}
		}
		for k, kind := range []string{"location", "spread"} {
			if math.Abs(sum[k]) > 4/math.Sqrt(runs)+.2*float64(k) || math.Abs(squares[k]-1) > .15 {
				t.Errorf("%s, %s: mean %.3f, mean square %.3f, want 0 and 1", name, kind, sum[k], squares[k])
			}
		}
	}
}

func TestNovelScore(t *testing.T) {
	sample := make([]float64, 200) // none of them is novel: the upper 90 % limit is 1 - .1^(1/200) = .0114
	r := NewRanks(sample)
	recent := make([]float64, 10)
	if got := r.NovelScore(recent); got != 0 {
		t.Errorf("no novel value scores %v", got)
	}
	recent[3] = 5
	rate := 1 - math.Pow(.1, 1./200)
	want := math.Sqrt2 * math.Erfinv(1-2*(1-math.Pow(1-rate, 10)))
	if got := r.NovelScore(recent); math.Abs(got-want) > 1e-6 {
		t.Errorf("one novel value of ten scores %v, want %v", got, want)
	}
	for i := range recent {
		recent[i] = 5
	}
	if got := r.NovelScore(recent); got < 7 || got > 8 {
		t.Errorf("ten novel values score %v, want nearly 8", got)
	}
}

// rareSample returns a sample of n values of which rare are 1 and the rest 0, spread evenly.
func rareSample(n, rare int) []float64 {
	sample := make([]float64, n)
	for i := range rare {
		sample[i*n/rare] = 1
	}
	return sample
}

func TestScoreOfFewerNovelValues(t *testing.T) {
	ranks := NewRanks(rareSample(500, 19)) // the lower 90 % limit is 2.7 %
	recent := make([]float64, 400)
	if got := ranks.NovelScore(recent); got > -3.5 || got < -5 {
		t.Errorf("no novel value of 400 scores %v, want about -4", got)
	}
	for i := range 15 {
		recent[i] = 1
	}
	if got := ranks.NovelScore(recent); got != 0 {
		t.Errorf("15 novel values of 400 score %v, want 0", got)
	}
}
