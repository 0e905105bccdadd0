package bank

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
)

func TestHistogram(t *testing.T) {
	counted := func(at map[int]int) []int {
		bins := make([]int, histogramBins)
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
		"one value":         {[]float64{3, 3}, []float64{3}, &Histogram{3, 3, counted(map[int]int{0: 2}), counted(map[int]int{0: 1})}},
		"0 and 1":           {[]float64{0, 0, 1, 1}, []float64{1, math.NaN()}, &Histogram{0.0, 1, counted(map[int]int{0: 2, 19: 2}), counted(map[int]int{19: 1})}},
		"the whole range":   {[]float64{-math.MaxFloat64, 0}, []float64{math.MaxFloat64}, nil},
		"an extreme is cut": {even, []float64{1e9}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := newHistogram(tt.baseline, tt.current)
			switch name {
			case "the whole range", "an extreme is cut":
				if got == nil || sum(got.Baseline) != len(tt.baseline) || sum(got.Current) != 1 || got.Current[histogramBins-1] != 1 {
					t.Errorf("got %+v", got)
				}
			default:
				if !reflect.DeepEqual(got, tt.want) {
					t.Errorf("got %+v, want %+v", got, tt.want)
				}
			}
		})
	}
	h := newHistogram(even, even)
	if h.Low != 1 || h.High != 99 {
		t.Errorf("from %g to %g, want the outermost hundredths", h.Low, h.High)
	}
	for i, n := range h.Baseline {
		if i > 0 && i < histogramBins-1 && (n < 97 || n > 99) || n < 97 || sum(h.Baseline) != len(even) {
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

// What the bank writes as JSON it reads again, but for what JSON leaves out.
func TestFindingsFromJSON(t *testing.T) {
	effect := Effect{
		Quantity: "return", BaselineMean: 1, CurrentMean: 2, MeanShift: 3, BaselineSD: 4, CurrentSD: 5, StandardShift: 6, CurrentUnits: 7,
		MedianShift: 8, Q10Shift: 9, Q90Shift: 10, SpreadRatio: 11, Wasserstein: 12, AtLeast: 13,
	}
	promise := Promise{
		N: 1, ARL0: 2, Low: 3, High: 4, Allowance: 5, Overlap: 6, Confidence: ConfidenceKept, Weakest: "mean location +0.8", Caveats: []string{CaveatWeek},
	}
	shift := Shift{Signal: "reward", Quantity: "mean", BaselineMean: 1, CurrentMean: 2, StandardShift: 3, Z: 4, SpreadZ: 5, Units: 6, Drifted: true}
	for name, values := range map[string]struct{ written, read any }{
		"effect":     {effect, &Effect{}},
		"promise":    {promise, &Promise{}},
		"no promise": {Promise{}, &Promise{}},
		"shift":      {shift, &Shift{}},
	} {
		text, err := json.Marshal(values.written)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, values.read); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := reflect.ValueOf(values.read).Elem().Interface(); !reflect.DeepEqual(got, values.written) {
			t.Errorf("%s: got %+v, want %+v", name, got, values.written)
		}
	}
	var unknown Effect
	if err := json.Unmarshal([]byte(`{"quantity":"return","current_mean":null}`), &unknown); err != nil || !math.IsNaN(unknown.CurrentMean) {
		t.Errorf("null is %v, %v", unknown.CurrentMean, err)
	}
}

func TestHistogramOfOtherBinsIsRefused(t *testing.T) {
	for _, text := range []string{`{"low":0,"high":1}`, `{"low":0,"high":1,"baseline":[1,2],"current":[1]}`, `{"baseline":"many"}`} {
		var h Histogram
		if err := json.Unmarshal([]byte(text), &h); err == nil {
			t.Errorf("%s is read as %+v", text, h)
		}
	}
}
