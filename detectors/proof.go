package detectors

import "math"

// proofErrors is the number of standard errors by which a branch's mean likelihood ratio may exceed 1.
const proofErrors = 3

// Proof validates a test on units after its baseline, before it is armed. It is for tests of a quantity learned from the
// baseline: the more was learned, the less well the baseline's own units predict later ones. For each branch the mean
// of exp(g - C), which is 1 over the baseline, must not have grown: it bounds the branch's false alarms. Its fields are
// its complete state.
type Proof struct {
	Units int
	Sums  []float64 // of exp(g - C), by branch
}

// Add adds a unit's value. Branches for rises see the lowered value, and the others the raised one, as in
// RankTest.ObserveWithin.
func (p *Proof) Add(t *RankTest, lowered, raised float64) {
	if p.Sums == nil {
		p.Sums = make([]float64, len(t.Branches))
	}
	rises, falls := t.ranks.of(lowered), t.ranks.of(raised)
	for i := range t.Branches {
		b, r := &t.Branches[i], rises
		if b.Param < 0 {
			r = falls
		}
		p.Sums[i] += math.Exp(b.Branch().increment(r) - b.C)
	}
	p.Units++
}

// Refutation is a branch that failed the validation.
type Refutation struct {
	Branch      Branch
	Mean, Limit float64 // of exp(g - C)
}

// Refuted returns the first carrying branch whose mean is above 1 + 3 chi sqrt(f (1/n + 1/m)), three standard errors of
// it over n units and a baseline of m with dependence factor f.
func (p *Proof) Refuted(t *RankTest) (Refutation, bool) {
	n, m := float64(p.Units), float64(t.Units)
	for i, sum := range p.Sums {
		b := &t.Branches[i]
		limit := 1 + proofErrors*b.Chi*math.Sqrt(t.Factor*(1/n+1/m))
		if mean := sum / n; b.Carries && mean > limit {
			return Refutation{b.Branch(), mean, limit}, true
		}
	}
	return Refutation{}, false
}
