package bank

import (
	"github.com/rewardwatch/rewardwatch/detectors/blocks"
	"github.com/rewardwatch/rewardwatch/detectors/fault"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// If baseline.blocks is set and episodes are single decisions that arrive fast, units are blocks of consecutive
// decisions of the same partition and the same versions. The size is chosen at the beginning of the warm-up, before
// anything is judged: it doubles as long as blocks of twice the size would reveal a shift of one standard deviation
// within changesWithin seconds. That takes about shiftDecisions decisions and shiftBlocks blocks (docs/detection.md),
// plus half a block per partition. Without a clock, units are decisions.
const (
	changesWithin  = 5
	shiftDecisions = 36
	shiftBlocks    = 7
	// maxDecisions is the maximum size. Larger blocks would save little, and take long to fill when traffic is low.
	maxDecisions = 64
	// leastBetween is the minimum number of blocks between false alarms that a budget in episodes may be reduced to.
	leastBetween = 2000
)

// keepDecision stores a decision, or a block of decisions, until the size of blocks is chosen, which happens once there
// are enough for a first baseline. Only units that have all been stored can be joined, so a warm-up that began with
// other units, or under an older build, uses decisions as units.
func (g *group) keepDecision(u *ingest.Unit, rules []string) {
	b := &g.Blocks
	joins := b.Decisions || g.cfg.Baseline.Blocks && blocks.IsDecision(u)
	if g.Baseline.ID != "" || !g.learns() || len(b.Kept) != g.Warmup.Units-1 || !joins {
		b.Kept = nil
		return
	}
	b.Kept = append(b.Kept, g.faultless(u, rules))
	if g.Warmup.Units < min(firstProvisional, g.cfg.Baseline.Units) {
		return
	}
	if g.tooFast() {
		g.doubleDecisions()
	} else {
		b.Kept = nil
	}
}

// tooFast reports whether decisions arrive fast enough for blocks of twice the size.
func (g *group) tooFast() bool {
	w, size := &g.Warmup, float64(max(1, g.Blocks.Size))
	if size >= maxDecisions || w.Times() == nil || g.promised() < 2*leastBetween {
		return false
	}
	decisions := changesWithin * size * float64(w.Units-1)
	return decisions >= w.Span().Seconds()*(shiftDecisions+2*size*(shiftBlocks+float64(w.Partitions())/2))
}

// doubleDecisions restarts the warm-up with blocks of twice the size. It also resets the fault rules, as what they have
// learned from decisions does not apply to blocks.
func (g *group) doubleDecisions() {
	g.Blocks.Decisions = true
	units := g.Blocks.Double(nil)
	g.Blocks.Kept = nil
	g.forgetWarmup()
	g.Delivery = fault.Delivery{}
	for _, s := range g.Streams {
		s.Fault = fault.Rules{}
		for _, q := range s.Quantities {
			q.Unshow()
		}
	}
	for _, u := range units {
		values := g.Readings(u, nil)
		rules := g.Faults(u)
		g.Show(values)
		g.collect(u, values, rules)
	}
}
