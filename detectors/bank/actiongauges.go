package bank

import (
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/detectors/divergence"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
)

// countedActions are the actions of the baseline and of the last units, by category.
type countedActions struct {
	names             []string // followed by stream.OtherAction, which counts all others together
	baseline, current []int64
	before, now       int64 // their sums
}

// countLately counts the commonest categories of the baseline, or those of the last units if there is no baseline, and
// pools the others. ok is false if there are no categories.
func (g *group) countLately() (c countedActions, ok bool) {
	current := map[string]int64{}
	g.LastActions.Each(func(_ int64, counts stream.ActionCounts) {
		for _, a := range counts {
			current[a.Name] += a.N
		}
	})
	shown := g.Categories
	if len(shown) == 0 {
		shown = stream.Commonest(current, stream.ShownActions)
	}
	if len(shown) == 0 {
		return countedActions{}, false
	}
	c.before, c.now = stream.Total(g.BaseActions), stream.Total(current)
	restBefore, restNow := c.before, c.now
	for _, name := range shown {
		c.add(name, g.BaseActions[name], current[name])
		restBefore -= g.BaseActions[name]
		restNow -= current[name]
	}
	c.add(stream.OtherAction, restBefore, restNow)
	return c, true
}

func (c *countedActions) add(name string, baseline, current int64) {
	c.names = append(c.names, name)
	c.baseline = append(c.baseline, baseline)
	c.current = append(c.current, current)
}

// summarizeActions returns the shares of the actions, and the distance of those of the last units from the baseline.
func (g *group) summarizeActions() (shares []finding.ActionShare, mix finding.ActionMix) {
	c, ok := g.countLately()
	if !ok {
		return nil, finding.ActionMix{}
	}
	return c.shares(), c.mix()
}

// shares returns the shares of the baseline's commonest actions, and of all others together, by name.
func (c *countedActions) shares() []finding.ActionShare {
	var out []finding.ActionShare
	for i, name := range c.names {
		out = append(out, finding.ActionShare{
			Action: name, Baseline: stream.Share(c.baseline[i], c.before), Current: stream.Share(c.current[i], c.now),
		})
	}
	slices.SortFunc(out, func(a, b finding.ActionShare) int { return strings.Compare(a.Action, b.Action) })
	return out
}

func (c *countedActions) mix() finding.ActionMix {
	m := finding.ActionMix{
		BaselineActions: c.before, CurrentActions: c.now,
		BaselineEntropy: divergence.Entropy(c.baseline), CurrentEntropy: divergence.Entropy(c.current),
	}
	if c.before == 0 || c.now == 0 {
		return m
	}
	for _, d := range []struct {
		measure string
		divergence.Distance
	}{
		{finding.MeasurePSI, divergence.PSI(c.baseline, c.current)},
		{finding.MeasureJS, divergence.JensenShannon(c.baseline, c.current)},
		{finding.MeasureG, divergence.GStatistic(c.baseline, c.current)},
	} {
		m.Divergences = append(m.Divergences, finding.ActionDivergence{Measure: d.measure, Value: d.Value, Chance95: d.Chance95})
	}
	return m
}
