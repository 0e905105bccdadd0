package detectors

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// ksBlock is the number of consecutive slots that are scanned below the leaves of the tree. To scan a few neighbours
// costs less than the levels of the tree that it saves, and the tree takes a sixth of the memory.
const ksBlock = 8

// ksNode summarises a run of neighbouring slots: the sum of their differences, and the largest and the smallest sum
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
// With k distinct baseline points every value falls in one of 2k+1 slots: equal to a point, or strictly between two.
// Inside a slot between two points F is constant and G monotone, so D is reached at the end of a slot. Each slot holds
// the integer w*(baseline points in it) - m*(window values in it); a tree over the slots keeps the extremes of the
// prefix sums, of which the larger magnitude is m*w*D. An update costs a binary search over the points and one path
// of the tree, O(log m), and allocates nothing.
type SlidingKS struct {
	points []float64 // distinct baseline points, ascending
	m      int32     // baseline points, including repeated ones
	slots  []int32   // differences; slot 2i+1 is point i, slot 2i lies before it; padded with zeros to whole blocks
	nodes  []ksNode  // heap order, the root at 1, the blocks of slots at the second half
	values []float64 // ring of the last values
	where  []int32   // their slots
	next   int       // index of the next value in the ring
	full   bool
}

// NewSlidingKS prepares the statistic of a baseline, which it copies, against a window of the given number of values.
// It refuses an empty baseline, a NaN in it, a window below 1, and a baseline and a window whose sizes multiplied
// exceed 2^31 - 1. It orders infinite values like any other.
func NewSlidingKS(baseline []float64, window int) (*SlidingKS, error) {
	if len(baseline) == 0 {
		return nil, errors.New("a Kolmogorov-Smirnov statistic needs a baseline of at least one point")
	}
	if slices.ContainsFunc(baseline, math.IsNaN) {
		return nil, errors.New("the baseline of a Kolmogorov-Smirnov statistic holds NaN")
	}
	return order(baseline).SlidingKS(window)
}

// SlidingKS prepares the statistic of the sample against a window of the given number of values, in the same way as
// NewSlidingKS. It shares the sample's points with the ranks.
func (r *Ranks) SlidingKS(window int) (*SlidingKS, error) {
	if err := checkKS(r.Len(), window); err != nil {
		return nil, err
	}
	blocks := 1
	for blocks*ksBlock < 2*len(r.Points)+1 {
		blocks *= 2
	}
	k := &SlidingKS{
		points: r.Points,
		m:      int32(r.Len()),
		slots:  make([]int32, blocks*ksBlock),
		nodes:  make([]ksNode, 2*blocks),
		values: make([]float64, window),
		where:  make([]int32, window),
	}
	for i := range r.Points {
		k.slots[2*i+1] = int32(r.count(i) * window)
	}
	for b := range blocks {
		k.nodes[blocks+b] = k.block(b)
	}
	for i := blocks - 1; i >= 1; i-- {
		k.nodes[i] = k.nodes[2*i].then(k.nodes[2*i+1])
	}
	return k, nil
}

func checkKS(m, window int) error {
	switch {
	case window < 1:
		return fmt.Errorf("a Kolmogorov-Smirnov window of %d values: it must hold at least 1", window)
	case m > math.MaxInt32/window:
		return fmt.Errorf("a baseline of %d points and a window of %d values are too large to be compared exactly", m, window)
	}
	return nil
}

// Add slides the window over one more value. NaN cannot be ordered and is ignored.
func (k *SlidingKS) Add(x float64) {
	if math.IsNaN(x) {
		return
	}
	slot := k.slot(x)
	oldest := k.where[k.next]
	k.values[k.next], k.where[k.next] = x, slot
	k.next++
	filled := k.next == len(k.values)
	if filled {
		k.next = 0
	}
	switch {
	case !k.full:
		k.slots[slot] -= k.m
		k.refresh(slot, slot)
	case oldest != slot:
		k.slots[slot] -= k.m
		k.slots[oldest] += k.m
		k.refresh(slot, oldest)
	}
	k.full = k.full || filled
}

// Statistic returns D, between 0 and 1, and whether the window is full. Before that D is NaN: with a shorter window,
// each value would change the weight of all slots.
func (k *SlidingKS) Statistic() (d float64, full bool) {
	if !k.full {
		return math.NaN(), false
	}
	root := k.nodes[1]
	largest := max(root.max, -root.min)
	return float64(largest) / (float64(k.m) * float64(len(k.values))), true
}

// Window returns a copy of the values in the window, oldest first. Adding them to a new SlidingKS of the same baseline
// and window restores this one.
func (k *SlidingKS) Window() []float64 {
	if !k.full {
		return slices.Clone(k.values[:k.next])
	}
	return slices.Concat(k.values[k.next:], k.values[:k.next])
}

// Merged returns the statistic of one window over the values of two, of the same baseline: those of o after those of k.
func (k *SlidingKS) Merged(o *SlidingKS) (*SlidingKS, error) {
	if k.m != o.m || !slices.Equal(k.points, o.points) {
		return nil, errors.New("Kolmogorov-Smirnov windows of different baselines cannot be merged")
	}
	merged, err := NewSlidingKS(k.baseline(), len(k.values)+len(o.values))
	if err != nil {
		return nil, err
	}
	for _, x := range slices.Concat(k.Window(), o.Window()) {
		merged.Add(x)
	}
	return merged, nil
}

// baseline returns the values of the baseline, from the slots without the values of the window.
func (k *SlidingKS) baseline() []float64 {
	count := make([]int32, len(k.slots))
	for _, slot := range k.where[:len(k.Window())] {
		count[slot]++
	}
	baseline := make([]float64, 0, k.m)
	for i, x := range k.points {
		slot := 2*i + 1
		for range (k.slots[slot] + k.m*count[slot]) / int32(len(k.values)) {
			baseline = append(baseline, x)
		}
	}
	return baseline
}

// slot returns the slot of x: 2i+1 if it equals point i, else twice the number of points below it.
func (k *SlidingKS) slot(x float64) int32 {
	i := searchPoints(k.points, x)
	if i < len(k.points) && k.points[i] == x {
		return int32(2*i + 1)
	}
	return int32(2 * i)
}

// block summarises the slots of a block.
func (k *SlidingKS) block(b int) ksNode {
	slots := (*[ksBlock]int32)(k.slots[b*ksBlock:])
	n := ksNode{sum: slots[0], max: slots[0], min: slots[0]}
	for _, s := range slots[1:] {
		n.sum += s
		n.max = max(n.max, n.sum)
		n.min = min(n.min, n.sum)
	}
	return n
}

// refresh recomputes the nodes above two changed slots. It walks both paths level by level until they meet, so that the
// common part is computed once and the rest of one hides the latency of the other.
func (k *SlidingKS) refresh(s, t int32) {
	first := len(k.nodes) / 2
	i, j := int(s)/ksBlock, int(t)/ksBlock
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
