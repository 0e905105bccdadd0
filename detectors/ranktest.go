package detectors

import "slices"

// RankTest runs the rank branches of one quantity: CUSUM walks of the normalized increments of a value's rank in the
// frozen baseline. With u the mid-rank and z its normal score clipped to +-2.5, a branch's increment g is d*z
// (Location), z^2/2 (1 - 1/s^2) (Spread) or d*(2u - 1) (Wilcoxon).
type RankTest struct {
	Walks
	Tolerated float64 // shift of the values that raises no alarm, in standard deviations of the baseline
	ranks     *Ranks
}

// Dependence returns the dependence factor of a sample in time order, with the ranks of the same sample: the larger of
// the factors of its normal scores and of their squares.
func Dependence(sample []float64, ranks *Ranks) float64 {
	z, square := make([]float64, len(sample)), make([]float64, len(sample))
	for i, x := range sample {
		z[i] = ranks.own(x).z
		square[i] = z[i] * z[i]
	}
	return max(AllowedFactor(z), AllowedFactor(square))
}

// NewRankTest prepares the branches on a sample with the given dependence factor; ranks are those of the sample. A
// sample of two distinct values gets only the location branches, since it cannot change in another way.
func NewRankTest(sample []float64, ranks *Ranks, factor float64) *RankTest {
	t := &RankTest{Walks: Walks{Units: len(sample), Factor: factor}, ranks: ranks}
	branches := allBranches()
	if ranks.Distinct() == 2 {
		branches = shiftBranches(Location)
	}
	t.Branches = make([]CUSUM, 0, len(branches))
	own, weights := ranks.ownPoints(), ranks.shares()
	g := make([]float64, len(own))
	for _, b := range branches {
		for i, r := range own {
			g[i] = b.increment(r)
		}
		t.add(b, g, weights)
	}
	t.Allow(DefaultAllowance(t.Units))
	return t
}

// Attach restores the ranks that the test was made with.
func (t *RankTest) Attach(ranks *Ranks) {
	t.ranks = ranks
	t.prepare()
}

// Observe folds in the value of unit number ordinal, and reports whether an armed walk has reached its threshold. While
// held, walks stop there.
func (t *RankTest) Observe(x float64, ordinal int64, held bool) (reached bool) {
	return t.observe(t.ranks.of(x), ordinal, held)
}

// ObserveSlot does the same for a value whose slot among the sample's points is known.
func (t *RankTest) ObserveSlot(slot int, ordinal int64, held bool) (reached bool) {
	return t.observe(t.ranks.inSlot(slot), ordinal, held)
}

// Tolerate keeps only the shifts of location, and lets the values move by so many standard deviations of the baseline
// without an alarm. From then on, their values are passed to ObserveWithin.
func (t *RankTest) Tolerate(shift float64) {
	t.Keep(func(b Branch) bool { return b.Family == Location })
	t.Tolerated = shift
}

// ObserveWithin does what Observe does for a value of which a shift is tolerated: the branches for rises see it lowered by
// that shift, and those for falls raised. If values have moved by no more, either is ranked no further out than values of
// the baseline are, so false alarms are no more frequent than without any shift.
func (t *RankTest) ObserveWithin(lowered, raised float64, ordinal int64, held bool) (reached bool) {
	rises, falls := t.ranks.of(lowered).terms(), t.ranks.of(raised).terms()
	for i := range t.Branches {
		b, terms := &t.Branches[i], &rises
		if b.Param < 0 {
			terms = &falls
		}
		if b.step(b.on*terms[b.term&3]-b.toll, ordinal) {
			reached = true
		}
	}
	if reached && held {
		t.cut()
	}
	return reached
}

// observe is ObserveWithin for a value without a shift, with nothing to choose for each branch: it is on the hot path.
func (t *RankTest) observe(r rank, ordinal int64, held bool) (reached bool) {
	terms, branches := r.terms(), t.Branches
	for i := range branches {
		b := &branches[i]
		if b.step(b.on*terms[b.term&3]-b.toll, ordinal) {
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

// QuantilesOf returns the same of values that ascend.
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
