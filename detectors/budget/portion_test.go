package budget

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
)

// frozen returns streams with a baseline of normally distributed means.
func frozen(units int, signals ...string) (streams []*stream.Stream) {
	cfg, rng := watch.DefaultConfig(), rand.New(rand.NewPCG(1, 1))
	for _, signal := range signals {
		s := &stream.Stream{Signal: signal}
		q := s.Quantity("mean")
		for i := range units {
			q.Warm = append(q.Warm, stream.Observed{Unit: int32(i), X: rng.NormFloat64()})
		}
		s.Freeze(units, &cfg, stream.Ends{})
		streams = append(streams, s)
	}
	return streams
}

// A portion spends all of its part of the policy's budget, even if a class has no tests.
func TestArmSpendsThePortion(t *testing.T) {
	const n, share = 1e6, .5
	shares := watch.DefaultConfig().FalseAlarms.Shares
	for _, signals := range [][]string{{"reward"}, {"observation.x"}, {"observation.x", "observation.y", "reward"}} {
		of := Portion{Streams: frozen(500, signals...), Units: 500, Share: share}
		of.Arm(shares, n, Room{Branches: stream.MaxBranches})
		_, _, spent := of.samples()
		of.Walks(func(w *detectors.Walks) {
			for _, b := range w.Branches {
				if b.Height > 0 {
					spent += math.Exp(b.LogA - b.Height)
				}
			}
		})
		want := share * (shares.Primary + shares.Other + shares.KS) / n
		if math.Abs(spent/want-1) > 1e-9 {
			t.Errorf("%v spend %g a unit, want %g", signals, spent, want)
		}
	}
}

// Regardless of the number of other signals, primary signals are armed first and have half of the part of the sliding
// tests, and other signals leave branches to later groups.
func TestSimPrimarySignalsKeepTheirPart(t *testing.T) {
	names := []string{"reward", "outcome.margin"}
	for i := range 60 {
		names = append(names, fmt.Sprintf("observation.x%02d", i))
	}
	const n, primary = 1e4, 2
	for room, want := range map[Room]struct{ primary, others, shapes int }{
		{Branches: 1000}:            {2, 60, 54}, // eight are too dependent for a sliding test
		{Branches: 100}:             {2, 7, 10},  // 20 branches and 2 sliding tests leave 78: 10 for each of 7 signals
		{Branches: 100, Later: 1}:   {2, 5, 8},   // of those 78, the next group may need 22
		{Branches: 100, Later: 100}: {2, 3, 11},  // but other signals always get half
		{Branches: 10}:              {1, 0, 0},
	} {
		of := Portion{Streams: frozen(500, names...), Units: 500, Share: 1}
		of.Arm(watch.Shares{Primary: .8, Other: .15, KS: .05}, n, room)
		got, spent := want, 0.
		got.primary, got.others, got.shapes = 0, 0, 0
		for i, s := range of.Streams {
			q := s.Find("mean")
			switch w := q.Walks(); {
			case w == nil || w.Armed() == 0:
			case i < primary:
				got.primary++
			default:
				got.others++
			}
			if test, has := stream.TestOf[*stream.ShapeTest](q); has && test.Rate > 0 {
				got.shapes++
				if i < primary {
					spent += test.Rate
				}
			}
		}
		if got != want {
			t.Errorf("%+v: armed are %+v, want %+v", room, got, want)
		}
		if half := .05 / n / 2; want.shapes > 0 && math.Abs(spent/half-1) > 1e-9 {
			t.Errorf("%+v: sliding tests of primary signals spend %g a unit, want %g", room, spent, half)
		}
	}
}

// Two divisions of the budget that spend the same in total are calibrated separately.
func TestDivisionsWithTheSameTotalHaveDifferentKeys(t *testing.T) {
	key := func(signals ...string) string {
		of := Portion{Streams: frozen(500, signals...), Units: 500, Share: 1, Seed: 1}
		of.Arm(watch.Shares{Primary: .8, Other: .2}, 1e4, Room{Branches: stream.MaxBranches})
		return of.key(0)
	}
	if reward, other := key("reward", "observation.x"), key("observation.x", "reward"); reward == other {
		t.Error("the primary signal and another one have exchanged their parts, and the key is the same")
	}
	if again := key("reward", "observation.x"); again != key("reward", "observation.x") {
		t.Error("the same division has two keys")
	}
}
