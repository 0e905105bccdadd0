package baseline

import (
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
)

// leastAmounts is the minimum number of values that differ from the usual one. Fewer support hardly any branch.
const leastAmounts = 40

// Amounts returns the lesson of the values of a stream that differ from its usual value. It returns nil if no value is
// that common, or if the others are few or hardly differ from each other. It also returns nil for the return if any
// stream has rewards, whose mean shows the same.
func Amounts(s *stream.Stream, of []*stream.Stream) *Lesson {
	q := s.Find(signals.MainQuantity(s.Signal))
	hasReward := slices.ContainsFunc(of, func(other *stream.Stream) bool { return other.Signal == "reward" })
	judged := signals.IsOutcome(s.Signal) || s.Signal == "reward" || s.Signal == "return" && !hasReward
	if !judged || q == nil || len(q.Warm) == 0 || q.Counts() {
		return nil
	}
	usual, has := stream.UsualOf(q.WarmValues())
	if !has {
		return nil
	}
	var units []int32
	var amounts []float64
	for _, o := range q.Warm {
		if x := stream.Amount(o.X, s.Find(signals.StepSD).WarmOf(o.Unit), usual); !math.IsNaN(x) && !math.IsInf(x, 0) {
			units, amounts = append(units, o.Unit), append(amounts, x)
		}
	}
	if len(units) < leastAmounts {
		return nil
	}
	return newLesson(stream.OfAmounts(usual), units, amounts)
}
