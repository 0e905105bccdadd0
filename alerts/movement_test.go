package alerts

import (
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// A large shift of the mean is described as a shift, whatever its effect on the distance from the middle.
func TestWordsOfAMovement(t *testing.T) {
	tests := map[string]struct {
		shift finding.Shift
		want  string
	}{
		"large shift": {
			finding.Shift{Signal: "reward", Quantity: "mean", StandardShift: -2.19, Z: -5, SpreadZ: 7.2, Units: 10},
			"mean reward fell by 2.2 baseline SD (z = -5.0, 10 episodes)",
		},
		"wider": {
			finding.Shift{Signal: "return", Quantity: "return", StandardShift: .1, Z: 1, SpreadZ: 7.2, Units: 10},
			"mean return varies more (z = 7.2, 10 episodes)",
		},
		"narrower": {
			finding.Shift{Signal: "reward", Quantity: "mean", Z: -1, SpreadZ: -4, Units: 10},
			"mean reward varies less (z = -4.0, 10 episodes)",
		},
		"rewards for the same actions": {
			finding.Shift{Signal: "reward", Quantity: "difference for like actions", StandardShift: -1.2, Z: -10.4, SpreadZ: 1, Units: 200},
			"reward for the same actions fell by 1.2 baseline SD (z = -10.4, 200 episodes)",
		},
		"actions": {
			finding.Shift{Signal: "action", Quantity: "share of left", StandardShift: 2, Z: 6, Units: 10},
			"share of left rose by 2 baseline SD (z = 6.0, 10 episodes)",
		},
	}
	for name, tt := range tests {
		m := movement{quantities: 1, odds: movedOdds, foremost: tt.shift}
		if got := m.words(rewards, finding.Episodes()); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}
