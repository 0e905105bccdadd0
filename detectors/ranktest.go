package detectors

import "slices"

// RankTest runs the rank branches of one quantity: CUSUM walks of the normalized increments of a value's rank in the
// frozen baseline. With u the mid-rank and z its normal score clipped to +-2.5, a branch's increment g is d*z
// (Location), z^2/2 (1 - 1/s^2) (Spread) or d*(2u - 1) (Wilcoxon).
type RankTest struct {
	Walks
	Tolerated float64 // shift of the values that raises no alarm, in standard deviations of the baseline
	ranks     *Ranks
	// tolls is, by stratum and branch, by how much log mean exp g over the stratum's own values exceeds that over the
	// mid-ranks, divided by f; nil if all values are normalized alike. The last are those of values without a stratum.
	tolls [][]float64
}

// Dependence returns the dependence factor of a sample in time order, with the ranks of the same sample: the larger of
// the factors of its normal scores and of their squares.
func Dependence(sample []float64, ranks *Ranks) float64 {
	z, square := normalScores(sample, ranks)
	return max(AllowedFactor(z), AllowedFactor(square))
}

// normalScores returns the normal scores of a sample and their squares.
func normalScores(sample []float64, ranks *Ranks) (z, square []float64) {
	z, square = make([]float64, len(sample)), make([]float64, len(sample))
	for i, x := range sample {
		z[i] = ranks.own(x).z
		square[i] = z[i] * z[i]
	}
	return z, square
}

// NewRankTest prepares the branches on a sample with the given dependence factor; ranks are those of the sample. A
// sample of two distinct values gets only the location branches, since it cannot change in any other way.
func NewRankTest(sample []float64, ranks *Ranks, factor float64) *RankTest {
	t := &RankTest{Walks: Walks{Units: len(sample), Factor: factor}, ranks: ranks}
	branches := allBranches()
	if ranks.Distinct() == 2 {
		branches = shiftBranches(Location)
	}
	t.Branches = make([]CUSUM, 0, len(branches))
	own, weights := ranks.ownPoints(), ranks.shares()
	for _, b := range branches {
		t.add(b, b.increments(own), weights)
	}
	t.Allow(DefaultAllowance(t.Units))
	return t
}

// NewStratifiedRankTest is like NewRankTest for values that are ranked within strata: ranks are those of the
// mid-ranks, strata those of the values of each stratum, and all those of all values. With ties, the distribution
// of mid-ranks differs between strata. So increments are normalized over the values of their stratum: exp(g - C)
// has mean 1 in each, and a walk rises no more often in one stratum than in another. Values without a stratum are
// ranked among all.
func NewStratifiedRankTest(sample []float64, ranks *Ranks, factor float64, strata []*Ranks, all *Ranks) *RankTest {
	if !haveTies(strata) {
		return NewRankTest(sample, ranks, factor)
	}
	t := &RankTest{Walks: Walks{Units: len(sample), Factor: factor}, ranks: ranks}
	in := 0
	for _, s := range strata {
		in += s.Len()
	}
	for i, b := range allBranches() {
		var g, weights []float64
		for _, s := range strata {
			c, of := b.normalization(s), s.shares()
			for k, x := range b.increments(s.ownPoints()) {
				g, weights = append(g, x-c), append(weights, of[k]*float64(s.Len())/float64(in))
			}
		}
		t.add(b, g, weights)
		t.Branches[i].C = b.normalization(ranks)
	}
	t.Allow(DefaultAllowance(t.Units))
	t.stratify(strata, all)
	return t
}

func haveTies(strata []*Ranks) bool {
	return slices.ContainsFunc(strata, func(r *Ranks) bool { return r.Below != nil })
}

// stratify computes by how much the normalization of each stratum, and of values without one, exceeds that of the
// mid-ranks.
func (t *RankTest) stratify(strata []*Ranks, all *Ranks) {
	t.tolls = nil
	if !haveTies(strata) {
		return
	}
	for _, s := range append(slices.Clone(strata), all) {
		tolls := make([]float64, len(t.Branches))
		for i := range t.Branches {
			b := &t.Branches[i]
			tolls[i] = (b.Branch().normalization(s) - b.C) / t.Factor
		}
		t.tolls = append(t.tolls, tolls)
	}
}

// Keep drops all branches except those for which keep returns true.
func (t *RankTest) Keep(keep func(Branch) bool) {
	for s, all := range t.tolls {
		var kept []float64
		for i := range t.Branches {
			if keep(t.Branches[i].Branch()) {
				kept = append(kept, all[i])
			}
		}
		t.tolls[s] = kept
	}
	t.Walks.Keep(keep)
}

// normalization returns log mean exp g over the points of a sample.
func (b Branch) normalization(of *Ranks) float64 {
	return calibrate(b.increments(of.ownPoints()), of.shares()).C
}

// increments returns the increments of ranks, before normalization.
func (b Branch) increments(of []rank) []float64 {
	g := make([]float64, len(of))
	for i, r := range of {
		g[i] = b.increment(r)
	}
	return g
}

// Attach restores the ranks that the test was made with, those of its strata, and those of all values.
func (t *RankTest) Attach(ranks *Ranks, strata []*Ranks, all *Ranks) {
	t.ranks = ranks
	t.stratify(strata, all)
	t.prepare()
}

// Observe adds the value of unit number ordinal, and reports whether an armed walk has reached its threshold. While
// held, walks stop at their thresholds.
func (t *RankTest) Observe(x float64, ordinal int64, held bool) (reached bool) {
	return t.observe(t.ranks.of(x), ordinal, held)
}

// ObserveIn is like Observe for a mid-rank within a stratum; stratum -1 means none.
func (t *RankTest) ObserveIn(stratum int, u float64, ordinal int64, held bool) (reached bool) {
	if t.tolls == nil {
		return t.Observe(u, ordinal, held)
	}
	r := rank{u: u, z: NormalScore(u)}
	return t.step(r.terms(), r.terms(), t.tollsOf(stratum), ordinal, held)
}

// ObserveSlot is like Observe for a value whose slot among the sample's points is known.
func (t *RankTest) ObserveSlot(slot int, ordinal int64, held bool) (reached bool) {
	return t.observe(t.ranks.inSlot(slot), ordinal, held)
}

// Tolerate keeps only the shifts of location, and lets the values shift by the given number of standard deviations
// of the baseline without an alarm. Pass later values to ObserveWithin.
func (t *RankTest) Tolerate(shift float64) {
	t.Keep(func(b Branch) bool { return b.Family == Location })
	t.Tolerated = shift
}

// ObserveWithin is like ObserveIn for a value whose shift is tolerated. The branches for rises receive it lowered
// by that shift, and those for falls receive it raised. If the values have shifted by no more than that, neither
// rank is further out than the ranks of baseline values, so false alarms are no more frequent than without any
// shift.
func (t *RankTest) ObserveWithin(stratum int, lowered, raised float64, ordinal int64, held bool) (reached bool) {
	return t.step(t.ranks.of(lowered).terms(), t.ranks.of(raised).terms(), t.tollsOf(stratum), ordinal, held)
}

// tollsOf returns the tolls of a stratum, or those of values without a stratum if it is -1; nil if all values are
// normalized alike.
func (t *RankTest) tollsOf(stratum int) []float64 {
	switch {
	case t.tolls == nil:
		return nil
	case stratum < 0:
		return t.tolls[len(t.tolls)-1]
	}
	return t.tolls[stratum]
}

// step adds the terms of a unit, which may differ between branches for rises and for falls. tolls are those of its
// stratum, nil without strata.
func (t *RankTest) step(rises, falls rankTerms, tolls []float64, ordinal int64, held bool) (reached bool) {
	for i := range t.Branches {
		b, terms, toll := &t.Branches[i], &rises, 0.0
		if b.Param < 0 {
			terms = &falls
		}
		if tolls != nil {
			toll = tolls[i]
		}
		if b.step(t.weight*(b.on*terms[b.term&3]-b.toll-toll), ordinal) {
			reached = true
		}
	}
	if reached && held {
		t.cut()
	}
	return reached
}

// observe is step for a value without a shift and without strata. It is on the hot path, so it chooses nothing per
// branch.
func (t *RankTest) observe(r rank, ordinal int64, held bool) (reached bool) {
	terms, branches, weight := r.terms(), t.Branches, t.weight
	for i := range branches {
		b := &branches[i]
		if b.step(weight*(b.on*terms[b.term&3]-b.toll), ordinal) {
			reached = true
		}
	}
	if reached && held {
		t.cut()
	}
	return reached
}

// Quantiles returns the sample quantiles of the probabilities by linear interpolation (type 7 of Hyndman & Fan 1996).
// It sorts x in place.
func Quantiles(x []float64, probabilities ...float64) []float64 {
	slices.Sort(x)
	return QuantilesOf(x, probabilities...)
}

// QuantilesOf is like Quantiles for values in ascending order.
func QuantilesOf(x []float64, probabilities ...float64) []float64 {
	out := make([]float64, len(probabilities))
	for i, p := range probabilities {
		at := p * float64(len(x)-1)
		low := int(at)
		high := min(low+1, len(x)-1)
		out[i] = x[low] + (at-float64(low))*(x[high]-x[low])
	}
	return out
}
