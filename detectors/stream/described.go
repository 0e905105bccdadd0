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
		d, deciles := finding.DescribeBaseline(q.Ranks)
		q.described = &described{q.Ranks, d, deciles}
	}
	return q.described.Distribution, q.described.deciles
}
