// Package trail stores the last units of a group, and older units at which walks left 0, in few bytes.
package trail

import (
	"cmp"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// packUnits is the number of units of a full pack. It must be a power of two that divides stream.TrailUnits.
const packUnits = 64

// Trail records the last units of a group, at least stream.TrailUnits, and the older ones at which walks left 0.
//
// Units are packed together, each as its difference from the previous one: a unit takes about ten bytes and what is
// new in its names, instead of a hundred bytes and its names. Only alarms and saves unpack them.
type Trail struct {
	next   int64             // ordinal of the next unit
	packs  [][]byte          // of the last units, the oldest first; a pack starts at a multiple of packUnits
	last   unit              // the newest unit
	older  []finding.UnitRef // by ordinal; before the packs
	spare  []byte            // memory for the next pack, empty
	pruned int64             // number of packs begun when the trail was last pruned
}

// unit is one unit and the offset of its last event.
type unit struct {
	finding.UnitRef
	Last int64
}

// Add records a unit. Ordinals are consecutive, from 0 on.
func (t *Trail) Add(at finding.UnitRef, u *ingest.Unit) { t.add(unit{at, u.Last.Offset}) }

func (t *Trail) add(u unit) {
	before := t.last
	if u.Ordinal%packUnits == 0 || len(t.packs) == 0 {
		t.packs, before = append(t.packs, t.spare), unit{}
	}
	pack := &t.packs[len(t.packs)-1]
	*pack = appendUnit(*pack, &before, &u)
	if t.next = u.Ordinal + 1; t.next%packUnits == 0 {
		*pack, t.spare = slices.Clone(*pack), (*pack)[:0] // without spare capacity
	}
	t.last = u
}

// Last returns the newest unit.
func (t *Trail) Last() finding.UnitRef { return t.last.UnitRef }

// Next returns the ordinal of the next unit.
func (t *Trail) Next() int64 { return t.next }

// First returns the ordinal of the oldest unit that is certainly recorded.
func (t *Trail) First() int64 { return max(0, t.next-stream.TrailUnits) }

// Ref returns the unit with an ordinal, or the first later unit that is still recorded.
func (t *Trail) Ref(ordinal int64) finding.UnitRef {
	i, _ := slices.BinarySearchFunc(t.older, ordinal, func(r finding.UnitRef, o int64) int { return cmp.Compare(r.Ordinal, o) })
	if i < len(t.older) {
		return t.older[i]
	}
	for u := range t.since(ordinal) {
		return u.UnitRef
	}
	return t.Last()
}

// since lists the units of the packs from an ordinal on.
func (t *Trail) since(ordinal int64) func(yield func(unit) bool) {
	return func(yield func(unit) bool) {
		for i, pack := range t.packs {
			if end := packUnits * (t.begun() - int64(len(t.packs)-1-i)); end <= ordinal {
				continue
			}
			for u := range unpacked(pack, func(of int64) bool { return of >= ordinal }) {
				if !yield(u) {
					return
				}
			}
		}
	}
}

// Offsets returns the ranges of the units from one on, up to an ordinal, sorted by partition. If the first one lies
// further back than the trail, it contributes only its own range.
func (t *Trail) Offsets(from finding.UnitRef, last int64) []ingest.Range {
	ranges := []ingest.Range{{Partition: from.Pos.Partition, First: from.First.Offset, Last: from.Pos.Offset}}
	for u := range t.since(max(from.Ordinal, t.First())) {
		if u.Ordinal > last {
			break
		}
		ranges = ingest.Widen(ranges, ingest.Range{Partition: u.Pos.Partition, First: u.First.Offset, Last: u.Last})
	}
	return ByPartition(ranges)
}

// ByPartition sorts ranges in place.
func ByPartition(ranges []ingest.Range) []ingest.Range {
	slices.SortFunc(ranges, func(a, b ingest.Range) int { return cmp.Compare(a.Partition, b.Partition) })
	return ranges
}

// begun returns the number of packs that have begun since the first unit.
func (t *Trail) begun() int64 { return (t.next + packUnits - 1) / packUnits }

// Prune drops, once for each pack, the packs that are no longer needed, and all older units except those at which a
// walk started. So the size of the trail is bounded by the number of branches.
func (t *Trail) Prune(streams []*stream.Stream) {
	if t.pruned == t.begun() {
		return
	}
	t.pruned = t.begun()
	spare := max(0, len(t.packs)-stream.TrailUnits/packUnits-1)
	if spare == 0 && len(t.older) == 0 {
		return
	}
	stay := packUnits * (t.begun() - int64(len(t.packs)-spare))
	started := &starts{before: stay}
	add := started.add
	for _, s := range streams {
		s.Branches(add)
	}
	t.older = slices.DeleteFunc(t.older, func(r finding.UnitRef) bool { return !started.has(r.Ordinal) })
	if len(started.ordinals) > 0 {
		for _, pack := range t.packs[:spare] {
			for u := range unpacked(pack, started.has) {
				t.older = append(t.older, u.UnitRef)
			}
		}
	}
	t.packs = slices.Delete(t.packs, 0, spare)
}

// starts holds the ordinals of the units, before the packs that remain, at which walks have started.
type starts struct {
	before   int64
	ordinals []int64
	room     [64]int64 // room for them, enough in most cases
}

func (s *starts) add(b stream.Branch) {
	if s.ordinals == nil {
		s.ordinals = s.room[:0]
	}
	if b.Moving && b.Started < s.before && !s.has(b.Started) {
		s.ordinals = append(s.ordinals, b.Started)
	}
}

func (s *starts) has(ordinal int64) bool { return slices.Contains(s.ordinals, ordinal) }
