package stream

import (
	"math"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// Sides are the values of a quantity before a change and after it. Those of a part of a cycle that has come again have the
// number of the part of the cycle, such as the hour, in which each value before lies.
type Sides struct {
	Before, After []float64
	Parts         []int32
}

// LeastBefore is the least number of values to compare with; spreadBefore is that to compare the spread with, or squares of
// scores would often lie far apart by chance.
const (
	LeastBefore  = 20
	spreadBefore = 100
)

// Shift compares the newest values of the quantity with those before. It returns false if there are too few. The dependence
// factor is at least that of the values before, as a baseline may lack the hours of a part of a cycle.
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

// dependence returns the dependence factor of the values before within parts of a cycle: neither its course nor days that
// differ are dependence.
func (s *Sides) dependence(ranks *detectors.Ranks) float64 {
	if s.Parts == nil {
		return 1
	}
	return detectors.DependenceWithin(s.Before, ranks, s.Parts)
}

// Jumps reports whether the means of a few values on both sides of the change differ by so many standard deviations of all
// before it. It is false if one side has fewer.
func (s *Sides) Jumps(large float64) bool {
	if len(s.Before) < LeastBefore || len(s.After) < LeastBefore {
		return false
	}
	from, to, m := MeanOf(s.Before[len(s.Before)-LeastBefore:]), MeanOf(s.After[:LeastBefore]), MomentsOf(s.Before)
	return math.Abs(to-from) >= large*m.SD()
}
