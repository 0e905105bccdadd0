package alerts

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/detectors/bank"
)

// class is a kind of signals that a cause moves, or leaves alone, together.
type class int

const (
	rewards     class = iota // the reward and its components; the return where no rewards are told
	likeRewards              // the reward for like actions
	actions
	observations
	outcomes
	lengths
	classes
)

// String gives the class's name in sentences.
func (c class) String() string {
	return [...]string{
		"rewards", "rewards for like actions", "actions", "observations", "outcomes", "episode lengths",
	}[c]
}

// The odds from which on a class is said to have moved, or not to have moved, since an onset.
const (
	movedOdds   = 20.
	unmovedOdds = .3
)

// One class, however many units it is seen over, changes the odds between two causes no further than its own odds, and
// these are held within bounds: values may depend on each other in ways that nobody measured.
const (
	leastOdds = 1e-3
	mostOdds  = 1e4
)

// The size of the shift that fired is held within bounds where it is the measure for others, in standard deviations.
const (
	leastSize = .3
	mostSize  = 2.
)

// movement is what the signals of one class have done since an onset.
type movement struct {
	quantities int // 0 where the telemetry has none, or none with a value since the onset
	// odds is how many times likelier the values are if one quantity of the class has moved than if none has. It is near
	// 1 where there are too few units to tell, and the mean over the quantities: with many of them one alone has to stand
	// out so much the more.
	odds     float64
	foremost bank.Shift // the quantity that stands out most
}

// likelihood is how likely the values are where the class moves with probability p, against those of one that has not.
func (m movement) likelihood(p float64) float64 { return p*m.odds + 1 - p }

func (m movement) moved() bool   { return m.quantities > 0 && m.odds >= movedOdds }
func (m movement) unmoved() bool { return m.quantities > 0 && m.odds <= unmovedOdds }

// movements are those of all classes.
type movements [classes]movement

// observe sums up what all quantities have done since an onset.
func observe(shifts []bank.Shift) movements {
	var all movements
	size := firedSize(shifts)
	rewarded := hasReward(shifts)
	for _, s := range shifts {
		c, ok := classOf(s, rewarded)
		if !ok || s.Z == 0 && s.SpreadZ == 0 {
			continue // that a constant stayed the same tells nothing: no cause need move it
		}
		m := &all[c]
		m.quantities++
		m.odds += (oddsOf(s.Z, s.StandardError, size) + oddsOf(s.SpreadZ, s.StandardError, size)) / 2
		if m.quantities == 1 || prominence(s) > prominence(m.foremost) {
			m.foremost = s
		}
	}
	for c := range all {
		m := &all[c]
		if m.quantities == 0 {
			m.odds = 1
			continue
		}
		m.odds = max(leastOdds, min(mostOdds, m.odds/float64(m.quantities)))
	}
	return all
}

func hasReward(shifts []bank.Shift) bool {
	for _, s := range shifts {
		if s.Signal == "reward" {
			return true
		}
	}
	return false
}

// classOf gives the class of a quantity. The return is made of rewards and lengths, and says no more where both are
// told.
func classOf(s bank.Shift, rewarded bool) (class, bool) {
	kind, _, _ := strings.Cut(s.Signal, ".")
	switch {
	case s.Quantity == bank.QuantityLikeActions:
		return likeRewards, true
	case kind == "reward", kind == "reward_component", kind == "return" && !rewarded:
		return rewards, true
	case kind == "action":
		return actions, true
	case kind == "observation":
		return observations, true
	case kind == "outcome":
		return outcomes, true
	case kind == "episode_length":
		return lengths, true
	}
	return 0, false
}

// prominence is how far a quantity stands out from its baseline, in standard errors.
func prominence(s bank.Shift) float64 { return max(math.Abs(s.Z), math.Abs(s.SpreadZ)) }

// firedSize is the largest shift among the signals that drift, in standard deviations of the baseline's scores.
func firedSize(shifts []bank.Shift) float64 {
	size := leastSize
	for _, s := range shifts {
		if s.Drifted {
			size = max(size, prominence(s)*s.StandardError)
		}
	}
	return min(size, mostSize)
}

// oddsOf is how many times likelier a score of z standard errors is after a shift than without one. The shift is taken
// to be a quarter, a half or all of the size that fired, up or down, with equal probability:
//
//	mean over d of exp(-d^2/2) cosh(z d),   d = shift / standard error
//
// With few units the error is large, d is small, and the odds are near 1 whatever z is.
func oddsOf(z, standardError, size float64) float64 {
	const parts = 3
	sum := 0.0
	for shift := size; shift > size/5; shift /= 2 {
		d := shift / standardError
		sum += (math.Exp(min(z*d-d*d/2, 300)) + math.Exp(min(-z*d-d*d/2, 300))) / 2
	}
	return sum / parts
}

// words says what a class has done.
func (m movement) words(c class) string {
	f := m.foremost
	switch {
	case m.moved():
		what, z := how(f)
		return fmt.Sprintf("%s moved (%s: %s, z %.1f over %d units)", c, quantityOf(f), what, z, f.Units)
	case m.unmoved():
		return fmt.Sprintf("%s did not move (largest |z| of %s %.1f over %d units)", c, m.counted(), prominence(f), f.Units)
	}
	return fmt.Sprintf("%s cannot be told yet (largest |z| of %s %.1f over %d units)", c, m.counted(), prominence(f), f.Units)
}

// plainShift is how many standard errors a shift stands out by from which on it is told as one. A large shift also puts the
// values further from the middle of the baseline, which alone would be told as a wider spread.
const plainShift = 3.

// how says what a quantity has done, and by how many standard errors it stands out in that.
func how(f bank.Shift) (what string, z float64) {
	if math.Abs(f.Z) >= plainShift || math.Abs(f.SpreadZ) <= 1.2*math.Abs(f.Z) {
		return fmt.Sprintf("%+.2g baseline sd", f.StandardShift), f.Z
	}
	if f.SpreadZ < 0 {
		return "narrower spread", f.SpreadZ
	}
	return "wider spread", f.SpreadZ
}

// quantityOf names a quantity of a signal, the only one of a signal by the signal alone.
func quantityOf(f bank.Shift) string {
	if f.Signal == "return" || f.Signal == "episode_length" {
		return f.Signal
	}
	return bank.QuantityWords(f.Quantity) + " of " + f.Signal
}

func (m movement) counted() string {
	if m.quantities == 1 {
		return "1 quantity"
	}
	return fmt.Sprintf("%d quantities", m.quantities)
}

// single reports whether the telemetry has what singles out a cause: actions for the policy; what the environment does,
// for the environment and, because it did not, for the reward function.
func (all *movements) single(out Cause) bool {
	if out == CausePolicy {
		return all[actions].quantities > 0
	}
	return all[observations].quantities+all[outcomes].quantities > 0
}

// tell reports whether a class says anything about causes. That rewards moved does not, where nothing is told of what the
// environment does: every cause moves them. Those for like actions still tell whether a policy or an environment moved
// the actions.
func (all *movements) tell(c class) bool {
	told := all[c].quantities > 0
	switch c {
	case rewards:
		return told && all.single(CauseEnvironment)
	case likeRewards:
		return told && (all.single(CauseEnvironment) || all[actions].moved())
	default:
		return told
	}
}

// maxForemost is how many shifts an alarm keeps.
const maxForemost = 12

// foremost gives, of each signal, the quantity that stands out most, the strongest first.
func foremost(shifts []bank.Shift) []bank.Shift {
	var out []bank.Shift
	for _, s := range shifts {
		i := slices.IndexFunc(out, func(have bank.Shift) bool { return have.Signal == s.Signal })
		switch {
		case i < 0:
			out = append(out, s)
		case prominence(s) > prominence(out[i]):
			out[i] = s
		}
	}
	slices.SortStableFunc(out, func(a, b bank.Shift) int { return cmp.Compare(prominence(b), prominence(a)) })
	return slices.Clone(keepFirst(out, maxForemost))
}
