package watch

import (
	"slices"
	"testing"
)

func TestDirections(t *testing.T) {
	d := Directions{"outcome.refund": DirectionDown, "outcome.*": DirectionUp, "reward": DirectionDown, "ret*": DirectionNone}
	for signal, want := range map[string]int{
		"outcome.refund": -1, "outcome.sale": 1, "reward": -1, "return": 0, "episode_length": 0, "action": 0,
	} {
		if got := d.Better(signal); got != want {
			t.Errorf("%s: %d, want %d", signal, got, want)
		}
	}
	for signal, want := range map[string]int{"return": 1, "reward": 1, "episode_length": 0, "outcome.sale": 0, "reward_component.x": 0} {
		if got := Directions(nil).Better(signal); got != want {
			t.Errorf("%s without a direction: %d, want %d", signal, got, want)
		}
	}
	var reported []string
	Directions{"return": "upwards", "retrun": "up", "[": "up"}.Check(func(path, msg string) { reported = append(reported, path+": "+msg) })
	want := []string{
		`direction.[: "[" is not a valid pattern`,
		`direction.retrun: unknown signal "retrun"; must be return, reward, episode_length, action, action.<i>, ` +
			`outcome.<name>, reward_component.<name>, observation.<name> or feedback_delay`,
		`direction.return: must be "up", "down" or "none", not "upwards"`,
	}
	if !slices.Equal(reported, want) {
		t.Errorf("reported %q", reported)
	}
}

// The better side of a given mean judges a new version only if no direction names the signal; none is a direction,
// too.
func TestSideOfAVersionsSignal(t *testing.T) {
	for _, tt := range []struct {
		direction Directions
		side      string // of the mean that is given
		want      int
	}{
		{nil, "below", 1},
		{nil, "above", -1},
		{nil, "both", 0},
		{Directions{"outcome.refund": DirectionNone}, "above", 0},
		{Directions{"outcome.*": DirectionNone}, "below", 0},
		{Directions{"outcome.refund": DirectionUp}, "above", 1},
		{Directions{"outcome.*": DirectionNone, "outcome.refund": DirectionDown}, "both", -1},
		{Directions{"outcome.other": DirectionNone}, "above", -1},
	} {
		cfg := Config{Direction: tt.direction, Guaranteed: []GivenMean{{Signal: "outcome.refund", Mean: .05, Side: tt.side}}}
		if got := cfg.Side("outcome.refund"); got != tt.want {
			t.Errorf("direction %v, mean given on side %q: %d, want %d", tt.direction, tt.side, got, tt.want)
		}
	}
	if cfg := (Config{Direction: Directions{"return": DirectionNone}}); cfg.Side("return") != 0 || cfg.Side("reward") != 1 {
		t.Errorf("return %d, reward %d, want 0 and 1", cfg.Side("return"), cfg.Side("reward"))
	}
}
