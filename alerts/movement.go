package alerts

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
)

// class is a group of signals that a cause either moves together or leaves alone.
type class int

const (
	rewards     class = iota // the reward and its components; the return if there are no rewards
	likeRewards              // the reward for the same actions
	actions
	observations
	outcomes
	lengths
	classes
)

// String returns the name of the class as used in sentences.
func (c class) String() string {
	return [...]string{
		"rewards", "rewards for the same actions", "actions", "observations", "outcomes", "episode lengths",
	}[c]
}

// A class has moved since an onset if its odds are at least movedOdds. It has not moved if they are at most
// unmovedOdds.
const (
	movedOdds   = 20.
	unmovedOdds = .3
)

// Bounds of the odds of one class. More units never move the odds beyond them, because values may depend on each other
// in ways that were not measured.
const (
	leastOdds = 1e-3
	mostOdds  = 1e4
)

// Bounds of the size of the shift that fired, in standard deviations. Other shifts are compared with this size.
const (
	leastSize = .3
	mostSize  = 2.
)

// movement describes how the signals of one class have moved since an onset.
type movement struct {
	quantities int // 0 if the telemetry has none, or none with a value since the onset
	// odds is how many times likelier the values are if one quantity of the class has moved than if none has. It is near 1
	// if there are too few units to tell. It is the mean over the quantities: the more there are, the more a single one
	// has to stand out.
	odds     float64
	foremost finding.Shift // the quantity that stands out most
}

// likelihood returns how likely the values are if the class moves with probability p, relative to a class that has not
// moved.
func (m movement) likelihood(p float64) float64 { return p*m.odds + 1 - p }

func (m movement) moved() bool   { return m.quantities > 0 && m.odds >= movedOdds }
func (m movement) unmoved() bool { return m.quantities > 0 && m.odds <= unmovedOdds }

// movements are the movements of all classes.
type movements [classes]movement

// observe summarizes how all quantities have moved since an onset.
func observe(shifts []finding.Shift) movements {
	var all movements
	size := firedSize(shifts)
	rewarded := hasReward(shifts)
	for _, s := range shifts {
		c, ok := classOf(s, rewarded)
		if !ok || s.Z == 0 && s.SpreadZ == 0 {
			continue // an unchanged constant is no evidence: no cause has to move it
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

func hasReward(shifts []finding.Shift) bool {
	for _, s := range shifts {
		if s.Signal == "reward" {
			return true
		}
	}
	return false
}

// classOf returns the class of a quantity. The return consists of rewards and lengths, and adds nothing if the
// telemetry has both.
func classOf(s finding.Shift, rewarded bool) (class, bool) {
	kind, _, _ := strings.Cut(s.Signal, ".")
	switch {
	case s.Quantity == signals.LikeActions:
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

// prominence returns how far a quantity stands out from its baseline, in standard errors.
func prominence(s finding.Shift) float64 { return max(math.Abs(s.Z), math.Abs(s.SpreadZ)) }

// firedSize returns the largest shift among the drifting signals, in standard deviations of the baseline's scores.
func firedSize(shifts []finding.Shift) float64 {
	size := leastSize
	for _, s := range shifts {
		if s.Drifted {
			size = max(size, prominence(s)*s.StandardError)
		}
	}
	return min(size, mostSize)
}

// oddsOf returns how many times likelier a score of z standard errors is after a shift than without one. The shift is
// assumed to be a quarter, a half or all of the size that fired, up or down, with equal probability:
//
//	mean over d of exp(-d^2/2) cosh(z d),   d = shift / standard error
//
// With few units the standard error is large, d is small, and the odds are near 1 whatever z is.
func oddsOf(z, standardError, size float64) float64 {
	const parts = 3
	sum := 0.0
	for shift := size; shift > size/5; shift /= 2 {
		d := shift / standardError
		sum += (math.Exp(min(z*d-d*d/2, 300)) + math.Exp(min(-z*d-d*d/2, 300))) / 2
	}
	return sum / parts
}

// words describes how a class has moved.
func (m movement) words(c class, unit finding.UnitName) string {
	f := m.foremost
	over := unit.Count(int64(f.Units))
	switch {
	case m.moved():
		return changeWords(f, over)
	case m.unmoved():
		return fmt.Sprintf("%s did not change (%s, %s)", c, m.largest(), over)
	}
	return fmt.Sprintf("no clear change in %s yet (%s, %s)", c, m.largest(), over)
}

// plainShift is the number of standard errors at which a change is described as a shift. A large shift also moves the
// values away from the middle of the baseline, so the spread alone would read as wider.
const plainShift = 3.

// changeWords describes how a quantity changed, and by how many standard errors. over is the number of units in which
// it was observed, in words.
func changeWords(f finding.Shift, over string) string {
	subject := finding.QuantityOf(f.Signal, f.Quantity)
	if math.Abs(f.Z) >= plainShift || math.Abs(f.SpreadZ) <= 1.2*math.Abs(f.Z) {
		verb := "rose"
		if f.StandardShift < 0 {
			verb = "fell"
		}
		return fmt.Sprintf("%s %s by %.2g baseline SD (z = %.1f, %s)", subject, verb, math.Abs(f.StandardShift), f.Z, over)
	}
	verb := "varies more"
	if f.SpreadZ < 0 {
		verb = "varies less"
	}
	return fmt.Sprintf("%s %s (z = %.1f, %s)", subject, verb, f.SpreadZ, over)
}

// changeOf describes how the i-th quantity of a finding changed.
func changeOf(f *finding.Finding, i int) string {
	return changeWords(f.Shifts[i], f.Promise.UnitName().Count(int64(f.Shifts[i].Units)))
}

// largest says how far the foremost of the quantities stands out.
func (m movement) largest() string {
	if m.quantities == 1 {
		return fmt.Sprintf("|z| = %.1f", prominence(m.foremost))
	}
	return fmt.Sprintf("|z| ≤ %.1f for %d quantities", prominence(m.foremost), m.quantities)
}

// single reports whether the telemetry has the signals that single out a cause: actions for the policy; observations or
// outcomes for the environment and, because they did not move, for the reward function.
func (all *movements) single(out Cause) bool {
	if out == CausePolicy {
		return all[actions].quantities > 0
	}
	return all[observations].quantities+all[outcomes].quantities > 0
}

// tell reports whether a class is evidence about causes. Rewards are none if the telemetry has no signals of the
// environment, because every cause moves rewards. Rewards for the same actions still show whether a policy or an
// environment moved the actions.
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

// maxForemost is the maximum number of shifts that an alarm keeps.
const maxForemost = 12

// signalShift summarizes the shifts of one signal.
type signalShift struct {
	named finding.Shift // the quantity that a person would name first
	most  float64       // the largest prominence of all its quantities
	own   bool          // the signal is the alarm's
}

// add includes another quantity of the signal.
func (h *signalShift) add(s finding.Shift) {
	h.most = max(h.most, prominence(s))
	if namedBefore(s, h.named) {
		h.named = s
	}
}

// namedBefore reports whether a person would name a quantity before another one of the same signal. Quantities whose
// values have clearly moved come first, ordered by rank. The others are ordered by prominence.
func namedBefore(s, than finding.Shift) bool {
	if moved := clearly(s.Z); moved != clearly(than.Z) {
		return moved
	} else if moved {
		if order := cmp.Compare(signals.QuantityRank(s.Signal, s.Quantity), signals.QuantityRank(s.Signal, than.Quantity)); order != 0 {
			return order < 0
		}
	}
	return prominence(s) > prominence(than)
}

// foremost returns a shift of the alarm's own signal and one of each of the most prominent other signals, ordered by
// the rank of the signal, and then by strength, strongest first.
func foremost(shifts []finding.Shift, own string) []finding.Shift {
	var all []signalShift
	for _, s := range shifts {
		i := slices.IndexFunc(all, func(have signalShift) bool { return have.named.Signal == s.Signal })
		if i < 0 {
			all = append(all, signalShift{named: s, most: prominence(s), own: s.Signal == own})
			continue
		}
		all[i].add(s)
	}
	slices.SortStableFunc(all, func(a, b signalShift) int {
		switch {
		case a.own:
			return -1
		case b.own:
			return 1
		}
		return cmp.Compare(b.most, a.most)
	})
	all = keepFirst(all, maxForemost)
	slices.SortStableFunc(all, func(a, b signalShift) int {
		return cmp.Or(cmp.Compare(signals.Rank(a.named.Signal), signals.Rank(b.named.Signal)), cmp.Compare(b.most, a.most))
	})
	var out []finding.Shift
	for _, h := range all {
		out = append(out, h.named)
	}
	return out
}
