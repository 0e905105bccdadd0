package bank

import (
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/detectors"
)

// countedActions are the actions of the baseline and of the last units, by category.
type countedActions struct {
	names             []string // and otherAction at the end, in which all others are counted together
	baseline, current []int64
	before, now       int64 // their sums
}

// countLately counts the commonest categories of the baseline, those of the last units where there is no baseline, and
// pools the others. ok is false without any category.
func (g *group) countLately() (c countedActions, ok bool) {
	current := map[string]int64{}
	for _, u := range g.LastActions.Units {
		for _, a := range u.Counts {
			current[a.Name] += a.N
		}
	}
	shown := g.Categories
	if len(shown) == 0 {
		shown = commonest(current, shownActions)
	}
	if len(shown) == 0 {
		return countedActions{}, false
	}
	c.before, c.now = total(g.BaseActions), total(current)
	restBefore, restNow := c.before, c.now
	for _, name := range shown {
		c.add(name, g.BaseActions[name], current[name])
		restBefore -= g.BaseActions[name]
		restNow -= current[name]
	}
	c.add(otherAction, restBefore, restNow)
	return c, true
}

func (c *countedActions) add(name string, baseline, current int64) {
	c.names = append(c.names, name)
	c.baseline = append(c.baseline, baseline)
	c.current = append(c.current, current)
}

// summarizeActions gives the shares of the actions, and how far those of the last units are from the baseline's.
func (g *group) summarizeActions() (shares []ActionShare, mix ActionMix) {
	c, ok := g.countLately()
	if !ok {
		return nil, ActionMix{}
	}
	return c.shares(), c.mix()
}

// shares gives the shares of the baseline's commonest actions, and of all others together, by name.
func (c *countedActions) shares() []ActionShare {
	var out []ActionShare
	for i, name := range c.names {
		out = append(out, ActionShare{name, ratio(c.baseline[i], c.before), ratio(c.current[i], c.now)})
	}
	slices.SortFunc(out, func(a, b ActionShare) int { return strings.Compare(a.Action, b.Action) })
	return out
}

func (c *countedActions) mix() ActionMix {
	m := ActionMix{
		BaselineActions: c.before, CurrentActions: c.now,
		BaselineEntropy: detectors.Entropy(c.baseline), CurrentEntropy: detectors.Entropy(c.current),
	}
	if c.before == 0 || c.now == 0 {
		return m
	}
	for _, d := range []struct {
		measure string
		detectors.Divergence
	}{
		{MeasurePSI, detectors.PSI(c.baseline, c.current)},
		{MeasureJS, detectors.JensenShannon(c.baseline, c.current)},
		{MeasureG, detectors.GStatistic(c.baseline, c.current)},
	} {
		m.Divergences = append(m.Divergences, ActionDivergence{d.measure, d.Value, d.Chance95})
	}
	return m
}
