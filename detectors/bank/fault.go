package bank

import (
	"math"

	"gonum.org/v1/gonum/mathext"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// The rules of a telemetry fault, as users read them. The last two are of a whole group: they show that it cannot be
// judged now, end with its next finished unit, and suspend nothing.
const (
	FaultNonFinite  = "non_finite"      // NaN or infinite values in more than 1 % of the last 20 units' values, in two units at least
	FaultConstant   = "constant"        // one value over more units than the baseline allows by chance (p < 1e-6)
	FaultMissing    = "missing"         // no value in 20 units in a row, of a signal that nearly all units of the baseline have
	FaultActionKind = "action_kind"     // categories where the baseline has numbers, or the other way round
	FaultSilent     = "silent"          // nothing for 10 times the baseline's largest gap, and 5 minutes at least
	FaultEndless    = "no_episode_ends" // steps go on, but episodes have stopped ending
)

// faultUnits is how many units without the fault end it, and how many the share of bad values is taken over.
const faultUnits = 20

// commonRuns is the probability of continuing a run of constant units from which on such runs count as common, and the
// share of units from which on a value at their lower or upper end counts as known.
const commonRuns = .05

// maxLevels bounds the values of which the baseline is searched for known ones.
const maxLevels = 256

// usualShare is the share of a baseline's units with a signal from which on the signal is missed where it is gone.
const usualShare = .95

// fault follows the telemetry faults of one stream. Exported fields are its snapshot.
type fault struct {
	Rule  string // "" where there is none
	Clean int    // units since the last faulty one
	Bad   [faultUnits]int64
	Total [faultUnits]int64
	Next  int

	// Constant runs, of signals that have them: how many units in a row held one value, and which.
	Value float64
	Run   int

	WarmRuns    int // pairs of successive units of the baseline that held one and the same value
	WarmPairs   int
	WarmLongest int
	Levels      map[float64]int // of the baseline: how many units had the value at their lower or upper end
	Allowed     int             // longest run that is no fault; 0 before the baseline is frozen

	Usual  bool // nearly all units of the baseline have the signal
	Absent int  // units in a row without it
}

// values folds in how many values of the unit are bad, and reports whether the rule of non-finite values holds now.
func (f *fault) values(bad, total int64) bool {
	f.Bad[f.Next], f.Total[f.Next] = bad, total
	f.Next = (f.Next + 1) % faultUnits
	var allBad, all int64
	units := 0
	for i := range f.Bad {
		allBad += f.Bad[i]
		all += f.Total[i]
		if f.Bad[i] > 0 {
			units++
		}
	}
	return bad > 0 && units >= 2 && float64(allBad) > .01*float64(all)
}

// constant folds in whether the unit held one single value, and which, and reports whether the rule of constant
// values holds now.
func (f *fault) constant(single bool, value float64) bool {
	f.WarmPairs++
	switch {
	case !single:
		f.Run = 0
	case f.Run > 0 && value == f.Value:
		f.Run++
		f.WarmRuns++
	default:
		f.Run = 1
	}
	f.Value = value
	f.WarmLongest = max(f.WarmLongest, f.Run)
	return f.Allowed > 0 && f.Run > f.Allowed && f.Levels[value] == 0
}

// level counts a value that a unit of the baseline had at its lower or upper end.
func (f *fault) level(value float64) {
	if f.Levels == nil {
		f.Levels = map[float64]int{}
	}
	if f.Levels[value] > 0 || len(f.Levels) < maxLevels {
		f.Levels[value]++
	}
}

// missing folds in whether the unit had the signal, and reports whether the rule of missing signals holds now.
func (f *fault) missing(present bool) bool {
	if present {
		f.Absent = 0
	} else {
		f.Absent++
	}
	return f.Usual && f.Absent >= faultUnits
}

// freeze sets the rules that depend on the baseline. Values that were common at the ends of units are known levels, at
// which a policy that fails, or succeeds, all the time may stay.
func (f *fault) freeze(usual bool) {
	f.Usual = usual
	f.allow()
	for value, units := range f.Levels {
		if float64(units) <= commonRuns*float64(f.WarmPairs) {
			delete(f.Levels, value)
		}
	}
}

// allow sets the longest run that chance explains from the runs of the baseline: with p the upper 90 % limit of the
// probability that a unit continues a run, p^n < 1e-6, and twice the longest run seen in any case. Where constant units
// are common, as with a sparse reward, they are no fault, however many: a policy that fails all the time gives them too.
func (f *fault) allow() {
	p := mathext.InvRegIncBeta(float64(f.WarmRuns+1), float64(max(1, f.WarmPairs-f.WarmRuns)), .9)
	if p > commonRuns {
		f.Allowed = math.MaxInt32
		return
	}
	n := math.Ceil(math.Log(1e-6) / math.Log(p))
	f.Allowed = max(2, 2*f.WarmLongest, int(min(n, math.MaxInt32)))
}

// settle takes what rule holds for the present unit ("" for none) and gives the rule in force.
func (f *fault) settle(rule string) string {
	if rule != "" {
		f.Rule, f.Clean = rule, 0
		return rule
	}
	if f.Rule != "" {
		if f.Clean++; f.Clean >= faultUnits {
			f.Rule = ""
		}
	}
	return f.Rule
}

// checkFault applies the fault rules of a stream to a unit and gives the rule in force.
func (s *stream) checkFault(u *ingest.Unit, kind ingest.ActionKind) string {
	rule := ""
	if bad, total := valueCounts(u, s.Signal); total > 0 && s.Fault.values(bad, total) {
		rule = FaultNonFinite
	}
	if single, value, known := singleValue(u, s.Signal); known && s.Fault.constant(single, value) && !s.atEdge(value) {
		rule = FaultConstant
	}
	if s.Fault.missing(present(u, s.Signal)) {
		rule = FaultMissing
	}
	if s.Signal == actionSignal && otherKind(u, kind) {
		rule = FaultActionKind
	}
	return s.Fault.settle(rule)
}

// otherKind reports whether actions of a unit are of another kind than the baseline's. A number that happens to be
// integral is at home in both.
func otherKind(u *ingest.Unit, baseline ingest.ActionKind) bool {
	switch {
	case baseline == ingest.ActionNone || u.ActionKind == ingest.ActionNone:
		return false
	case baseline == ingest.ActionCategory:
		return u.ActionKind == ingest.ActionNumeric
	}
	_, numbers := valueCounts(u, actionSignal)
	return u.MixedActionKinds || u.ActionKind == ingest.ActionCategory && numbers == 0
}

// atEdge reports whether a constant return sits at or beyond the best or the worst of its baseline: a policy that
// always succeeds or always fails is no fault of the telemetry.
func (s *stream) atEdge(value float64) bool {
	if s.Signal != "return" {
		return false
	}
	ranks := s.mainRanks()
	return ranks == nil || value >= ranks.Points[len(ranks.Points)-1] || value <= ranks.Points[0]
}

// learnLevels keeps the values at the ends of a unit of the baseline.
func (s *stream) learnLevels(u *ingest.Unit) {
	switch {
	case s.Signal == "reward" && u.Reward.N > 0:
		s.Fault.level(u.Reward.Min)
		if u.Reward.Max != u.Reward.Min {
			s.Fault.level(u.Reward.Max)
		}
	case s.Signal == "return" && u.HasReturn && !math.IsNaN(u.Return):
		s.Fault.level(u.Return)
	}
}

func (s *stream) mainRanks() *detectors.Ranks {
	if q := s.find(mainQuantity(s.Signal)); q != nil {
		return q.Ranks
	}
	return nil
}

// valueCounts is how many values of a signal the unit held, and how many of them were not finite.
func valueCounts(u *ingest.Unit, signal string) (bad, total int64) {
	switch signal {
	case "return":
		if !u.HasReturn {
			return 0, 0
		}
		if math.IsNaN(u.Return) || math.IsInf(u.Return, 0) {
			return 1, 1
		}
		return 0, 1
	case "reward":
		return u.Reward.NonFinite, u.Reward.N + u.Reward.NonFinite
	}
	for i := range u.Numeric {
		if n := &u.Numeric[i]; n.Signal == signal {
			return n.NonFinite, n.N + n.NonFinite
		}
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

// singleValue reports whether the unit held one single value of a signal to which the rule of constant values
// applies: the reward, and the return.
func singleValue(u *ingest.Unit, signal string) (single bool, value float64, known bool) {
	switch signal {
	case "reward":
		return u.Reward.Min == u.Reward.Max, u.Reward.Min, u.Reward.N > 0
	case "return":
		return true, u.Return, u.HasReturn
	}
	return false, 0, false
}
