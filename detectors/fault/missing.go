package fault

import "github.com/rewardwatch/rewardwatch/ingest"

// usualShare is the share of a baseline's units that must have a signal for its absence to count.
const usualShare = .95

// missing is the rule for signals that have vanished: units do not even name them. If at least usualShare of the
// baseline's units have a signal, such as one component of the reward, it is a fault if faultUnits units in a row lack
// it. By chance that has a probability of .05^20.
type missing struct {
	Usual  bool
	Absent int // units in a row without the signal
}

// holds adds whether a unit had the signal, and reports whether the rule applies at it.
func (r *missing) holds(present bool) bool {
	if present {
		r.Absent = 0
	} else {
		r.Absent++
	}
	return r.Usual && r.Absent >= faultUnits
}

// otherKind reports whether the actions of a unit are of another kind than the baseline's. A number that happens to
// be an integer fits both kinds.
func otherKind(u *ingest.Unit, baseline ingest.ActionKind) bool {
	switch {
	case baseline == ingest.ActionNone || u.ActionKind == ingest.ActionNone:
		return false
	case baseline == ingest.ActionCategory:
		return u.ActionKind == ingest.ActionNumeric
	}
	numbers, _, _ := valuesOf(u, actionName)
	return u.MixedActionKinds || u.ActionKind == ingest.ActionCategory && (numbers == nil || numbers.N+numbers.NonFinite == 0)
}
