package fault

import (
	"math"
	"testing"
)

// If a unit has more episodes than can be counted, they leave the sum together with their unit.
func TestManyEpisodesOfAUnitLeaveTheSum(t *testing.T) {
	saved := endingsWire{Last: []int64{100_000, 3}, Sum: 100_003}
	if live := saved.live(); live.Sum != math.MaxUint16+3 {
		t.Errorf("the sum is %d", live.Sum)
	}
	marked := marksWire{Last: []int64{1, 100_000}, Sum: 100_001}
	if live := marked.live(); live.Sum != math.MaxUint16+1 {
		t.Errorf("the sum is %d", live.Sum)
	}
}

// A version on trial saves its rules before they have seen a unit, and without what they have learned.
func TestRulesOfATrialComeBack(t *testing.T) {
	for name, set := range map[string]func(*valueRules){
		"upper bound": func(v *valueRules) { v.Clipped.Upper.Need = 7 },
		"lower bound": func(v *valueRules) { v.Clipped.Lower.Need = 7 },
	} {
		r := Rules{Values: &valueRules{}}
		set(r.Values)
		wire := r.Wire()
		if live := wire.Live(); live.Values == nil || live.Values.Clipped.Upper.Need != r.Values.Clipped.Upper.Need ||
			live.Values.Clipped.Lower.Need != r.Values.Clipped.Lower.Need {
			t.Errorf("%s: %+v came back", name, live.Values)
		}
	}
}
