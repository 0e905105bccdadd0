package fault

import (
	"math"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// spreadErrors is the number of standard errors by which the spread of a few units must exceed that of the baseline.
const spreadErrors = 3

// spread is how far sizes lie from their median: the mean distance, and the standard deviation of the distances. A
// change of scale multiplies it by the same factor as the median. It is zero if it is unknown or only due to
// rounding.
type spread struct {
	Mean, SD float64
	Units    int
}

// spreadOf returns the spread of sizes given as logarithms, with NaN for 0, divided by a factor, given as its logarithm.
func spreadOf(sizes []float64, factor float64) spread {
	if len(sizes) == 0 {
		return spread{}
	}
	x := make([]float64, len(sizes))
	for i, size := range sizes {
		if !math.IsNaN(size) {
			x[i] = math.Exp(size - factor)
		}
	}
	middle := median(x)
	var m ingest.Moments
	for _, x := range x {
		m.Add(math.Abs(x - middle))
	}
	if m.Mean <= rounding*middle {
		return spread{}
	}
	return spread{Mean: m.Mean, SD: m.SD(), Units: len(x)}
}

// exceeds reports whether a spread exceeds that of the baseline by more than chance and an error of the factor, at
// most slack as a logarithm, explain. The standard error comes from the baseline, so that a wide spread does not
// increase its own tolerance.
func (s spread) exceeds(baseline spread, slack float64) bool {
	if baseline.Mean == 0 || s.Units == 0 {
		return false
	}
	se := baseline.SD / baseline.Mean * math.Sqrt(1/float64(s.Units)+1/float64(baseline.Units))
	return s.Mean > baseline.Mean*math.Exp(slack)*(1+spreadErrors*se)
}
