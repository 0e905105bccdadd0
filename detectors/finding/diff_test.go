package finding

import (
	"math"
	"testing"
)

func TestDiffShowsWhatOneSideLacks(t *testing.T) {
	a := []QuantitySample{{Signal: "return", Quantity: "return", Values: []float64{1, 2, 3}}}
	b := []QuantitySample{
		{Signal: "action", Quantity: "share of a", Values: []float64{.5}},
		{Signal: "return", Quantity: "return", Values: []float64{1, 2, 3}},
	}
	d := DiffSamples(a, b)
	if len(d) != 2 || d[0].Signal != "action" || d[0].A.Units != 0 || d[0].B.Units != 1 || !math.IsNaN(d[0].P) {
		t.Fatalf("diff %+v", d)
	}
	if d[1].D != 0 || d[1].P != 1 || d[1].A.Q50 != 2 {
		t.Errorf("two equal samples: %+v", d[1])
	}
}
