package factor

import (
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors"
)

// baseline is the scores of the episodes that the laws were measured on.
type baseline struct {
	columns []column // mean and mean square of each coordinate, in turn; none of the mean squares of preferences
	signs   Signs
}

// column is one number of an episode's scores over the baseline.
type column struct {
	n        int // episodes with a value
	mean, sd float64
	sorted   []float32 // values, at most columnSize
	spread   float64   // variance of the mean of many episodes, in that of independent ones
}

// columnSize is the number of values that are kept of a column.
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

// values returns a column of the scores of units: the means of even ones, the mean squares of odd ones.
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

// supported returns the share of steps in support of each factor.
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
	Effect     float64 // in standard deviations of the scores of a baseline episode
	Z          float64 // mean normal score of the ranks, in standard errors
}

// Movement is what a factor has done.
type Movement struct {
	Moved    bool
	Foremost Shift   // the moved coordinate of the largest effect, or the one with the largest |Z|
	Level    float64 // Z of the mean of that coordinate, if its mean square is the foremost
	Support  float64 // the share of steps that could be compared; NaN if there were none
}

// stillLevel is the |Z| up to which a mean has not moved.
const stillLevel = 3

// scatters reports whether values spread further, around the same mean.
func (m *Movement) scatters() bool {
	return m.Moved && m.Foremost.Spread && m.Foremost.Effect > 0 && math.Abs(m.Level) < stillLevel
}

// Verdict is what episodes show of each factor, compared with the baseline.
type Verdict struct {
	Episodes int
	Learns   bool // the policy learns, so that its law moves by design
	Factors  [Factors]Movement
	Broken   Broken
	Cause    Cause
	Examples []Example // of each factor that has moved, what shows it best
}

// Moved reports whether any factor has moved.
func (v *Verdict) Moved() bool {
	return slices.ContainsFunc(v.Factors[:], func(m Movement) bool { return m.Moved })
}

// What rules the other laws out, so that the policy is left.
const (
	leftEpisodes = 50 // at least, or a law that has moved might not show it
	leftLevel    = 4  // |Z| of the law of the policy
	leftSupport  = .5
)

// Learn says that the policy learns. Its actions, and the states that it visits, then move by design and tell nothing of
// the cause. But where its law stands out while the others are judged and have not moved, it is what is left.
func (v *Verdict) Learn() {
	v.Learns = true
	policy := &v.Factors[Policy]
	if v.Cause == ByPolicy || v.Cause == Unknown {
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
		known := Factor(f) == Start || !(m.Support < leftSupport) // without steps to compare there is no such law
		if Factor(f) != Policy && (!known || math.Abs(m.Foremost.Z) >= stillLevel) {
			return
		}
	}
	v.Cause, policy.Moved = ByPolicy, true
}

// What a policy that follows another world shows at most: a broken one goes further.
const (
	followsEffect = 2 // of how much it likes an action
	followsRatio  = 4 // of how unusual its actions are, in how far the dynamics stand out

	// A broken policy goes elsewhere, where few steps are in support, and moves the dynamics a little. With fewer steps in
	// support, they must have moved further than that.
	adaptsSupport = .7
	adaptsEffect  = 1.5
)

// adapts reports whether the dynamics have moved and a policy that learns adapts to them, which moves its own law as well.
func (v *Verdict) adapts() bool {
	dynamics := v.effect(Dynamics)
	if dynamics <= v.effect(Reward) {
		return false
	}
	support := v.Factors[Dynamics].Support
	known := support >= adaptsSupport || support >= leastSupport && dynamics >= adaptsEffect
	return known && v.effect(Policy) < environmentRatio*dynamics
}

// follows reports whether a policy that learns, whose law has moved, may only follow another world: it likes some actions
// more, and none that it does is unusual, or the dynamics stand out and not much less than it does.
func (v *Verdict) follows() bool {
	if v.Factors[Policy].Foremost.Coordinate.part == partPreference && v.effect(Policy) < followsEffect {
		return true
	}
	dynamics := &v.Factors[Dynamics].Foremost
	apart := math.Abs(dynamics.Z) >= stillLevel || math.Abs(dynamics.Effect) > movedEffect
	return apart && v.effect(Policy) < followsRatio*math.Abs(dynamics.Effect)
}

// MovesByDesign reports whether signals may have moved because the policy learns, and for nothing else: no law of the
// world stands out, even a little.
func (v *Verdict) MovesByDesign() bool {
	return v.Learns && math.Abs(v.Factors[Dynamics].Foremost.Z) < stillLevel && math.Abs(v.Factors[Start].Foremost.Z) < stillLevel
}

// Example is what a law expects of the steps since the onset in the same situations, and what they are.
type Example struct {
	Factor    Factor
	Name      string // of the observation or of the action; "" for rewards, ends, and the only number of an action
	Share     bool   // of steps: those with the action Name, with one value of the label Name, or those that end an episode; else a mean
	Otherwise bool   // its mean may be as expected, and yet its values are not; Expected and Actual do not show it
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
	level := 0. // of the column before, which is the mean where this is the mean square
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
	v.Examples = m.examples(&v, signs)
	return v
}

// Thresholds from which a factor has moved: the probability of such scores where it has not, and the effect.
const (
	movedChance = 1e-4
	movedEffect = .5
)

// take notes a coordinate of the factor, which has so many numbers in all, if it is the foremost one so far, and reports
// whether it is. The ratios of causes are those of how unusual steps are, so that preferences decide only where that has
// not moved.
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

// compare returns how far values have moved from the column.
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

// Cause is what the factors say of the cause of a drift.
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

// Broken says why the observations, and not the dynamics, have changed.
type Broken uint8

// Signs of broken observations.
const (
	Whole   Broken = iota
	Noisy          // changes of the observation alternate, as those of a noisy sensor do
	Delayed        // the observation follows the action of the step before
	Stuck          // a component does not change any more
	Shifted        // a component has another zero or another scale
)

// Ratios of effects from which one factor outweighs others.
const (
	rewardRatio      = 1.2
	environmentRatio = 2.5
	policyRatio      = 1.2
	leastSupport     = .3

	// Other rewards bring an agent nowhere new. Where it is, laws err on steps that are only just in support.
	rewardSupport = .6

	// Laws of discrete states are not moved by an agent that goes elsewhere. Where dynamics have moved, it may be these
	// that the policy adapts to, and it is not called the cause.
	exactRatio = 1
)

// effect returns how far a factor has moved, 0 if it has not.
func (v *Verdict) effect(f Factor) float64 {
	if !v.Factors[f].Moved {
		return 0
	}
	return math.Abs(v.Factors[f].Foremost.Effect)
}

// suspects reports whether a factor may have moved although not enough episodes show it: not yet, or no longer, since the
// agent has learned to avoid what changed.
func (v *Verdict) suspects(f Factor) bool {
	s := &v.Factors[f].Foremost
	return !v.Factors[f].Moved && math.Abs(s.Z) > stillLevel && math.Abs(s.Effect) > movedEffect
}

// cause returns the cause in the order in which effects follow one another: broken observations move every law, a
// reward function none but its own. exact is set where the laws are those of discrete states.
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

// Thresholds of the signs.
const (
	alternating   = -.15
	alternatingIn = .7
	laggedRatio   = .1
	stuckShare    = .01
	repeatedShare = .5

	// Of values that are drawn again at each step, changes leave .7; of those that return to a mean slowly, nearly 1.
	mostUnexplained = .6

	clearEffect = 1 // of the dynamics, which move a little by chance where situations are new
)

// broken looks for signs that the observations are broken which the baseline does not have. A baseline without
// consecutive steps has nothing to compare with.
func (m *Model) broken(s *Signs, v *Verdict) Broken {
	base := &m.baseline.signs
	if base.Pairs == nil || m.Vocabulary.tabular() && v.effect(Dynamics) == 0 { // an agent may stand still where it never was
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

// unexplained returns the share of the spread of a component's changes that the dynamics leave, 1 for other coordinates: the
// mean interquartile range of what is left of them, in that of a normal law with their standard deviation.
func (m *Model) unexplained(c Coordinate) float64 {
	sum, leaves := 0., 0.
	for i := range m.regressions {
		r := &m.regressions[i]
		if c.part != partChange || r.part != partChange || r.cells != nil {
			continue
		}
		for k := range r.leaves {
			if n := len(r.leaves[k].law) / r.laws(); n > 0 {
				law := r.leaves[k].law[c.Index*n:]
				sum += float64(number(law[3*n/4]) - number(law[n/4]))
				leaves++
			}
		}
	}
	if leaves == 0 {
		return 1
	}
	return sum / leaves / 1.349
}

// shifted reports whether the observations mean something else than before. Only that moves the mean of the first ones and
// what follows all of them at once, where the dynamics explain most of what follows; visitors who are drawn at random may be
// others at first and later. Only that clearly moves what follows steps, and rewards still further: rewards that are scored
// otherwise do not touch the dynamics, and in another world they move less. Both at once look the same.
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

// delayedStates reports whether discrete states are late. Other than numbers, an action often leaves them as they are, and
// they do not scatter around what is expected.
func (s *Signs) delayedStates(base *Signs) Broken {
	if float32(s.Repeated) > .95*float32(s.Begun) && float32(base.Repeated) < .5*float32(base.Begun) {
		return Delayed
	}
	return Whole
}
