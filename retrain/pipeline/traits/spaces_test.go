package traits

import (
	"strings"
	"testing"
)

// Only combinations that are known to fail are rejected.
func TestSpaces(t *testing.T) {
	for id, refused := range map[string]bool{"CartPole-v1": true, "FrozenLake-v1": true, "Ant-v5": true, "CarRacing-v3": false, "ale_py:ALE/Pong-v5": false, "ALE/Pong-v5": false, "Own-v0": false, "lab:CartPole-v1": false} {
		if got := NoImages(id); (got != "") != refused {
			t.Errorf("%s: %q", id, got)
		}
	}
	for id, refused := range map[string]bool{"minigrid:MiniGrid-DoorKey-8x8-v0": true, "BabyAI-GoToObj-v0": true, "CartPole-v1": true, "FetchReach-v4": false, "lab:MiniGrid-v0": false} {
		if got := NoDictionaries(id); (got != "") != refused || refused && !strings.HasPrefix(got, "must be MlpPolicy") {
			t.Errorf("%s: %q", id, got)
		}
	}
	for _, test := range []struct {
		library, algorithm, id string
		refused                bool
	}{
		{"stable-baselines3", "SAC", "CartPole-v1", true},
		{"stable-baselines3", "TD3", "ALE/Pong-v5", true},
		{"stable-baselines3", "DQN", "Pendulum-v1", true},
		{"rllib", "DQN", "Hopper-v5", true},
		{"rllib", "SAC", "CartPole-v1", false},
		{"stable-baselines3", "PPO", "CartPole-v1", false},
		{"stable-baselines3", "SAC", "Pendulum-v1", false},
		{"stable-baselines3", "SAC", "Own-v0", false},
		{"stable-baselines3", "DQN", "Own-v0", false},
	} {
		if got := NoActions(test.library, test.algorithm, test.id); (got != "") != test.refused {
			t.Errorf("%+v: %q", test, got)
		}
	}
	for _, test := range []struct {
		id, other string
		refused   bool
	}{
		{"Acrobot-v1", "CartPole-v1", true},
		{"CartPole-v0", "CartPole-v1", false},
		{"Own-v0", "CartPole-v1", false},
		{"Ant-v4", "Ant-v5", false},
		{"HumanoidStandup-v5", "Humanoid-v5", false},
		{"Humanoid-v5", "Ant-v5", true},
		{"BipedalWalkerHardcore-v3", "BipedalWalker-v3", false},
	} {
		if got := Unlike(test.id, test.other); (got != "") != test.refused {
			t.Errorf("%+v: %q", test, got)
		}
	}
}
