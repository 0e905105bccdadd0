package bank

import (
	"fmt"
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Where no episode ends, units are blocks of steps of one agent, made of the smallest ones that telemetry comes in. They
// are doubled as long as a quantity of them depends on the agent's blocks before by a factor above maxBlockFactor. They
// are not made longer than maxBlocks of the smallest, nor, where no more telemetry comes, so long that a baseline of
// fewer than leastBlocks is left.
const (
	maxBlockFactor = 1.2
	maxBlocks      = 512
	leastBlocks    = 200
)

// An unfinished unit is given up whose agent has given none of blockRound smallest blocks. Where so many are lost that
// they are mixedShare of these, agents do not live long enough: units are joined of the smallest blocks of all agents, as
// they come.
const (
	blockRound = 10_000
	mixedShare = .5
)

// blocksToAlarm is about how many blocks the largest changes take to be found.
const blocksToAlarm = 5

// CaveatBlocks says that the steps of an agent depend on one another for too long.
const CaveatBlocks = "blocks of no size that the telemetry allows are independent of one another: no promise can be made"

// blocks makes units of the blocks of a group without episodes. Exported fields are its snapshot.
type blocks struct {
	Size  int                   // smallest blocks in a unit, 0 as long as there are none
	Mixed bool                  // units are of steps of all agents
	Unfit bool                  // those of the baseline depend on one another
	Open  map[string]*openBlock // by agent, unfinished units; of all agents by ""
	Kept  []*ingest.Unit        // units of the warm-up, in the order in which they ended

	Round  int64 // rounds of blockRound smallest blocks that are over
	Joined int64 // smallest blocks of this round
	Lost   int64 // smallest blocks that were given up at the end of the last round
}

// openBlock is an unfinished unit.
type openBlock struct {
	Unit  *ingest.Unit
	Parts int
	Round int64 // in which it got its last part
}

// add joins a smallest block with those before it of its agent, and gives the unit when it is whole, else nil.
func (b *blocks) add(u *ingest.Unit) *ingest.Unit {
	b.Size = max(1, b.Size)
	b.Mixed = b.Mixed || u.Mixed
	if b.Size == 1 {
		return b.named(u)
	}
	defer b.count()
	agent := b.key(u)
	open := b.Open[agent]
	if open == nil {
		if b.Open == nil {
			b.Open = map[string]*openBlock{}
		}
		b.Open[agent] = &openBlock{u, 1, b.Round}
		return nil
	}
	open.Unit, open.Round = joined(open.Unit, u), b.Round
	if open.Parts++; open.Parts < b.Size {
		return nil
	}
	delete(b.Open, agent)
	return b.named(open.Unit)
}

// named gives a unit the name of the agent whose steps it holds: none where these are of all agents.
func (b *blocks) named(u *ingest.Unit) *ingest.Unit {
	if !b.Mixed || u.Agent == "" {
		return u
	}
	named := *u
	named.Agent, named.Mixed = "", true
	return &named
}

// key names whose blocks a block is joined with.
func (b *blocks) key(u *ingest.Unit) string {
	if b.Mixed {
		return ""
	}
	return u.Agent
}

// count counts a smallest block, and at the end of a round gives up the units that have got none in it.
func (b *blocks) count() {
	if b.Joined++; b.Joined < blockRound {
		return
	}
	b.Lost = 0
	for agent, open := range b.Open {
		if open.Round < b.Round {
			b.Lost += int64(open.Parts)
			delete(b.Open, agent)
		}
	}
	b.Round, b.Joined = b.Round+1, 0
}

// short reports whether agents do not live long enough for a unit.
func (b *blocks) short() bool { return !b.Mixed && float64(b.Lost) > mixedShare*blockRound }

// double makes units of two of what was one, and gives those of the warm-up anew. What is left over stays open.
func (b *blocks) double() []*ingest.Unit {
	halves, kept, open := map[string]*ingest.Unit{}, b.Kept, b.Open
	b.Size *= 2
	b.Kept, b.Open = nil, map[string]*openBlock{}
	for _, u := range kept {
		agent := b.key(u)
		if first := halves[agent]; first != nil {
			b.Kept = append(b.Kept, joined(first, u))
			delete(halves, agent)
		} else {
			halves[agent] = u
		}
	}
	for agent, u := range halves {
		b.Open[agent] = &openBlock{u, b.Size / 2, b.Round}
	}
	for agent, after := range open { // what the agent has done since
		if half := b.Open[agent]; half != nil {
			half.Unit, half.Parts = joined(half.Unit, after.Unit), half.Parts+after.Parts
		} else {
			b.Open[agent] = after
		}
	}
	return b.Kept
}

// drop forgets the oldest n units of the warm-up.
func (b *blocks) drop(n int) {
	if b.Size > 0 {
		b.Kept = slices.Clone(b.Kept[n:])
	}
}

// block gives the unit that a smallest block completes, nil where it completes none. A warm-up of other units is let go
// of.
func (g *group) block(u *ingest.Unit) *ingest.Unit {
	b := &g.Blocks
	if short := b.short(); !g.Warmup.Done && (b.Size == 0 || u.Mixed && !b.Mixed || short) {
		*b = blocks{Size: b.Size, Mixed: u.Mixed || short}
		g.forgetWarmup()
	}
	return b.add(u)
}

// dependent reports whether a quantity of the warm-up depends on the agent's blocks before by a factor that is too
// large. The largest of n estimates may exceed the limit by what that of n independent ones would.
func (g *group) dependent() bool {
	quantities := g.warmQuantities()
	excess := math.Sqrt(2 * math.Log(float64(max(1, len(quantities)))))
	limit := maxBlockFactor + excess*detectors.FactorError(g.Warmup.Units)
	agents := g.Warmup.agents()
	return slices.ContainsFunc(quantities, func(q *quantity) bool { return q.agentFactor(agents) > limit })
}

// warmQuantities lists the quantities that the warm-up has enough values of, the shares of actions among them.
func (g *group) warmQuantities() (all []*quantity) {
	categories := g.Warmup.kind() == ingest.ActionCategory
	for _, s := range g.Streams {
		if s.Signal != actionSignal || !categories {
			all = append(all, s.Quantities...)
		}
	}
	if categories && g.cfg.Follows(actionSignal) {
		all = append(all, g.Warmup.shares(commonest(g.Warmup.actionCounts(), shownActions))...)
	}
	return slices.DeleteFunc(all, func(q *quantity) bool { return len(q.Warm) < MinBaselineUnits })
}

// keepBlock keeps a unit of the warm-up. When there are enough of them to see that they depend on one another, blocks are
// doubled; without the older half of them where they move on, or what is older than a change would make them look
// dependent whatever their size.
func (g *group) keepBlock(u *ingest.Unit) {
	g.Blocks.Kept = append(g.Blocks.Kept, u)
	if g.Warmup.Units >= g.cfg.Baseline.Units && g.Blocks.Size < maxBlocks && g.dependent() {
		g.refuse()
		g.doubleBlocks()
	}
}

// doubleBlocks begins the warm-up again with blocks of twice the size.
func (g *group) doubleBlocks() {
	units := g.Blocks.double()
	g.Blocks.Kept = nil
	g.forgetWarmup()
	for _, u := range units {
		values := g.readings(u, &g.scratch)
		g.keep(u, values, make([]string, len(g.Streams)))
	}
}

// fitBlocks doubles the blocks of a warm-up that no more telemetry comes to, as far as enough of them are left.
func (g *group) fitBlocks() {
	for 0 < g.Blocks.Size && g.Blocks.Size < maxBlocks && g.Warmup.Units >= 2*leastBlocks && g.dependent() {
		g.doubleBlocks()
	}
}

// blockCaveats says what a promise that counts in blocks does not account for.
func (g *group) blockCaveats() []string {
	of, steps := "one agent", g.Warmup.meanLength()
	if g.Blocks.Mixed {
		of = "all agents together"
	}
	out := []string{fmt.Sprintf("no episode ends: units are blocks of %.0f steps of %s, and a change takes about %d of them, %.0f steps, at least",
		steps, of, blocksToAlarm, blocksToAlarm*steps)}
	if g.Blocks.Unfit = g.dependent(); g.Blocks.Unfit {
		out = append(out, CaveatBlocks)
	}
	return out
}

// faultless gives a block without the values of streams with a fault, which then stay out of the warm-up whatever it is
// joined with.
func (g *group) faultless(u *ingest.Unit, rules []string) *ingest.Unit {
	kept := *u
	for i, s := range g.Streams {
		if rules[i] == "" {
			continue
		}
		switch s.Signal {
		case "reward":
			kept.Reward, kept.RewardQ10, kept.RewardQ90 = ingest.Moments{}, 0, 0
			kept.LongestConstant, kept.ConstantReward = 0, 0
		case actionSignal:
			kept.Actions, kept.ActionKind, kept.MixedActionKinds = nil, ingest.ActionNone, false
		}
		kept.Numeric = slices.DeleteFunc(slices.Clone(kept.Numeric), func(n ingest.NamedMoments) bool { return n.Signal == s.Signal })
	}
	return &kept
}

// forgetWarmup begins the warm-up again.
func (g *group) forgetWarmup() {
	g.Warmup.Each, g.Warmup.Units, g.Warmup.Early = nil, 0, 0
	for _, s := range g.Streams {
		for _, q := range s.Quantities {
			q.Warm = nil
		}
	}
}

// joined makes one unit of two blocks of an agent, the second after the first. Its outer deciles are the means of
// theirs, weighted by their rewards.
func joined(a, b *ingest.Unit) *ingest.Unit {
	u := *b
	u.First, u.StartTS = a.First, a.StartTS
	u.Length = a.Length + b.Length
	u.Reward = a.Reward
	u.Reward.Merge(b.Reward)
	u.RewardQ10 = weighted(a.RewardQ10, a.Reward.N, b.RewardQ10, b.Reward.N)
	u.RewardQ90 = weighted(a.RewardQ90, a.Reward.N, b.RewardQ90, b.Reward.N)
	u.LongestConstant = max(a.LongestConstant, b.LongestConstant)
	u.ActionKind = max(a.ActionKind, b.ActionKind)
	u.MixedActionKinds = a.MixedActionKinds || b.MixedActionKinds
	u.Events, u.Duplicates = a.Events+b.Events, a.Duplicates+b.Duplicates
	u.Backwards, u.Abandoned = a.Backwards+b.Backwards, a.Abandoned+b.Abandoned
	u.Profile, u.ProfileSteps = nil, 0
	u.Actions = joinedCounts(a.Actions, b.Actions)
	u.Numeric = joinedMoments(a.Numeric, b.Numeric)
	return &u
}

// weighted is the mean of x, n times, and y, m times; exactly x where both are, as a block of one value keeps it.
func weighted(x float64, n int64, y float64, m int64) float64 {
	if n == 0 {
		return y
	}
	return x + (y-x)*float64(m)/float64(n+m)
}

func joinedCounts(a, b []ingest.Count) []ingest.Count {
	out := append([]ingest.Count(nil), a...)
next:
	for _, c := range b {
		for i := range out {
			if out[i].Name == c.Name {
				out[i].N += c.N
				out[i].Reward += c.Reward
				continue next
			}
		}
		out = append(out, c)
	}
	return out
}

func joinedMoments(a, b []ingest.NamedMoments) []ingest.NamedMoments {
	out := append([]ingest.NamedMoments(nil), a...)
next:
	for _, m := range b {
		for i := range out {
			if out[i].Signal == m.Signal {
				out[i].Q10 = weighted(out[i].Q10, out[i].N, m.Q10, m.N)
				out[i].Q90 = weighted(out[i].Q90, out[i].N, m.Q90, m.N)
				out[i].Merge(m.Moments)
				continue next
			}
		}
		out = append(out, m)
	}
	return out
}
