package blocks

import (
	"encoding/binary"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// maxOpenDecisions bounds the unfinished blocks of decisions. With more, or if most decisions of a round are in
// blocks that are dropped, versions change too often for separate blocks: blocks then hold decisions of all
// versions.
const maxOpenDecisions = 1024

// IsDecision reports whether a unit is an episode of one step.
func IsDecision(u *ingest.Unit) bool { return u.End != ingest.EndBlock && u.Length == 1 }

// slot caches a place in Open, which is then found without computing its key.
type slot struct {
	partition ingest.Partition
	versions  ingest.Versions
	shape     *ingest.DecisionShape // of the last decision that Join found; nil before the first
	key       string
	open      *Open // nil if Open has no block with that key
}

// mostSlots bounds the slots: a group rarely has decisions of more partitions and versions at the same time.
const mostSlots = 16

// slotOf returns the slot of decisions from a partition with the given versions, which is valid until the next call.
func (b *Joiner) slotOf(partition ingest.Partition, versions *ingest.Versions) *slot {
	for i := range b.slots {
		if s := &b.slots[i]; s.partition == partition && (b.Mixed || s.versions == *versions) {
			return s
		}
	}
	if len(b.slots) == mostSlots {
		b.slots = b.slots[:0]
	}
	key := string(b.decisionKey(partition, versions))
	b.slots = append(b.slots, slot{partition: partition, versions: *versions, key: key, open: b.Open[key]})
	return &b.slots[len(b.slots)-1]
}

// Join adds a decision like Add, but only if it neither begins nor completes a block. Otherwise, it returns false and
// changes nothing.
func (b *Joiner) Join(d *ingest.Decision) bool {
	open := b.slotFor(d).open
	if open == nil || open.Parts+1 >= b.Size || open.Unit.Propensity != nil || b.Joined+1 >= RoundLength || b.Short() {
		return false
	}
	addDecisionTo(open.Unit, d)
	open.Parts, open.Round = open.Parts+1, b.Round
	b.Joined++
	return true
}

// Alike reports whether decisions of two shapes, of which the first may be nil, are judged by the same rules.
func Alike(a, b *ingest.DecisionShape) bool {
	return a == b || a != nil && a.Shadow == b.Shadow && a.End == b.End && a.Versions.Policy == b.Versions.Policy
}

// slotFor returns the slot of a decision. Most decisions of a partition share their shape, which is compared first.
func (b *Joiner) slotFor(d *ingest.Decision) *slot {
	for i := range b.slots {
		if s := &b.slots[i]; s.shape == d.Shape && s.partition == d.Pos.Partition {
			return s
		}
	}
	s := b.slotOf(d.Pos.Partition, &d.Shape.Versions)
	s.shape = d.Shape
	return s
}

// addDecision joins a decision to the earlier ones of its partition and versions. It returns the block once it is
// complete, and nil before.
func (b *Joiner) addDecision(u *ingest.Unit) *ingest.Unit {
	s := b.slotOf(u.Pos.Partition, &u.Versions)
	if s.open == nil && len(b.Open) >= maxOpenDecisions {
		b.mix()
		s = b.slotOf(u.Pos.Partition, &u.Versions)
	}
	if s.open == nil {
		s.open = b.begin(u)
		b.Open[s.key] = s.open
	} else {
		addTo(s.open.Unit, u)
	}
	open := s.open
	open.Parts, open.Round = open.Parts+1, b.Round
	complete, block := open.Parts >= b.Size, open.Unit
	if complete {
		delete(b.Open, s.key)
		s.open, b.left = nil, open
	}
	if b.count(); b.Short() {
		b.mix()
	}
	if !complete {
		return nil
	}
	finish(block)
	return block
}

// begin begins a block with a decision.
func (b *Joiner) begin(u *ingest.Unit) *Open {
	if b.Open == nil {
		b.Open = map[string]*Open{}
	}
	open := b.left
	if open == nil {
		open = &Open{}
	}
	*open = Open{Unit: blockIn(b.spare, u)}
	b.left, b.spare = nil, nil
	return open
}

// Recycle takes back the memory of a block of decisions that Add has returned and that nothing refers to any more.
// The next block reuses it.
func (b *Joiner) Recycle(block *ingest.Unit) {
	if b.Decisions && block.Decisions != nil {
		b.spare = block
	}
}

// mix drops the unfinished blocks and lets later ones hold decisions of all versions.
func (b *Joiner) mix() {
	b.Mixed = true
	b.Restart()
}

// decisionKey returns the key in Open of decisions from a partition with the given versions. It is valid until the next
// call.
func (b *Joiner) decisionKey(partition ingest.Partition, v *ingest.Versions) []byte {
	key := binary.AppendVarint(b.key[:0], int64(partition))
	if !b.Mixed && *v != (ingest.Versions{}) {
		for _, text := range [...]string{v.Policy, v.Env, v.Reward} {
			key = append(binary.AppendUvarint(key, uint64(len(text))), text...)
		}
	}
	b.key = key
	return key
}

// blockOf returns an unfinished block of a decision, or a copy of a block of decisions, in separate memory.
func blockOf(u *ingest.Unit) *ingest.Unit { return blockIn(nil, u) }

// blockIn is like blockOf, but reuses the memory of an earlier block unless that is nil.
func blockIn(block, u *ingest.Unit) *ingest.Unit {
	if block == nil {
		block = &ingest.Unit{Decisions: &ingest.Decisions{}}
	}
	actions, numeric, d := block.Actions, block.Numeric, block.Decisions
	*block = *u
	block.Steps, block.Labels = nil, nil // those of the first decision; those of the others would be missing
	block.Agent, block.Episode = "", ""
	block.Profile, block.ProfileSteps = nil, 0
	block.Actions, block.Numeric = copied(actions, u.Actions), copied(numeric, u.Numeric)
	*d = decisionsOf(u)
	block.Decisions = d
	return block
}

// copied returns a copy of a list in the memory of another one, or nil if the list is empty.
func copied[T any](memory, list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return append(memory[:0], list...)
}

func decisionsOf(u *ingest.Unit) ingest.Decisions {
	if u.Decisions != nil {
		return *u.Decisions
	}
	d := ingest.Decisions{N: 1}
	if u.HasReturn {
		d.Returns.Add(u.Return)
	}
	return d
}

// addDecisionTo does what addTo does with the unit of a decision.
func addDecisionTo(block *ingest.Unit, d *ingest.Decision) {
	s, x := d.Shape, d.Reward
	block.Decisions.N++
	block.Decisions.Returns.MergeOne(x)
	block.Reward.MergeOne(x)
	block.EndTS, block.Last, block.Pos, block.Ord, block.Reading, block.Run = d.TS, d.Pos, d.Pos, d.Ord, d.Reading, d.Run
	block.Versions, block.End = s.Versions, s.End
	block.Length, block.Events = block.Length+1, block.Events+1
	if block.LongestConstant < 1 {
		block.LongestConstant, block.ConstantReward = 1, x
	}
	block.ActionKind = max(block.ActionKind, s.Kind)
	if s.Unfinished >= 0 {
		block.Unfinished = max(0, block.Unfinished) + s.Unfinished
	}
	if s.Acts {
		addCount(block, ingest.Count{Name: d.Action, N: 1, Reward: x})
	}
	for i := range s.Signals {
		if have := placeOf(block, i, s.Signals[i].Name); have >= 0 {
			block.Numeric[have].MergeOne(d.Values[i])
		} else {
			block.Numeric = append(block.Numeric, s.Value(i, d.Values[i]))
		}
	}
}

// addTo adds a decision, or a block of decisions, to an earlier block.
func addTo(block, u *ingest.Unit) {
	more := decisionsOf(u)
	block.Decisions.N += more.N
	block.Decisions.Returns.Merge(more.Returns)
	block.EndTS, block.Last, block.Pos, block.Ord, block.Reading, block.Run = u.EndTS, u.Last, u.Pos, u.Ord, u.Reading, u.Run
	block.Versions, block.End = u.Versions, u.End
	block.Length += u.Length
	block.Reward.Merge(u.Reward)
	if u.LongestConstant > block.LongestConstant {
		block.LongestConstant, block.ConstantReward = u.LongestConstant, u.ConstantReward
	}
	block.ActionKind = max(block.ActionKind, u.ActionKind)
	block.MixedActionKinds = block.MixedActionKinds || u.MixedActionKinds
	block.Events, block.Backwards = block.Events+u.Events, block.Backwards+u.Backwards
	block.Duplicates, block.Late = block.Duplicates+u.Duplicates, block.Late+u.Late
	block.Abandoned += u.Abandoned
	if u.Unfinished >= 0 {
		block.Unfinished = max(0, block.Unfinished) + u.Unfinished
	}
	addCounts(block, u.Actions)
	if block.Propensity != nil || u.Propensity != nil {
		block.Propensity = joinedPropensity(block, u, block.Actions)
	}
	addMoments(block, u.Numeric)
}

func addCounts(block *ingest.Unit, actions []ingest.Count) {
	for _, c := range actions {
		addCount(block, c)
	}
}

func addCount(block *ingest.Unit, c ingest.Count) {
	for i := range block.Actions {
		if have := &block.Actions[i]; have.Name == c.Name {
			have.N += c.N
			have.Reward += c.Reward
			return
		}
	}
	block.Actions = append(block.Actions, c)
}

func addMoments(block *ingest.Unit, numeric []ingest.NamedMoments) {
	for i := range numeric {
		m := &numeric[i]
		if have := placeOf(block, i, m.Signal); have >= 0 {
			block.Numeric[have].Merge(m.Moments)
		} else {
			block.Numeric = append(block.Numeric, *m)
		}
	}
}

// placeOf returns the index of a numeric signal in a block, or -1. guess is its index in the unit to add: the units of a
// group mostly have their signals in the same order.
func placeOf(block *ingest.Unit, guess int, signal string) int {
	if guess < len(block.Numeric) && block.Numeric[guess].Signal == signal {
		return guess
	}
	return slices.IndexFunc(block.Numeric, func(have ingest.NamedMoments) bool { return have.Signal == signal })
}

// finish sets the fields that follow from the sums of a block of decisions. Its outer deciles would be those of few
// values, so they repeat the mean and are not judged.
func finish(block *ingest.Unit) {
	returns := &block.Decisions.Returns
	block.HasReturn, block.Return = returns.N > 0, returns.Mean
	block.RewardQ10, block.RewardQ90 = block.Reward.Mean, block.Reward.Mean
	for i := range block.Numeric {
		if n := &block.Numeric[i]; !signals.IsOutcome(n.Signal) {
			n.Q10, n.Q90 = n.Mean, n.Mean
		}
	}
}
