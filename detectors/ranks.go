package detectors

import (
	"math"
	"slices"
)

// maxNormalScore bounds normal scores, so that one unit, however extreme, is limited evidence.
const maxNormalScore = 2.5

// Ranks gives the mid-rank of a value among a frozen sample of m points as a number in (0, 1).
type Ranks struct {
	Points []float64 // distinct values, ascending
	Below  []int32   // Below[i]: sample points less than Points[i]; one more entry than Points, the last is m
	// Uniform says that values are mid-ranks already, among like ones, so that the rank of a value is the value itself.
	Uniform bool

	z []float64 // normal scores of a new value by slot: 2i between points i-1 and i, 2i+1 equal to point i
}

// rank is a mid-rank u in (0, 1) and its normal score z = Phi^-1(u), clipped to +-2.5.
type rank struct{ u, z float64 }

func normalScore(u float64) float64 {
	return max(-maxNormalScore, min(maxNormalScore, math.Sqrt2*math.Erfinv(2*u-1)))
}

// NewRanks freezes a copy of the sample, which must hold at least one value and no NaN.
func NewRanks(sample []float64) *Ranks {
	sorted := slices.Clone(sample)
	slices.Sort(sorted)
	r := &Ranks{}
	for i, x := range sorted {
		if i == 0 || x != sorted[i-1] {
			r.Points = append(r.Points, x)
			r.Below = append(r.Below, int32(i))
		}
	}
	r.Below = append(r.Below, int32(len(sorted)))
	r.Prepare()
	return r
}

// newUniformRanks freezes a sample of mid-ranks.
func newUniformRanks(sample []float64) *Ranks {
	r := NewRanks(sample)
	r.Uniform = true
	r.Prepare()
	return r
}

// Prepare makes the table of normal scores of Ranks that were restored from their exported fields.
func (r *Ranks) Prepare() {
	r.z = make([]float64, 2*len(r.Points)+1)
	for slot := range r.z {
		r.z[slot] = normalScore(r.fresh(slot))
	}
	if r.Uniform {
		for i, u := range r.Points {
			r.z[2*i+1] = normalScore(u)
		}
	}
}

// fresh is the mid-rank of a new value in a slot: (less + equal/2 + 1/2)/(m+1).
func (r *Ranks) fresh(slot int) float64 {
	i := slot / 2
	twice := 2 * r.Below[i] // less + less + equal
	if slot%2 == 1 {
		twice = r.Below[i] + r.Below[i+1]
	}
	return float64(twice+1) / 2 / float64(r.Len()+1)
}

// Len is the size m of the sample.
func (r *Ranks) Len() int { return int(r.Below[len(r.Points)]) }

// Distinct is the number of distinct values in the sample.
func (r *Ranks) Distinct() int { return len(r.Points) }

// Mode gives the commonest value (the smallest of several) and how many points have it.
func (r *Ranks) Mode() (value float64, count int) {
	for i, x := range r.Points {
		if n := int(r.Below[i+1] - r.Below[i]); n > count {
			value, count = x, n
		}
	}
	return value, count
}

// of ranks a new value.
func (r *Ranks) of(x float64) rank {
	if r.Uniform {
		return rank{u: x, z: normalScore(x)}
	}
	slot := r.slot(x)
	return rank{u: r.fresh(slot), z: r.z[slot]}
}

func (r *Ranks) slot(x float64) int {
	i, equal := slices.BinarySearch(r.Points, x)
	if equal {
		return 2*i + 1
	}
	return 2 * i
}

// own ranks a point x of the sample itself, leaving one out: (less + (equal-1)/2 + 1/2)/m, where equal counts x.
func (r *Ranks) own(x float64) rank {
	if r.Uniform {
		return rank{u: x, z: normalScore(x)}
	}
	i := r.slot(x) / 2
	u := float64(r.Below[i]+r.Below[i+1]) / 2 / float64(r.Len())
	return rank{u: u, z: normalScore(u)}
}

// ownAll ranks all points of the sample itself.
func (r *Ranks) ownAll(sample []float64) []rank {
	own := make([]rank, len(sample))
	for i, x := range sample {
		own[i] = r.own(x)
	}
	return own
}

// Decile is the index (0 to 9) of the sample decile that x falls in, by its mid-rank.
func (r *Ranks) Decile(x float64) int {
	return min(9, int(10*r.fresh(r.slot(x))))
}

// Sample gives the sample back, sorted.
func (r *Ranks) Sample() []float64 {
	sample := make([]float64, 0, r.Len())
	for i, x := range r.Points {
		for range r.Below[i+1] - r.Below[i] {
			sample = append(sample, x)
		}
	}
	return sample
}
