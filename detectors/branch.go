package detectors

import (
	"fmt"
	"math"
)

// Family is a family of branches, each against another kind of change.
type Family uint8

// The families: shifts of location by Param baseline standard deviations (in normal scores), changes of spread by the
// factor Param, shifts in the Wilcoxon score, which holds its own on skewed and heavy-tailed laws, and shifts of how
// often something happens by Param standard deviations of its count in an episode.
const (
	Location Family = iota
	Spread
	Wilcoxon
	Frequency
)

// String gives the detector's name as users read it.
func (f Family) String() string { return [...]string{"location", "spread", "wilcoxon", "frequency"}[f] }

// Branch is one one-sided alternative of a test.
type Branch struct {
	Family Family
	Param  float64
}

// String gives the family and the parameter, such as "location +0.8".
func (b Branch) String() string {
	if b.Family == Spread {
		return fmt.Sprintf("%s x%g", b.Family, b.Param)
	}
	return fmt.Sprintf("%s %+g", b.Family, b.Param)
}

// rankTerms are what the branches of a rank go by: by family, the normal score z, z^2 and 2u-1. The last is 0.
type rankTerms [4]float64

func (r rank) terms() rankTerms {
	return rankTerms{Location: r.z, Spread: r.z * r.z, Wilcoxon: 2*r.u - 1}
}

// onTerm is the term that the branch's increment of a rank goes by, and its coefficient.
func (b Branch) onTerm() (term uint8, coefficient float64) {
	switch b.Family {
	case Spread:
		return uint8(Spread), (1 - 1/(b.Param*b.Param)) / 2
	case Frequency:
		return uint8(Frequency), 0 // it has no ranks
	default:
		return uint8(b.Family), b.Param
	}
}

// increment is the branch's log-likelihood-like increment g of a rank, before its normalisation.
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

// shiftBranches are the six alternatives of a shift.
func shiftBranches(f Family) []Branch {
	return []Branch{{f, .4}, {f, -.4}, {f, .8}, {f, -.8}, {f, 1.6}, {f, -1.6}}
}

// allBranches are the ten alternatives of a rank test.
func allBranches() []Branch {
	return append(shiftBranches(Location), Branch{Spread, 1.6}, Branch{Spread, .5}, Branch{Wilcoxon, 1.5}, Branch{Wilcoxon, -1.5})
}

// Calibration is what a branch knows of its increments over the baseline.
type Calibration struct {
	C    float64 // log mean exp g, so that exp(g - C) has mean 1 over the baseline
	Chi  float64 // sqrt(mean exp(2(g-C)) - 1): the standard error of C is Chi/sqrt(m)
	Info float64 // mean exp(g-C)(g-C): the drift of the walk under the branch's own alternative, in nats a unit
	LogA float64 // log of e^8 / E0[T], the prefactor of the false-alarm rate; 0 where the branch does not carry
}

// calibrate normalises increments over the baseline. LogA is left to prefactor, which is the dear part.
func calibrate(increments []float64) Calibration {
	m := float64(len(increments))
	mean := 0.0
	for _, g := range increments {
		mean += math.Exp(g) / m
	}
	cal := Calibration{C: math.Log(mean)}
	second := 0.0
	for _, g := range increments {
		x := g - cal.C
		e := math.Exp(x)
		second += e * e / m
		cal.Info += e * x / m
	}
	cal.Chi = math.Sqrt(max(0, second-1))
	return cal
}

// prefactor computes LogA from normalised increments over the baseline.
func prefactor(increments []float64) float64 {
	return chainHeight - math.Log(meanTimeToHeight(increments))
}

// carries reports whether a baseline of m units with dependence factor f says enough for the branch: its allowance
// for the baseline's own error must not eat more than half of what a unit of its alternative brings.
func (c Calibration) carries(m int, f float64) bool {
	return c.Info >= minInfo && armingAllowance*c.Chi*math.Sqrt(f/float64(m)) <= .5*c.Info
}

// A branch is armed by the allowance armingAllowance, and in any case with no less than minInfo nats a unit.
const (
	minInfo         = .001
	armingAllowance = 1.5
)

// CarriedBy is about the number of units from which on a baseline with dependence factor f would carry the branch, 0
// where none would.
func (c Calibration) CarriedBy(f float64) int {
	if c.Info < minInfo {
		return 0
	}
	ratio := 2 * armingAllowance * c.Chi / c.Info
	return int(math.Ceil(f * ratio * ratio))
}
