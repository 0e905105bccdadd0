package words

import (
	"math"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

func TestReachIsTold(t *testing.T) {
	unit := finding.CountedUnit(1, 0, 1)
	for _, tt := range []struct {
		reach []finding.Reach
		want  string
	}{
		{nil, ""},
		{[]finding.Reach{{Units: 100, Size: .66, Shift: 1.32}, {Units: 2000, Size: .3, Shift: .6}}, "a shift of 0.66 SD (1.3) within 100 episodes, 0.3 SD (0.6) within 2,000"},
		{[]finding.Reach{{Units: 100, Size: math.NaN()}, {Units: 500, Size: .4, Shift: .8}}, "a shift of 0.4 SD (0.8) within 500 episodes"},
		{
			[]finding.Reach{{Units: 200, Size: .51, Shift: .2}, {Units: 500, Size: .507, Shift: .2}, {Units: 1000, Size: .4, Shift: .16}},
			"a shift of 0.51 SD (0.2) within 200 episodes, 0.4 SD (0.16) within 1,000",
		},
		{[]finding.Reach{{Units: 500, Size: .42, OfRate: true}}, "a drop in the rate of 42% within 500 episodes"},
		{
			[]finding.Reach{{Units: 100, Size: math.NaN(), OfRate: true}, {Units: 500, Size: 1, OfRate: true}, {Units: 5300, Size: .5, OfRate: true, Known: 4000}},
			"a drop in the rate of 100% within 500 episodes, 50% within 5,300 if the rate was measured over 4,000",
		},
		{[]finding.Reach{{Units: 500, Size: math.NaN()}}, "none within 500 episodes"},
		{
			[]finding.Reach{
				{Units: 500, Size: .8, Shift: 4, Others: true},
				{Units: 100, Size: math.NaN(), OfAmounts: true},
				{Units: 500, Size: .4, Shift: 3, OfAmounts: true},
			},
			"a shift of 0.8 SD (4) in all nonzero values within 500 episodes; amounts: a shift of 0.4 SD (3) within 500 episodes",
		},
		{[]finding.Reach{{Units: 500, Size: math.NaN(), OfAmounts: true}}, "amounts: none within 500 episodes"},
	} {
		if got := Reach(&finding.StreamSummary{Reach: tt.reach}, unit); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.reach, got, tt.want)
		}
	}
}

func TestReachIsDrawnInALine(t *testing.T) {
	unit := finding.UnitName{Noun: "episode"}
	reach := []finding.Reach{{Units: 20, Size: 1.6}, {Units: 50, Size: .8}, {Units: 1000, Size: .2}}
	if got, want := ReachLine(reach, unit), "█▄▁ 1.6 SD within 20 episodes, to 0.2 SD within 1,000"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := ReachLine(append(reach, finding.Reach{Units: 20, Size: 3, OfAmounts: true}), unit), ReachLine(reach, unit); got != want {
		t.Errorf("with amounts: %q, want %q", got, want)
	}
	if got := ReachLine(reach[:1], unit); got != "" {
		t.Errorf("a single size: %q", got)
	}
}
