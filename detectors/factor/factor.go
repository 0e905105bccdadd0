// Package factor determines which of the four laws of an agent's steps has changed: where episodes start, p(s0); the
// policy, p(a|s); the dynamics, p(s'|s,a), which include how episodes end; and the reward, p(r|s,a,s').
//
// Each law is learned from the steps of a baseline. Under each law, a step has a score: how unusual the action is in
// its situation, or the next observation after that action. As long as a law holds, its scores are standard normal
// regardless of the other laws. A new policy, for example, leads the agent into other situations but only moves the
// scores of the policy.
//
// If observations are numbers, linear regressions in the leaves of a tree predict what follows. If observations are
// discrete states, what follows is counted for each state.
package factor

// Factor is one of the four laws.
type Factor uint8

// The factors. Factors is their number.
const (
	Start Factor = iota
	Policy
	Dynamics
	Reward
	Factors
)

// String returns the name of the factor.
func (f Factor) String() string { return [...]string{"start", "policy", "dynamics", "reward"}[f] }

// Layout is the number of components of the steps of a group.
type Layout struct {
	Observations int // components of the observation
	Numbers      int // components of a numeric action; 0 if actions are categories
	Categories   int // number of actions; 0 if actions are numbers
}

// actions returns the number of features of an action. Categories have one feature each, which is 0 or 1.
func (l Layout) actions() int { return l.Numbers + l.Categories }

// features returns the number of features of a step: its observation, its action, and the change to the next
// observation.
func (l Layout) features() int { return 2*l.Observations + l.actions() }

// Step is one step of an episode.
type Step struct {
	// Key is a hash of the event. It seeds the random part of the scores, so that a replay computes the same scores.
	Key         uint64
	Number      int32     // number of the step within its episode, from 0
	Observation []float32 // the situation in which the agent acted
	Next        []float32 // the observation of the next step; nil if there is none
	Action      []float32 // if actions are numbers
	Category    int       // if actions are categories: its index, or -1 for one that the baseline does not include
	Reward      float32
	Terminated  bool
}

// Episode is the kept steps of an episode, in order.
type Episode []Step

// The features of a step are in one vector, in the order observation, action, change of the observation. The features
// that a law is conditioned on are therefore the beginning of that vector.

// part is a component of a law that is learned separately.
type part uint8

// The parts. The dynamics consist of the change of the observation and whether the episode terminates. The reward of a
// step without a next observation cannot depend on that observation, so it has a separate law. parts is their number.
const (
	partStart part = iota
	partPolicy
	partChange
	partEnding
	partReward
	partLastReward
	parts

	// partPreference has no law of its own. Its coordinates are the shares of each action minus those that the law of
	// the policy predicts.
	partPreference
)

// factor returns the factor to which the part belongs.
func (p part) factor() Factor {
	return [...]Factor{Start, Policy, Dynamics, Dynamics, Reward, Reward}[p]
}

// tolerance returns how far a law may move unnoticed, in standard deviations of what it predicts. If a law is
// deterministic, its residuals are only the errors of the regression, which change with the situations.
func (p part) tolerance() float64 { return [...]float64{.02, .1, .02, 0, .02, .02}[p] }

// inputs returns the number of features that the part is conditioned on.
func (p part) inputs(l Layout) int {
	switch p {
	case partStart:
		return 0
	case partPolicy:
		return l.Observations
	case partReward:
		return l.features()
	default:
		return l.Observations + l.actions()
	}
}

// targets returns how many numbers the part predicts, and whether they are the probabilities of categories.
func (p part) targets(l Layout) (n int, categories bool) {
	switch p {
	case partStart, partChange:
		return l.Observations, false
	case partPolicy:
		return l.actions(), l.Categories > 0
	case partEnding:
		return 2, true
	default:
		return 1, false
	}
}

// has reports whether a step is an observation of the part.
func (p part) has(s *Step) bool {
	switch p {
	case partStart:
		return s.Number == 0
	case partChange, partReward:
		return s.Next != nil
	case partEnding:
		return s.Next != nil || s.Terminated
	case partLastReward:
		return s.Next == nil
	default:
		return true
	}
}

// oneOf sets y to 1 at the category, and to 0 elsewhere. It returns the category.
func oneOf(y []float32, category int) int {
	clear(y)
	if category >= 0 {
		y[category] = 1
	}
	return category
}
