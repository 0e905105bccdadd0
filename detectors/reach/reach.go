// Package reach computes how small a change the armed branches of a quantity find within a number of units.
package reach

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/rewardwatch/rewardwatch/detectors/stream"
)

// within are the numbers of units for which the smallest change is computed, in descending order: the change that is
// found within more units is smaller.
var within = [...]int{2000, 1000, 500, 200, 100, 50, 20}

// walk is what a change makes of the walk of one branch.
type walk struct {
	drift, sd float64 // of its increments, in nats; sd includes the dependence of units
	height    float64 // its threshold, and by how much it exceeds it on average
}

// overshoot is how far a normal walk of unit variance is beyond a threshold when it first exceeds it, on average
// (Siegmund, Sequential Analysis, 1985, X.10).
const overshoot = .5826

// foundWithin returns the probability that the walk exceeds its threshold within n units, as that of a Brownian motion
// with the same drift and variance, which has an inverse Gaussian distribution. The motion starts at 0 and, unlike the
// walk, goes below it, so the walk is found at least as often.
func (w walk) foundWithin(n float64) float64 {
	if w.sd == 0 {
		if w.drift*n >= w.height {
			return 1
		}
		return 0
	}
	s := w.sd * math.Sqrt(n)
	reflected := 2 * w.drift * w.height / (w.sd * w.sd)
	p := distuv.UnitNormal.CDF((w.drift*n - w.height) / s)
	if tail := distuv.UnitNormal.CDF((-w.height - w.drift*n) / s); tail > 0 {
		p += math.Exp(reflected + math.Log(tail))
	}
	return min(1, p)
}

// changedWalks is what a change makes of the armed walks of a quantity.
type changedWalks []walk

// weighted is a reading that some share of the units has. The weights of a change sum to 1.
type weighted struct {
	stream.Reading
	Weight float64
}

// walksAfter returns what becomes of the walks of q if its units have these readings from now on. A quantity without walks,
// or with none that is armed, has none.
func walksAfter(q *stream.Quantity, after []weighted) changedWalks {
	test := q.Again()
	walks := test.Walks()
	if walks == nil {
		return nil
	}
	mean, square := make([]float64, len(walks.Branches)), make([]float64, len(walks.Branches))
	for _, r := range after {
		for i := range walks.Branches {
			walks.Branches[i].Walk = aloft
		}
		test.Test(test.Read(r.Reading), 0, false)
		for i := range walks.Branches {
			x := walks.Branches[i].Walk - aloft
			mean[i] += r.Weight * x
			square[i] += r.Weight * x * x
		}
	}
	var out changedWalks
	for i := range walks.Branches {
		if b := &walks.Branches[i]; b.Height > 0 {
			sd := math.Sqrt(max(0, square[i]-mean[i]*mean[i]) * walks.Factor)
			out = append(out, walk{mean[i], sd, b.Height + overshoot*sd})
		}
	}
	return out
}

// aloft is a height at which a walk never falls to 0 within one unit, so that the difference is its increment.
const aloft = 1 << 20

// findsWithin returns a lower limit of the probability that the change is found within n units: that of the best branch
// alone.
func (c changedWalks) findsWithin(n float64) (p float64) {
	for _, w := range c {
		p = max(p, w.foundWithin(n))
	}
	return p
}
