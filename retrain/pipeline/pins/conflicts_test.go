package pins

import (
	"strings"
	"testing"
)

func TestPinsThatPipRefuses(t *testing.T) {
	for _, test := range []struct{ requirements, want string }{
		{"gymnasium==1.1.1 ray[default,rllib]==2.41.0", "must be ==1.0.0, which ray[default,rllib]==2.41.0 requires"},
		{"gymnasium==1.0.0 ray[rllib]==2.41.0", ""},
		{"gymnasium==1.1.1 ray==2.41.0", ""},
		{"gymnasium==1.2.2 stable_baselines3==2.6.0", "must be >=0.29.1,<1.2.0"},
		{"gymnasium==1.1.1 stable-baselines3[extra]==2.6.0", ""},
		{"gymnasium==1.4.0 stable-baselines3==2.9.2", ""},
		{"gymnasium==0.29.1 ale-py==0.11.0", ""},
		{"numpy==2.2.4 stable-baselines3==2.3.2", ""},
	} {
		all := strings.Fields(test.requirements)
		if got := Conflict(all[0], all); (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", test.requirements, got, test.want)
		}
	}
}

func TestVersionsOfGames(t *testing.T) {
	for id, want := range map[string]string{
		"ale_py:ALE/Pong-v9": "such as ale_py:ALE/Pong-v5", "ALE/Tetris-v4": "ALE/Tetris-v5", "ALE/Pong-v5": "", "ale_py:ALE/Pong-ram-v5": "", "PongNoFrameskip-v5": "such as PongNoFrameskip-v4",
		"ale_py:Breakout-v0": "", "BreakoutDeterministic-v4": "", "Pong-v9": "such as Pong-v4", "my_games:Pong-v9": "", "Courier-v9": "", "gymnasium:CartPole-v7": "such as CartPole-v1", "gymnasium:CartPole-v1": "",
	} {
		if got := Unknown(id, nil); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
}

func TestMistypedPackages(t *testing.T) {
	for name, is := range map[string]bool{"nunpy": true, "pandad": true, "bandas": false, "numpy": false, "scipi": false, "numpyx": false} {
		if got := Misspelled(name+"==1.0", []string{name + "==1.0"}) != ""; got != is {
			t.Errorf("%s: %v", name, got)
		}
	}
}
