package bank

import (
	"math"

	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
)

// improvedBy is the number of standard errors by which a mean must be better for an alarm to count as an improvement.
const improvedBy = 3.

// improvement reports whether the alarm of a stream is an improvement: since the onset, its mean is better than the
// baseline's by more than chance explains, and its median is not worse. An alarm of an outcome given the reward is
// never an improvement: it means that the reward no longer predicts the outcome.
func (g *group) improvement(s *stream.Stream) bool {
	side := float64(g.cfg.Direction.Better(s.Signal))
	q := s.Find(signals.MainQuantity(s.Signal))
	if side == 0 || q == nil || q.Ranks == nil || s.Alert.Quantity == signals.GivenReward {
		return false
	}
	e, _ := s.Effect(q, s.Alert.Onset.Ordinal)
	if !(side*e.MeanShift > 0) || side*e.MedianShift < 0 {
		return false
	}
	switch w := s.Find(s.Alert.Quantity); { // they detect changes before the mean does
	case w != nil && w.Name == stream.WeightedQuantity:
		q, e = w, s.Alert.Effect
	case w != nil && w.Name == signals.Amount: // for a few purchases, ranks are more sensitive
		return side*w.Shift(w.AppendJudged(nil, s.Alert.Onset.Ordinal)).Z >= improvedBy
	}
	if e.BaselineSD == 0 {
		return true
	}
	r := max(1, e.CurrentSD/e.BaselineSD)
	standardError := math.Sqrt(q.Factor() * (r*r/float64(e.CurrentUnits) + 1/float64(q.Ranks.Len())))
	return side*e.StandardShift >= improvedBy*standardError
}
