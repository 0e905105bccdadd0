// Package factor determines which of the four laws of an agent's steps has changed: where episodes start, p(s0); the
// policy, p(a|s); the dynamics, p(s'|s,a), which include how episodes end; and the reward, p(r|s,a,s').
//
// Each law is learned from the steps of a baseline. A step then has a score under each of them: how unusual the action
// is in its situation, or the next observation after that action. Where a law still holds, its scores are standard
// normal whatever the other laws do. So a new policy, which brings the agent into other situations, moves the scores of
// the policy alone.
//
// Observations are numbers, of which linear regressions in the leaves of a tree predict what follows, or discrete states,
// in each of which it is counted.
package factor

// Factor is one of the four laws.
type Factor uint8

// The factors.
const (
	Start Factor = iota
	Policy
	Dynamics
	Reward
	Factors
)

// String returns the name of the factor.
func (f Factor) String() string { return [...]string{"start", "policy", "dynamics", "reward"}[f] }

// Layout says of which numbers the steps of a group consist.
type Layout struct {
	Observations int // components of the observation
	Numbers      int // components of a numeric action; 0 if actions are categories
	Categories   int // number of actions; 0 if actions are numbers
}

// actions returns the number of features that describe an action: a category is one feature of 0 or 1 for each action.
func (l Layout) actions() int { return l.Numbers + l.Categories }

// features returns the number of features of a step: observation, action, and the change to the next observation.
func (l Layout) features() int { return 2*l.Observations + l.actions() }

// Step is one step of an episode.
type Step struct {
	// Key is a hash of the event. It seeds the random part of the scores, so that a replay computes the same ones.
	Key         uint64
	Number      int32     // of the step in its episode, from 0
	Observation []float32 // the situation in which the agent acted
	Next        []float32 // the observation of the next step; nil if there is none
	Action      []float32 // of numbers
	Category    int       // of categories: its index, or -1 for one that the baseline does not have
	Reward      float32
	Terminated  bool
}

// Episode is the kept steps of an episode, in order.
type Episode []Step

// Features of a step are in one vector, in the order observation, action, change of the observation. So what a law is
// conditioned on is the beginning of that vector.

// part is a law that is learned by itself.
type part uint8

// The parts. The dynamics are the changes of the observation and whether the episode terminates. The reward of a step
// without a next observation cannot depend on it, and has a separate law.
const (
	partStart part = iota
	partPolicy
	partChange
	partEnding
	partReward
	partLastReward
	parts

	// partPreference has no law of its own: its coordinates are what that of the policy leaves of the share of each action.
	partPreference
)

// factor returns the factor to which the part belongs.
func (p part) factor() Factor {
	return [...]Factor{Start, Policy, Dynamics, Dynamics, Reward, Reward}[p]
}

// tolerance returns how far a law may move without notice, in standard deviations of what it predicts. Where a law is
// deterministic, what is left of it are the errors of the regression, which move with whatever moves the situations.
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

// has reports whether a step says something about the part.
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

// oneOf sets y to 1 at the category, and to 0 elsewhere.
func oneOf(y []float32, category int) int {
	clear(y)
	if category >= 0 {
		y[category] = 1
	}
	return category
}
