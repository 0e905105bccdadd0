package stream

import (
	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// Onset estimates where the values judged by the quantity of a branch changed. start is the index of the value at which
// the walk of the branch left 0.
func (b *Branch) Onset(values []float64, start int) detectors.Onset {
	q := b.Quantity
	if q.Mix != nil {
		return detectors.FindOnsetOfRatios(values, q.Factor(), start)
	}
	if t, has := TestOf[NoveltyTest](q); has && b.Detector == finding.DetectorNovelty && t.Known != nil && q.Season == nil {
		return detectors.FindOnsetOfNovelty(values, q.Ranks, t.Novelty, start)
	}
	return detectors.FindOnset(values, q.JudgedRanks(), q.Factor(), start)
}
