package finding

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
)

func TestHistogram(t *testing.T) {
	counted := func(at map[int]int) []int {
		bins := make([]int, HistogramBins)
		for bin, n := range at {
			bins[bin] = n
		}
		return bins
	}
	even := make([]float64, 2001) // 0 to 100
	for i := range even {
		even[i] = float64(i) / 20
	}
	tests := map[string]struct {
		baseline, current []float64
		want              *Histogram
	}{
		"nothing":           {nil, []float64{1}, nil},
		"nothing finite":    {[]float64{1}, []float64{math.NaN(), math.Inf(1)}, nil},
		"one value":         {[]float64{3, 3}, []float64{3}, &Histogram{Low: 3, High: 3, Baseline: counted(map[int]int{0: 2}), Current: counted(map[int]int{0: 1})}},
		"0 and 1":           {[]float64{0, 0, 1, 1}, []float64{1, math.NaN()}, &Histogram{Low: 0.0, High: 1, Baseline: counted(map[int]int{0: 2, 19: 2}), Current: counted(map[int]int{19: 1})}},
		"the whole range":   {[]float64{-math.MaxFloat64, 0}, []float64{math.MaxFloat64}, nil},
		"an extreme is cut": {even, []float64{1e9}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := NewHistogram(tt.baseline, tt.current)
			switch name {
			case "the whole range", "an extreme is cut":
				if got == nil || sum(got.Baseline) != len(tt.baseline) || sum(got.Current) != 1 || got.Current[HistogramBins-1] != 1 {
					t.Errorf("got %+v", got)
				}
			default:
				if !reflect.DeepEqual(got, tt.want) {
					t.Errorf("got %+v, want %+v", got, tt.want)
				}
			}
		})
	}
	h := NewHistogram(even, even)
	if h.Low != 1 || h.High != 99 {
		t.Errorf("from %g to %g, want the outermost hundredths", h.Low, h.High)
	}
	for i, n := range h.Baseline {
		if i > 0 && i < HistogramBins-1 && (n < 97 || n > 99) || n < 97 || sum(h.Baseline) != len(even) {
			t.Errorf("bin %d of an even sample has %d of %d units", i, n, len(even))
		}
	}
}

func sum(counts []int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

func TestHistogramOfOtherBinsIsRefused(t *testing.T) {
	for _, text := range []string{`{"low":0,"high":1}`, `{"low":0,"high":1,"baseline":[1,2],"current":[1]}`, `{"baseline":"many"}`} {
		var h Histogram
		if err := json.Unmarshal([]byte(text), &h); err == nil {
			t.Errorf("%s is read as %+v", text, h)
		}
	}
}
