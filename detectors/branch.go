package detectors

import (
	"fmt"
	"math"
	"slices"
)

// Family is a family of branches. Each family looks for a different kind of change.
type Family uint8

// The families: shifts of location by Param baseline standard deviations (in normal scores); changes of spread by the
// factor Param; shifts in the Wilcoxon score, which remains sensitive on skewed and heavy-tailed distributions; shifts
// of the frequency of an event by Param standard deviations of its count in an episode; changes of the rate of rare
// values by the fraction Param of it; and predictions whose scores are log likelihood ratios, of which Param is the
// power.
const (
	Location Family = iota
	Spread
	Wilcoxon
	Frequency
	Rarity
	Prediction
)

// String returns the detector's name as users read it.
func (f Family) String() string {
	return [...]string{"location", "spread", "wilcoxon", "frequency", "rarity", "prediction"}[f]
}

// Branch is one one-sided alternative of a test.
type Branch struct {
	Family Family
	Param  float64
}

// String returns the family and the parameter, such as "location +0.8".
func (b Branch) String() string {
	if b.Family == Spread {
		return fmt.Sprintf("%s x%g", b.Family, b.Param)
	}
	return fmt.Sprintf("%s %+g", b.Family, b.Param)
}

// rankTerms are the terms of a rank that the branches use: by family, the normal score z, z^2 and 2u-1. The last is 0.
type rankTerms [4]float64

func (r rank) terms() rankTerms {
	return rankTerms{Location: r.z, Spread: r.z * r.z, Wilcoxon: 2*r.u - 1}
}

// onTerm returns the term that the branch's increment of a rank uses, and its coefficient.
func (b Branch) onTerm() (term uint8, coefficient float64) {
	switch b.Family {
	case Spread:
		return uint8(Spread), (1 - 1/(b.Param*b.Param)) / 2
	case Frequency, Prediction:
		return uint8(Frequency), 0 // they have no ranks
	default:
		return uint8(b.Family), b.Param
	}
}

// increment returns the branch's log-likelihood-like increment g of a rank, before normalization.
func (b Branch) increment(r rank) float64 {
	_, coefficient := b.onTerm()
	switch b.Family {
	case Spread:
		return coefficient * r.z * r.z
	case Wilcoxon:
		return coefficient * (2*r.u - 1)
	default:
		return coefficient * r.z
	}
}

// shiftBranches returns the six alternatives of a shift.
func shiftBranches(f Family) []Branch {
	return []Branch{{f, .4}, {f, -.4}, {f, .8}, {f, -.8}, {f, 1.6}, {f, -1.6}}
}

// allBranches returns the ten alternatives of a rank test.
func allBranches() []Branch {
	return append(shiftBranches(Location), Branch{Spread, 1.6}, Branch{Spread, .5}, Branch{Wilcoxon, 1.5}, Branch{Wilcoxon, -1.5})
}

// Calibration describes the increments of a branch over the baseline.
type Calibration struct {
	C    float64 // log mean exp g, so that exp(g - C) has mean 1 over the baseline
	Chi  float64 // sqrt(mean exp(2(g-C)) - 1): the standard error of C is Chi/sqrt(m)
	Info float64 // mean exp(g-C)(g-C): the drift of the walk under the branch's own alternative, in nats a unit
	LogA float64 // log of e^8 / E0[T], the prefactor of the false alarm rate; 0 if the baseline is too small for the branch
}

// calibrate normalizes increments over the baseline, with weights that sum to 1. It leaves LogA, which is expensive, to
// prefactor.
func calibrate(increments, weights []float64) Calibration {
	mean := 0.0
	for i, g := range increments {
		mean += weights[i] * math.Exp(g)
	}
	cal := Calibration{C: math.Log(mean)}
	second := 0.0
	for i, g := range increments {
		x := g - cal.C
		e := math.Exp(x)
		second += weights[i] * e * e
		cal.Info += weights[i] * e * x
	}
	cal.Chi = math.Sqrt(max(0, second-1))
	return cal
}

// prefactor computes LogA from increments that are normalized over the baseline.
func prefactor(increments, weights []float64) float64 {
	return chainHeight - math.Log(meanTimeToHeight(increments, weights))
}

// evenly returns n equal weights that sum to 1.
func evenly(n int) []float64 { return slices.Repeat([]float64{1 / float64(n)}, n) }

// carries reports whether a baseline of m units with dependence factor f holds enough information for the branch: its
// allowance for the baseline's own error must not use up more than half of the drift per unit of its alternative.
func (c Calibration) carries(m int, f float64) bool {
	return c.Info >= minInfo && armingAllowance*c.Chi*math.Sqrt(f/float64(m)) <= .5*c.Info
}

// A branch is armed according to the allowance armingAllowance, and only with at least minInfo nats per unit.
const (
	minInfo         = .001
	armingAllowance = 1.5
)

// CarriedBy returns the approximate number of units that a baseline with dependence factor f needs to carry the branch,
// or 0 if no number is enough.
func (c Calibration) CarriedBy(f float64) int {
	if c.Info < minInfo {
		return 0
	}
	ratio := 2 * armingAllowance * c.Chi / c.Info
	return int(math.Ceil(f * ratio * ratio))
}
