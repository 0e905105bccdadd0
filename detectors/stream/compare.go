package stream

import (
	"math"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// Sides holds the values of a quantity before and after a change. For a part of a cycle that has recurred, Parts holds
// the number of the part, such as the hour, of each value before.
type Sides struct {
	Before, After []float64
	Parts         []int32
}

// LeastBefore is the minimum number of values to compare with. spreadBefore is the minimum number to compare the spread
// with: with fewer, squares of scores would often differ by chance.
const (
	LeastBefore  = 20
	spreadBefore = 100
)

// Shift compares the most recent values after the change with those before. It returns false if there are too few. The
// dependence factor is at least that of the values before, as a baseline may lack some hours of the cycle.
func (s *Sides) Shift(q *Quantity) (finding.Shift, bool) {
	if q.IsComputed() || len(s.Before) < LeastBefore || len(s.After) == 0 {
		return finding.Shift{}, false
	}
	after := s.After[max(0, len(s.After)-CurrentUnits):]
	ranks, m := detectors.NewRanks(s.Before), MomentsOf(s.Before)
	shift := ShiftAgainst(ranks, after, max(q.Factor(), s.dependence(ranks)))
	shift.Compare(m.Mean, m.SD(), MeanOf(after))
	if len(s.Before) < spreadBefore {
		shift.SpreadZ = 0
	}
	return shift, true
}

// dependence returns the dependence factor of the values before, within parts of a cycle: neither a course over the
// parts nor different levels of days count as dependence.
func (s *Sides) dependence(ranks *detectors.Ranks) float64 {
	if s.Parts == nil {
		return 1
	}
	return detectors.DependenceWithin(s.Before, ranks, s.Parts)
}

// Jumps reports whether the means of LeastBefore values on either side of the change differ by at least large standard
// deviations of all values before it. It is false if one side has fewer values.
func (s *Sides) Jumps(large float64) bool {
	if len(s.Before) < LeastBefore || len(s.After) < LeastBefore {
		return false
	}
	from, to, m := MeanOf(s.Before[len(s.Before)-LeastBefore:]), MeanOf(s.After[:LeastBefore]), MomentsOf(s.Before)
	return math.Abs(to-from) >= large*m.SD()
}
