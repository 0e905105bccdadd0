package bank

import (
	"cmp"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// trailSlack is the number of references to older units that the trail keeps before it drops those at which no walk
// started.
const trailSlack = 64

// trail records the last units, and the older ones at which walks left 0. Exported fields are saved.
type trail struct {
	Units []trailUnit       // the last ones, a ring: the unit of ordinal o is at o modulo stream.TrailUnits
	Next  int64             // ordinal of the next unit
	Older []finding.UnitRef // by ordinal; those at which a walk may have started
	Keep  int               // number of these beyond which they are pruned
}

// trailUnit is one unit and the offset of its last event.
type trailUnit struct {
	finding.UnitRef
	Last int64
}

// add records a unit. Ordinals are consecutive, from 0 on.
func (t *trail) add(at finding.UnitRef, u *ingest.Unit) {
	t.Next = at.Ordinal + 1
	unit := trailUnit{at, u.Last.Offset}
	if len(t.Units) < stream.TrailUnits {
		t.Units = stream.AppendUpTo(t.Units, unit, stream.TrailUnits)
		return
	}
	slot := &t.Units[at.Ordinal%stream.TrailUnits]
	t.Older = append(t.Older, slot.UnitRef)
	*slot = unit
}

func (t *trail) last() finding.UnitRef { return t.Units[(t.Next-1)%stream.TrailUnits].UnitRef }

// first returns the ordinal of the oldest unit that is certainly recorded.
func (t *trail) first() int64 { return t.Next - int64(len(t.Units)) }

// ref returns the unit of an ordinal, or the first one after it that is still recorded.
func (t *trail) ref(ordinal int64) finding.UnitRef {
	if ordinal < t.first() {
		i, _ := slices.BinarySearchFunc(t.Older, ordinal, func(r finding.UnitRef, o int64) int { return cmp.Compare(r.Ordinal, o) })
		if i < len(t.Older) {
			return t.Older[i]
		}
	}
	return t.Units[max(ordinal, t.first())%stream.TrailUnits].UnitRef
}

// offsets returns the ranges of the units from one on, up to an ordinal, sorted by partition. If the first one lies
// further back than the trail, it contributes only its own range.
func (t *trail) offsets(from finding.UnitRef, last int64) []ingest.Range {
	ranges := []ingest.Range{{Partition: from.Pos.Partition, First: from.First.Offset, Last: from.Pos.Offset}}
	for o := max(from.Ordinal, t.first()); o <= last; o++ {
		u := &t.Units[o%stream.TrailUnits]
		ranges = ingest.Widen(ranges, ingest.Range{Partition: u.Pos.Partition, First: u.First.Offset, Last: u.Last})
	}
	return byPartition(ranges)
}

// byPartition sorts ranges in place.
func byPartition(ranges []ingest.Range) []ingest.Range {
	slices.SortFunc(ranges, func(a, b ingest.Range) int { return cmp.Compare(a.Partition, b.Partition) })
	return ranges
}

// prune drops, from time to time, the older references at which no walk started. The trail therefore stays bounded by
// the number of branches.
func (t *trail) prune(streams []*stream.Stream) {
	if len(t.Older) <= max(t.Keep, trailSlack) {
		return
	}
	started := map[int64]bool{}
	for _, s := range streams {
		s.Branches(func(b stream.Branch) {
			if b.Moving {
				started[b.Started] = true
			}
		})
	}
	t.Older = slices.DeleteFunc(t.Older, func(r finding.UnitRef) bool { return !started[r.Ordinal] })
	t.Keep = 2*len(t.Older) + trailSlack
}
