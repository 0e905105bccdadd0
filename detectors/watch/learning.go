package watch

import (
	"fmt"

	"github.com/rewardwatch/rewardwatch/detectors/signals"
)

// Learning says whether a policy goes on learning while it is watched.
type Learning string

// A policy is frozen, learns between versions that are frozen each, or learns all the time.
const (
	LearningFrozen     Learning = "frozen"
	LearningVersions   Learning = "versions"
	LearningContinuous Learning = "continuous"
)

// Learns reports whether the policy goes on learning.
func (l Learning) Learns() bool { return l == LearningVersions || l == LearningContinuous }

// IsZero reports whether the value is left out of the hash of a configuration.
func (l Learning) IsZero() bool { return !l.Learns() }

func (l Learning) check(c *Config, report func(path, msg string)) {
	switch {
	case l != LearningFrozen && !l.Learns():
		report("learning", fmt.Sprintf(`must be "frozen", "versions" or "continuous", not %q`, string(l)))
	case l.Learns() && c.OnNewVersion == OnNewVersionRebaseline:
		report("learning", fmt.Sprintf(`%q cannot be combined with on_new_version "rebaseline": a new version would not be compared with earlier ones`, string(l)))
	}
}

// Sides says which changes of a quantity raise alarms.
type Sides uint8

// Changes in both directions, to lower or to higher values, or none: the quantity is shown.
const (
	SidesBoth Sides = iota
	SidesLower
	SidesHigher
	SidesNone
)

// Direction returns the sign of the changes that raise alarms, 0 if those are in both directions or none.
func (s Sides) Direction() int {
	switch s {
	case SidesLower:
		return -1
	case SidesHigher:
		return 1
	case SidesBoth, SidesNone:
	}
	return 0
}

// Tolerated returns by how much the mean of a quantity may move without an alarm while a policy learns, in units of the
// quantity; 0 for none. A law is fitted to the states that the policy visited. Where it is coarse, its scores move as the
// policy visits other states.
func (c *Config) Tolerated(signal string) float64 {
	if c.Learning.Learns() && signals.IsLaw(signal) && signal != signals.Law("start") {
		return toleratedScore
	}
	return 0
}

// toleratedScore bounds how far the mean score of steps under a law, or its mean square, moved in simulations of learners
// whose world stayed as it was.
const toleratedScore = .3

// Sides returns which changes of a quantity raise alarms. While a policy learns, its return, its actions and the
// states that it visits move by design. Alarms are then only raised by the laws of its steps other than that of the
// policy, and by the return and each signal with a direction if its level gets worse.
func (c *Config) Sides(signal, quantity string) Sides {
	switch {
	case !c.Learning.Learns(), signal == "feedback_delay":
		return SidesBoth
	case signals.IsLaw(signal):
		if signal == signals.Law("policy") {
			return SidesNone
		}
		if signals.OfMostMoved(quantity) {
			return SidesHigher // further away in any direction
		}
		return SidesBoth
	case quantity != signals.MainQuantity(signal):
		return SidesNone
	}
	if _, named := c.Direction.Of(signal); signal == "reward" && !named {
		return SidesNone // fewer steps may earn more, each of them less
	}
	switch c.Side(signal) {
	case 1:
		return SidesLower
	case -1:
		return SidesHigher
	}
	return SidesNone
}
