package plots

import (
	"math"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

func TestCurveOfWhatCanBeSeen(t *testing.T) {
	unit := finding.UnitName{}
	s := &finding.StreamSummary{Reach: []finding.Reach{
		{Units: 20, Size: math.NaN()}, {Units: 50, Size: 1, Shift: 2}, {Units: 500, Size: .5, Shift: 1}, {Units: 5000, Size: .25, Shift: .5},
	}}
	c := CurveOf(s, unit)
	if c == nil || len(c.Points) != 3 {
		t.Fatalf("%+v", c)
	}
	// On a logarithmic scale, 500 is in the middle between 50 and 5,000; half the largest size is at half the height.
	if want := "18.0,14.0 180.0,62.0 342.0,86.0"; c.Line != want {
		t.Errorf("line %s, want %s", c.Line, want)
	}
	if p := c.Points[2]; p.Units != "5,000" || p.Size != "0.25 SD" || p.Label != "0.25" || !strings.HasPrefix(p.Title, "0.25 SD within 5000 ") {
		t.Errorf("%+v", p)
	}
	if !strings.Contains(c.Text, "9 of 10 cases: 1 SD within 50") || c.Sizes != "shift in baseline SD" {
		t.Errorf("%q, %q", c.Text, c.Sizes)
	}
	rate := &finding.StreamSummary{Reach: []finding.Reach{
		{Units: 500, Size: 1, OfRate: true}, {Units: 2000, Size: .78, OfRate: true}, {Units: 5300, Size: .5, OfRate: true, Known: 4000},
	}}
	if c := CurveOf(rate, unit); len(c.Points) != 2 || c.Points[1].Size != "78%" || c.Sizes != "drop in the rate" {
		t.Errorf("of a rate: %+v", c)
	}
	for name, reach := range map[string][]finding.Reach{"nothing known": nil, "a single size": {{Units: 20, Size: math.NaN()}, {Units: 50, Size: 1}}} {
		if c := CurveOf(&finding.StreamSummary{Reach: reach}, unit); c != nil {
			t.Errorf("%s: %+v", name, c)
		}
	}
}
