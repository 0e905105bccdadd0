package assemble

import (
	"math"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// propensity adds the probabilities of a step's action. An invalid probability only prevents the off-policy estimate of
// the unit.
func (t *tally) propensity(e *ingest.Event) {
	if !e.ActionProb.Known && !e.TargetProb.Known || e.Action.Kind == ingest.ActionNone {
		return
	}
	if t.Propensity == nil {
		t.Propensity = &ingest.Propensity{}
	}
	p := t.Propensity
	acted, target := e.ActionProb.P, e.TargetProb.P
	if !e.ActionProb.Known || !probable(acted, &e.Action) || e.TargetProb.Known && target != 0 && !probable(target, &e.Action) {
		p.Invalid++
		return
	}
	reward := 0.0
	if e.HasReward && finite(e.Reward) {
		reward = e.Reward
	}
	p.Steps++
	p.Log += math.Log(acted)
	if e.TargetProb.Known {
		p.Targets++
		p.LogTarget += math.Log(target)
		p.Weight += target / acted
		p.WeightedReward += target / acted * reward
	}
	if e.Action.Kind == ingest.ActionCategory {
		for len(p.Actions) <= t.lastCategory {
			p.Actions = append(p.Actions, ingest.InverseProbs{})
		}
		p.Actions[t.lastCategory].Sum += 1 / acted
		p.Actions[t.lastCategory].Reward += reward / acted
	}
}

// probable reports whether p can be the probability of an action, or the density of a numeric action.
func probable(p float64, a *ingest.Action) bool {
	return p > 0 && finite(p) && (p <= 1 || a.Kind == ingest.ActionNumeric)
}

// propensities returns the result for the unit in newly allocated memory, or nil if there are no probabilities.
func (t *tally) propensities() *ingest.Propensity {
	if t.Propensity == nil || t.Propensity.Steps+t.Propensity.Invalid == 0 {
		return nil
	}
	p := *t.Propensity
	p.Actions = append([]ingest.InverseProbs(nil), p.Actions...)
	return &p
}
