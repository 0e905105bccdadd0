package offpolicy

import (
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// bandit is a world with situations, each with a probability and the mean reward of each action.
type bandit struct {
	situations []float64
	rewards    [][]float64 // by situation and action
}

// acting is a policy: the probability of each action by situation.
type acting [][]float64

// usual is a world in which one action is best in each situation.
func usual() bandit {
	return bandit{[]float64{.5, .3, .2}, [][]float64{{.6, .3, .2}, {.2, .5, .3}, {.1, .2, .4}}}
}

// skilled takes the best action of the usual world with probability p.
func skilled(p float64) acting {
	o := (1 - p) / 2
	return acting{{p, o, o}, {o, p, o}, {o, o, p}}
}

func pickOf(rng *rand.Rand, p []float64) int {
	x := rng.Float64()
	for i := range p {
		if x -= p[i]; x < 0 {
			return i
		}
	}
	return len(p) - 1
}

// decision returns a unit of one step: the policy acts, and the accepted policy would have acted with other
// probabilities; nil leaves them out.
func (w bandit) decision(rng *rand.Rand, by, accepted acting) *ingest.Unit {
	at := pickOf(rng, w.situations)
	a := pickOf(rng, by[at])
	reward := 0.
	if rng.Float64() < w.rewards[at][a] {
		reward = 1
	}
	target := math.NaN()
	if accepted != nil {
		target = accepted[at][a]
	}
	return unitOf(strconv.Itoa(a), by[at][a], target, reward)
}

// unitOf returns a unit of one step. A target of NaN is unknown.
func unitOf(action string, prob, target, reward float64) *ingest.Unit {
	p := &ingest.Propensity{Steps: 1, Log: math.Log(prob), Actions: []ingest.InverseProbs{{Sum: 1 / prob, Reward: reward / prob}}}
	if !math.IsNaN(target) {
		p.Targets, p.LogTarget, p.Weight, p.WeightedReward = 1, math.Log(target), target/prob, target/prob*reward
	}
	u := &ingest.Unit{
		End: ingest.EndTerminated, HasReturn: true, Return: reward, Length: 1, ActionKind: ingest.ActionCategory,
		Actions: []ingest.Count{{Name: action, N: 1, Reward: reward}}, Propensity: p,
	}
	u.Reward.Add(reward)
	return u
}

// follow returns the follower of a baseline of the given number of decisions.
func (w bandit) follow(rng *rand.Rand, units int, by, accepted acting) *Follower {
	var baseline []Observed
	for range units {
		baseline = append(baseline, Of(w.decision(rng, by, accepted)))
	}
	return NewFollower(baseline, int64(units))
}

// value returns what a policy earns on average in a world.
func (w bandit) value(by acting) float64 {
	sum := 0.
	for at, p := range w.situations {
		for a, q := range by[at] {
			sum += p * q * w.rewards[at][a]
		}
	}
	return sum
}

// always is the policy that takes the actions of a reference in every situation.
func (w bandit) always(r *Reference) acting {
	out := make(acting, len(w.situations))
	for at := range out {
		for a := range w.rewards[at] {
			out[at] = append(out[at], r.Actions[strconv.Itoa(a)].Share)
		}
	}
	return out
}
