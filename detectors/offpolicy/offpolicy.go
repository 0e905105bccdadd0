// Package offpolicy estimates what another policy would have earned on the traffic of the policy that acted, from
// the probabilities that the telemetry logs with the actions. It shows whether the policy or the world has changed.
//
// The weight of a unit is how many times likelier its actions are under the other policy. For an episode it is the
// product over its steps; for a block of steps, it is the mean of the weights of its steps, as if each step was a
// separate decision. The weighted units show what the other policy would have earned in the same situations.
package offpolicy

import (
	"math"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// maxWeight bounds a weight, so that squares of weights are finite. A sum with such a weight has an effective sample
// size of 1.
const maxWeight = 1e100

// Reference is what an estimate takes from the baseline: the policy that is valued if the telemetry lacks
// target_prob, and the model of rewards of the doubly robust estimate. Exported fields are saved.
type Reference struct {
	Actions map[string]Action // of the baseline
	Mean    float64           // mean return of the baseline's units
	Direct  float64           // sum over actions of share times reward: the value according to the model
}

// Action is one action of the baseline.
type Action struct {
	Share  float64 // of the steps with an action
	Reward float64 // mean reward of the action's steps
}

// Observed is the part of a unit that estimates use.
type Observed struct {
	Return     float64 // of an episode; of a block, the mean reward of its steps
	PerStep    bool    // the unit is a block
	Actions    []ingest.Count
	Propensity *ingest.Propensity // nil if the probabilities of some of its steps are missing or invalid
}

// Of returns the part of a unit that estimates use. Its Propensity is nil if the unit cannot be weighted.
func Of(u *ingest.Unit) Observed {
	o := Observed{Return: u.Return, PerStep: u.End == ingest.EndBlock || u.Decisions != nil, Actions: u.Actions}
	known := u.HasReturn
	if o.PerStep {
		o.Return, known = u.Reward.Mean, u.Reward.N == u.Length
	}
	p := u.Propensity
	if known && p != nil && p.Invalid == 0 && p.Steps > 0 && p.Steps == actionSteps(u) && finite(o.Return) {
		o.Propensity = p
	}
	return o
}

// actionSteps returns the number of steps of a unit that have an action.
func actionSteps(u *ingest.Unit) (n int64) {
	if u.ActionKind == ingest.ActionNumeric {
		for i := range u.Numeric {
			if s := &u.Numeric[i]; s.Signal == "action" || s.Signal == "action.0" {
				n = max(n, s.N+s.NonFinite)
			}
		}
		return n
	}
	for i := range u.Actions {
		n += u.Actions[i].N
	}
	return n
}

// NewReference learns the reference from the units of a baseline.
func NewReference(baseline []Observed) Reference {
	r := Reference{Actions: map[string]Action{}}
	counts, all, units := map[string]ingest.Count{}, 0., 0.
	for _, o := range baseline {
		if o.Propensity == nil {
			continue
		}
		units++
		r.Mean += (o.Return - r.Mean) / units
		for _, a := range o.Actions {
			if a.Name == ingest.OtherActions {
				continue // several actions together do not have the probability of one
			}
			have := counts[a.Name]
			counts[a.Name] = ingest.Count{N: have.N + a.N, Reward: have.Reward + a.Reward}
			all += float64(a.N)
		}
	}
	for _, name := range sortedNames(counts) {
		c := counts[name]
		a := Action{Share: float64(c.N) / all, Reward: c.Reward / float64(c.N)}
		r.Actions[name] = a
		r.Direct += a.Share * a.Reward
	}
	return r
}

// Sample is what one unit contributes to an estimate.
type Sample struct {
	Weight   float64
	Weighted float64 // the return times the weight; for a block, the mean over its steps
	Value    float64 // the doubly robust value of the unit
	Return   float64
	LogProb  float64 // mean over the steps of log(action_prob)
	Direct   float64 // mean over the steps of the model's reward of their actions
}

// Samples holds the samples of one unit for both references; a sample is nil if the unit does not have it.
type Samples struct {
	PerStep             bool
	Target, Frequencies *Sample
}

// Samples returns the samples of a unit.
func (r *Reference) Samples(o *Observed) Samples {
	out := Samples{PerStep: o.PerStep}
	if s, has := r.target(o); has {
		out.Target = &s
	}
	if s, has := r.frequencies(o); has {
		out.Frequencies = &s
	}
	return out
}

// Accepted returns the samples of a unit of the baseline. If the unit lacks target_prob, the accepted policy itself
// took its actions with their action_prob, so its weight is 1.
func (r *Reference) Accepted(o *Observed) Samples {
	out := r.Samples(o)
	if out.Target == nil && o.Propensity != nil {
		s := r.sample(o)
		s.Weight, s.Weighted, s.Value = 1, o.Return, o.Return
		out.Target = &s
	}
	return out
}

// target returns the sample of a unit for the policy of its target_prob; false if it has none. The model is the
// mean return m of the baseline, because the probabilities of actions that were not taken are unknown:
//
//	value = m + weighted - m weight
func (r *Reference) target(o *Observed) (Sample, bool) {
	p := o.Propensity
	if p == nil || p.Targets < p.Steps {
		return Sample{}, false
	}
	s := r.sample(o)
	if o.PerStep {
		s.Weight, s.Weighted = p.Weight/float64(p.Steps), p.WeightedReward/float64(p.Steps)
	} else {
		s.weigh(p.LogTarget - p.Log)
	}
	s.Value = r.Mean + s.Weighted - r.Mean*s.Weight
	return s, s.finite()
}

// frequencies returns the sample of a unit for the policy that takes each action a as often as the baseline did,
// with the share p(a); false if its actions are not categories. The model is the mean reward q(a) of the action in
// the baseline if the unit consists of decisions of one step:
//
//	value = sum over a of p(a) q(a) + weighted - weight q(action taken)
//
// and the mean return of the baseline for longer episodes.
func (r *Reference) frequencies(o *Observed) (Sample, bool) {
	p := o.Propensity
	if p == nil || len(o.Actions) == 0 || len(p.Actions) == 0 {
		return Sample{}, false
	}
	s := r.sample(o)
	if !o.PerStep && p.Steps > 1 {
		logShares := 0.
		for _, a := range o.Actions {
			logShares += float64(a.N) * math.Log(r.Actions[a.Name].Share)
		}
		s.weigh(logShares - p.Log)
		s.Value = r.Mean + s.Weighted - r.Mean*s.Weight
		return s, s.finite()
	}
	steps, modelled := float64(p.Steps), 0.
	for i, inverse := range p.Actions {
		a := r.Actions[o.Actions[i].Name]
		s.Weight += a.Share * inverse.Sum / steps
		s.Weighted += a.Share * inverse.Reward / steps
		modelled += a.Share * inverse.Sum * a.Reward / steps
	}
	if !o.PerStep {
		s.Weighted = s.Weight * o.Return
	}
	s.Value = r.Direct + s.Weighted - modelled
	return s, s.finite()
}

// sample returns the part of a sample that does not depend on the other policy.
func (r *Reference) sample(o *Observed) Sample {
	s := Sample{Return: o.Return, LogProb: o.Propensity.Log / float64(o.Propensity.Steps)}
	for _, a := range o.Actions {
		s.Direct += float64(a.N) * r.Actions[a.Name].Reward / float64(o.Propensity.Steps)
	}
	return s
}

// weigh sets the weight of an episode, given as a logarithm.
func (s *Sample) weigh(logarithm float64) {
	s.Weight = min(maxWeight, math.Exp(logarithm))
	s.Weighted = s.Weight * s.Return
}

func (s *Sample) finite() bool { return finite(s.Weight) && finite(s.Weighted) && finite(s.Value) }

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
