package alerts

import (
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// A large shift of the mean is told as one, whatever it does to the distance from the middle.
func TestWordsOfAMovement(t *testing.T) {
	tests := map[string]struct {
		shift finding.Shift
		want  string
	}{
		"large shift": {
			finding.Shift{Signal: "reward", Quantity: "mean", StandardShift: -2.19, Z: -5, SpreadZ: 7.2, Units: 10},
			"rewards moved (mean of reward: -2.2 baseline sd, z -5.0 over 10 episodes)",
		},
		"wider": {
			finding.Shift{Signal: "return", Quantity: "return", StandardShift: .1, Z: 1, SpreadZ: 7.2, Units: 10},
			"rewards moved (return: wider spread, z 7.2 over 10 episodes)",
		},
		"narrower": {
			finding.Shift{Signal: "reward", Quantity: "mean", Z: -1, SpreadZ: -4, Units: 10},
			"rewards moved (mean of reward: narrower spread, z -4.0 over 10 episodes)",
		},
	}
	for name, tt := range tests {
		m := movement{quantities: 1, odds: movedOdds, foremost: tt.shift}
		if got := m.words(rewards, finding.Episodes()); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}
