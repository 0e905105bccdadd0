package actions

import (
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

// Like holds the rewards of the actions of the baseline. Exported fields are saved.
type Like struct {
	Rewards finding.ActionRewards
	// Ranks ranks the difference for the same actions over the units of the baseline, which has mean 0; SD is its standard
	// deviation.
	Ranks *detectors.Ranks
	SD    float64
}

// NewLike learns from the actions of a baseline; nil if they had no rewards, or if there are too few units.
func NewLike(units []stream.ActionCounts) *Like {
	l := &Like{Rewards: commonest(stream.RewardsOf(units))}
	differences := l.differences(units)
	var m ingest.Moments
	rewarded := false
	for _, x := range differences {
		m.Add(x)
	}
	for _, r := range l.Rewards {
		rewarded = rewarded || r.Reward != 0
	}
	if len(differences) < watch.MinBaselineUnits || !rewarded {
		return nil
	}
	l.Ranks, l.SD = detectors.NewRanks(differences), m.SD()
	return l
}

// commonest returns the rewards of the stream.MostActions commonest actions.
func commonest(rewards finding.ActionRewards) finding.ActionRewards {
	if len(rewards) <= stream.MostActions {
		return rewards
	}
	counts := make(map[string]int64, len(rewards))
	for name, r := range rewards {
		counts[name] = r.N
	}
	kept := make(finding.ActionRewards, stream.MostActions)
	for _, name := range stream.Commonest(counts, stream.MostActions) {
		kept[name] = rewards[name]
	}
	return kept
}

// differences returns the difference for the same actions of each unit that took actions of the baseline. It leaves out
// steps with other actions: what reward they would have had is unknown.
func (l *Like) differences(units []stream.ActionCounts) []float64 {
	out := make([]float64, 0, len(units))
	for _, actions := range units {
		steps, sum := int64(0), 0.0
		for _, a := range actions {
			if mean, known := l.Rewards.Mean(a.Name); known {
				steps += a.N
				sum += a.Reward - float64(a.N)*mean
			}
		}
		if steps > 0 && !math.IsNaN(sum) && !math.IsInf(sum, 0) {
			out = append(out, sum/float64(steps))
		}
	}
	return out
}

// Shift appends the shift of the difference for the same actions to those of the reward. It appends none if only
// the amounts have moved: if most rewards are the same, a mean does not show whether the others have changed.
func (l *Like) Shift(out []finding.Shift, units []stream.ActionCounts, factor float64) []finding.Shift {
	recent := l.differences(units)
	if len(recent) == 0 || moved(out, signals.Amount) && !moved(out, signals.MainQuantity("reward")) {
		return out
	}
	s := stream.ShiftAgainst(l.Ranks, recent, factor)
	s.Signal, s.Quantity = "reward", signals.LikeActions
	s.Compare(0, l.SD, stream.MeanOf(recent))
	return append(out, s)
}

// clearly is the number of standard errors by which a quantity must have moved.
const clearly = 4

// moved reports whether a quantity of the reward has moved by that much.
func moved(shifts []finding.Shift, quantity string) bool {
	return slices.ContainsFunc(shifts, func(s finding.Shift) bool {
		return s.Signal == "reward" && s.Quantity == quantity && s.Beyond(clearly)
	})
}

type actionRewardWire struct {
	N      int64   `cbor:"1,keyasint,omitzero"`
	Reward float64 `cbor:"2,keyasint"`
}

// LikeWire is the wire form of Like.
type LikeWire struct {
	Rewards map[string]actionRewardWire `cbor:"1,keyasint,omitzero"`
	Ranks   *stream.RanksWire           `cbor:"2,keyasint,omitzero"`
	SD      float64                     `cbor:"3,keyasint"`
}

// Wire returns the wire form.
func (l *Like) Wire() LikeWire {
	return LikeWire{
		Rewards: saved.EachValue(l.Rewards, func(e finding.ActionReward) actionRewardWire { return actionRewardWire(e) }),
		Ranks:   saved.Pointer(l.Ranks, stream.RanksWireOf), SD: l.SD,
	}
}

// Live is the inverse of Wire.
func (w *LikeWire) Live() Like {
	return Like{
		Rewards: saved.EachValue(w.Rewards, func(e actionRewardWire) finding.ActionReward { return finding.ActionReward(e) }),
		Ranks:   saved.Pointer(w.Ranks, (*stream.RanksWire).Live), SD: w.SD,
	}
}
