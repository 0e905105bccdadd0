package bank

import (
	"slices"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Slack of a version change before an onset, and how long an agent may go on with the version before, in units. A
// change reaches the units one by one: those that were open hold only a part of it.
const (
	versionSlack   = 50
	versionOverlap = 50
)

// A version that has changed maxChanges times within restlessUnits units changes for other reasons than a release.
const (
	maxChanges    = 3
	restlessUnits = 200
)

// versions follows which builds produced the units of a group.
type versions struct {
	Policy, Env, Reward versionTrack
}

// versionTrack follows one kind of version.
type versionTrack struct {
	Value   string // the newest
	Since   int64  // ordinal of its first unit
	Before  string // the one before, the same where there was none
	Recent  []versionSeen
	Changes []int64 // ordinals of the last changes, the oldest first
}

// versionSeen is a version and the ordinal of its last unit.
type versionSeen struct {
	Value string
	Last  int64
}

func (v *versions) see(u ingest.Versions, ordinal int64) {
	v.Policy.see(u.Policy, ordinal)
	v.Env.see(u.Env, ordinal)
	v.Reward.see(u.Reward, ordinal)
}

// see folds one unit in. A version that was there a moment ago is no change: agents may run several side by side.
func (t *versionTrack) see(value string, ordinal int64) {
	t.Recent = slices.DeleteFunc(t.Recent, func(r versionSeen) bool { return ordinal-r.Last > versionOverlap })
	for i := range t.Recent {
		if t.Recent[i].Value == value {
			t.Recent[i].Last = ordinal
			return
		}
	}
	if ordinal == 0 {
		t.Value = value
	}
	if value != t.Value {
		t.Changes = append(t.Changes[max(0, len(t.Changes)-maxChanges+1):], ordinal)
	}
	t.Before, t.Value, t.Since = t.Value, value, ordinal
	t.Recent = append(t.Recent, versionSeen{value, ordinal})
}

// changed reports whether the version changed at an onset that a unit revealed. An onset is an estimate, the less
// certain the longer it took to reveal it. Versions that change all the time tell nothing.
func (t *versionTrack) changed(onset, at int64) bool {
	slack := max(versionSlack, at-onset)
	restless := len(t.Changes) == maxChanges && at-t.Changes[0] <= restlessUnits
	return t.Before != t.Value && t.Since >= onset-slack && t.Since <= at && !restless
}

// around gives the versions before and after an onset, and the names of the causes whose version changed at it.
func (v *versions) around(onset, at int64) (before, after ingest.Versions, changed []string) {
	after = ingest.Versions{Policy: v.Policy.Value, Env: v.Env.Value, Reward: v.Reward.Value}
	before = after
	if v.Policy.changed(onset, at) {
		before.Policy, changed = v.Policy.Before, append(changed, "policy")
	}
	if v.Env.changed(onset, at) {
		before.Env, changed = v.Env.Before, append(changed, "environment")
	}
	if v.Reward.changed(onset, at) {
		before.Reward, changed = v.Reward.Before, append(changed, "reward_function")
	}
	return before, after, changed
}

// How many units the trail keeps the offsets of, and how many references it keeps before it drops those that no walk
// started at.
const (
	trailOffsets = 512
	trailSlack   = 64
)

// trail remembers the units at which walks left zero, and the offsets of the last units. Exported fields are its
// snapshot.
type trail struct {
	Refs    []UnitRef // by ordinal; those that a walk may have started at
	Offsets []unitOffsets
	Next    int
	Keep    int // prune when there are more Refs than this
}

// unitOffsets are the offsets of one unit.
type unitOffsets struct {
	Ordinal     int64
	Partition   int32
	First, Last int64
}

func (t *trail) add(at UnitRef, u *ingest.Unit) {
	t.Refs = append(t.Refs, at)
	o := unitOffsets{at.Ordinal, u.Pos.Partition, u.First.Offset, u.Last.Offset}
	if len(t.Offsets) < trailOffsets {
		t.Offsets = append(t.Offsets, o)
		return
	}
	t.Offsets[t.Next] = o
	t.Next = (t.Next + 1) % trailOffsets
}

func (t *trail) last() UnitRef { return t.Refs[len(t.Refs)-1] }

// ref gives the unit of an ordinal, or the first one after it that is still known.
func (t *trail) ref(ordinal int64) UnitRef {
	i, _ := slices.BinarySearchFunc(t.Refs, ordinal, func(r UnitRef, o int64) int { return int(r.Ordinal - o) })
	return t.Refs[min(i, len(t.Refs)-1)]
}

// offsets gives the ranges of the units from the onset on. Of units that lie further back than the trail, only the
// onset itself is known. They are sorted by partition.
func (t *trail) offsets(onset UnitRef) []ingest.Range {
	ranges := []ingest.Range{{Partition: onset.Pos.Partition, First: onset.First.Offset, Last: onset.Pos.Offset}}
	for i := range t.Offsets {
		if o := t.Offsets[(t.Next+i)%len(t.Offsets)]; o.Ordinal >= onset.Ordinal {
			ranges = widen(ranges, ingest.Range{Partition: o.Partition, First: o.First, Last: o.Last})
		}
	}
	slices.SortFunc(ranges, func(a, b ingest.Range) int { return int(a.Partition) - int(b.Partition) })
	return ranges
}

func widen(ranges []ingest.Range, r ingest.Range) []ingest.Range {
	for i := range ranges {
		if have := &ranges[i]; have.Partition == r.Partition {
			have.First, have.Last = min(have.First, r.First), max(have.Last, r.Last)
			return ranges
		}
	}
	return append(ranges, r)
}

// prune drops the references that no walk started at, now and then, so that the trail stays bounded by the number of
// branches.
func (t *trail) prune(streams []*stream) {
	if len(t.Refs) <= max(t.Keep, trailSlack) {
		return
	}
	started := map[int64]bool{t.last().Ordinal: true}
	for _, s := range streams {
		s.branches(func(b branch) {
			if b.moving {
				started[b.started] = true
			}
		})
	}
	t.Refs = slices.DeleteFunc(t.Refs, func(r UnitRef) bool { return !started[r.Ordinal] })
	t.Keep = 2*len(t.Refs) + trailSlack
}

// alert is what is known of a drift. Exported fields are its snapshot.
type alert struct {
	Detectors     []string
	Score         float64
	Quantity      string
	Onset         UnitRef
	Effect        Effect
	Before, After ingest.Versions
	Changed       []string
	Offsets       []ingest.Range
}

// describe says what the leading branch of a stream has found: since when, by how much, and which versions changed.
func (g *group) describe(top branch, detectors []string, at UnitRef) alert {
	onset := g.Trail.ref(top.started)
	a := alert{
		Detectors: detectors, Score: top.score, Quantity: top.quantity.Name, Onset: onset,
		Effect: effect(top.quantity, at.Ordinal-onset.Ordinal+1), Offsets: g.Trail.offsets(onset),
	}
	a.Before, a.After, a.Changed = g.Versions.around(onset.Ordinal, at.Ordinal)
	return a
}

func (f *Finding) alert(a alert, baseline BaselineRef) {
	f.Detectors, f.Score, f.Onset, f.Effect = slices.Clone(a.Detectors), a.Score, a.Onset, a.Effect
	f.Before, f.After, f.Changed = a.Before, a.After, slices.Clone(a.Changed)
	f.Offsets, f.Baseline = slices.Clone(a.Offsets), baseline
}

// effect compares the newest units of a quantity with its baseline.
func effect(q *quantity, units int64) Effect {
	var now ingest.Moments
	for _, x := range q.Recent.last(int(min(units, currentUnits))) {
		now.Add(x)
	}
	e := Effect{
		Quantity: q.Name, BaselineMean: q.Mean, BaselineSD: q.SD,
		CurrentMean: now.Mean, CurrentSD: now.SD(), CurrentUnits: int(now.N), MeanShift: now.Mean - q.Mean,
	}
	if q.SD > 0 {
		e.StandardShift = e.MeanShift / q.SD
	}
	return e
}
