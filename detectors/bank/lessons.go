package bank

import (
	"github.com/rewardwatch/rewardwatch/detectors/baseline"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
)

func (g *group) learn() {
	for _, s := range g.Streams {
		switch {
		case signals.IsOutcome(s.Signal):
			g.residualLesson(s).Become(s, signals.GivenReward)
		case s.Signal == "reward":
			g.Warmup.CourseLesson().Become(s, stream.WeightedQuantity)
		}
		baseline.Amounts(s, g.Streams).Become(s, signals.Amount)
	}
}

// dismiss removes the values of the lessons. The next baseline learns its own.
func (g *group) dismiss() {
	for _, q := range g.Quantities() {
		if q.Learnt != nil {
			q.Warm = nil
		}
	}
}

// residualLesson learns to predict the outcome from the mean reward, or from the return if too few units have a mean
// reward; nil if that does not predict it.
func (g *group) residualLesson(s *stream.Stream) *baseline.Lesson {
	for _, given := range []string{"reward", "return"} {
		if l, enough := baseline.ResidualGiven(given, g.warm(given), g.warm(s.Signal)); enough {
			return l
		}
	}
	return nil
}

func (g *group) warm(signal string) []stream.Observed {
	i, found := g.Find(signal)
	if !found {
		return nil
	}
	q := g.Streams[i].Find(signals.MainQuantity(signal))
	if q == nil {
		return nil
	}
	return q.Warm
}
