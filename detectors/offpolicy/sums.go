package offpolicy

import (
	"maps"
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Moments are the mean of values and the sum of their squared differences from it (Welford's recurrence).
type Moments struct{ Mean, M2 float64 }

func (m *Moments) add(x float64, n int64) {
	d := x - m.Mean
	m.Mean += d / float64(n)
	m.M2 += d * (x - m.Mean)
}

// variance returns the sample variance of n values, 0 for fewer than two.
func (m Moments) variance(n int64) float64 {
	if n < 2 {
		return 0
	}
	return m.M2 / float64(n-1)
}

// Sums holds the sums over samples. Its size does not depend on the number of samples. Exported fields are saved.
type Sums struct {
	N        int64
	Weight   Moments
	Weighted Moments
	Value    Moments
	Return   Moments
	Gap      Moments // of return minus value
	LogProb  Moments
	Direct   Moments
}

// Add adds a sample.
func (s *Sums) Add(x Sample) {
	s.N++
	s.Weight.add(x.Weight, s.N)
	s.Weighted.add(x.Weighted, s.N)
	s.Value.add(x.Value, s.N)
	s.Return.add(x.Return, s.N)
	s.Gap.add(x.Return-x.Value, s.N)
	s.LogProb.add(x.LogProb, s.N)
	s.Direct.add(x.Direct, s.N)
}

// InversePropensity returns the inverse propensity estimate (Horvitz & Thompson 1952): the mean weighted return.
func (s *Sums) InversePropensity() float64 { return s.Weighted.Mean }

// SelfNormalized returns the self-normalized inverse propensity estimate (Swaminathan & Joachims, "The self-normalized
// estimator for counterfactual learning", 2015): the sum of the weighted returns over that of the weights. It is NaN if
// all weights are 0.
func (s *Sums) SelfNormalized() float64 { return s.Weighted.Mean / s.Weight.Mean }

// DoublyRobust returns the doubly robust estimate (Dudik, Langford & Li, "Doubly robust policy evaluation and learning",
// 2011): the mean value of the units.
func (s *Sums) DoublyRobust() float64 { return s.Value.Mean }

// Effective returns the effective sample size (Kong 1992), (sum of weights)^2 / sum of squared weights; 0 without weight.
func (s *Sums) Effective() float64 {
	if s.Weight.Mean == 0 {
		return 0
	}
	n := float64(s.N)
	return n / (1 + s.Weight.M2/n/(s.Weight.Mean*s.Weight.Mean))
}

// Running holds the sums over the units since some unit, for both references. Exported fields are saved.
type Running struct {
	Units       int64 // added, with or without samples
	Target      Sums
	Frequencies Sums
	PerStep     bool // whether the units are blocks
}

// Add adds a unit.
func (r *Running) Add(s Samples) {
	r.Units++
	r.PerStep = s.PerStep
	if s.Target != nil {
		r.Target.Add(*s.Target)
	}
	if s.Frequencies != nil {
		r.Frequencies.Add(*s.Frequencies)
	}
}

func sortedNames(m map[string]ingest.Count) []string { return slices.Sorted(maps.Keys(m)) }

// halfWidth returns the half-width of a confidence sequence around an estimate. v is its variance now, and tuned
// its variance at the number of units at which the sequence is narrowest. The probability that the truth is ever
// further away is at most alpha:
//
//	w^2 = 2 v (v + t) / t * log(sqrt(1 + t/v) / alpha),   t = tuned (-2 log(alpha) + log(1 - 2 log(alpha)))
//
// For the mean of n values with the variance s^2, v = s^2/n and t = s^2 rho^2, this is the asymptotic confidence
// sequence of Waudby-Smith, Arbour, Sinha, Kennedy & Ramdas ("Time-uniform central limit theory and asymptotic
// confidence sequences", Annals of Statistics 2024, theorem 2.2 and the choice of rho in its appendix). Asymptotic
// means that the probability tends to alpha as the first unit at which one looks grows, as for any interval by the
// central limit theorem; with few or heavy-tailed weights it may be larger. As in detectors.DifferenceWidth, v may
// include the variance of a frozen baseline.
func halfWidth(v, tuned, alpha float64) float64 {
	if v <= 0 {
		return 0
	}
	t := tuned * (-2*math.Log(alpha) + math.Log(1-2*math.Log(alpha)))
	return math.Sqrt(2 * v * (v + t) / t * (math.Log1p(t/v)/2 - math.Log(alpha)))
}
