package bank

import (
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// earned adds a unit to the off-policy estimate, unless a fault may falsify it. rules holds the fault rule in force by
// stream.
func (g *group) earned(u *ingest.Unit, rules []string, ordinal int64) {
	if g.OffPolicy != nil && g.EarnedSoundly(rules) {
		g.OffPolicy.Add(u, ordinal)
	}
}

// beginOffPolicy restarts the off-policy estimate at a unit.
func (g *group) beginOffPolicy(since int64) {
	if g.OffPolicy != nil {
		g.OffPolicy.Begin(since)
	}
}

// offPolicy returns the off-policy estimate since the onset of the open incident, or since the end of the last one; nil
// if there is no estimate.
func (g *group) offPolicy() *finding.OffPolicy {
	if g.OffPolicy == nil {
		return nil
	}
	return g.OffPolicy.Estimate(g.ReturnFactor())
}
