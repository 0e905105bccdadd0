package finding

import (
	"fmt"
	"math"
)

// The evidence, in nats, of a version that changed at the onset while changes are rare, and of a version that did
// not.
const (
	versionChanged   = 5.
	versionUnchanged = -.5
)

// Pace is how often the versions of one kind change. The zero value means that there were too few changes to
// estimate it.
type Pace struct {
	Every  float64 // mean number of units between changes
	Chance float64 // probability that a change falls within the uncertainty of the onset by accident
}

// Changed returns the evidence, in nats, that a version that changed at the onset is the cause. It decreases with
// the probability that a version changes there by accident.
func (p Pace) Changed() float64 { return min(versionChanged, -math.Log(p.Chance)) }

// Unchanged returns the evidence, in nats and at most 0, that a version that did not change is the cause. It is 0
// if nearly every onset would have a change by accident.
func (p Pace) Unchanged() float64 { return min(0, versionUnchanged-math.Log1p(-p.Chance)) }

// rareChance is the largest probability of an accident at which a changed version alone indicates its cause.
const rareChance = .05

// Rare reports whether a version that changed at the onset is unlikely to have changed there by accident.
func (p Pace) Rare() bool { return p.Chance <= rareChance }

// Words returns ", as about every 250 episodes" if versions come often enough to change at an onset by accident, or "".
func (p Pace) Words(unit UnitName) string {
	if p.Rare() {
		return ""
	}
	return fmt.Sprintf(", as about every %.0f %s", p.Every, unit.Many())
}

// Paces holds the pace of each kind of version.
type Paces struct{ Policy, Env, Reward Pace }

// Of returns the pace of the kind of version that Finding.Changed calls by the given name.
func (p *Paces) Of(changed string) Pace {
	switch changed {
	case "policy":
		return p.Policy
	case "environment":
		return p.Env
	case "reward_function":
		return p.Reward
	}
	return Pace{}
}
