package finding

import (
	"fmt"
	"math"
)

// Evidence in nats of a version that changed at the onset where such versions are rare, and of one that did not.
const (
	versionChanged   = 5.
	versionUnchanged = -.5
)

// Pace is how often a kind of version comes. The zero value means that too few have come to tell.
type Pace struct {
	Every  float64 // mean number of units from one to the next
	Chance float64 // the probability that one falls within the uncertainty of the onset without having caused anything
}

// Changed returns how many nats a version that changed at the onset is for its cause: the less, the more probable it is
// that one changes there by accident.
func (p Pace) Changed() float64 { return min(versionChanged, -math.Log(p.Chance)) }

// Unchanged returns how many nats a version that did not change is for its cause: none where nearly every onset would
// have one if they changed by accident alone.
func (p Pace) Unchanged() float64 { return min(0, versionUnchanged-math.Log1p(-p.Chance)) }

// rareChance is the probability of an accident up to which a version that changed shows its cause on its own.
const rareChance = .05

// Rare reports whether a version that changed at the onset hardly did so by accident.
func (p Pace) Rare() bool { return p.Chance <= rareChance }

// Words returns ", as about every 250 episodes" if versions come often enough to change at an onset by accident, or "".
func (p Pace) Words(unit UnitName) string {
	if p.Rare() {
		return ""
	}
	return fmt.Sprintf(", as about every %.0f %s", p.Every, unit.Many())
}

// Paces are those of the versions of each kind.
type Paces struct{ Policy, Env, Reward Pace }

// Of returns the pace of the versions whose change is named so in Finding.Changed.
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
