package stream

import (
	"encoding/binary"
	"iter"
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors"
)

// TrailUnits is the number of recent units that are recorded individually.
const TrailUnits = 512

// Trace holds the values of the last TrailUnits units that the tests of a quantity have seen. It has gaps for units
// without a value, and for units whose value is excluded because of a fault.
//
// A trace that follows the ranks of a baseline only keeps each value's slot among the points of the baseline, in one or
// two bytes. The slot of a value that equals a point is exact. Of the other values, those among the most recent
// CurrentUnits are also kept exactly; an older one is replaced by a value of the same rank.
type Trace struct {
	first int64 // ordinal of the first value since the trace began
	next  int64 // ordinal after the most recent one

	ranks *detectors.Ranks // nil if all values are exact
	slots []byte           // ring by ordinal, from first on, of slots plus 1, with width bytes each; 0 for a gap
	exact []float64        // ring by ordinal, from first on, with NaN for a gap; with ranks, only of values that equal no point

	// These are only used with ranks. width is the number of bytes of a slot. near is the number of units since the
	// oldest of the most recent CurrentUnits values, held the number of values among them, and apart the number of
	// those that are in exact. head is the index of the oldest of the latter.
	width             uint8
	near              uint16
	held, apart, head uint8
}

// gap is the slot of a unit without a value.
const gap = -1

// newTrace returns an empty trace that follows ranks, which may be nil.
func newTrace(ranks *detectors.Ranks) Trace {
	switch {
	case ranks == nil || 2*ranks.Distinct()+1 > math.MaxUint16:
		return Trace{}
	case 2*ranks.Distinct()+1 > math.MaxUint8:
		return Trace{ranks: ranks, width: 2}
	}
	return Trace{ranks: ranks, width: 1}
}

// Add records the value of a unit.
func (t *Trace) Add(x float64, ordinal int64) {
	slot := 0
	if t.ranks != nil {
		slot = t.ranks.Slot(x)
	}
	t.add(x, slot, ordinal)
}

// add records a value. slot is its slot if the trace follows ranks.
func (t *Trace) add(x float64, slot int, ordinal int64) {
	if t.units() == 0 || ordinal-t.next >= TrailUnits {
		*t = Trace{
			first: ordinal, next: ordinal, ranks: t.ranks, width: t.width, slots: t.slots[:0], exact: t.exact[:0],
		}
	}
	for t.next < ordinal {
		t.put(math.NaN(), gap)
	}
	t.put(x, slot)
}

func (t *Trace) put(x float64, slot int) {
	if t.ranks == nil {
		at := t.next - t.first
		t.next++
		t.exact = putAt(t.exact, x, at, TrailUnits)
		return
	}
	if math.IsNaN(x) {
		slot = gap
	}
	if t.near == TrailUnits {
		t.leave()
	}
	t.putSlot(slot)
	t.next++
	t.near++
	if slot == gap {
		return
	}
	for t.held == CurrentUnits {
		t.leave()
	}
	if t.held++; slot%2 == 0 {
		t.keep(x)
	}
}

// leave removes the oldest unit from those with exact values.
func (t *Trace) leave() {
	slot := t.slot(t.next - int64(t.near))
	t.near--
	if slot == gap {
		return
	}
	if t.held--; slot%2 == 0 {
		t.apart--
		if t.head++; int(t.head) == len(t.exact) {
			t.head = 0
		}
	}
}

// keep adds an exact value.
func (t *Trace) keep(x float64) {
	if n := len(t.exact); int(t.apart) == n {
		grown := make([]float64, max(4, min(2*n, CurrentUnits)))
		copy(grown, t.exact[t.head:])
		copy(grown[n-int(t.head):], t.exact[:t.head])
		t.exact, t.head = grown, 0
	}
	at := int(t.head) + int(t.apart)
	if at >= len(t.exact) {
		at -= len(t.exact)
	}
	t.exact[at] = x
	t.apart++
}

// putSlot sets the slot of the next unit.
func (t *Trace) putSlot(slot int) {
	at := (t.next - t.first) % TrailUnits * int64(t.width)
	if at == int64(len(t.slots)) {
		for range t.width {
			t.slots = detectors.AppendUpTo(t.slots, 0, TrailUnits*int(t.width))
		}
	}
	if t.width == 1 {
		t.slots[at] = byte(slot + 1)
		return
	}
	binary.LittleEndian.PutUint16(t.slots[at:], uint16(slot+1))
}

// slot returns the slot of a recorded unit.
func (t *Trace) slot(ordinal int64) int {
	at := (ordinal - t.first) % TrailUnits * int64(t.width)
	if t.width == 1 {
		return int(t.slots[at]) - 1
	}
	return int(binary.LittleEndian.Uint16(t.slots[at:])) - 1
}

// putAt stores the element with number at in a ring of at most most elements. Until the ring is full, at must be the
// number of its next element.
func putAt[T any](ring []T, x T, at, most int64) []T {
	if int64(len(ring)) < most {
		return detectors.AppendUpTo(ring, x, int(most))
	}
	ring[at%most] = x
	return ring
}

// units returns the number of units that the trace covers.
func (t *Trace) units() int64 {
	if t.ranks != nil {
		return int64(len(t.slots)) / int64(t.width)
	}
	return int64(len(t.exact))
}

// Since returns the recorded values from an ordinal on, and the ordinals of their units.
func (t *Trace) Since(ordinal int64) (values []float64, ordinals []int64) {
	for o, x := range t.since(ordinal) {
		values, ordinals = append(values, x), append(ordinals, o)
	}
	return values, ordinals
}

// appendNewest appends the recorded values from an ordinal on, at most the most recent CurrentUnits, oldest first.
func (t *Trace) appendNewest(values []float64, ordinal int64) []float64 {
	from, n := t.newest(ordinal)
	values = slices.Grow(values, int(n))
	for _, x := range t.since(from) {
		values = append(values, x)
	}
	return values
}

// newest returns the number of recorded values from an ordinal on, at most CurrentUnits, and the ordinal from which on
// there are as many.
func (t *Trace) newest(ordinal int64) (from, n int64) {
	oldest := max(ordinal, t.oldest())
	for from = t.next; from > oldest && n < CurrentUnits; {
		if from--; t.has(from) {
			n++
		}
	}
	return from, n
}

// has reports whether a recorded unit has a value.
func (t *Trace) has(ordinal int64) bool {
	if t.ranks != nil {
		return t.slot(ordinal) != gap
	}
	return !math.IsNaN(t.exact[(ordinal-t.first)%TrailUnits])
}

// since yields the recorded values from an ordinal on, with the ordinals of their units.
func (t *Trace) since(ordinal int64) iter.Seq2[int64, float64] {
	return func(yield func(int64, float64) bool) {
		kept, near := int(t.head), t.next-int64(t.near)
		for o := t.oldest(); o < t.next; o++ {
			if !t.has(o) {
				continue
			}
			x := t.coarse(o)
			if t.ranks != nil && o >= near && t.slot(o)%2 == 0 {
				x = t.exact[kept]
				kept = (kept + 1) % len(t.exact)
			}
			if o >= ordinal && !yield(o, x) {
				return
			}
		}
	}
}

// coarse returns the value of a unit, or with ranks, one of the same rank; NaN if there is none.
func (t *Trace) coarse(o int64) float64 {
	switch {
	case o < t.oldest() || o >= t.next || !t.has(o):
		return math.NaN()
	case t.ranks == nil:
		return t.exact[(o-t.first)%TrailUnits]
	}
	return t.ranks.InSlot(t.slot(o))
}

// oldest returns the ordinal of the oldest recorded unit.
func (t *Trace) oldest() int64 { return t.next - t.units() }

// following returns the trace as one that follows ranks, which may be nil. A trace that was saved with its slots must
// have followed the same ranks.
func (t *Trace) following(ranks *detectors.Ranks) (Trace, error) {
	out := newTrace(ranks)
	if t.width > 0 {
		if !t.fits(out.width) {
			return Trace{}, ErrPartsDoNotMatch
		}
		t.ranks = ranks
		return *t, nil
	}
	if out.ranks == nil {
		return *t, nil
	}
	out.first, out.next = t.first, t.oldest()
	out.slots = make([]byte, t.units()*int64(out.width)) // each unit in its place
	for out.next < t.next {
		x := t.exact[(out.next-t.first)%TrailUnits]
		out.put(x, out.ranks.Slot(x))
	}
	return out, nil
}

// fits reports whether the trace is consistent with ranks whose slots have the given width.
func (t *Trace) fits(width uint8) bool {
	units := len(t.slots) / int(t.width)
	return t.width == width && len(t.slots)%int(width) == 0 && units <= TrailUnits && t.next-t.first >= int64(units) &&
		int(t.near) <= units && t.held <= CurrentUnits && t.apart <= t.held && int(t.apart) == len(t.exact)
}
