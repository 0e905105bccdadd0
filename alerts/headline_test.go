package alerts

import (
	"slices"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

func TestHeadline(t *testing.T) {
	alarm := func(signal, quantity string, onset int64, resolved bool) Alarm {
		return Alarm{Signal: signal, Effect: finding.Effect{Quantity: quantity}, Onset: finding.UnitRef{Ordinal: onset}, Resolved: resolved}
	}
	for name, tt := range map[string]struct {
		alarms []Alarm
		want   string
	}{
		"return before reward":   {[]Alarm{alarm("reward", "mean", 1, false), alarm("return", "return", 9, false)}, "return"},
		"reward before outcomes": {[]Alarm{alarm("outcome.a", "mean", 1, false), alarm("reward", "q90", 9, false)}, "reward"},
		"outcomes before others": {[]Alarm{alarm("action", "mix", 1, false), alarm("outcome.a", "mean", 9, false)}, "outcome.a"},
		"mean before quantile":   {[]Alarm{alarm("outcome.b", "q10", 1, false), alarm("outcome.a", "mean", 9, false)}, "outcome.a"},
		"spread before quantile": {[]Alarm{alarm("outcome.b", "q10", 1, false), alarm("outcome.a", "sd", 9, false)}, "outcome.a"},
		"the earliest":           {[]Alarm{alarm("outcome.b", "mean", 9, false), alarm("outcome.a", "mean", 1, false)}, "outcome.a"},
		"firing before resolved": {[]Alarm{alarm("return", "return", 1, true), alarm("action", "mix", 9, false)}, "action"},
	} {
		i := Incident{Alarms: tt.alarms}
		if got := i.Headline(); got.Signal != tt.want {
			t.Errorf("%s: %s", name, got.Signal)
		}
	}
	if got := Ranked([]string{"action", "outcome.b", "reward", "outcome.a", "return"}); !slices.Equal(got, []string{"return", "reward", "outcome.b", "outcome.a", "action"}) {
		t.Errorf("ranked %q", got)
	}
}

// The mean represents an alarm of a quantile if the mean has clearly moved.
func TestForemostEffect(t *testing.T) {
	for z, want := range map[float64]string{-6: "mean", 6: "mean", 3: "q90"} {
		a := Alarm{Signal: "reward", Effect: finding.Effect{Quantity: "q90", CurrentMean: 1}, Shifts: []finding.Shift{
			{Signal: "return", Quantity: "return", Z: 9},
			{Signal: "reward", Quantity: "mean", BaselineMean: 2, CurrentMean: 1.5, StandardShift: -1, Z: z, Units: 66},
			{Signal: "reward", Quantity: "sd", Z: 2},
		}}
		e := a.Foremost()
		if e.Quantity != want {
			t.Errorf("z %g: %s", z, e.Quantity)
		}
		if told := e.ClauseOf(a.Signal, finding.Episodes()); want == "mean" && told != "mean reward is now 1.5, down from 2 in the baseline (-1 SD; 66 episodes since the onset)" {
			t.Errorf("told %q", told)
		}
	}
}
