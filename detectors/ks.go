package detectors

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// ksBlock is the number of consecutive slots below each leaf of the tree; it must be even. Scanning them costs
// about as much as the levels of the tree that they replace, and the tree takes a tenth of the memory.
const ksBlock = 16

// ksNode summarizes a run of neighbouring slots: the sum of their differences, and the largest and the smallest sum
// over a non-empty prefix of the run.
type ksNode struct {
	sum, max, min int32
}

// then returns the node of the run a followed by the run b.
func (a ksNode) then(b ksNode) ksNode {
	return ksNode{
		sum: a.sum + b.sum,
		max: max(a.max, a.sum+b.max),
		min: min(a.min, a.sum+b.min),
	}
}

// SlidingKS computes the exact two-sample Kolmogorov-Smirnov statistic of a frozen baseline of m points against the
// last w values of a stream, D = sup |F(x) - G(x)|.
//
// With k distinct baseline points every value falls in one of 2k+1 slots: equal to a point, or strictly between
// two. Inside a slot between two points F is constant and G monotone, so D is reached at the end of a slot. The
// difference of a slot is the integer w*(baseline points in it) - m*(window values in it). A tree over the slots
// keeps the extremes of the prefix sums; the larger magnitude of the two is m*w*D. An update costs a binary search
// over the points and one path of the tree, O(log m), and allocates nothing. Of the values in the window, only the
// slots are kept.
type SlidingKS struct {
	baseline *Ranks
	m        int32    // baseline points, including repeated ones
	counts   []uint8  // window values by slot, see Ranks.Slot, modulo 256; padded with zeros to whole blocks
	over     []uint8  // the same divided by 256; nil if the window has at most 255 values
	nodes    []ksNode // heap order, the root at 1, the blocks of slots at the second half
	where    slotRing // slots of the values in the window
	next     int      // index of the next value in the ring
	full     bool
}

// NewSlidingKS prepares the statistic of a baseline, which it copies, against a window of the given number of
// values. It returns an error for an empty baseline, a NaN in it, a window below 1 or above 65,535, and a baseline
// and a window whose sizes multiplied exceed 2^31 - 1. It orders infinite values like any other.
func NewSlidingKS(baseline []float64, window int) (*SlidingKS, error) {
	if len(baseline) == 0 {
		return nil, errors.New("a Kolmogorov-Smirnov statistic needs a baseline of at least one point")
	}
	if slices.ContainsFunc(baseline, math.IsNaN) {
		return nil, errors.New("the baseline of a Kolmogorov-Smirnov statistic contains NaN")
	}
	return order(baseline).SlidingKS(window)
}

// SlidingKS prepares the statistic of the sample against a window of the given number of values, in the same way as
// NewSlidingKS. It shares the sample's points with the ranks, which must not change.
func (r *Ranks) SlidingKS(window int) (*SlidingKS, error) { return r.Resume(window, nil) }

// Resume returns the statistic with the given values in its window, oldest first, as if they had been added one by one.
// NaN is ignored.
func (r *Ranks) Resume(window int, values []float64) (*SlidingKS, error) {
	if err := checkKS(r.Len(), window); err != nil {
		return nil, err
	}
	blocks := 1
	for blocks*ksBlock < 2*len(r.Points)+1 {
		blocks *= 2
	}
	k := &SlidingKS{
		baseline: r,
		m:        int32(r.Len()),
		counts:   make([]uint8, blocks*ksBlock),
		nodes:    make([]ksNode, 2*blocks),
		where:    newSlotRing(window, 2*len(r.Points)),
	}
	if window > math.MaxUint8 {
		k.over = make([]uint8, len(k.counts))
	}
	for ; len(values) >= 4; values = values[4:] {
		for i, slot := range slotsOf(r.Points, [4]float64(values)) {
			if !math.IsNaN(values[i]) {
				k.shift(slot)
			}
		}
	}
	for _, x := range values {
		if !math.IsNaN(x) {
			k.shift(r.Slot(x))
		}
	}
	k.summarize()
	return k, nil
}

// summarize computes all nodes.
func (k *SlidingKS) summarize() {
	blocks := len(k.nodes) / 2
	for b := range blocks {
		k.nodes[blocks+b] = k.block(b)
	}
	for i := blocks - 1; i >= 1; i-- {
		k.nodes[i] = k.nodes[2*i].then(k.nodes[2*i+1])
	}
}

func checkKS(m, window int) error {
	switch {
	case window < 1 || window > math.MaxUint16:
		return fmt.Errorf("a Kolmogorov-Smirnov window must hold 1 to %d values, not %d", math.MaxUint16, window)
	case m > math.MaxInt32/window:
		return fmt.Errorf("a baseline of %d points and a window of %d values are too large for an exact comparison", m, window)
	}
	return nil
}

// Add slides the window over one more value. NaN cannot be ordered and is ignored.
func (k *SlidingKS) Add(x float64) {
	if !math.IsNaN(x) {
		k.AddSlot(k.baseline.Slot(x))
	}
}

// AddSlot slides the window over one more value, given its slot in the baseline.
func (k *SlidingKS) AddSlot(slot int) {
	if other, changed := k.shift(slot); changed {
		k.refresh(slot, other)
	}
}

// shift slides the window over one more value, without updating the nodes, and reports whether any count has
// changed. other is the second slot whose count has changed, or slot itself if there is none.
func (k *SlidingKS) shift(slot int) (other int, changed bool) {
	oldest, full := k.where.put(k.next, slot), k.full
	if k.next++; k.next == k.where.size() {
		k.next, k.full = 0, true
	}
	switch {
	case !full:
		k.count(slot, 1)
		return slot, true
	case oldest != slot:
		k.count(slot, 1)
		k.count(oldest, -1)
		return oldest, true
	}
	return slot, false
}

// Statistic returns D, between 0 and 1, and whether the window is full. Before that D is NaN: with a shorter window,
// each value would change the weight of all slots.
func (k *SlidingKS) Statistic() (d float64, full bool) {
	if !k.full {
		return math.NaN(), false
	}
	root := k.nodes[1]
	largest := max(root.max, -root.min)
	return float64(largest) / (float64(k.m) * float64(k.where.size())), true
}

// Window returns a value from the slot of each value in the window, oldest first. Adding them to a new SlidingKS of
// the same baseline and window restores this one.
func (k *SlidingKS) Window() []float64 {
	first, n := 0, k.next
	if k.full {
		first, n = k.next, k.where.size()
	}
	values := make([]float64, n)
	for i := range values {
		values[i] = k.baseline.InSlot(k.where.at((first + i) % k.where.size()))
	}
	return values
}

// count adds by to the number of values in a slot.
func (k *SlidingKS) count(slot, by int) {
	n := int(k.counts[slot]) + by
	k.counts[slot] = uint8(n)
	if k.over != nil {
		k.over[slot] = uint8(int(k.over[slot]) + n>>8)
	}
}

// none takes the place of over if the window has at most 255 values.
var none [ksBlock]uint8

// block summarizes the slots of a block.
func (k *SlidingKS) block(b int) ksNode {
	counts, over := (*[ksBlock]uint8)(k.counts[b*ksBlock:]), &none
	if k.over != nil {
		over = (*[ksBlock]uint8)(k.over[b*ksBlock:])
	}
	window := k.where.size()
	n := ksNode{max: math.MinInt32, min: math.MaxInt32}
	for i := 0; i < ksBlock; i += 2 {
		n.sum -= k.m * (int32(counts[i]) + int32(over[i])<<8)
		n.min = min(n.min, n.sum)
		n.max = max(n.max, n.sum)
		if point := (b*ksBlock + i) / 2; point < len(k.baseline.Points) {
			n.sum += int32(k.baseline.count(point) * window)
		}
		n.sum -= k.m * (int32(counts[i+1]) + int32(over[i+1])<<8)
		n.min = min(n.min, n.sum)
		n.max = max(n.max, n.sum)
	}
	return n
}

// refresh recomputes the nodes above two changed slots. It walks both paths level by level until they meet, so that the
// common part is computed once and the rest of one hides the latency of the other.
func (k *SlidingKS) refresh(s, t int) {
	first := len(k.nodes) / 2
	i, j := s/ksBlock, t/ksBlock
	k.nodes[first+i] = k.block(i)
	if i != j {
		k.nodes[first+j] = k.block(j)
	}
	i, j = (first+i)/2, (first+j)/2
	for ; i != j; i, j = i/2, j/2 {
		k.nodes[i] = k.nodes[2*i].then(k.nodes[2*i+1])
		k.nodes[j] = k.nodes[2*j].then(k.nodes[2*j+1])
	}
	for ; i >= 1; i /= 2 {
		k.nodes[i] = k.nodes[2*i].then(k.nodes[2*i+1])
	}
}

// slotRing is a ring of slots, in two bytes each if all fit.
type slotRing struct {
	short []uint16
	long  []uint32
}

func newSlotRing(n, most int) slotRing {
	if most > math.MaxUint16 {
		return slotRing{long: make([]uint32, n)}
	}
	return slotRing{short: make([]uint16, n)}
}

func (r *slotRing) size() int { return len(r.short) + len(r.long) }

func (r *slotRing) at(i int) int {
	if r.long != nil {
		return int(r.long[i])
	}
	return int(r.short[i])
}

// put replaces element i and returns its previous value.
func (r *slotRing) put(i, slot int) (before int) {
	before = r.at(i)
	if r.long != nil {
		r.long[i] = uint32(slot)
	} else {
		r.short[i] = uint16(slot)
	}
	return before
}
