package finding

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
)

// The parts of a finding read back what they write as JSON, except for fields that JSON omits.
func TestFindingsFromJSON(t *testing.T) {
	effect := Effect{
		Quantity: "return", BaselineMean: 1, CurrentMean: 2, MeanShift: 3, BaselineSD: 4, CurrentSD: 5, StandardShift: 6, CurrentUnits: 7,
		MedianShift: 8, Q10Shift: 9, Q90Shift: 10, SpreadRatio: 11, Wasserstein: 12, AtLeast: 13,
	}
	promise := Promise{
		N: 1, ARL0: 2, Low: 3, High: 4, Allowance: 5, Overlap: 6, Confidence: ConfidenceKept, Weakest: "mean location +0.8",
		Caveats: []string{"the baseline covers less than two weeks"},
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
