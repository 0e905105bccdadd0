package stream

import (
	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// described is the cached description of a frozen sample.
type described struct {
	of *detectors.Ranks
	finding.Distribution
	deciles [9]float64
}

// DescribeBaseline returns the distribution and the deciles of the baseline. They are computed once per baseline.
func (q *Quantity) DescribeBaseline() (finding.Distribution, [9]float64) {
	if q.described == nil || q.described.of != q.Ranks {
		d, deciles := finding.DescribeBaseline(q.Ranks)
		q.described = &described{q.Ranks, d, deciles}
	}
	return q.described.Distribution, q.described.deciles
}
