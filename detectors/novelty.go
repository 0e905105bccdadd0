package detectors

import (
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/mathext"
)

// noveltyShare is the share of one value above which a sample counts as nearly constant.
const noveltyShare = .95

// noveltyAlternative is the share of novel units under the alternative.
const noveltyAlternative = .5

// A sample of few values has at most fewValues distinct values. Its dependence factor must be at most
// mostNoveltyFactor. Its test looks for a share of novel units of at least leastNovel, which must be at least
// novelTimes as large as their share may be in the baseline.
const (
	fewValues  = 8
	leastNovel = .05
	novelTimes = 4

	mostNoveltyFactor = 2
)

// maxNoveltyHeight bounds the search for a threshold, in lattice steps.
const maxNoveltyHeight = 512

// Novelty is a Bernoulli CUSUM for a quantity that is nearly constant or has few values. A unit is novel if its
// value is not the baseline's mode, or none of the baseline's values. The baseline's rate of novel units is taken
// as its upper 90 % limit (Clopper & Pearson 1934). It is tested against one half, or for few values against half
// of the share of the values that are not the mode: a new reward for a click, for example, can only replace the old
// one. The walk is on a lattice: a novel unit moves it Up steps up and any other unit moves it one step down, so
// that its false alarm rate is exact.
type Novelty struct {
	Mode      float64
	Rate      float64 // upper 90 % limit of the share of novel units
	Up        int     // steps by which a novel unit raises the walk
	Height    int     // threshold in steps, 0 before arming
	Walk      int     // height of the walk
	Zeroed    bool    // whether the walk has been at 0 since Hold
	StartedAt int64   // ordinal of the unit at which the walk last left 0
	Side      int     // -1 or 1 if only values below or above the mode are novel; 0 if both are

	Known []float64 // the distinct values of a sample of few values, ascending; nil if only the mode is known
}

// NearlyConstant reports whether more than 95 % of the sample have the same value.
func NearlyConstant(r *Ranks) bool {
	_, n := r.Mode()
	return float64(n) > noveltyShare*float64(r.Len())
}

// novelLimits returns the lower and the upper 90 % limit of the share of values that are not the mode.
func (r *Ranks) novelLimits() (low, high float64) {
	_, n := r.Mode()
	novel, usual := float64(r.Len()-n), float64(n)
	if novel > 0 {
		low = mathext.InvRegIncBeta(novel, usual+1, .1)
	}
	return low, mathext.InvRegIncBeta(novel+1, usual, .9)
}

// NewNovelty prepares the test on a nearly constant sample.
func NewNovelty(r *Ranks) *Novelty {
	mode, _ := r.Mode()
	_, rate := r.novelLimits()
	ratio := math.Log(noveltyAlternative/rate) / -math.Log((1-noveltyAlternative)/(1-rate))
	return &Novelty{Mode: mode, Rate: rate, Up: max(1, int(math.Round(ratio)))}
}

// FewValues reports whether a sample has few distinct values, but more than one.
func FewValues(r *Ranks) bool { return 2 <= r.Distinct() && r.Distinct() <= fewValues && !r.Uniform }

// NewNoveltyOfValues prepares the test on a sample of few values. It returns nil if there are too many, or if the
// sample is too small to determine what is novel. The number of values that occur once indicates how many have not
// occurred (Good, Biometrika 1953). The dependence factor reduces the effective size of the sample. If it is large,
// novel values come in clusters, and there is no test.
func NewNoveltyOfValues(r *Ranks, factor float64) *Novelty {
	if !FewValues(r) || !(factor <= mostNoveltyFactor) {
		return nil
	}
	once := 0
	for i := range r.Points {
		if r.count(i) == 1 {
			once++
		}
	}
	mode, n := r.Mode()
	m := float64(r.Len())
	rate := mathext.InvRegIncBeta(float64(once)+1, max(1, m/factor-float64(once)), .9)
	alternative := max(leastNovel, (1-float64(n)/m)/2)
	if rate*novelTimes > alternative {
		return nil
	}
	t := &Novelty{Mode: mode, Known: slices.Clone([]float64(r.Points)), Rate: rate}
	t.Up = max(1, int(math.Round(math.Log(alternative/rate)/-math.Log((1-alternative)/(1-rate)))))
	return t
}

// Arm sets the smallest threshold that one novel unit alone does not reach and that causes at most rate false
// alarms per unit. It reports whether there is one.
func (t *Novelty) Arm(rate float64) bool {
	if t.Rate >= noveltyAlternative {
		return false // the sample is too small to separate novel units from others
	}
	least := t.Up + 1 // the mean time grows with the height
	h := least + sort.Search(max(0, maxNoveltyHeight+1-least), func(i int) bool { return 1/t.meanTime(least+i) <= rate })
	if h > maxNoveltyHeight {
		return false
	}
	t.Height = h
	return true
}

// novel reports whether the test counts a value as novel.
func (t *Novelty) novel(x float64) bool {
	if t.Known != nil {
		if _, known := slices.BinarySearch(t.Known, x); known {
			return false
		}
	}
	return x != t.Mode && float64(t.Side)*(x-t.Mode) >= 0
}

// FalseAlarmRate returns the false alarm rate per unit of the armed test; 0 if it is not armed.
func (t *Novelty) FalseAlarmRate() float64 {
	if t.Height == 0 {
		return 0
	}
	return 1 / t.meanTime(t.Height)
}

// meanTime returns the mean number of baseline units in which the walk climbs from 0 to h. With r the rate of novel units,
// the mean times t from i are
//
//	t(i) = 1 + (1-r) t(i-1) + r t(i+Up),   t(i) = 0 from h on
//
// Solved from above, t(i) = a(i) + (1-c(i)) t(i-1). So t(i+Up) = A + (1-C) t(i), with sums of positive terms only.
func (t *Novelty) meanTime(h int) float64 {
	var a, c [maxNoveltyHeight]float64
	for i := h - 1; ; i-- {
		above, fall := 0.0, 0.0 // A and C
		if i+t.Up >= h {
			fall = 1
		} else {
			for j := i + 1; j <= i+t.Up; j++ {
				above, fall = a[j]+(1-c[j])*above, c[j]+(1-c[j])*fall
			}
		}
		if i == 0 { // the walk does not fall below 0
			return (1 + t.Rate*above) / (t.Rate * fall)
		}
		pivot := 1 - t.Rate + t.Rate*fall
		a[i], c[i] = (1+t.Rate*above)/pivot, t.Rate*fall/pivot
	}
}

// Observe adds the value of unit number ordinal. While held, the walk stops at the threshold.
func (t *Novelty) Observe(x float64, ordinal int64, held bool) {
	before := t.Walk
	if t.novel(x) {
		t.Walk += t.Up
	} else if t.Walk > 0 {
		t.Walk--
	}
	if held {
		t.Walk = min(t.Walk, t.Height)
	}
	if t.Walk == 0 {
		t.Zeroed = true
	} else if before == 0 {
		t.StartedAt = ordinal
	}
}

// Reset sets the walk back to 0.
func (t *Novelty) Reset() { t.Walk, t.Zeroed = 0, true }

// Hold records whether the walk is at 0 now, and lowers it to its threshold, like Walks.Hold.
func (t *Novelty) Hold() {
	t.Zeroed = t.Walk == 0
	t.Walk = min(t.Walk, t.Height)
}

// Score returns the walk as a share of its threshold, or 0 before arming.
func (t *Novelty) Score() float64 {
	if t.Height == 0 {
		return 0
	}
	return float64(t.Walk) / float64(t.Height)
}
