package bank

import (
	"cmp"
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// How many units the trail knows one by one, and how many references to older ones it keeps before it drops those that
// no walk started at.
const (
	trailUnits = 512
	trailSlack = 64
)

// trail remembers the last units, and those older ones at which walks left 0. Exported fields are its snapshot.
type trail struct {
	Units []trailUnit // the last ones, a ring: the unit of ordinal o is at o modulo trailUnits
	Next  int64       // ordinal of the next unit
	Older []UnitRef   // by ordinal; those that a walk may have started at
	Keep  int         // prune when there are more of these than this
}

// trailUnit is one unit and the offset of its last event.
type trailUnit struct {
	UnitRef
	Last int64
}

// add remembers a unit. Their ordinals follow one another, from 0 on.
func (t *trail) add(at UnitRef, u *ingest.Unit) {
	t.Next = at.Ordinal + 1
	unit := trailUnit{at, u.Last.Offset}
	if len(t.Units) < trailUnits {
		t.Units = appendUpTo(t.Units, unit, trailUnits)
		return
	}
	slot := &t.Units[at.Ordinal%trailUnits]
	t.Older = append(t.Older, slot.UnitRef)
	*slot = unit
}

func (t *trail) last() UnitRef { return t.Units[(t.Next-1)%trailUnits].UnitRef }

// first is the ordinal of the oldest unit that is known for certain.
func (t *trail) first() int64 { return t.Next - int64(len(t.Units)) }

// ref gives the unit of an ordinal, or the first one after it that is still known.
func (t *trail) ref(ordinal int64) UnitRef {
	if ordinal < t.first() {
		i, _ := slices.BinarySearchFunc(t.Older, ordinal, func(r UnitRef, o int64) int { return cmp.Compare(r.Ordinal, o) })
		if i < len(t.Older) {
			return t.Older[i]
		}
	}
	return t.Units[max(ordinal, t.first())%trailUnits].UnitRef
}

// offsets gives the ranges of the units from one on, up to the one of an ordinal. Of units that lie further back than the
// trail, only the first itself is known. They are sorted by partition.
func (t *trail) offsets(from UnitRef, last int64) []ingest.Range {
	ranges := []ingest.Range{{Partition: from.Pos.Partition, First: from.First.Offset, Last: from.Pos.Offset}}
	for o := max(from.Ordinal, t.first()); o <= last; o++ {
		u := &t.Units[o%trailUnits]
		ranges = ingest.Widen(ranges, ingest.Range{Partition: u.Pos.Partition, First: u.First.Offset, Last: u.Last})
	}
	return byPartition(ranges)
}

// byPartition sorts ranges in place.
func byPartition(ranges []ingest.Range) []ingest.Range {
	slices.SortFunc(ranges, func(a, b ingest.Range) int { return cmp.Compare(a.Partition, b.Partition) })
	return ranges
}

// prune drops the older references that no walk started at, now and then, so that the trail stays bounded by the number
// of branches.
func (t *trail) prune(streams []*stream) {
	if len(t.Older) <= max(t.Keep, trailSlack) {
		return
	}
	started := map[int64]bool{}
	for _, s := range streams {
		s.branches(func(b branch) {
			if b.moving {
				started[b.started] = true
			}
		})
	}
	t.Older = slices.DeleteFunc(t.Older, func(r UnitRef) bool { return !started[r.Ordinal] })
	t.Keep = 2*len(t.Older) + trailSlack
}

// trace holds the values of the last units that the tests of a quantity have seen. Exported fields are its snapshot.
type trace struct {
	_      struct{}         `cbor:",toarray"`
	Values detectors.Floats // a ring by ordinal, from First on; NaN of a unit without a value, or with one that a fault kept out
	First  int64            // ordinal of the first value since the trace was begun
	Next   int64            // ordinal after the newest
}

func (t *trace) add(x float64, ordinal int64) {
	if len(t.Values) == 0 || ordinal-t.Next >= trailUnits {
		t.Values, t.First, t.Next = t.Values[:0], ordinal, ordinal
	}
	for t.Next < ordinal {
		t.put(math.NaN())
	}
	t.put(x)
}

func (t *trace) put(x float64) {
	if len(t.Values) < trailUnits {
		t.Values = appendUpTo(t.Values, x, trailUnits)
	} else {
		t.Values[(t.Next-t.First)%trailUnits] = x
	}
	t.Next++
}

// since lists the values from an ordinal on, as far as they are known, and the ordinals of their units.
func (t *trace) since(ordinal int64) (values []float64, ordinals []int64) {
	for o := max(ordinal, t.Next-int64(len(t.Values))); o < t.Next; o++ {
		if x := t.Values[(o-t.First)%trailUnits]; !math.IsNaN(x) {
			values = append(values, x)
			ordinals = append(ordinals, o)
		}
	}
	return values, ordinals
}

// appendUpTo appends x to what will become a ring of so many, and never makes room for more.
func appendUpTo[T any](ring []T, x T, most int) []T {
	if len(ring) == cap(ring) {
		grown := make([]T, len(ring), min(most, max(16, 2*len(ring))))
		copy(grown, ring)
		ring = grown
	}
	return append(ring, x)
}
