package calibrate

import (
	"math"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/measure"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// A measured interval that is entirely below the budget fails the gate; one that includes it does not.
func TestVerdictOfMeasuredFalseAlarms(t *testing.T) {
	tests := map[string]struct {
		measured   measure.FalseAlarms
		confidence string
		kept       bool
	}{
		"kept":          {measure.FalseAlarms{At: 1000, ARL0: 1100, Low: 800, High: 2000, Alarms: 100}, finding.ConfidenceKept, true},
		"uncertain":     {measure.FalseAlarms{At: 1000, ARL0: 800, Low: 500, High: 1001, Alarms: 100}, finding.ConfidenceReduced, true},
		"below":         {measure.FalseAlarms{At: 1000, ARL0: 500, Low: 300, High: 999, Alarms: 100}, finding.ConfidenceKept, false},
		"unconfirmed":   {measure.FalseAlarms{At: 1000, ARL0: 2000, Low: 1500, High: 2999, Alarms: 100}, finding.ConfidenceUnconfirmed, false},
		"without alarm": {measure.FalseAlarms{At: 1000, ARL0: 900, Low: 300, High: math.Inf(1)}, finding.ConfidenceKept, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var line Calibration
			line.measured(&calibratedGroup{}, measure.Measuring{}, measure.Measurement{N: 1000, FalseAlarms: tt.measured},
				finding.GroupSummary{Promise: finding.Promise{N: 1000, Confidence: tt.confidence}})
			if *line.Kept != tt.kept || (len(line.Reasons) == 0) != tt.kept {
				t.Errorf("kept %v, for %q", *line.Kept, line.Reasons)
			}
		})
	}
}

// If units were left out because of incidents, that may be why the others have few false alarms.
func TestVerdictWhereUnitsWereLeftOut(t *testing.T) {
	tests := map[string]struct {
		incidents, leftOut int64
		heldOut            int
		want               string // of the reason; empty if the budget can be kept
	}{
		"none":                  {0, 0, 19_500, ""},
		"other faults":          {0, 9_297, 10_203, ""},
		"one, soon over":        {1, 120, 19_380, ""},
		"one that did not end":  {1, 9_297, 10_203, "9297 of the 19500 units after the baseline were excluded because of 1 incident"},
		"more than allowed":     {3, 400, 19_100, "3 incidents in the 19500 units after the baseline, but the budget allows 0.2167"},
		"as many as is allowed": {3, 400, 300_000, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var line Calibration
			g := &calibratedGroup{incidents: tt.incidents, leftOut: tt.leftOut, heldOut: make([]*ingest.Unit, tt.heldOut)}
			m := measure.Measurement{N: 90_000, FalseAlarms: measure.FalseAlarms{At: 90_000, ARL0: 300_000, Low: 100_000, High: math.Inf(1)}}
			line.measured(g, measure.Measuring{HeldOut: true}, m, finding.GroupSummary{Promise: finding.Promise{N: m.N, Confidence: finding.ConfidenceKept}})
			if *line.Kept != (tt.want == "") || !strings.HasPrefix(strings.Join(line.Reasons, "; "), tt.want) {
				t.Errorf("kept %v, for %q", *line.Kept, line.Reasons)
			}
		})
	}
}
