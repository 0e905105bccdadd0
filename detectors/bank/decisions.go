package bank

import (
	"github.com/rewardwatch/rewardwatch/detectors/blocks"
	"github.com/rewardwatch/rewardwatch/detectors/fault"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// If baseline.blocks is set and episodes are single decisions that arrive fast, units are blocks of decisions: of one partition and of the same
// versions, in order. The size is found at the beginning of the warm-up, before anything is judged: it doubles as long
// as blocks of twice the size would show a shift by a standard deviation within changesWithin seconds. That takes about
// shiftDecisions decisions and shiftBlocks blocks (docs/detection.md), and half a block for each partition. Without a
// clock, decisions are units.
const (
	changesWithin  = 5
	shiftDecisions = 36
	shiftBlocks    = 7
	// maxDecisions bounds the size. Larger blocks would save little, and take a long time to fill when traffic is low.
	maxDecisions = 64
	// leastBetween is the smallest number of blocks between false alarms to which a budget in episodes may be reduced.
	leastBetween = 2000
)

// keepDecision keeps a decision, or a block of them, until the size of blocks is settled: once there are enough for a
// first baseline. Only units that are all kept can be joined, so a warm-up that began with others, or that an older build
// began, has decisions as units.
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

// doubleDecisions restarts the warm-up with blocks of twice the size. What faults have been learned from decisions does
// not hold for blocks.
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
