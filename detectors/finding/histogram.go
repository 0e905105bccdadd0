package finding

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/rewardwatch/rewardwatch/detectors"
)

// HistogramBins is the number of bins of a Histogram: enough to show a second mode, and few enough for 30 units.
const HistogramBins = 20

// Histogram counts units by the value of one quantity: the units of the baseline, and at most the 200 newest since
// an onset. The bins have equal width from Low to High. Values outside count in the outermost bins.
type Histogram struct {
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
	Baseline []int   `json:"baseline"` // by bin
	Current  []int   `json:"current"`
}

// NewHistogram returns a histogram from the lower 1% point of the two samples to the upper one, so that single
// extreme units do not squeeze all others into one bin. It returns nil if either sample has no finite value.
func NewHistogram(baseline, current []float64) *Histogram {
	baseline, current = finite(baseline), finite(current)
	if len(baseline) == 0 || len(current) == 0 {
		return nil
	}
	a, b := detectors.Quantiles(baseline, .01, .99), detectors.Quantiles(current, .01, .99)
	h := &Histogram{Low: min(a[0], b[0]), High: max(a[1], b[1])}
	h.Baseline, h.Current = h.count(baseline), h.count(current)
	return h
}

// UnmarshalJSON reads a Histogram. It returns an error if the two samples have different numbers of bins.
func (h *Histogram) UnmarshalJSON(text []byte) error {
	type plain Histogram
	if err := json.Unmarshal(text, (*plain)(h)); err != nil {
		return err
	}
	if len(h.Baseline) == 0 || len(h.Baseline) != len(h.Current) {
		return fmt.Errorf("a histogram has %d baseline bins, but %d current bins", len(h.Baseline), len(h.Current))
	}
	return nil
}

// Units returns the number of units in each sample.
func (h *Histogram) Units() (baseline, current int) {
	for i := range h.Baseline {
		baseline, current = baseline+h.Baseline[i], current+h.Current[i]
	}
	return baseline, current
}

func (h *Histogram) count(sample []float64) []int {
	bins := make([]int, HistogramBins)
	for _, x := range sample {
		bins[h.bin(x)]++
	}
	return bins
}

// bin returns the bin of a value. Low and High are halved before they are subtracted, or the width could overflow.
func (h *Histogram) bin(x float64) int {
	half := h.High/2 - h.Low/2
	switch {
	case half <= 0 || x <= h.Low:
		return 0
	case x >= h.High:
		return HistogramBins - 1
	}
	return min(HistogramBins-1, int(HistogramBins*((x/2-h.Low/2)/half)))
}

// finite returns a copy of the finite values.
func finite(values []float64) []float64 {
	out := make([]float64, 0, len(values))
	for _, x := range values {
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			out = append(out, x)
		}
	}
	return out
}
