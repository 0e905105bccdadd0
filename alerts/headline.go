package alerts

import (
	"cmp"
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
)

// clearlyMoved is the z score at which a quantity can represent an alarm that another quantity of its signal raised.
const clearlyMoved = 4

// clearly reports whether a quantity with this z score has clearly moved.
func clearly(z float64) bool { return math.Abs(z) >= clearlyMoved }

// Headline returns the most important alarm (ByImportance). The incident must have at least one alarm.
func (i *Incident) Headline() *Alarm { return first(pointers(i.Alarms)) }

// first returns the most important alarm. There must be at least one.
func first(alarms []*Alarm) *Alarm { return slices.MinFunc(alarms, ByImportance) }

// ByImportance compares two alarms, for sorting: firing alarms come before resolved ones, then alarms are ordered by the
// rank of the signal, the rank of the quantity, and time.
func ByImportance(a, b *Alarm) int {
	if a.Resolved != b.Resolved {
		if a.Resolved {
			return 1
		}
		return -1
	}
	return cmp.Or(
		cmp.Compare(signals.Rank(a.Signal), signals.Rank(b.Signal)),
		cmp.Compare(signals.QuantityRank(a.Signal, a.Effect.Quantity), signals.QuantityRank(b.Signal, b.Effect.Quantity)),
		cmp.Compare(a.Onset.Ordinal, b.Onset.Ordinal))
}

func pointers(alarms []Alarm) []*Alarm {
	out := make([]*Alarm, len(alarms))
	for k := range alarms {
		out[k] = &alarms[k]
	}
	return out
}

// Foremost returns the most important effect: the alarm's own, or that of a quantity of the same signal that ranks
// higher and has clearly shifted as well. The latter lacks the standard deviation of the current values.
func (a *Alarm) Foremost() finding.Effect {
	best := a.Effect
	for _, s := range a.Shifts {
		if s.Signal != a.Signal || !clearly(s.Z) || signals.QuantityRank(a.Signal, s.Quantity) >= signals.QuantityRank(a.Signal, best.Quantity) {
			continue
		}
		best = finding.Effect{
			Quantity: s.Quantity, BaselineMean: s.BaselineMean, CurrentMean: s.CurrentMean, MeanShift: s.CurrentMean - s.BaselineMean,
			StandardShift: s.StandardShift, CurrentUnits: s.Units,
		}
	}
	return best
}

// Ranked sorts names of signals by importance. The sort is stable.
func Ranked(names []string) []string {
	out := slices.Clone(names)
	slices.SortStableFunc(out, func(a, b string) int { return cmp.Compare(signals.Rank(a), signals.Rank(b)) })
	return out
}
