package season

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors"
)

// waves returns perDay values per day at random times, with a daily cycle.
func waves(rng *rand.Rand, perDay int, days, size float64) (x []float64, times []int64) {
	const monday = 4 * 24 * float64(time.Hour)
	for at := monday; at < monday+days*24*float64(time.Hour); at += rng.ExpFloat64() * 24 * float64(time.Hour) / float64(perDay) {
		x = append(x, size*math.Sin(2*math.Pi*at/24/float64(time.Hour))+rng.NormFloat64())
		times = append(times, int64(at))
	}
	return x, times
}

func TestDaily(t *testing.T) {
	rng := rand.New(rand.NewPCG(77, 0))
	x, times := waves(rng, 800, 2.1, .3)
	if p := Daily(x, times, detectors.DependenceFactor); p > 1e-4 {
		t.Errorf("a season has p = %v", p)
	}
	x, times = waves(rng, 800, 1.9, .3)
	if p := Daily(x, times, detectors.DependenceFactor); p != 1 {
		t.Errorf("p = %v of less than two days", p)
	}
	const runs, level = 2000, .05
	differ := 0.0
	for range runs {
		x, times := waves(rng, 200, 2.1, 0)
		if Daily(x, times, detectors.DependenceFactor) < level {
			differ++
		}
	}
	if most := level + 3*math.Sqrt(level*(1-level)/runs); differ/runs > most {
		t.Errorf("hours differ in %.4f of runs without a season, want at most %.4f", differ/runs, most)
	}
}

// Two days are enough for strata of the day, two weeks for strata of working days and weekends.
func TestSplitOfTheDay(t *testing.T) {
	rng := rand.New(rand.NewPCG(78, 0))
	x, times := waves(rng, 800, 2.1, 1)
	s := seasonOf(x, times)
	if s == nil || s.Cycle() != "day" || len(s.Level) < 3 {
		t.Fatalf("season %+v, want one of the day", s)
	}
	var rest float64
	for i, v := range x {
		rest += s.Adjusted(v, times[i]) * s.Adjusted(v, times[i]) / float64(len(x))
	}
	if rest > 1.15 {
		t.Errorf("variance %.2f within strata, of 1 without a season and 1.5 with it", rest)
	}
	if f := s.Inflation(times); f < 1.1 || f > 1.5 {
		t.Errorf("inflation %.2f of two days", f)
	}
	x, times = waves(rng, 200, 14.5, 1)
	for i, ts := range times {
		if (ts/int64(24*time.Hour)+3)%7 >= 5 {
			x[i] = 2 + rng.NormFloat64() // weekends have no daily cycle
		}
	}
	if s = seasonOf(x, times); s == nil || s.Cycle() != "week" || s.Strata[12] == s.Strata[5*24+12] || s.Strata[12] != s.Strata[24+12] {
		t.Errorf("season %+v, want working days alike and weekends apart", s)
	}
}

// Each stratum of counts has enough steps with the event, and levels are differences of shares.
func TestOfCounts(t *testing.T) {
	rng := rand.New(rand.NewPCG(79, 0))
	_, times := waves(rng, 800, 2.1, 0)
	shares, steps, hits := make([]float64, len(times)), make([]float64, len(times)), map[int]float64{}
	for i, ts := range times {
		steps[i] = 1
		if p := .02 + .4*math.Max(0, math.Sin(2*math.Pi*float64(ts)/24/float64(time.Hour))); rng.Float64() < p {
			shares[i] = 1
		}
	}
	s := OfCounts(shares, steps, detectors.CountScores(shares, steps, make([]int, len(times))), times, true, nil)
	if s == nil || s.Cycle() != "day" {
		t.Fatalf("season %+v, want one of the day", s)
	}
	mean := 0.0
	for i, ts := range times {
		hits[s.Stratum(ts)] += shares[i]
		mean += s.Adjusted(shares[i], ts) / float64(len(times))
	}
	for stratum := range s.Level {
		if hits[stratum] < leastEvents {
			t.Errorf("stratum %d has %v events", stratum, hits[stratum])
		}
	}
	if all := meanOf(shares); math.Abs(mean-all) > 1e-9 {
		t.Errorf("adjusted shares have the mean %v, want %v", mean, all)
	}
	if s.Stratum(0) != -1 {
		t.Error("a value without a time has a stratum")
	}
}

// A schedule without any random variation within its hours has no season: the distance of a new share would have no
// scale.
func TestOfCountsWithoutSpread(t *testing.T) {
	var shares, steps []float64
	_, times := waves(rand.New(rand.NewPCG(80, 0)), 800, 2.1, 0)
	for _, ts := range times {
		share := .25
		if hour := ts / int64(time.Hour) % 24; hour >= 8 && hour < 20 {
			share = .5
		}
		shares, steps = append(shares, share), append(steps, 20)
	}
	hits := make([]float64, len(shares))
	for i, share := range shares {
		hits[i] = share * steps[i]
	}
	if s := OfCounts(shares, steps, detectors.CountScores(hits, steps, make([]int, len(hits))), times, true, nil); s != nil {
		t.Errorf("season with levels %v", s.Level)
	}
}
