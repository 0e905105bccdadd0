package factor

import (
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors"
)

// baseline holds the scores of the episodes that the laws were measured on.
type baseline struct {
	columns []column // mean and mean square of each coordinate in turn; those of the mean squares of preferences are empty
	signs   Signs
}

// column is one number of an episode's scores, summarized over the baseline.
type column struct {
	n        int // number of episodes with a value
	mean, sd float64
	sorted   []float32 // at most columnSize values
	spread   float64   // variance of the mean of many episodes, relative to that of independent ones
}

// columnSize is the maximum number of values that are kept per column.
const columnSize = 128

// summarize scores the episodes that the laws were measured on.
func (m *Model) summarize(episodes []Episode) {
	s := NewScorer(m)
	var units []Scored
	for i := 1; i < len(episodes); i += 2 {
		u := s.Score(episodes[i])
		units = append(units, u.Scored)
		m.baseline.signs.sum(&u.Signs)
	}
	m.baseline.columns = make([]column, 2*len(m.names))
	for c := range m.baseline.columns {
		m.baseline.columns[c] = columnOf(values(units, c))
	}
}

// values returns a column of the scores of units: a mean if c is even, a mean square if it is odd.
func values(units []Scored, c int) []float64 {
	var out []float64
	for i := range units {
		v := units[i].Mean[c/2]
		if c%2 == 1 {
			v = units[i].Square[c/2]
		}
		if v == v {
			out = append(out, float64(v))
		}
	}
	return out
}

func columnOf(x []float64) column {
	c := column{n: len(x), spread: 1}
	if len(x) < 2 {
		return c
	}
	for i, v := range x {
		d := v - c.mean
		c.mean += d / float64(i+1)
		c.sd += d * (v - c.mean)
	}
	c.sd = math.Sqrt(c.sd / float64(len(x)-1))
	c.spread = detectors.DependenceFactor(x)
	c.sorted = evenly(x, columnSize)
	return c
}

// supported returns, for each factor, the share of steps in support.
func supported(units []Scored) (share [Factors]float64) {
	for f := range Factors {
		asked, in := 0., 0.
		for i := range units {
			asked += float64(units[i].Asked[f])
			in += float64(units[i].Supported[f])
		}
		share[f] = math.NaN()
		if asked > 0 {
			share[f] = in / asked
		}
	}
	return share
}

// Shift is how far one coordinate has moved.
type Shift struct {
	Coordinate Coordinate
	Spread     bool    // the mean square moved, and not the mean
	Effect     float64 // in standard deviations over the episodes of the baseline
	Z          float64 // mean normal score of the ranks, in standard errors
}

// Movement describes how a factor has moved.
type Movement struct {
	Moved    bool
	Foremost Shift   // the moved coordinate with the largest effect or, if none has moved, the one with the largest |Z|
	Level    float64 // Z of the mean of that coordinate, if Foremost is its mean square
	Support  float64 // share of steps that could be compared; NaN if there were none
}

// stillLevel is the |Z| up to which a mean counts as not moved.
const stillLevel = 3

// scatters reports whether values spread wider around the same mean.
func (m *Movement) scatters() bool {
	return m.Moved && m.Foremost.Spread && m.Foremost.Effect > 0 && math.Abs(m.Level) < stillLevel
}

// Verdict describes how the factors of some episodes compare with the baseline.
type Verdict struct {
	Episodes int
	Learns   bool // whether the policy learns, so that its law moves by design
	Slight   bool // whether the dynamics have moved no further than the policy may have caused, see slight
	Factors  [Factors]Movement
	Broken   Broken
	Cause    Cause
	Examples []Example // the clearest example for each factor that has moved
}

// Moved reports whether any factor has moved.
func (v *Verdict) Moved() bool {
	return slices.ContainsFunc(v.Factors[:], func(m Movement) bool { return m.Moved })
}

// Conditions to rule out the other laws, so that only the policy remains as the cause.
const (
	leftEpisodes = 50 // minimum number of episodes; with fewer, a law that has moved might not show it
	leftLevel    = 4  // minimum |Z| of the law of the policy
	leftSupport  = .5
)

// Learn adapts the verdict to a policy that learns. Its actions, and the states that it visits, move by design and are
// no evidence of the cause. But if its law stands out, while the other laws have been judged and have not moved, the
// policy is the cause.
func (v *Verdict) Learn() {
	v.Learns = true
	policy := &v.Factors[Policy]
	if !v.Slight && (v.Cause == ByPolicy || v.Cause == Unknown) {
		switch {
		case v.adapts():
			v.Cause = ByEnvironment
		case v.Cause == ByPolicy && v.follows():
			v.Cause = Unknown
		}
	}
	if v.Cause != Unknown || v.Moved() || v.Episodes < leftEpisodes || math.Abs(policy.Foremost.Z) < leftLevel {
		return
	}
	for f, m := range v.Factors {
		known := Factor(f) == Start || !(m.Support < leftSupport) // without steps to compare, a law does not exist
		if Factor(f) != Policy && (!known || math.Abs(m.Foremost.Z) >= stillLevel) {
			return
		}
	}
	v.Cause, policy.Moved = ByPolicy, true
}

// Limits for a policy that only follows another environment. A broken policy exceeds them.
const (
	followsEffect = 2 // of preferences for actions
	followsRatio  = 4 // effect of the policy, relative to that of the dynamics

	// A broken policy visits other states, where few steps are in support, and moves the dynamics a little. With less
	// support than adaptsSupport, the dynamics must therefore have moved by at least adaptsEffect.
	adaptsSupport = .7
	adaptsEffect  = 1.5
)

// adapts reports whether the dynamics have moved and the policy learns to adapt to them, which moves its own law as
// well.
func (v *Verdict) adapts() bool {
	dynamics := v.effect(Dynamics)
	if dynamics <= v.effect(Reward) {
		return false
	}
	support := v.Factors[Dynamics].Support
	known := support >= adaptsSupport || support >= leastSupport && dynamics >= adaptsEffect
	return known && v.effect(Policy) < environmentRatio*dynamics
}

// follows reports whether a policy that learns, and whose law has moved, may only follow another environment: either it
// prefers some actions more and none of its actions is unusual, or the dynamics stand out, not much less than the
// policy.
func (v *Verdict) follows() bool {
	if v.Factors[Policy].Foremost.Coordinate.part == partPreference && v.effect(Policy) < followsEffect {
		return true
	}
	dynamics := &v.Factors[Dynamics].Foremost
	apart := math.Abs(dynamics.Z) >= stillLevel || math.Abs(dynamics.Effect) > movedEffect
	return apart && v.effect(Policy) < followsRatio*math.Abs(dynamics.Effect)
}

// MovesByDesign reports whether the only reason why signals have moved may be that the policy learns: neither the
// dynamics nor the starts stand out even slightly.
func (v *Verdict) MovesByDesign() bool {
	return v.Learns && math.Abs(v.Factors[Dynamics].Foremost.Z) < stillLevel && math.Abs(v.Factors[Start].Foremost.Z) < stillLevel
}

// Example compares the steps since the onset with what a law predicts in the same situations.
type Example struct {
	Factor    Factor
	Name      string // of the observation or the action; empty for rewards, ends, and the only number of an action
	Share     bool   // shares of steps (with the action Name, with a value of the label Name, or that end an episode) or means
	Otherwise bool   // the spread has changed, which Expected and Actual do not show
	Expected  float64
	Actual    float64
}

// judge compares the scores and signs of episodes with the baseline.
func (m *Model) judge(units []Scored, signs *Signs) Verdict {
	v := Verdict{Episodes: len(units)}
	if len(units) == 0 {
		return v
	}
	share := supported(units)
	var tests [Factors]int
	for c := range m.baseline.columns {
		if m.baseline.columns[c].n > 0 {
			tests[m.names[c/2].Factor]++
		}
	}
	for f := range v.Factors {
		v.Factors[f].Support = share[f]
	}
	level := 0. // of the preceding column, which is the mean if this one is the mean square
	for c := range m.baseline.columns {
		at := m.names[c/2]
		s := m.baseline.columns[c].compare(values(units, c))
		s.Coordinate, s.Spread = at, c%2 == 1
		movement := &v.Factors[at.Factor]
		if movement.take(s, tests[at.Factor]) && s.Spread {
			movement.Level = level
		}
		level = s.Z
	}
	v.Broken = m.broken(signs, &v)
	v.Cause = v.cause(m.Vocabulary.tabular())
	v.Slight = m.slight(&v)
	v.Examples = m.examples(&v, signs)
	return v
}

// A factor has moved if the probability of such scores without a movement is below movedChance and the effect exceeds
// movedEffect.
const (
	movedChance = 1e-4
	movedEffect = .5
)

// take makes a coordinate the foremost one of the factor, and returns true, if it moved further than the others so far.
// tests is the number of columns of the factor, for the Bonferroni correction. The ratios that determine a cause refer
// to how unusual steps are, so preferences only count if that has not moved.
func (m *Movement) take(s Shift, tests int) bool {
	if m.Moved && s.Coordinate.part == partPreference && m.Foremost.Coordinate.part != partPreference {
		return false
	}
	chance := math.Erfc(math.Abs(s.Z)/math.Sqrt2) * float64(tests)
	moved := chance < movedChance && math.Abs(s.Effect) > movedEffect
	switch {
	case moved && (!m.Moved || math.Abs(s.Effect) > math.Abs(m.Foremost.Effect)),
		!m.Moved && math.Abs(s.Z) > math.Abs(m.Foremost.Z):
		m.Moved, m.Foremost = moved, s
		return true
	}
	return false
}

// compare returns how far values have moved from those of the column.
func (c *column) compare(x []float64) Shift {
	m, n, size := float64(c.n), float64(len(x)), float64(len(c.sorted))
	if n < 5 || m < 20 {
		return Shift{}
	}
	sum, mean := 0., 0.
	for _, v := range x {
		mean += v / n
		low, _ := slices.BinarySearch(c.sorted, float32(v))
		high := low
		for high < len(c.sorted) && c.sorted[high] == float32(v) {
			high++
		}
		u := (float64(low+high)/2 + .5) / (size + 1)
		sum += math.Sqrt2 * math.Erfinv(2*u-1)
	}
	s := Shift{Z: sum / n / math.Sqrt(c.spread*(1/n+1/m))}
	if c.sd > 0 {
		s.Effect = (mean - c.mean) / c.sd
	}
	return s
}

// Cause is the cause of a drift, as derived from the factors.
type Cause uint8

// The causes.
const (
	Unknown Cause = iota
	ByPolicy
	ByEnvironment
	ByReward
	ByObservations
)

// String returns the name of the cause.
func (c Cause) String() string {
	return [...]string{"unknown", "policy", "environment", "reward_function", "observations"}[c]
}

// Broken is the way in which the observations, and not the dynamics, have changed.
type Broken uint8

// Signs of broken observations. Whole means none.
const (
	Whole   Broken = iota
	Noisy          // changes of the observation alternate, as with a noisy sensor
	Delayed        // the observation follows the action of the step before
	Stuck          // a component no longer changes
	Shifted        // a component has another zero or another scale
)

// Ratios between effects from which on one factor outweighs others.
const (
	rewardRatio      = 1.2
	environmentRatio = 2.5
	policyRatio      = 1.2
	leastSupport     = .3

	// Another reward function does not lead an agent into new situations. With less support, the law of rewards may
	// have moved because it is inaccurate at the edge of its support.
	rewardSupport = .6

	// Laws of discrete states are not moved by an agent that visits other states. If the dynamics have moved, the
	// policy may have adapted to them, and is therefore not called the cause.
	exactRatio = 1
)

// effect returns how far a factor has moved; 0 if it has not.
func (v *Verdict) effect(f Factor) float64 {
	if !v.Factors[f].Moved {
		return 0
	}
	return math.Abs(v.Factors[f].Foremost.Effect)
}

// suspects reports whether a factor may have moved although not enough episodes show it, because it is too early, or
// because the agent has learned to avoid the change.
func (v *Verdict) suspects(f Factor) bool {
	s := &v.Factors[f].Foremost
	return !v.Factors[f].Moved && math.Abs(s.Z) > stillLevel && math.Abs(s.Effect) > movedEffect
}

// cause returns the cause. It checks causes in the order in which effects follow from each other: broken observations
// move every law, a reward function only its own. exact is true for laws of discrete states.
func (v *Verdict) cause(exact bool) Cause {
	start, policy, dynamics, reward := v.effect(Start), v.effect(Policy), v.effect(Dynamics), v.effect(Reward)
	switch {
	case v.Broken != Whole && (dynamics > 0 || v.Factors[Dynamics].Support < leastSupport):
		return ByObservations
	case start > max(policy, dynamics, reward):
		return ByEnvironment
	case reward > rewardRatio*max(dynamics, policy) && !(v.Factors[Reward].Support < rewardSupport):
		return ByReward
	case dynamics > environmentRatio*policy, exact && dynamics > exactRatio*policy:
		return ByEnvironment
	case exact && policy > 0 && (dynamics > 0 || v.suspects(Dynamics)):
		return Unknown
	case policy > policyRatio*dynamics:
		return ByPolicy
	}
	return Unknown
}

// Thresholds of the signs, see broken, unexplained and shifted.
const (
	alternating   = -.15
	alternatingIn = .7
	laggedRatio   = .1
	stuckShare    = .01
	repeatedShare = .5

	// If a value is drawn independently at each step, its changes leave .7; if it slowly returns to a mean, they leave
	// nearly 1.
	mostUnexplained = .6

	clearEffect = 1 // of the dynamics, which move slightly by chance in new situations

	// Over 65 learners of Stable-Baselines3, other physics moved dynamics that leave less than .3 by at least 4, and
	// broken learners by at most 1.6.
	mostErroneous = .3
	slightEffect  = 3
)

// broken returns the first sign of broken observations that the baseline does not show as well. A baseline without
// consecutive steps cannot be compared with.
func (m *Model) broken(s *Signs, v *Verdict) Broken {
	base := &m.baseline.signs
	if base.Pairs == nil || m.Vocabulary.tabular() && v.effect(Dynamics) == 0 { // an agent may stay in a new state
		return Whole
	}
	alternate, known, now, before := 0, 0, float32(0), float32(0)
	for k := range s.Pairs {
		p, q := &s.Pairs[k], &base.Pairs[k]
		if p.Steps > 50 && p.Changed < stuckShare*p.Steps && q.Changed > .1*q.Steps {
			return Stuck
		}
		if p.N >= 30 {
			known++
			if p.correlation() < alternating && q.correlation() > alternating {
				alternate++
			}
		}
		now, before = now+p.Now, before+p.Before
	}
	if m.Vocabulary.tabular() {
		return s.delayedStates(base)
	}
	switch {
	case before < laggedRatio*now,
		float32(s.Repeated) > repeatedShare*float32(s.Begun) && float32(base.Repeated) < .1*float32(base.Begun):
		return Delayed
	case v.Factors[Start].scatters() && v.effect(Dynamics) > v.effect(Start):
		return Noisy
	case known > 0 && float64(alternate) >= alternatingIn*float64(known):
		return Noisy
	case m.shifted(v):
		return Shifted
	}
	return Whole
}

// unexplained returns the share of the spread of a component's changes that the dynamics do not explain: the mean
// interquartile range of the residuals, relative to that of a normal distribution with the standard deviation of the
// changes. It returns 1 for other coordinates.
func (m *Model) unexplained(c Coordinate) float64 {
	sum, leaves := 0., 0.
	for i := range m.regressions {
		r := &m.regressions[i]
		if c.part != partChange || r.part != partChange || r.cells != nil {
			continue
		}
		for k := range r.leaves {
			if n := int(r.leaves[k].size); n > 0 {
				law := r.leaves[k].law[c.Index*sketchSize:]
				sum += float64(number(law[placeOf(3*n/4)]) - number(law[placeOf(n/4)]))
				leaves++
			}
		}
	}
	if leaves == 0 {
		return 1
	}
	return sum / leaves / 1.349
}

// slight reports whether the dynamics have moved only a little beside the policy, although they explain most of a
// component's changes. What they do not explain is then mostly the error of the law, which differs for the actions of
// another policy. Another environment moves such dynamics much further.
func (m *Model) slight(v *Verdict) bool {
	dynamics := v.effect(Dynamics)
	return dynamics > 0 && dynamics < slightEffect && v.effect(Policy) > 0 &&
		m.unexplained(v.Factors[Dynamics].Foremost.Coordinate) < mostErroneous
}

// shifted reports whether the meaning of the observations has changed, such as their zero or scale. There are two
// cases. Either the start and the dynamics have both moved, and the dynamics explain most of a component's changes: if
// they do not, as with visitors who arrive at random, another population moves both as well. Or the dynamics have
// clearly moved and the rewards still further: another reward function does not move the dynamics, and another
// environment moves the rewards less. A simultaneous change of both cannot be distinguished from a shift.
func (m *Model) shifted(v *Verdict) bool {
	start, policy, dynamics, reward := v.effect(Start), v.effect(Policy), v.effect(Dynamics), v.effect(Reward)
	switch {
	case dynamics == 0:
		return false
	case start > 0:
		return !v.Factors[Start].scatters() && m.unexplained(v.Factors[Dynamics].Foremost.Coordinate) < mostUnexplained
	}
	return dynamics > clearEffect && reward > rewardRatio*max(dynamics, policy)
}

// delayedStates returns Delayed if the first observation is repeated far more often than on the baseline, and Whole
// otherwise. The thresholds are stricter than for numbers, because actions often do not change a discrete state.
func (s *Signs) delayedStates(base *Signs) Broken {
	if float32(s.Repeated) > .95*float32(s.Begun) && float32(base.Repeated) < .5*float32(base.Begun) {
		return Delayed
	}
	return Whole
}
