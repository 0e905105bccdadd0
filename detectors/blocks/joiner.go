// Package blocks combines units into larger ones. If no episode ends, it joins the smallest blocks of steps in the
// telemetry into blocks that are long enough to be independent of each other. If episodes are single decisions that
// arrive fast, it joins these into blocks of decisions.
package blocks

import (
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// An unfinished unit is dropped if its agent has sent none of the RoundLength smallest blocks of a round. If more
// than mixedShare of these blocks are lost in this way, agents do not live long enough for separate units. Units
// are then joined from the smallest blocks of all agents, in order of arrival.
const (
	RoundLength = 10_000
	mixedShare  = .5
)

// Joiner joins the parts of a group into units: smallest blocks of steps, or decisions. Exported fields are saved.
type Joiner struct {
	Size  int              // parts of a unit; 0 before there are smallest blocks, and if decisions are units
	Mixed bool             // units hold steps of all agents, or decisions of all versions
	Unfit bool             // the units of the baseline depend on each other
	Open  map[string]*Open // unfinished units, by agent ("" for all agents) or, for decisions, by partition and versions
	Kept  []*ingest.Unit   // units of the warm-up, in the order in which they ended

	Round  int64 // completed rounds of RoundLength parts
	Joined int64 // parts of this round
	Lost   int64 // parts that were dropped at the end of the last round

	Decisions bool // parts are decisions

	key   []byte       // scratch memory of decisionKey
	slots []slot       // of Open, for the last decisions
	spare *ingest.Unit // memory for the next block of decisions, nil if there is none
	left  *Open        // the same for its Open
}

// OfSteps reports whether units are blocks of steps.
func (b *Joiner) OfSteps() bool { return b.Size > 0 && !b.Decisions }

// Episodes returns the number of episodes in a unit that is not a block of steps.
func (b *Joiner) Episodes() int {
	if b.Decisions {
		return b.Size
	}
	return 1
}

// Again returns a joiner of the same kind of units, without unfinished ones.
func (b *Joiner) Again() Joiner { return Joiner{Size: b.Size, Mixed: b.Mixed, Decisions: b.Decisions} }

// Open is an unfinished unit.
type Open struct {
	Unit  *ingest.Unit
	Parts int
	Round int64 // in which it received its last part
}

// Add joins a smallest block to the earlier ones of its agent, or a decision to those before it. It returns the
// unit once it is complete, and nil before.
func (b *Joiner) Add(u *ingest.Unit) *ingest.Unit {
	if b.Decisions {
		return b.addDecision(u)
	}
	b.Size = max(1, b.Size)
	b.Mixed = b.Mixed || u.Mixed
	if b.Size == 1 {
		return b.named(u)
	}
	defer b.count()
	agent := b.keyOf(u)
	open := b.Open[agent]
	if open == nil {
		if b.Open == nil {
			b.Open = map[string]*Open{}
		}
		b.Open[agent] = &Open{u, 1, b.Round}
		return nil
	}
	open.Unit, open.Round = Joined(open.Unit, u), b.Round
	if open.Parts++; open.Parts < b.Size {
		return nil
	}
	delete(b.Open, agent)
	return b.named(open.Unit)
}

// named removes the name of the agent from a unit that holds the steps of all agents.
func (b *Joiner) named(u *ingest.Unit) *ingest.Unit {
	if !b.Mixed || u.Agent == "" {
		return u
	}
	named := *u
	named.Agent, named.Mixed, named.Steps = "", true, nil
	return &named
}

// keyOf returns the key in Open of the unit that a part is joined to: its agent, or "" for all agents.
func (b *Joiner) keyOf(u *ingest.Unit) string {
	if b.Decisions {
		return string(b.decisionKey(u.Pos.Partition, &u.Versions))
	}
	if b.Mixed {
		return ""
	}
	return u.Agent
}

// count counts a part. At the end of a round it drops the units that received none in it.
func (b *Joiner) count() {
	if b.Joined++; b.Joined < RoundLength {
		return
	}
	b.Lost = 0
	for agent, open := range b.Open {
		if open.Round < b.Round {
			b.Lost += int64(open.Parts)
			delete(b.Open, agent)
		}
	}
	b.Round, b.Joined, b.slots = b.Round+1, 0, b.slots[:0]
}

// Short reports whether agents do not live long enough for a unit, or versions change too often for blocks of their own.
func (b *Joiner) Short() bool { return !b.Mixed && float64(b.Lost) > mixedShare*RoundLength }

// Double doubles the size of units, joins the units of the warm-up in pairs, and returns the pairs. A leftover unit
// stays open. stepsOf returns the single steps of a unit of the warm-up, which is kept without them; it may be nil.
func (b *Joiner) Double(stepsOf func(place int) *ingest.Steps) []*ingest.Unit {
	halves, kept, open := map[string]*ingest.Unit{}, b.Kept, b.Open
	b.Size = 2 * max(1, b.Size)
	b.Kept, b.Open, b.slots = nil, map[string]*Open{}, nil
	for i, u := range kept {
		if stepsOf != nil {
			u.Steps = stepsOf(i)
		}
		agent := b.keyOf(u)
		if first := halves[agent]; first != nil {
			b.Kept = append(b.Kept, b.join(first, u))
			delete(halves, agent)
		} else {
			halves[agent] = u
		}
	}
	for agent, u := range halves {
		if b.Decisions {
			u = blockOf(u)
		}
		b.Open[agent] = &Open{u, b.Size / 2, b.Round}
	}
	for agent, after := range open { // parts received since then
		if half := b.Open[agent]; half != nil {
			half.Unit, half.Parts = b.join(half.Unit, after.Unit), half.Parts+after.Parts
		} else {
			b.Open[agent] = after
		}
	}
	return b.Kept
}

// Restart drops the unfinished units.
func (b *Joiner) Restart() { b.Open, b.slots = nil, nil }

// LeaveOut drops some units of a warm-up of blocks of steps, by their index.
func (b *Joiner) LeaveOut(out func(place int) bool) {
	if !b.OfSteps() {
		return
	}
	var kept []*ingest.Unit
	for i, u := range b.Kept {
		if !out(i) {
			kept = append(kept, u)
		}
	}
	b.Kept = kept
}

func (b *Joiner) join(first, second *ingest.Unit) *ingest.Unit {
	if !b.Decisions {
		return Joined(first, second)
	}
	u := blockOf(first)
	addTo(u, second)
	finish(u)
	return u
}

// Joined returns one unit made of two blocks of an agent, the second after the first. Its outer deciles are the means
// of theirs, weighted by the number of rewards.
func Joined(a, b *ingest.Unit) *ingest.Unit {
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
	u.Late = a.Late + b.Late
	u.Backwards, u.Abandoned = a.Backwards+b.Backwards, a.Abandoned+b.Abandoned
	u.Profile, u.ProfileSteps = nil, 0
	u.Actions = joinedCounts(a.Actions, b.Actions)
	u.Propensity = joinedPropensity(a, b, u.Actions)
	u.Numeric = joinedMoments(a.Numeric, b.Numeric)
	u.Steps = joinedSteps(a, b, u.Actions)
	return &u
}

// Without returns a copy of a unit that can be joined with others: it lacks the single steps and the values of the
// signals that have a fault.
func Without(u *ingest.Unit, faulty []string) *ingest.Unit {
	kept := *u
	kept.Actions, kept.Numeric, kept.Profile = slices.Clone(u.Actions), slices.Clone(u.Numeric), slices.Clone(u.Profile)
	kept.Steps = nil
	for _, signal := range faulty {
		switch signal {
		case "reward":
			kept.Reward, kept.RewardQ10, kept.RewardQ90 = ingest.Moments{}, 0, 0
			kept.LongestConstant, kept.ConstantReward = 0, 0
			kept.Propensity = nil
		case "return":
			kept.HasReturn = false
			if u.Decisions != nil {
				kept.Decisions = &ingest.Decisions{N: u.Decisions.N}
			}
		case signals.Action:
			kept.Actions, kept.ActionKind, kept.MixedActionKinds = nil, ingest.ActionNone, false
			kept.Propensity = nil
		}
		kept.Numeric = slices.DeleteFunc(kept.Numeric, func(n ingest.NamedMoments) bool { return n.Signal == signal })
	}
	return &kept
}

// weighted returns the mean of x, n times, and y, m times. It is exactly x if both are x, so that a block of one value
// keeps that value.
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

// joinedPropensity returns the sums of the propensities of two blocks; nil if neither has any. actions are the
// actions of both, in their order.
func joinedPropensity(a, b *ingest.Unit, actions []ingest.Count) *ingest.Propensity {
	if a.Propensity == nil && b.Propensity == nil {
		return nil
	}
	out := &ingest.Propensity{}
	for _, u := range []*ingest.Unit{a, b} {
		if u.Propensity == nil {
			continue
		}
		out.Merge(u.Propensity)
		for i, inverse := range u.Propensity.Actions {
			at := slices.IndexFunc(actions, func(c ingest.Count) bool { return c.Name == u.Actions[i].Name })
			for len(out.Actions) <= at {
				out.Actions = append(out.Actions, ingest.InverseProbs{})
			}
			out.Actions[at].Sum += inverse.Sum
			out.Actions[at].Reward += inverse.Reward
		}
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
