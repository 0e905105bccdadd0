package bank

import (
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// earned adds a unit to the off-policy estimate, unless a fault may falsify it. rules are the fault rules by stream.
func (g *group) earned(u *ingest.Unit, rules []string, ordinal int64) {
	if g.OffPolicy != nil && g.EarnedSoundly(rules) {
		g.OffPolicy.Add(u, ordinal)
	}
}

func (g *group) beginOffPolicy(since int64) {
	if g.OffPolicy != nil {
		g.OffPolicy.Begin(since)
	}
}

// offPolicy returns the off-policy estimate since the onset of the open incident, or the end of the last one, or nil.
func (g *group) offPolicy() *finding.OffPolicy {
	if g.OffPolicy == nil {
		return nil
	}
	return g.OffPolicy.Estimate(g.ReturnFactor())
}
