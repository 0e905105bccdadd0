package stream

import (
	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// described is the description of a frozen sample.
type described struct {
	of *detectors.Ranks
	finding.Distribution
	deciles [9]float64
}

// DescribeBaseline returns the description of the baseline. It is computed once.
func (q *Quantity) DescribeBaseline() (finding.Distribution, [9]float64) {
	if q.described == nil || q.described.of != q.Ranks {
		sample := q.Ranks.Sample()
		deciles := detectors.Quantiles(sample, .1, .2, .3, .4, .5, .6, .7, .8, .9)
		q.described = &described{q.Ranks, finding.DescribeSample(sample, q.Ranks), [9]float64(deciles)}
	}
	return q.described.Distribution, q.described.deciles
}
