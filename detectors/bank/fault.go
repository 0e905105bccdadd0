package bank

import (
	"math"

	"gonum.org/v1/gonum/mathext"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// The rules of a telemetry fault, as users read them.
const (
	FaultNonFinite  = "non_finite"      // NaN or infinite values in more than 1 % of the last 20 units' values, in two units at least
	FaultConstant   = "constant"        // one value over more units, or over more steps within one, than the baseline allows by chance
	FaultClipped    = "clipped"         // many units end at exactly one bound, which the baseline went beyond and never touched
	FaultScale      = "scale"           // ten times the baseline's scale or more, or a tenth or less, from one unit to the next
	FaultMissing    = "missing"         // no value in 20 units in a row, of a signal that nearly all units of the baseline have
	FaultActionKind = "action_kind"     // categories where the baseline has numbers, or the other way round
	FaultAbandoned  = "abandoned"       // above 5 % of the episodes never end
	FaultDuplicates = "duplicates"      // events come twice, above 5 % of them
	FaultClockSkew  = "clock_skew"      // the times of above 5 % of the units run backwards, or ahead and back
	FaultSilent     = "silent"          // nothing for 10 times the baseline's largest gap, and 5 minutes at least
	FaultEnding     = "episodes_began"  // episodes end, but the baseline is of blocks of steps
	FaultEndless    = "no_episode_ends" // steps go on, but episodes have stopped ending
	FaultMixed      = "mixed_blocks"    // agents take too few steps for blocks of their own, but the baseline is of such blocks
)

// FaultSuspends reports whether a stream is not judged while the rule of that name holds for it. Duplicates are dropped
// and no detector goes by the clock, so that the values of their streams are right; silence has no values.
func FaultSuspends(rule string) bool {
	switch rule {
	case FaultDuplicates, FaultClockSkew, FaultSilent, FaultEndless, FaultEnding, FaultMixed:
		return false
	}
	return true
}

// faultUnits is how many units without the fault end it, and over how many most rules look back.
const faultUnits = 20

// chance is the probability of a false fault, at one unit and by one rule, that limits are set for.
const chance = 1e-6

// confidence is that of the upper limits of probabilities that are learnt from a baseline.
const confidence = .9

// faultSample is how many units of a baseline a rule learns a distribution from, the first ones.
const faultSample = 128

// fault follows the telemetry faults of one stream. Exported fields are its snapshot.
type fault struct {
	_      struct{} `cbor:",toarray"`
	Rule   string   // in force; of several the one that says most, "" for none
	Held   heldRules
	Shared string // the rule of another stream, or of the group, that falsifies this one too; "" for none

	NonFinite nonFinite
	Constant  constant
	Clipped   clipped
	Scale     scale
	Missing   missing
}

// heldRules are the rules of a stream, in the order of what they say: the last one in force is told.
type heldRules struct {
	_                                                        struct{} `cbor:",toarray"`
	Scale, Clipped, NonFinite, Constant, Missing, ActionKind held
}

// held is a rule that may be in force. It ends after faultUnits units without it.
type held struct {
	_     struct{} `cbor:",toarray"`
	Rule  string   // "" where there is none
	Clean int      // units since the last faulty one
}

// settle takes what rule holds for the present unit ("" for none) and gives the rule in force.
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

// upperLimit is the upper limit, of the given confidence, of the probability of what happened hits times in n (Clopper
// and Pearson). It is 1 where it always happened.
func upperLimit(hits, n int) float64 {
	if hits >= n {
		return 1
	}
	return mathext.InvRegIncBeta(float64(hits+1), float64(n-hits), confidence)
}

// tooMany is the smallest number of hits in n tries, beyond at least, that chance explains with less than 1e-6 where one
// try hits with probability p. It is above n where no number does.
func tooMany(n int, p float64, least int) int {
	for k := max(1, least); k <= n; k++ {
		if mathext.RegIncBeta(float64(k), float64(n-k+1), p) < chance {
			return k
		}
	}
	return n + 1
}

// checkFault applies the fault rules of a stream to a unit and gives the rule in force. Each rule sees every unit and ends
// by itself, so that where several hold by turns the one that is told does not come and go with them.
func (s *stream) checkFault(u *ingest.Unit, kind ingest.ActionKind) string {
	f := &s.Fault
	f.Rule = ""
	note := func(h *held, name string, holds bool) {
		if !holds {
			name = ""
		}
		if rule := h.settle(name); rule != "" {
			f.Rule = rule
		}
	}
	m := moments(u, s.Signal)
	numeric := m != nil && (s.Signal != actionSignal || kind != ingest.ActionCategory)
	note(&f.Held.Scale, FaultScale, numeric && f.Scale.holds(m, versionOf(u, s.Signal)))
	note(&f.Held.Clipped, FaultClipped, numeric && f.Clipped.holds(m, f.Constant.known))
	bad, total := valueCounts(u, s.Signal)
	note(&f.Held.NonFinite, FaultNonFinite, total > 0 && f.NonFinite.holds(bad, total))
	note(&f.Held.Constant, FaultConstant, s.constantHolds(u))
	note(&f.Held.Missing, FaultMissing, f.Missing.holds(present(u, s.Signal)))
	note(&f.Held.ActionKind, FaultActionKind, s.Signal == actionSignal && otherKind(u, kind))
	return f.Rule
}

// learn keeps what the rules need to know of a unit of the baseline.
func (s *stream) learn(u *ingest.Unit) {
	s.learnConstant(u)
	if m := moments(u, s.Signal); m != nil {
		s.Fault.Clipped.learn(m)
		s.Fault.Scale.learn(m, versionOf(u, s.Signal))
	}
}

// freeze sets the limits of the rules from what they have learnt of the baseline. usual says whether nearly all of its
// units have the signal.
func (f *fault) freeze(usual bool) {
	f.Missing.Usual = usual
	f.Constant.freeze()
	f.Clipped.freeze()
	f.Scale.freeze()
}

// forget lets go of what only the next baseline would need.
func (f *fault) forget() {
	f.Constant.forget()
	f.Scale.Scales, f.Scale.Shapes = nil, nil
}

// moments gives the moments of a signal's values in a unit: of the steps' rewards, or of another numeric signal. nil
// means that there are none.
func moments(u *ingest.Unit, signal string) *ingest.Moments {
	if signal == "reward" {
		return &u.Reward
	}
	for i := range u.Numeric {
		if u.Numeric[i].Signal == signal {
			return &u.Numeric[i].Moments
		}
	}
	return nil
}

// valueCounts is how many values of a signal the unit held, and how many of them were not finite.
func valueCounts(u *ingest.Unit, signal string) (bad, total int64) {
	if signal == "return" {
		switch {
		case !u.HasReturn:
			return 0, 0
		case math.IsNaN(u.Return) || math.IsInf(u.Return, 0):
			return 1, 1
		}
		return 0, 1
	}
	if m := moments(u, signal); m != nil {
		return m.NonFinite, m.N + m.NonFinite
	}
	return 0, 0
}

// present reports whether the unit had the signal.
func present(u *ingest.Unit, signal string) bool {
	if signal == "episode_length" || signal == actionSignal && u.ActionKind != ingest.ActionNone {
		return true
	}
	_, total := valueCounts(u, signal)
	return total > 0
}
