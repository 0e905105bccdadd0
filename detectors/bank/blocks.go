package bank

import (
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Where no episode ends, units are blocks of steps of one agent, made of the smallest ones that telemetry comes in. They
// are doubled as long as blocks depend on one another: more than dependentShare of their quantities by a factor above
// maxBlockFactor. They are not made longer than maxBlocks of the smallest.
const (
	maxBlockFactor = 1.2
	dependentShare = .5
	maxBlocks      = 512
)

// maxBlockAgents bounds the agents of which unfinished blocks are kept; beyond it they are begun anew.
const maxBlockAgents = 10_000

// blocks makes units of the blocks of a group without episodes. Exported fields are its snapshot.
type blocks struct {
	Size int                   // smallest blocks in a unit, 0 as long as there are none
	Open map[string]*openBlock // by agent, unfinished units
	Kept []*ingest.Unit        // units of the warm-up, in the order in which they ended
}

// openBlock is an unfinished unit.
type openBlock struct {
	Unit  *ingest.Unit
	Parts int
}

// add joins a smallest block with those before it of its agent, and gives the unit when it is whole, else nil.
func (b *blocks) add(u *ingest.Unit) *ingest.Unit {
	b.Size = max(1, b.Size)
	if b.Size == 1 {
		return u
	}
	open := b.Open[u.Agent]
	if open == nil {
		if b.Open == nil || len(b.Open) >= maxBlockAgents {
			b.Open = map[string]*openBlock{}
		}
		b.Open[u.Agent] = &openBlock{u, 1}
		return nil
	}
	open.Unit = joined(open.Unit, u)
	if open.Parts++; open.Parts < b.Size {
		return nil
	}
	delete(b.Open, u.Agent)
	return open.Unit
}

// double makes units of two of what was one, and gives those of the warm-up anew. What is left over stays open.
func (b *blocks) double() []*ingest.Unit {
	halves, kept, open := map[string]*ingest.Unit{}, b.Kept, b.Open
	b.Size *= 2
	b.Kept, b.Open = nil, map[string]*openBlock{}
	for _, u := range kept {
		if first := halves[u.Agent]; first != nil {
			b.Kept = append(b.Kept, joined(first, u))
			delete(halves, u.Agent)
		} else {
			halves[u.Agent] = u
		}
	}
	for agent, u := range halves {
		b.Open[agent] = &openBlock{u, b.Size / 2}
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

// dependent reports whether too many quantities of the warm-up depend on those of the block before.
func (g *group) dependent() bool {
	all, dependent := 0, 0
	for _, s := range g.Streams {
		for _, q := range s.Quantities {
			values := q.warmValues()
			if len(values) < MinBaselineUnits {
				continue
			}
			all++
			if detectors.Dependence(values, detectors.NewRanks(values)) > maxBlockFactor {
				dependent++
			}
		}
	}
	return float64(dependent) > dependentShare*float64(all)
}

// keepBlock keeps a unit of the warm-up. When there are enough of them to see that they depend on one another, blocks are
// doubled, and the warm-up begins again with what there is.
func (g *group) keepBlock(u *ingest.Unit) {
	g.Blocks.Kept = append(g.Blocks.Kept, u)
	if g.Warmup.Units < g.cfg.Baseline.Units || g.Blocks.Size >= maxBlocks || !g.dependent() {
		return
	}
	units := g.Blocks.double()
	g.Blocks.Kept = nil
	g.forgetWarmup()
	for _, u := range units {
		values := g.readings(u)
		g.collect(u, values, make([]string, len(g.Streams)))
	}
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

func weighted(x float64, n int64, y float64, m int64) float64 {
	return (x*float64(n) + y*float64(m)) / math.Max(1, float64(n+m))
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
				out[i].Merge(m.Moments)
				continue next
			}
		}
		out = append(out, m)
	}
	return out
}
