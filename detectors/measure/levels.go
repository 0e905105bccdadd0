package measure

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// fewValues holds units whose rewards, or returns, lie on few levels. A shift would leave these levels, which tests
// detect at once. Instead, a changed unit takes the rewards of another unit.
type fewValues struct {
	signal string
	units  []*ingest.Unit
	values []float64 // by unit
	sd     float64
}

// changes returns the changes between the levels: lower means in standard deviations and, if one value makes up nearly
// all units, changes of the rest.
func (l *fewValues) changes() []change {
	var out []change
	for _, d := range []float64{.25, .5, 1, 2} {
		out = append(out, l.Lower(d))
	}
	if ranks := detectors.NewRanks(l.values); detectors.NearlyConstant(ranks) {
		mode, n := ranks.Mode()
		out = append(out, l.rest(mode, float64(len(l.values)-n)/float64(n))...)
	}
	return out
}

// Lower makes higher levels rarer and lower ones commoner, by weights exp(-lambda x), until the mean is d standard
// deviations lower.
func (l *fewValues) Lower(d float64) change {
	c := change{signal: l.signal, name: fmt.Sprintf("mean -%g SD", d)}
	mean, least := stream.MomentsOf(l.values).Mean-d*l.sd, slices.Min(l.values)
	if mean <= least {
		c.note = "the values do not reach that far"
		return c
	}
	weights := make([]float64, len(l.values))
	tilted := func(lambda float64) float64 {
		sum, total := 0.0, 0.0
		for i, x := range l.values {
			weights[i] = math.Exp(-lambda * (x - least) / l.sd)
			sum, total = sum+weights[i]*x, total+weights[i]
		}
		return sum / total
	}
	low, high := 0.0, 1.0
	for tilted(high) > mean && high < 1e3 {
		high *= 2
	}
	for range 60 {
		if middle := (low + high) / 2; tilted(middle) > mean {
			low = middle
		} else {
			high = middle
		}
	}
	for i := 1; i < len(weights); i++ {
		weights[i] += weights[i-1]
	}
	c.apply = func(u *ingest.Unit, rng *rand.Rand) {
		at := sort.SearchFloat64s(weights, rng.Float64()*weights[len(weights)-1])
		takeRewards(u, l.units[min(at, len(l.units)-1)])
	}
	return c
}

// rest returns possible changes of the values other than the mode; ratio is the number of such values per value at
// the mode.
func (l *fewValues) rest(mode, ratio float64) []change {
	var rare, usual []*ingest.Unit
	for i, u := range l.units {
		if l.values[i] == mode {
			usual = append(usual, u)
		} else {
			rare = append(rare, u)
		}
	}
	if len(rare) == 0 {
		return nil
	}
	named := func(what string, leaves, comes float64) change {
		return change{
			signal: l.signal, name: fmt.Sprintf("values other than %g %s", mode, what),
			apply: func(u *ingest.Unit, rng *rand.Rand) {
				switch from, isMode := rng.Float64(), valueOf(l.signal, u) == mode; {
				case !isMode && from < leaves:
					takeRewards(u, usual[rng.IntN(len(usual))])
				case isMode && from < comes:
					takeRewards(u, rare[rng.IntN(len(rare))])
				}
			},
		}
	}
	return []change{named("vanish", 1, 0), named("halved", .5, 0), named("doubled", 0, ratio)}
}

// valueOf returns the mean reward of a unit, or its return.
func valueOf(signal string, u *ingest.Unit) float64 {
	if signal == "reward" {
		return u.Reward.Mean
	}
	return u.Return
}

// takeRewards sets the rewards of a unit to those of another one, and adjusts its return.
func takeRewards(u, from *ingest.Unit) {
	if u.Reward.N == 0 {
		u.Return = from.Return
		return
	}
	u.Return += rewardsPerReturn(from)*from.Reward.Mean - rewardsPerReturn(u)*u.Reward.Mean
	u.Reward, u.RewardQ10, u.RewardQ90 = from.Reward, from.RewardQ10, from.RewardQ90
	u.Profile, u.ProfileSteps = slices.Clone(from.Profile), from.ProfileSteps
}
