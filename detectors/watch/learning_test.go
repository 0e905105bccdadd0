package watch

import "testing"

// While a policy learns, only what must not change by learning is judged, and levels only if they get worse.
func TestSidesOfAPolicyThatLearns(t *testing.T) {
	directions := Directions{"outcome.refund": DirectionDown, "outcome.sale": DirectionUp, "reward_component.fee": DirectionDown}
	given := []GivenMean{{Signal: "outcome.crash", Mean: .01, Side: "above"}}
	for _, tt := range []struct {
		signal, quantity string
		want             Sides
	}{
		{"return", "return", SidesLower},
		{"return", "weighted by covariance", SidesNone},
		{"reward", "mean", SidesNone},
		{"reward", "q10", SidesNone},
		{"episode_length", "length", SidesNone},
		{"action", "share of left", SidesNone},
		{"observation.x", "mean", SidesNone},
		{"outcome.sale", "mean", SidesLower},
		{"outcome.refund", "mean", SidesHigher},
		{"outcome.crash", "mean", SidesHigher},
		{"outcome.other", "mean", SidesNone},
		{"reward_component.fee", "mean", SidesHigher},
		{"reward_component.fee", "sd", SidesNone},
		{"law.reward", "mean score", SidesBoth},
		{"law.dynamics", "mean squared score", SidesBoth},
		{"law.dynamics", "largest mean score", SidesHigher},
		{"law.dynamics", "largest mean squared score", SidesHigher},
		{"law.start", "mean score", SidesBoth},
		{"law.start", "largest mean score", SidesHigher},
		{"law.policy", "mean score", SidesNone},
		{"feedback_delay", "mean", SidesBoth},
	} {
		for learning, want := range map[Learning]Sides{
			"": SidesBoth, LearningFrozen: SidesBoth, LearningVersions: tt.want, LearningContinuous: tt.want,
		} {
			cfg := Config{Learning: learning, Direction: directions, Guaranteed: given}
			if got := cfg.Sides(tt.signal, tt.quantity); got != want {
				t.Errorf("learning %q: %s %s: %d, want %d", learning, tt.signal, tt.quantity, got, want)
			}
		}
	}
	if cfg := (Config{Learning: LearningContinuous, Direction: Directions{"reward": DirectionUp, "return": DirectionNone}}); cfg.Sides("reward", "mean") != SidesLower ||
		cfg.Sides("return", "return") != SidesNone {
		t.Error("a direction that is named does not decide")
	}
}

// The hash of a configuration from before the key existed stays the same.
func TestHashOfAFrozenPolicy(t *testing.T) {
	frozen, none, continuous := DefaultConfig(), DefaultConfig(), DefaultConfig()
	none.Learning, continuous.Learning = "", LearningContinuous
	if frozen.Hash() != none.Hash() || frozen.Hash() == continuous.Hash() {
		t.Errorf("frozen %s, not given %s, continuous %s", frozen.Hash(), none.Hash(), continuous.Hash())
	}
}
