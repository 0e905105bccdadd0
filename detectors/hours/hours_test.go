package hours_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/hours"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
)

// baseline returns streams of a reward and of the share of an action, whose values carry over to the next unit by night, and how
// much to the next by day. The reward rises by a number of standard deviations.
func baseline(rng *rand.Rand, byNight, byDay, rise float64) (streams []*stream.Stream, e stream.Ends, units int) {
	reward, share := &stream.Quantity{Name: "mean"}, &stream.Quantity{Name: "share of a"}
	now, x, y := time.Date(2027, 1, 11, 0, 0, 0, 0, time.UTC), 0., 0.
	for units = range 2000 {
		now = now.Add(time.Duration(rng.ExpFloat64() * float64(90*time.Second)))
		carried := byNight
		if hour := now.Hour(); hour >= 6 && hour < 18 {
			carried = byDay
		}
		fresh := math.Sqrt(1 - carried*carried)
		x, y = carried*x+fresh*rng.NormFloat64(), carried*y+fresh*rng.NormFloat64()
		taken := 0.
		if y > 0 {
			taken = 1
		}
		e.Times = append(e.Times, now.UnixNano())
		reward.Warm = append(reward.Warm, stream.Observed{Unit: int32(units), X: x + rise*float64(units)/2000})
		share.Warm = append(share.Warm, stream.Observed{Unit: int32(units), X: taken, Steps: 1})
	}
	units++
	values, hits, steps := reward.WarmValues(), share.WarmValues(), make([]float64, units)
	for i := range steps {
		steps[i] = 1
	}
	reward.Ranks, share.Ranks = detectors.NewRanks(values), detectors.NewRanks(hits)
	rank := detectors.NewRankTest(values, reward.Ranks, detectors.Dependence(values, reward.Ranks))
	reward.Tests = []stream.TestOfKind{{Test: stream.NewRankTest(rank)}}
	share.Tests = []stream.TestOfKind{{Test: stream.NewFrequencyTest(detectors.NewFrequencyTest(hits, steps, 1))}}
	e.Hours = true
	return []*stream.Stream{
		{Signal: "action", Quantities: []*stream.Quantity{share}}, {Signal: "reward", Quantities: []*stream.Quantity{reward}},
	}, e, units
}

// Evidence counts less by night if nights are more dependent, and the same at all hours if all are alike or if hours of the day are
// not known to differ.
func TestCompare(t *testing.T) {
	for _, c := range []struct {
		name           string
		byNight, byDay float64
		hours          bool
	}{
		{"nights are dependent", .8, 0, true}, {"all are dependent", .5, .5, true}, {"independent", 0, 0, true}, {"no hours", .8, 0, false},
	} {
		streams, e, units := baseline(rand.New(rand.NewPCG(71, 1)), c.byNight, c.byDay, 0)
		e.Hours = c.hours
		hours.Compare(streams, units, e)
		for _, s := range streams {
			q := s.Quantities[0]
			found := q.Hours != nil
			if want := c.hours && c.byNight > c.byDay; found != want {
				t.Errorf("%s: factors of hours of %s: %t, want %t", c.name, s.Signal, found, want)
				continue
			}
			night, day := time.Date(2027, 2, 1, 1, 0, 0, 0, time.UTC).UnixNano(), time.Date(2027, 2, 1, 12, 0, 0, 0, time.UTC).UnixNano()
			if found && !(q.Hours.At(night) > 1.3*q.Hours.At(day)) {
				t.Errorf("%s: %s has %.2f by night and %.2f by day", c.name, s.Signal, q.Hours.At(night), q.Hours.At(day))
			}
		}
	}
}

// The level of a policy that learns may rise over its baseline, which says nothing of any hour.
func TestCompareOfRisingValues(t *testing.T) {
	largest := map[float64]float64{} // by rise, the sum over seeds
	for seed := range uint64(12) {
		for _, rise := range []float64{0, 1.5} {
			streams, e, units := baseline(rand.New(rand.NewPCG(80+seed, 1)), .8, 0, rise)
			reward := streams[1].Quantities[0]
			values := reward.WarmValues()
			rank := detectors.NewRankTest(values, reward.Ranks, detectors.DependenceAbout(values, reward.Ranks))
			reward.Tests = []stream.TestOfKind{{Test: stream.NewRankTest(rank)}}
			hours.Compare(streams, units, e)
			largest[rise] += reward.Hours.Largest()
		}
	}
	// The largest factor of one baseline has a standard deviation of about a fifth, and the ratio over 12 of them one of .08.
	if ratio := largest[1.5] / largest[0]; ratio > 1.32 {
		t.Errorf("with a rise, the largest factors are %.2f times those without", ratio)
	} else {
		t.Logf("ratio %.2f", ratio)
	}
}
