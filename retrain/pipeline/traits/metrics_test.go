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
		{"CartPole-v1", "collisions", "must be return, episode_length, because CartPole-v1 reports no collisions in info"},
		{"gymnasium:CartPole-v1", "collisions", "must be return, episode_length"},
		{"lab:CartPole-v1", "collisions", ""},
		{"lab/CartPole-v1", "collisions", ""},
		{"highway-v0", "crashed", ""},
		{"Ant-v5", "x_position", ""},
		{"CarRacing-v3", "lap_finished", ""},
		{"CarRacing-v3", "lap", "must be return, episode_length, lap_finished, because"},
		{"ale_py:ALE/Pong-v5", "lives", ""},
		{"ale_py:ALE/Pong-v5", "score", "must be return, episode_length, lives,"},
		{"lab:Forklift-v0", "episode_lenght", "must be episode_length, not episode_lenght"},
		{"lab:Forklift-v0", "Return", "must be return, not Return"},
		{"lab:Forklift-v0", "retrun", "must be return, not retrun"},
		{"lab:Forklift-v0", "timelimit.truncated", "must be TimeLimit.truncated"},
		{"lab:Forklift-v0", "rate", ""},
		{"lab:Forklift-v0", "on", ""},
		{"lab:Forklift-v0", "torque", ""},
	} {
		if got := Unreported(test.id, test.metric); test.want == "" && got != "" || !strings.HasPrefix(got, test.want) {
			t.Errorf("%s in %s: %q, want %q", test.metric, test.id, got, test.want)
		}
	}
}
