package stream

import (
	"math"
	"sort"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// ShiftAgainst compares recent values with a frozen sample by their ranks. factor is the dependence factor, by which it
// widens the errors. For a nearly constant sample, only novel values count.
func ShiftAgainst(r *detectors.Ranks, recent []float64, factor float64) finding.Shift {
	s := unmoved(r, recent, factor)
	if detectors.NearlyConstant(r) {
		s.Z = r.NovelScore(recent) / math.Sqrt(factor)
		return s
	}
	location, spread := r.Shift(recent)
	s.Z, s.SpreadZ = location/s.StandardError, spread/s.StandardError
	return s
}

// Shift compares recent numbers that the quantity has judged with its baseline. For a mix, it compares means: in the
// baseline, each value excludes its own unit, so the value for the same actions differs slightly from later ones, which
// ranks would mistake for a move of all values.
func (q *Quantity) Shift(recent []float64) finding.Shift {
	if q.Mix == nil {
		return ShiftAgainst(q.JudgedRanks(), recent, q.Factor())
	}
	s := unmoved(q.JudgedRanks(), recent, q.Factor())
	if q.SD > 0 {
		s.Z = (MeanOf(recent) - q.Mean) / (q.SD * s.StandardError)
	}
	return s
}

// ShiftWhile compares the numbers that the quantity has judged since a unit with its baseline, up to the first unit for
// which within is false. If there are none, the shift has no units.
func (q *Quantity) ShiftWhile(onset int64, within func(ordinal int64) bool) finding.Shift {
	values, of := q.JudgedSince(onset)
	n := sort.Search(len(of), func(i int) bool { return !within(of[i]) })
	if n == 0 {
		return finding.Shift{}
	}
	return q.Shift(values[:n])
}

// InOtherForm reports whether the quantity is judged in a form other than the collected one.
func (q *Quantity) InOtherForm() bool { return q.IsComputed() || q.Season != nil }

// IsComputed reports whether the quantity is learned from the baseline, so that earlier units have no value.
func (q *Quantity) IsComputed() bool { return q.Learnt != nil || q.Mix != nil }

// JudgedWithin returns the most recent numbers that the quantity has judged since a unit, only of units for which
// within is true, and whether within is true for all.
func (q *Quantity) JudgedWithin(first int64, within func(ordinal int64) bool) (values []float64, all bool) {
	judged, of := q.JudgedSince(first)
	for i, x := range judged {
		if within(of[i]) {
			values = append(values, x)
		}
	}
	return values[max(0, len(values)-CurrentUnits):], len(values) == len(judged)
}

// unmoved returns a shift of 0 with its standard error, in standard deviations of the sample.
func unmoved(r *detectors.Ranks, recent []float64, factor float64) finding.Shift {
	return finding.Shift{
		Units: len(recent), StandardError: math.Sqrt(factor * (1/float64(len(recent)) + 1/float64(r.Len()))),
	}
}

// RewardsOf returns the number and the total reward of each action over units.
func RewardsOf(units []ActionCounts) finding.ActionRewards {
	sum := finding.ActionRewards{}
	for _, actions := range units {
		for _, a := range actions {
			have := sum[a.Name]
			sum[a.Name] = finding.ActionReward{N: have.N + a.N, Reward: have.Reward + a.Reward}
		}
	}
	return sum
}

// Share returns n/of; 0 if of is 0.
func Share(n, of int64) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}
