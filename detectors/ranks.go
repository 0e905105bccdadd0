package detectors

import (
	"math"
	"slices"
)

// maxNormalScore bounds normal scores, so that one unit, however extreme, is limited evidence.
const maxNormalScore = 2.5

// Ranks holds a frozen sample of m points. It returns the mid-rank of a value among them as a number in (0, 1).
type Ranks struct {
	Points Floats // distinct values, ascending
	// Below[i] is the number of sample points less than Points[i]; it has one more entry than Points, the last is m. It
	// is nil if all points of the sample differ, as Below[i] would be i.
	Below Counts
	// Uniform means that the values already are mid-ranks within their strata, so that the rank of a value is the
	// value itself.
	Uniform bool

	scores *scoreTable // nil until prepared
}

// rank is a mid-rank u in (0, 1) and its normal score z = Phi^-1(u), clipped to +-2.5.
type rank struct{ u, z float64 }

// NormalScore returns the normal score of a mid-rank, clipped to +-2.5.
func NormalScore(u float64) float64 {
	return max(-maxNormalScore, min(maxNormalScore, math.Sqrt2*math.Erfinv(2*u-1)))
}

// NewRanks freezes a copy of the sample, which must hold at least one value and no NaN.
func NewRanks(sample []float64) *Ranks {
	r := order(sample)
	r.Prepare()
	return r
}

// order returns the ranks of a sample without the normal scores.
func order(sample []float64) *Ranks {
	sorted := slices.Clone(sample)
	slices.Sort(sorted)
	r := &Ranks{Points: slices.Clone(slices.Compact(slices.Clone(sorted)))} // without spare capacity
	if len(r.Points) < len(sorted) {
		r.Below = make(Counts, 0, len(r.Points)+1)
		for i, x := range sorted {
			if i == 0 || x != sorted[i-1] {
				r.Below = append(r.Below, uint32(i))
			}
		}
		r.Below = append(r.Below, uint32(len(sorted)))
	}
	return r
}

// NewUniformRanks freezes a sample of mid-ranks.
func NewUniformRanks(sample []float64) *Ranks {
	r := NewRanks(sample)
	r.Uniform = true
	return r
}

// Prepare finds the table of normal scores if there is none.
func (r *Ranks) Prepare() {
	if r.scores == nil {
		r.scores = scoresOf(r.Len())
	}
}

// fresh returns the mid-rank of a new value by twice the points below it: (less + equal/2 + 1/2)/(m+1).
func (r *Ranks) fresh(twice int) float64 { return r.scores.fresh(twice) }

// below returns the number of sample points less than point i, all of them if i is the number of points.
func (r *Ranks) below(i int) int {
	if r.Below == nil {
		return i
	}
	return int(r.Below[i])
}

// score returns the normal score of a new value that is equal to point i.
func (r *Ranks) score(i int) float64 {
	if r.Uniform {
		return NormalScore(r.Points[i])
	}
	return r.scores.z[r.below(i)+r.below(i+1)]
}

// count returns the number of sample points equal to point i.
func (r *Ranks) count(i int) int { return r.below(i+1) - r.below(i) }

// Len returns the size m of the sample.
func (r *Ranks) Len() int { return r.below(len(r.Points)) }

// Distinct returns the number of distinct values in the sample.
func (r *Ranks) Distinct() int { return len(r.Points) }

// Mode returns the most common value (the smallest in a tie) and the number of points that have it.
func (r *Ranks) Mode() (value float64, count int) {
	if r.Below == nil && len(r.Points) > 0 {
		return r.Points[0], 1
	}
	for i, x := range r.Points {
		if n := r.count(i); n > count {
			value, count = x, n
		}
	}
	return value, count
}

// Rank returns the mid-rank of a new value.
func (r *Ranks) Rank(x float64) float64 { return r.of(x).u }

// OwnRank returns the mid-rank of a point x of the sample itself, leaving one out.
func (r *Ranks) OwnRank(x float64) float64 { return r.own(x).u }

// of returns the rank of a new value.
func (r *Ranks) of(x float64) rank {
	if r.Uniform {
		return rank{u: x, z: NormalScore(x)}
	}
	return r.inSlot(r.Slot(x))
}

// inSlot returns the rank of the new values of a slot.
func (r *Ranks) inSlot(slot int) rank {
	twice := r.twice(slot)
	return rank{u: r.fresh(twice), z: r.scores.z[twice]}
}

// Slot returns where a new value lies among the distinct points: 2i+1 if it equals point i, else twice the number
// of points below it. All values in a slot have the same rank.
func (r *Ranks) Slot(x float64) int {
	i := searchPoints(r.Points, x)
	if i < len(r.Points) && r.Points[i] == x {
		return 2*i + 1
	}
	return 2 * i
}

// SlotNear returns r.Slot(x), given the slot of any other number. It is faster than Slot if that number is near x.
func SlotNear(r *Ranks, x float64, known int) int {
	const near = 8
	i := known / 2
	for steps := 0; i > 0 && r.Points[i-1] >= x; i-- {
		if steps++; steps > near {
			return r.Slot(x)
		}
	}
	for steps := 0; i < len(r.Points) && r.Points[i] < x; i++ {
		if steps++; steps > near {
			return r.Slot(x)
		}
	}
	if i < len(r.Points) && r.Points[i] == x {
		return 2*i + 1
	}
	return 2 * i
}

// InSlot returns a value in a slot that contains at least one value.
func (r *Ranks) InSlot(slot int) float64 {
	switch {
	case slot%2 == 1:
		return r.Points[slot/2]
	case slot == 0:
		return math.Nextafter(r.Points[0], math.Inf(-1))
	}
	return math.Nextafter(r.Points[slot/2-1], math.Inf(1))
}

// twice returns twice the number of sample points below the new values of a slot, plus the number equal to them.
func (r *Ranks) twice(slot int) int { return r.below(slot/2) + r.below((slot+1)/2) }

// searchPoints returns the number of points less than x; points ascend. It is sort.SearchFloat64s without a jump that
// the processor would mispredict at every other step.
func searchPoints(points []float64, x float64) int {
	first, n := 0, len(points)
	for n > 0 {
		half := int(uint(n+1) / 2)
		less := 0
		if points[first+half-1] < x {
			less = 1
		}
		first += half & -less
		n -= half
	}
	return first
}

// slotsOf returns the slots of four values at once, see Ranks.Slot. While one search waits for the memory, the others go on.
func slotsOf(points Floats, values [4]float64) (slots [4]int) {
	for n := len(points); n > 0; {
		half := int(uint(n+1) / 2)
		for j, x := range values {
			less := 0
			if points[slots[j]+half-1] < x {
				less = 1
			}
			slots[j] += half & -less
		}
		n -= half
	}
	for j, i := range slots {
		slots[j] = 2 * i
		if i < len(points) && points[i] == values[j] {
			slots[j]++
		}
	}
	return slots
}

// own returns the rank of a point x of the sample itself, leaving one out: (less + (equal-1)/2 + 1/2)/m, where equal
// counts x.
func (r *Ranks) own(x float64) rank {
	if r.Uniform {
		return rank{u: x, z: NormalScore(x)}
	}
	return r.ownPoint(searchPoints(r.Points, x))
}

// ownPoint returns the rank of point i as one of the sample.
func (r *Ranks) ownPoint(i int) rank {
	u := r.Points[i]
	if !r.Uniform {
		u = float64(r.below(i)+r.below(i+1)) / 2 / float64(r.Len())
	}
	return rank{u: u, z: NormalScore(u)}
}

// ownPoints returns the ranks of the distinct points of the sample itself.
func (r *Ranks) ownPoints() []rank {
	own := make([]rank, len(r.Points))
	for i := range own {
		own[i] = r.ownPoint(i)
	}
	return own
}

// shares returns the share of each distinct point in the sample.
func (r *Ranks) shares() []float64 {
	shares := make([]float64, len(r.Points))
	for i := range shares {
		shares[i] = float64(r.count(i)) / float64(r.Len())
	}
	return shares
}

// ownAll returns the ranks of all points of the sample itself.
func (r *Ranks) ownAll(sample []float64) []rank {
	own := make([]rank, len(sample))
	for i, x := range sample {
		own[i] = r.own(x)
	}
	return own
}

// Decile returns the index (0 to 9) of the sample decile that x falls in, by its mid-rank.
func (r *Ranks) Decile(x float64) int { return r.decile(r.Slot(x)) }

// UpToDecile returns how many of the values, which ascend, lie in a decile of the sample or in one below it.
func (r *Ranks) UpToDecile(values []float64, decile int) int {
	first, slots := 0, 2*len(r.Points)+1 // candidates for the first slot beyond the decile
	for slots > 0 {
		if half := slots / 2; r.decile(first+half) > decile {
			slots = half
		} else {
			first, slots = first+half+1, slots-half-1
		}
	}
	switch {
	case first > 2*len(r.Points):
		return len(values)
	case first%2 == 1: // the slot of a point itself
		return searchPoints(values, r.Points[first/2])
	case first == 0:
		return 0
	}
	return searchPoints(values, math.Nextafter(r.Points[first/2-1], math.Inf(1)))
}

// decile returns the decile of the values of a slot.
func (r *Ranks) decile(slot int) int { return min(9, int(10*r.fresh(r.twice(slot)))) }

// Sample returns the sample, sorted.
func (r *Ranks) Sample() []float64 {
	if r.Below == nil {
		return slices.Clone(r.Points)
	}
	sample := make([]float64, 0, r.Len())
	for i, x := range r.Points {
		for range r.count(i) {
			sample = append(sample, x)
		}
	}
	return sample
}
