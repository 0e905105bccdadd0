package detectors

import (
	"math"
	"slices"
)

// RankTest runs the rank branches of one quantity: CUSUM walks of normalised rank increments against a frozen
// baseline. Each branch has the walk
//
//	S = max(0, S + (g(u) - C - Kappa)/F),   alarm: S > H,   H = log A + log N - log w
//
// where g is the branch's increment of the rank u of the value, C normalises it over the baseline, Kappa allows for
// the baseline being a sample itself, F is the dependence factor, A the prefactor of the walk's false-alarm rate, N
// the promised mean number of units between false alarms and w the branch's share of that budget.
type RankTest struct {
	Factor   float64 // dependence factor of the baseline
	Branches []RankBranch
	ranks    *Ranks
}

// RankBranch is one branch of a RankTest. Height is 0 where it is not armed.
type RankBranch struct {
	Branch
	C, Kappa, LogA float64 // LogA is 0 where the branch does not carry
	Carries        bool    // whether the baseline says enough for the branch to be armed
	Height         float64 // threshold in nats
	Walk           float64 // S, in nats
	Zeroed         bool    // whether S has been at 0 since it was last cleared
	StartedAt      int64   // ordinal of the unit at which S last left 0
}

// Allowance is the constant C of the allowance for the baseline's own error, from measurements over baselines: 1.75
// from 500 units and 2.1 below.
func Allowance(m int) float64 {
	if m >= 500 {
		return 1.75
	}
	return 2.1
}

// Dependence is the dependence factor of a sample in time order, of which ranks must have been made: the larger of the
// factors of its normal scores and of their squares.
func Dependence(sample []float64, ranks *Ranks) float64 {
	z, square := make([]float64, len(sample)), make([]float64, len(sample))
	for i, x := range sample {
		z[i] = ranks.own(x).z
		square[i] = z[i] * z[i]
	}
	return max(DependenceFactor(z), DependenceFactor(square))
}

// NewRankTest prepares the branches on a sample with the given dependence factor, of which ranks must have been made. A
// sample of two distinct values gets the location branches alone, since it has no other way to change.
func NewRankTest(sample []float64, ranks *Ranks, factor float64) *RankTest {
	t := &RankTest{ranks: ranks, Factor: factor}
	own := make([]rank, len(sample))
	for i, x := range sample {
		own[i] = ranks.own(x)
	}
	branches := allBranches()
	if ranks.Distinct() == 2 {
		branches = locationBranches()
	}
	m := len(sample)
	for _, b := range branches {
		cal := b.calibrate(own)
		carries := factor <= maxFactor && cal.carries(m, factor)
		if carries {
			cal.prefactor(b, own)
		}
		t.Branches = append(t.Branches, RankBranch{
			Branch: b, C: cal.C, LogA: cal.LogA,
			Kappa:   Allowance(m) * cal.Chi * math.Sqrt(factor/float64(m)),
			Carries: carries,
			Zeroed:  true,
		})
	}
	return t
}

// Attach gives a restored test the ranks it was made with.
func (t *RankTest) Attach(ranks *Ranks) { t.ranks = ranks }

// Carrying is the number of branches that the baseline says enough for.
func (t *RankTest) Carrying() int {
	n := 0
	for i := range t.Branches {
		if t.Branches[i].Carries {
			n++
		}
	}
	return n
}

// TooDependent reports whether the dependence factor is so large that no promise is made.
func (t *RankTest) TooDependent() bool { return t.Factor > maxFactor }

// Arm gives every carrying branch the false-alarm rate it may spend, per unit.
func (t *RankTest) Arm(rate float64) {
	for i := range t.Branches {
		if b := &t.Branches[i]; b.Carries {
			b.Height = max(1, b.LogA-math.Log(rate))
		}
	}
}

// Observe folds in the value of unit number ordinal. While held, walks stop at their thresholds.
func (t *RankTest) Observe(x float64, ordinal int64, held bool) {
	r := t.ranks.of(x)
	for i := range t.Branches {
		if b := &t.Branches[i]; b.Height > 0 {
			b.step(b.increment(r), t.Factor, ordinal, held)
		}
	}
}

func (b *RankBranch) step(g, factor float64, ordinal int64, held bool) {
	before := b.Walk
	b.Walk = max(0, b.Walk+(g-b.C-b.Kappa)/factor)
	if held {
		b.Walk = min(b.Walk, b.Height)
	}
	if b.Walk == 0 {
		b.Zeroed = true
	} else if before == 0 {
		b.StartedAt = ordinal
	}
}

// Reset puts every walk back to 0.
func (t *RankTest) Reset() {
	for i := range t.Branches {
		t.Branches[i].Walk, t.Branches[i].Zeroed = 0, true
	}
}

// Score is how far the walk has gone to its threshold, 0 where the branch is not armed.
func (b *RankBranch) Score() float64 {
	if b.Height == 0 {
		return 0
	}
	return b.Walk / b.Height
}

// Score is how far the walk has gone to its threshold, 0 before arming.
func (t *Novelty) Score() float64 {
	if t.Height == 0 {
		return 0
	}
	return float64(t.Walk) / float64(t.Height)
}

// Quantiles gives the sample quantiles of the probabilities by linear interpolation (type 7 of Hyndman & Fan 1996). It
// sorts x in place.
func Quantiles(x []float64, probabilities ...float64) []float64 {
	slices.Sort(x)
	out := make([]float64, len(probabilities))
	for i, p := range probabilities {
		at := p * float64(len(x)-1)
		low := int(at)
		high := min(low+1, len(x)-1)
		out[i] = x[low] + (at-float64(low))*(x[high]-x[low])
	}
	return out
}
