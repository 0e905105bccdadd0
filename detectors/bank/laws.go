package bank

import (
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors/factor"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// collectedFactor is how much more memory the steps of a baseline take than the laws that are learnt from them.
const collectedFactor = 8

// followLaws scores the steps of a unit under the laws of the baseline. A fault may have falsified them.
func (g *group) followLaws(u *ingest.Unit, rules []string, ordinal int64) {
	if u.Steps != nil && g.Laws.Model != nil && !anyRule(rules) {
		g.Laws.Observe(factor.Of(u), ordinal)
	}
}

// keepSteps keeps the steps of a unit for the laws of the next baseline.
func (g *group) keepSteps(u *ingest.Unit, rules []string) {
	memory := int(g.cfg.Causes.Memory)
	if memory == 0 {
		return
	}
	var told factor.Told
	if u.Steps != nil && !anyRule(rules) {
		told = factor.Of(u)
	}
	g.Warmup.KeepSteps(told, collectedFactor*memory, g.cfg.Baseline.Units)
}

// anyRule reports whether a stream has a fault.
func anyRule(rules []string) bool {
	return slices.ContainsFunc(rules, func(rule string) bool { return rule != "" })
}
