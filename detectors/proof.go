package detectors

import "math"

// proofErrors is how many standard errors a branch's mean likelihood ratio may lie above 1.
const proofErrors = 3

// Proof holds what a test would have made of units that came after its baseline, before it is armed. It is for tests of
// something that was learnt from the baseline: the more was learnt, the less the baseline's own units tell of those to come.
// Of each branch the mean of exp(g - C), 1 over the baseline, must not have grown: it bounds the branch's false alarms. Its
// fields are its whole state.
type Proof struct {
	Units int
	Sums  []float64 // of exp(g - C), by branch
}

// Add folds in a unit's value.
func (p *Proof) Add(t *RankTest, x float64) {
	if p.Sums == nil {
		p.Sums = make([]float64, len(t.Branches))
	}
	r := t.ranks.of(x)
	for i := range t.Branches {
		b := &t.Branches[i]
		p.Sums[i] += math.Exp(b.increment(r) - b.C)
	}
	p.Units++
}

// Refutation is a branch that does not hold what its baseline promised.
type Refutation struct {
	Branch      Branch
	Mean, Limit float64 // of exp(g - C)
}

// Refuted gives the first branch of those that carry whose mean is above 1 + 3 chi sqrt(f (1/n + 1/m)), three standard
// errors of it over n units and a baseline of m with dependence factor f.
func (p *Proof) Refuted(t *RankTest) (Refutation, bool) {
	n, m := float64(p.Units), float64(t.Units)
	for i, sum := range p.Sums {
		b := &t.Branches[i]
		limit := 1 + proofErrors*b.Chi*math.Sqrt(t.Factor*(1/n+1/m))
		if mean := sum / n; b.Carries && mean > limit {
			return Refutation{b.Branch, mean, limit}, true
		}
	}
	return Refutation{}, false
}
