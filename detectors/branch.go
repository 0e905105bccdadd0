package detectors

import (
	"fmt"
	"math"
)

// Family is a family of rank branches, each against another kind of change.
type Family uint8

// The families: shifts of location by Param baseline standard deviations (in normal scores), changes of spread by the
// factor Param, and shifts in the Wilcoxon score, which holds its own on skewed and heavy-tailed laws.
const (
	Location Family = iota
	Spread
	Wilcoxon
)

// String gives the detector's name as users read it.
func (f Family) String() string { return [...]string{"location", "spread", "wilcoxon"}[f] }

// Branch is one one-sided alternative of a rank test.
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

// increment is the branch's log-likelihood-like increment g of a rank, before its normalisation.
func (b Branch) increment(r rank) float64 {
	switch b.Family {
	case Location:
		return b.Param * r.z
	case Spread:
		return r.z * r.z / 2 * (1 - 1/(b.Param*b.Param))
	default:
		return b.Param * (2*r.u - 1)
	}
}

// locationBranches are the alternatives that a two-valued sample can tell apart.
func locationBranches() []Branch {
	return []Branch{{Location, .4}, {Location, -.4}, {Location, .8}, {Location, -.8}, {Location, 1.6}, {Location, -1.6}}
}

// allBranches are the ten alternatives of a rank test.
func allBranches() []Branch {
	return append(locationBranches(), Branch{Spread, 1.6}, Branch{Spread, .5}, Branch{Wilcoxon, 1.5}, Branch{Wilcoxon, -1.5})
}

// calibration is what a branch knows of its increments over the baseline.
type calibration struct {
	C    float64 // log mean exp g, so that exp(g - C) has mean 1 over the leave-one-out ranks
	Chi  float64 // sqrt(mean exp(2(g-C)) - 1): the standard error of C is Chi/sqrt(m)
	Info float64 // mean exp(g-C)(g-C): the drift of the walk under the branch's own alternative, in nats a unit
	LogA float64 // log of e^8 / E0[T], the prefactor of the false-alarm rate
}

// calibrate normalises a branch on the leave-one-out ranks of its baseline. LogA is left to prefactor.
func (b Branch) calibrate(own []rank) calibration {
	g := make([]float64, len(own))
	mean := 0.0
	for i, r := range own {
		g[i] = b.increment(r)
		mean += math.Exp(g[i])
	}
	m := float64(len(own))
	cal := calibration{C: math.Log(mean / m)}
	second := 0.0
	for i := range g {
		g[i] -= cal.C
		e := math.Exp(g[i])
		second += e * e
		cal.Info += e * g[i] / m
	}
	cal.Chi = math.Sqrt(max(0, second/m-1))
	return cal
}

// prefactor computes LogA, which is the dear part.
func (c *calibration) prefactor(b Branch, own []rank) {
	g := make([]float64, len(own))
	for i, r := range own {
		g[i] = b.increment(r) - c.C
	}
	c.LogA = chainHeight - math.Log(meanTimeToHeight(g))
}

// carries reports whether a baseline of m units with dependence factor f says enough for the branch: its allowance
// for the baseline's own error must not eat more than half of what a unit of its alternative brings.
func (c calibration) carries(m int, f float64) bool {
	return c.Info >= .001 && 1.5*c.Chi*math.Sqrt(f/float64(m)) <= .5*c.Info
}
