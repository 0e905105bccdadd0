package stream

import (
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors"
)

// TrailUnits is the number of last units that are recorded one by one.
const TrailUnits = 512

// Trace holds the values of the last TrailUnits units that the tests of a quantity have seen, with gaps for units
// without a value and for those with one that is excluded by a fault.
//
// Of a trace that follows the ranks of a baseline, the newest CurrentUnits values are exact. Of an older one only the
// slot among the baseline's points is kept, in two bytes: it stands for a value of the same rank.
type Trace struct {
	first int64 // ordinal of the first value since the trace began
	next  int64 // ordinal after the newest

	ranks *detectors.Ranks // nil if all values are exact
	slots []uint16         // a ring by ordinal, from first on
	exact []float64        // a ring by ordinal, from first on, NaN for a gap; with ranks, of the newest values by their number
	held  int64            // with ranks, the number of values until now
}

const (
	gap     = math.MaxUint16 // the slot of a unit without a value
	maxSlot = gap - 1
)

// newTrace returns an empty trace that follows the ranks, nil for none.
func newTrace(ranks *detectors.Ranks) Trace {
	if ranks == nil || 2*ranks.Distinct() > maxSlot {
		return Trace{}
	}
	return Trace{ranks: ranks}
}

// Add keeps the value of unit number ordinal.
func (t *Trace) Add(x float64, ordinal int64) {
	slot := 0
	if t.ranks != nil {
		slot = t.ranks.Slot(x)
	}
	t.add(x, slot, ordinal)
}

// add keeps a value, of which the slot is given if the trace follows ranks.
func (t *Trace) add(x float64, slot int, ordinal int64) {
	if t.units() == 0 || ordinal-t.next >= TrailUnits {
		*t = Trace{first: ordinal, next: ordinal, ranks: t.ranks, slots: t.slots[:0], exact: t.exact[:0]}
	}
	for t.next < ordinal {
		t.put(math.NaN(), gap)
	}
	t.put(x, slot)
}

func (t *Trace) put(x float64, slot int) {
	at := t.next - t.first
	t.next++
	if t.ranks == nil {
		t.exact = putAt(t.exact, x, at, TrailUnits)
		return
	}
	if math.IsNaN(x) {
		slot = gap
	}
	t.slots = putAt(t.slots, uint16(slot), at, TrailUnits)
	if slot != gap {
		t.exact = putAt(t.exact, x, t.held, CurrentUnits)
		t.held++
	}
}

// putAt puts element number at into a ring of at most most elements, whose number is that of the next one until it is
// full.
func putAt[T any](ring []T, x T, at, most int64) []T {
	if int64(len(ring)) < most {
		return AppendUpTo(ring, x, int(most))
	}
	ring[at%most] = x
	return ring
}

// units returns the number of units that the trace covers.
func (t *Trace) units() int64 {
	if t.ranks != nil {
		return int64(len(t.slots))
	}
	return int64(len(t.exact))
}

// Since returns the recorded values from an ordinal on, and the ordinals of their units.
func (t *Trace) Since(ordinal int64) (values []float64, ordinals []int64) {
	for o, n := t.newest(ordinal, TrailUnits); o < t.next; o++ {
		if t.has(o) {
			values = append(values, t.value(o, n))
			ordinals = append(ordinals, o)
			n--
		}
	}
	return values, ordinals
}

// appendNewest appends the recorded values from an ordinal on, at most CurrentUnits of the newest, oldest first.
func (t *Trace) appendNewest(values []float64, ordinal int64) []float64 {
	o, n := t.newest(ordinal, CurrentUnits)
	for values = slices.Grow(values, int(n)); o < t.next; o++ {
		if t.has(o) {
			values = append(values, t.value(o, n))
			n--
		}
	}
	return values
}

// newest returns the ordinal from which on there are n values: all recorded ones from the given ordinal on, or the
// newest most of them.
func (t *Trace) newest(ordinal, most int64) (from, n int64) {
	oldest := max(ordinal, t.oldest())
	for from = t.next; from > oldest && n < most; {
		if from--; t.has(from) {
			n++
		}
	}
	return from, n
}

// has reports whether a recorded unit has a value.
func (t *Trace) has(ordinal int64) bool {
	at := (ordinal - t.first) % TrailUnits
	if t.ranks != nil {
		return t.slots[at] != gap
	}
	return !math.IsNaN(t.exact[at])
}

// value returns the value of a recorded unit that has one, the n-th from the newest.
func (t *Trace) value(ordinal, n int64) float64 {
	at := (ordinal - t.first) % TrailUnits
	switch {
	case t.ranks == nil:
		return t.exact[at]
	case n <= int64(len(t.exact)):
		return t.exact[(t.held-n)%CurrentUnits]
	}
	return t.ranks.InSlot(int(t.slots[at]))
}

// oldest returns the ordinal of the oldest unit recorded.
func (t *Trace) oldest() int64 { return t.next - t.units() }

// following returns the trace as one that follows ranks, nil for none.
func (t *Trace) following(ranks *detectors.Ranks) Trace {
	out := newTrace(ranks)
	if out.ranks == nil {
		return *t
	}
	out.first, out.next, out.slots = t.first, t.oldest(), make([]uint16, 0, len(t.exact))
	for out.next < t.next {
		x := t.exact[(out.next-t.first)%TrailUnits]
		out.put(x, out.ranks.Slot(x))
	}
	if n := len(out.slots); n > 0 { // from the order of their ordinals into their places
		out.slots = slices.Concat(out.slots[n-int(t.oldest()-t.first)%n:], out.slots[:n-int(t.oldest()-t.first)%n])
	}
	return out
}

// AppendUpTo appends x to a slice that becomes a ring of at most most elements. It never allocates room for more.
func AppendUpTo[T any](ring []T, x T, most int) []T {
	if len(ring) == cap(ring) {
		grown := make([]T, len(ring), min(most, max(16, 2*len(ring))))
		copy(grown, ring)
		ring = grown
	}
	return append(ring, x)
}
