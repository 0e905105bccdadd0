package traits

import (
	"strings"
	"testing"
)

func TestMetricsThatNothingReports(t *testing.T) {
	for _, test := range []struct{ id, metric, want string }{
		{"CartPole-v1", "return", ""},
		{"CartPole-v1", "episode_length", ""},
		{"CartPole-v1", "TimeLimit.truncated", ""},
		{"CartPole-v1", "collisions", "CartPole-v1 reports no collisions in info, without which the evaluation fails: add it in a wrapper, or use one of return, episode_length"},
		{"gymnasium:CartPole-v1", "collisions", "CartPole-v1 reports no collisions"},
		{"lab:CartPole-v1", "collisions", ""},
		{"lab/CartPole-v1", "collisions", ""},
		{"highway-v0", "crashed", ""},
		{"Ant-v5", "x_position", ""},
		{"CarRacing-v3", "lap_finished", ""},
		{"CarRacing-v3", "lap", "CarRacing-v3 reports no lap"},
		{"ale_py:ALE/Pong-v5", "lives", ""},
		{"ale_py:ALE/Pong-v5", "score", "ALE/Pong-v5 reports no score in info, without which the evaluation fails: add it in a wrapper, or use one of return, episode_length, lives,"},
	} {
		if got := Unreported(test.id, test.metric); test.want == "" && got != "" || !strings.HasPrefix(got, test.want) {
			t.Errorf("%s in %s: %q, want %q", test.metric, test.id, got, test.want)
		}
	}
	for metric, want := range map[string]string{
		"episode_lenght": "episode_length", "Return": "return", "retrun": "return", "returns": "return", "timelimit.truncated": truncated,
		"return": "", "rate": "", "on": "", "torque": "", "returned": "", "episode_lights": "",
	} {
		if got := Misspelled(metric); got != want {
			t.Errorf("%s is meant to be %q, want %q", metric, got, want)
		}
	}
}
