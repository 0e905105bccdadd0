// Package faulttest generates telemetry, sound or with a fault, for tests of the fault rules.
package faulttest

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Sensor generates the episodes of a simulated policy: rewards from a distribution, one of several actions, and an
// observation. A test changes its fields to create a fault, or a change that is not a fault.
type Sensor struct {
	Rng     *rand.Rand
	Reward  func(*rand.Rand) float64
	Length  func(*rand.Rand) int
	Factor  float64 // of rewards and observations
	Low     float64 // bounds of the rewards
	High    float64
	Stuck   int // successive steps that repeat a reward, from the third on
	Actions int // number of actions to choose from
	Edit    func(*ingest.Unit)
	Made    int64
}

// Normal returns a normal distribution.
func Normal(mean, sd float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return mean + sd*r.NormFloat64() }
}

// Between returns the uniform distribution of the integers from low to high.
func Between(low, high int) func(*rand.Rand) int {
	return func(r *rand.Rand) int { return low + r.IntN(high-low+1) }
}

// NewSensor returns a sensor of sound telemetry whose rewards follow the given distribution.
func NewSensor(seed uint64, reward func(*rand.Rand) float64) *Sensor {
	return &Sensor{
		Rng: rand.New(rand.NewPCG(seed, 17)), Reward: reward, Length: Between(15, 25), Factor: 1,
		Low: math.Inf(-1), High: math.Inf(1), Actions: 3,
	}
}

func (s *Sensor) rewards() []float64 {
	rewards := make([]float64, s.Length(s.Rng))
	for i := range rewards {
		rewards[i] = s.Factor * min(s.High, max(s.Low, s.Reward(s.Rng)))
		if i > 2 && i <= 2+s.Stuck {
			rewards[i] = rewards[i-1]
		}
	}
	return rewards
}

// Unit returns the next episode.
func (s *Sensor) Unit() *ingest.Unit {
	return s.UnitOf(s.rewards())
}

// UnitOf returns the next episode, with these rewards.
func (s *Sensor) UnitOf(rewards []float64) *ingest.Unit {
	at := ingest.Position{Offset: s.Made}
	u := &ingest.Unit{
		Group: ingest.NewGroup("ranker", ingest.Label{Name: "env", Value: "prod"}), First: at, Last: at, Pos: at,
		Length: int64(len(rewards)), Events: int64(len(rewards)), HasReturn: true, ActionKind: ingest.ActionCategory,
		StartTS: (1_800_000_000 + 20*s.Made) * 1e9, EndTS: (1_800_000_019 + 20*s.Made) * 1e9,
		Versions: ingest.Versions{Policy: "p1", Env: "e1", Reward: "r1"},
		Actions:  []ingest.Count{{Name: "a"}, {Name: "b"}, {Name: "c"}}[:s.Actions],
		Numeric:  []ingest.NamedMoments{{Signal: "observation.speed"}},
	}
	s.Made++
	run := int64(0)
	for i, x := range rewards {
		u.Reward.Add(x)
		u.Return += x
		u.Actions[s.Rng.IntN(s.Actions)].N++
		u.Numeric[0].Add(s.Factor * (5 + s.Rng.NormFloat64()))
		if run++; i > 0 && x != rewards[i-1] {
			run = 1
		}
		if run > u.LongestConstant {
			u.LongestConstant, u.ConstantReward = run, x
		}
	}
	u.Actions = slices.DeleteFunc(u.Actions, func(c ingest.Count) bool { return c.N == 0 })
	sorted := slices.Sorted(slices.Values(rewards))
	u.RewardQ10, u.RewardQ90 = sorted[len(sorted)/10], sorted[len(sorted)-1-len(sorted)/10]
	if s.Edit != nil {
		s.Edit(u)
	}
	return u
}
