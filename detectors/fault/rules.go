package fault

import (
	"math"
	"strings"

	"gonum.org/v1/gonum/mathext"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// faultUnits is the number of units without a fault after which it ends, and the number of units that most rules
// look back.
const faultUnits = 20

// chance is the probability of a false fault, per unit and rule, that the limits are set for.
const chance = 1e-6

// confidence is the confidence of upper limits of probabilities learned from a baseline.
const confidence = .9

// faultSample is the number of units from which a rule learns a distribution: the first units of a baseline.
const faultSample = 128

// leastLearnt is the least number of units that a rule learns from. With fewer, it does not judge.
const leastLearnt = 20

// actionName is the name of the signal of actions. lawPrefix is the prefix of the laws of the steps.
const (
	actionName = "action"
	lawPrefix  = "law."
)

// Rules tracks the telemetry faults of one stream. Exported fields are saved.
type Rules struct {
	Rule   string // the most informative rule in force, "" for none
	Held   heldRules
	Shared string // rule of another stream, or of the group, that makes this stream's values wrong too; "" for none

	NonFinite nonFinite
	Constant  constant
	Missing   missing

	Values *valueRules // nil before a unit with values; returns, lengths and categorical actions never have any
}

// valueRules holds the rules for the values in a unit.
type valueRules struct {
	Clipped clipped
	Scale   scale
}

// ofValues returns the rules for values. It creates them if there are none.
func (f *Rules) ofValues() *valueRules {
	if f.Values == nil {
		f.Values = &valueRules{}
	}
	return f.Values
}

// heldRules holds the rules of a stream, the most informative one last. The last one in force is reported.
type heldRules struct {
	Scale, Clipped, NonFinite, Constant, Missing, ActionKind held
}

// held is a rule that may be in force. It ends after faultUnits units to which it does not apply.
type held struct {
	Rule  string // "" if none is in force
	Clean int    // units since the last faulty one
}

// settle takes the rule that applies to the present unit ("" for none) and returns the rule in force.
func (h *held) settle(rule string) string {
	if rule != "" {
		h.Rule, h.Clean = rule, 0
		return rule
	}
	if h.Rule != "" {
		if h.Clean++; h.Clean >= faultUnits {
			h.Rule = ""
		}
	}
	return h.Rule
}

// upperLimit returns the upper limit, at the given confidence, of the probability of an event that occurred hits times
// in n (Clopper and Pearson). It is 1 if the event always occurred.
func upperLimit(hits, n int) float64 {
	if hits >= n {
		return 1
	}
	return mathext.InvRegIncBeta(float64(hits+1), float64(n-hits), confidence)
}

// tooMany returns the smallest number of hits in n tries, at least least, that occurs by chance with a probability
// below 1e-6 if one try hits with probability p. It returns n+1 if there is none.
func tooMany(n int, p float64, least int) int {
	for k := max(1, least); k <= n; k++ {
		if mathext.RegIncBeta(float64(k), float64(n-k+1), p) < chance {
			return k
		}
	}
	return n + 1
}

// Check applies the rules of a signal to a unit and returns the rule in force. baseline is that of the return, nil
// for other signals and before there is one; kind is that of the baseline's actions. Each rule receives every unit
// and ends separately, so that the result does not flap if rules apply by turns. spare is the memory that the rules
// of one owner share.
func (f *Rules) Check(signal string, u *ingest.Unit, kind ingest.ActionKind, baseline *detectors.Ranks, spare *Memory) string {
	f.Rule = ""
	note := func(h *held, name string, holds bool) {
		if !holds {
			name = ""
		}
		if rule := h.settle(name); rule != "" {
			f.Rule = rule
		}
	}
	m, q10, q90 := valuesOf(u, signal)
	numeric := m != nil && (signal != actionName || kind != ingest.ActionCategory)
	note(&f.Held.Scale, Scale, numeric && f.ofValues().Scale.holds(u, signal, m, q10, q90, spare))
	note(&f.Held.Clipped, Clipped, numeric && f.ofValues().Clipped.holds(m, f.Constant.known))
	bad, total := valueCounts(u, signal, m)
	note(&f.Held.NonFinite, NonFinite, total > 0 && f.NonFinite.holds(bad, total))
	note(&f.Held.Constant, Constant, f.constantHolds(signal, u, baseline))
	note(&f.Held.Missing, Missing, f.Missing.holds(total > 0 || alwaysPresent(u, signal) || isNamed(signal, m)))
	note(&f.Held.ActionKind, ActionKind, signal == actionName && otherKind(u, kind))
	return f.Rule
}

// Learn records what the rules need from a unit of the baseline.
func (f *Rules) Learn(signal string, u *ingest.Unit) {
	f.Constant.learn(signal, u)
	if m, q10, q90 := valuesOf(u, signal); m != nil {
		f.ofValues().Clipped.learn(m)
		f.ofValues().Clipped.Starts.learn(u, signal)
		f.ofValues().Scale.learn(u, signal, m, q10, q90)
	}
}

// Freeze sets the limits of the rules from a baseline of the given number of units, of which with have the signal.
func (f *Rules) Freeze(with, units int) {
	f.Missing.Usual = float64(with) >= usualShare*float64(units)
	f.Constant.freeze()
	if f.Values != nil {
		f.Values.Clipped.freeze()
		f.Values.Scale.freeze()
	}
}

// Forget drops state that only the freeze of a baseline needs.
func (f *Rules) Forget() {
	f.Constant.forget()
	if f.Values != nil {
		f.Values.Scale.forget()
	}
}

// Again returns a copy of the rules with only what they have learned from the baseline.
func (f *Rules) Again() Rules {
	out := Rules{Constant: f.Constant, Missing: missing{Usual: f.Missing.Usual}}
	out.Constant.Run, out.Constant.Varied = 0, false
	if f.Values == nil {
		return out
	}
	v := *f.Values
	v.Clipped.Upper.Units, v.Clipped.Lower.Units = 0, 0
	v.Scale.endRun(nil)
	v.Scale.Changed, v.Scale.Fits = false, false
	out.Values = &v
	return out
}

// Unlearnt returns a copy of the rules without the large part of what they have learned, which LearnFrom restores.
func (f *Rules) Unlearnt() Rules {
	out := *f
	if f.Values != nil {
		v := *f.Values
		out.Values = &v
	}
	out.LearnFrom(&Rules{})
	return out
}

// LearnFrom restores what Unlearnt left out, from the rules that learned it.
func (f *Rules) LearnFrom(other *Rules) {
	f.Constant.Ends, f.Constant.Runs, f.Constant.Steps = other.Constant.Ends, other.Constant.Runs, other.Constant.Steps
	if f.Values == nil && other.Values == nil {
		return
	}
	v, from := f.ofValues(), other.Values
	if from == nil {
		from = &valueRules{}
	}
	v.Clipped.Upper.Warm, v.Clipped.Lower.Warm = from.Clipped.Upper.Warm, from.Clipped.Lower.Warm
	v.Scale.Scales, v.Scale.Shapes = from.Scale.Scales, from.Scale.Shapes
}

// isNamed reports whether a unit with these moments names a signal, even without values. A rating by a person whose
// level is not known yet, for example, has arrived although it cannot be judged.
func isNamed(signal string, m *ingest.Moments) bool { return signal != "reward" && m != nil }

// valuesOf returns the moments and the outer deciles of a signal's values in a unit: of the steps' rewards, or of
// another numeric signal. If the unit does not name the signal, the moments are nil and the deciles 0. The deciles
// of outcomes are 0.
func valuesOf(u *ingest.Unit, signal string) (m *ingest.Moments, q10, q90 float64) {
	if signal == "reward" {
		return &u.Reward, u.RewardQ10, u.RewardQ90
	}
	for i := range u.Numeric {
		if n := &u.Numeric[i]; n.Signal == signal {
			return &n.Moments, n.Q10, n.Q90
		}
	}
	return nil, 0, 0
}

// valueCounts returns the number of values of a signal in the unit, and how many of them were not finite. m are the
// moments of the signal, nil if it has none.
func valueCounts(u *ingest.Unit, signal string, m *ingest.Moments) (bad, total int64) {
	if signal == "return" {
		switch {
		case u.Decisions != nil:
			m := &u.Decisions.Returns
			return m.NonFinite, m.N + m.NonFinite
		case !u.HasReturn:
			return 0, 0
		case math.IsNaN(u.Return) || math.IsInf(u.Return, 0):
			return 1, 1
		}
		return 0, 1
	}
	if m == nil {
		return 0, 0
	}
	return m.NonFinite, m.N + m.NonFinite
}

// alwaysPresent reports whether the unit has the signal although it has no values: every unit has a length, the actions
// of a unit may be categories, and a law of the steps is computed from other signals.
func alwaysPresent(u *ingest.Unit, signal string) bool {
	return signal == "episode_length" || strings.HasPrefix(signal, lawPrefix) || signal == actionName && u.ActionKind != ingest.ActionNone
}
