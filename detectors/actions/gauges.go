// Package actions describes the actions of a group in addition to the tests: how far they are from the baseline's
// actions, and whether the same actions get the same rewards.
package actions

import (
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/detectors/divergence"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/detectors/trail"
)

// counted holds the counts of the actions of the baseline and of the last units, by category.
type counted struct {
	names             []string // followed by stream.OtherAction, which counts all others together
	baseline, current []int64
	before, now       int64 // their sums
}

// Compare returns the shares of the actions, and the distance of those of the last units from the baseline. shown are
// the commonest categories of the baseline, and baseline its counts. Without a baseline, it shows the commonest
// categories of the last units. It returns zero values if there are no categories.
func Compare(shown []string, baseline map[string]int64, last *trail.Actions) (shares []finding.ActionShare, mix finding.ActionMix) {
	c, ok := count(shown, baseline, last)
	if !ok {
		return nil, finding.ActionMix{}
	}
	return c.shares(), c.mix()
}

// count counts the shown categories, and pools the others. ok is false if there are no categories.
func count(shown []string, baseline map[string]int64, last *trail.Actions) (c counted, ok bool) {
	current := last.Totals()
	if len(shown) == 0 {
		shown = stream.Commonest(current, stream.ShownActions)
	}
	if len(shown) == 0 {
		return counted{}, false
	}
	c.before, c.now = stream.Total(baseline), stream.Total(current)
	restBefore, restNow := c.before, c.now
	for _, name := range shown {
		c.add(name, baseline[name], current[name])
		restBefore -= baseline[name]
		restNow -= current[name]
	}
	c.add(stream.OtherAction, restBefore, restNow)
	return c, true
}

func (c *counted) add(name string, baseline, current int64) {
	c.names = append(c.names, name)
	c.baseline = append(c.baseline, baseline)
	c.current = append(c.current, current)
}

// shares returns the shares of the baseline's commonest actions, and of all others together, by name.
func (c *counted) shares() []finding.ActionShare {
	var out []finding.ActionShare
	for i, name := range c.names {
		out = append(out, finding.ActionShare{
			Action: name, Baseline: stream.Share(c.baseline[i], c.before), Current: stream.Share(c.current[i], c.now),
		})
	}
	slices.SortFunc(out, func(a, b finding.ActionShare) int { return strings.Compare(a.Action, b.Action) })
	return out
}

func (c *counted) mix() finding.ActionMix {
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
