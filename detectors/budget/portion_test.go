package budget

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
)

// frozen returns streams with a baseline of normal means.
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

// All that the policy's budget leaves to a portion is spent, also where a class has no tests.
func TestArmSpendsThePortion(t *testing.T) {
	const n, share = 1e6, .5
	shares := watch.DefaultConfig().FalseAlarms.Shares
	for _, signals := range [][]string{{"reward"}, {"observation.x"}, {"observation.x", "observation.y", "reward"}} {
		of := Portion{Streams: frozen(500, signals...), Units: 500, Share: share}
		of.Arm(shares, n, stream.MaxBranches)
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
