package bank

import (
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/baseline"
	"github.com/rewardwatch/rewardwatch/detectors/blocks"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// If no episode ends, units are blocks of steps of one agent, joined from the smallest blocks of the telemetry. Their
// size doubles as long as one of their quantities depends on the agent's earlier blocks by a factor above
// maxBlockFactor, or above lawsBlockFactor if the laws of the steps are judged as well. It does not double if a
// baseline would take longer than a week, or beyond maxBlocks smallest blocks. If no more telemetry is available, it
// does not double either if that would leave a baseline of fewer than leastBlocks blocks.
const (
	maxBlockFactor  = 1.2
	lawsBlockFactor = 2
	maxBlocks       = 512
	leastBlocks     = 200
)

// blocksToAlarm is the approximate number of blocks until the largest changes are detected.
const blocksToAlarm = 5

// CaveatBlocks says that the steps of an agent depend on each other over too long a range.
const CaveatBlocks = "blocks depend on each other whatever their size: the false alarm rate cannot be calibrated"

// block returns the unit that a smallest block completes, or nil. It drops a warm-up of units of another kind.
func (g *group) block(u *ingest.Unit) *ingest.Unit {
	b := &g.Blocks
	switch short := b.Short(); {
	case g.Warmup.Done:
	case !b.OfSteps():
		*b = blocks.Joiner{Mixed: u.Mixed}
		g.forgetWarmup()
	case u.Mixed && !b.Mixed || short:
		*b = blocks.Joiner{Size: b.Size, Mixed: u.Mixed || short}
		g.forgetWarmup()
	}
	return b.Add(u)
}

// doubles reports whether longer blocks are necessary and feasible. Without the limits, a slow agent whose steps depend
// on the weather would have no baseline for months.
func (g *group) doubles() bool {
	return g.Blocks.Size < maxBlocks && !g.Warmup.Slow(g.cfg.Baseline.Units) && g.dependent()
}

// dependent reports whether a quantity of the warm-up depends too much on the agent's earlier blocks. The limit allows
// for the largest of n estimates: it is higher by as much as the maximum of n independent estimates exceeds their mean.
func (g *group) dependent() bool {
	quantities := g.warmQuantities()
	excess := math.Sqrt(2 * math.Log(float64(max(1, len(quantities)))))
	limit := maxBlockFactor
	if g.Warmup.KeepsSteps() {
		limit = lawsBlockFactor
	}
	limit += excess * detectors.FactorError(g.Warmup.Units)
	ended := g.ends()
	return slices.ContainsFunc(quantities, func(q *stream.Quantity) bool { return q.AgentFactor(ended) > limit })
}

// warmQuantities returns the quantities with enough values in the warm-up, including action shares.
func (g *group) warmQuantities() (all []*stream.Quantity) {
	categories := g.Warmup.Kind() == ingest.ActionCategory
	for _, s := range g.Streams {
		if s.Signal != signals.Action || !categories {
			all = append(all, s.Quantities...)
		}
	}
	if categories && g.cfg.Follows(signals.Action) {
		all = append(all, g.Warmup.Shares(g.Warmup.ChooseActions())...)
	}
	return slices.DeleteFunc(all, func(q *stream.Quantity) bool { return len(q.Warm) < watch.MinBaselineUnits })
}

// keepBlock stores a unit of the warm-up, for joining. Once there are enough units to measure their dependence, it
// doubles the blocks if necessary. If the units have a trend, it first drops the older half: units from before a change
// would make units of any size look dependent.
func (g *group) keepBlock(u *ingest.Unit) {
	g.Blocks.Kept = append(g.Blocks.Kept, u)
	if g.Warmup.Units >= g.cfg.Baseline.Units && !g.awaitsCycles() && g.doubles() {
		g.refuse()
		g.doubleBlocks()
	}
}

// doubleBlocks restarts the warm-up with blocks of twice the size.
func (g *group) doubleBlocks() {
	units := g.Blocks.Double(g.Warmup.StepsOf)
	g.Blocks.Kept = nil
	g.forgetWarmup()
	for _, u := range units {
		values := g.Readings(u, nil)
		g.keep(u, values, make([]string, len(g.Streams)))
	}
}

// fitBlocks doubles the blocks of a warm-up that receives no more telemetry, as long as enough of them are left.
func (g *group) fitBlocks() {
	for g.Blocks.OfSteps() && g.Warmup.Units >= 2*leastBlocks && g.doubles() {
		g.doubleBlocks()
	}
}

func (g *group) unitName() finding.UnitName {
	switch {
	case g.Blocks.Decisions:
		return finding.DecisionBlocks(g.Blocks.Size)
	case g.Blocks.Size == 0:
		return finding.Episodes()
	}
	return finding.Blocks(g.Warmup.MeanLength())
}

// blockCaveats returns what a promise in blocks does not account for.
func (g *group) blockCaveats() []string {
	of, steps := "one agent", g.Warmup.MeanLength()
	if g.Blocks.Mixed {
		of = "all agents together"
	}
	out := []string{finding.BlockCaveat(steps, of, blocksToAlarm)}
	dependent, slow := g.dependent(), g.Warmup.Slow(g.cfg.Baseline.Units)
	if g.Blocks.Unfit = dependent && !slow; g.Blocks.Unfit {
		out = append(out, CaveatBlocks)
	} else if dependent {
		out = append(out, baseline.CaveatSlow)
	}
	return out
}

// faultless returns a copy of a unit without the values of streams with a fault, so that these also stay out of the
// warm-up after the unit is joined with others.
func (g *group) faultless(u *ingest.Unit, rules []string) *ingest.Unit {
	var faulty []string
	for i, s := range g.Streams {
		if rules[i] != "" {
			faulty = append(faulty, s.Signal)
		}
	}
	return blocks.Without(u, faulty)
}

func (g *group) forgetWarmup() {
	g.Warmup.Each, g.Warmup.Units, g.Warmup.Early, g.Warmup.ToldEvery = nil, 0, 0, 0
	for _, q := range g.Quantities() {
		q.Warm = nil
	}
}
