package stream

import (
	"math"
	"sort"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// ShiftAgainst compares recent values with a frozen sample by their ranks. Dependence between units widens the errors
// by the factor. For a nearly constant sample only the novel values count.
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

// Shift compares recent values that the quantity has judged with its baseline. Values of a mix are compared by their
// means: in the baseline, each leaves its own unit out, so the values of the same single action differ by a hair from
// later ones, which ranks would take for a move of them all.
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

// ShiftWhile compares the values that the quantity has judged since a unit with its baseline, up to the first unit for
// which within does not hold. Without any values, it has no units.
func (q *Quantity) ShiftWhile(onset int64, within func(ordinal int64) bool) finding.Shift {
	values, of := q.JudgedSince(onset)
	n := sort.Search(len(of), func(i int) bool { return !within(of[i]) })
	if n == 0 {
		return finding.Shift{}
	}
	return q.Shift(values[:n])
}

// InOtherForm reports whether the quantity is judged in another form than it is collected in.
func (q *Quantity) InOtherForm() bool { return q.IsComputed() || q.Season != nil }

// IsComputed reports whether values of the quantity come from what was learned of the baseline: earlier units have none.
func (q *Quantity) IsComputed() bool { return q.Learnt != nil || q.Mix != nil }

// JudgedWithin returns the newest values that the quantity has judged since a unit, of units for which within holds, and whether
// it holds for all.
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

// RewardsOf sums up the actions of units.
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

// Share returns a share of a number, 0 of nothing.
func Share(n, of int64) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}
