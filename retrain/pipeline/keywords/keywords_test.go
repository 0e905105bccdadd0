package keywords

import "testing"

func TestMisspelledArguments(t *testing.T) {
	for name, test := range map[string]struct {
		library, algorithm, argument string
		newer                        bool
		want                         string
	}{
		"known":                 {"stable-baselines3", "PPO", "n_epochs", false, ""},
		"known to all":          {"stable-baselines3", "TD3", "learning_rate", false, ""},
		"misspelled":            {"stable-baselines3", "PPO", "lerning_rate", false, "is not an argument of PPO (did you mean \"learning_rate\"?)"},
		"short":                 {"stable-baselines3", "PPO", "gama", false, "is not an argument of PPO (did you mean \"gamma\"?)"},
		"of another algorithm":  {"stable-baselines3", "PPO", "buffer_size", false, "is an argument of DDPG, DQN, SAC, TD3, not of PPO"},
		"unknown":               {"stable-baselines3", "SAC", "zzz", false, "is not an argument of SAC in Stable-Baselines3 2.0 to 2.9"},
		"before 2.0":            {"stable-baselines3", "SAC", "create_eval_env", false, "is not an argument of SAC in Stable-Baselines3 2.0 to 2.9"},
		"RLlib":                 {"rllib", "PPO", "lambda_", false, ""},
		"RLlib 2.41":            {"rllib", "PPO", "num_sgd_iter", false, ""},
		"misspelled RLlib":      {"rllib", "PPO", "clip_parm", false, "is not an argument of PPO (did you mean \"clip_param\"?)"},
		"unknown RLlib":         {"rllib", "PPO", "zzz", false, "is not an argument of PPO in Ray 2.41 to 2.60"},
		"of a newer release":    {"stable-baselines3", "SAC", "zzz", true, ""},
		"misspelled in another": {"stable-baselines3", "PPO", "lerning_rate", true, "is not an argument of PPO (did you mean \"learning_rate\"?)"},
		"short in another":      {"rllib", "DQN", "lrs", true, ""},
		"another library":       {"cleanrl", "PPO", "zzz", false, ""},
		"another algorithm":     {"stable-baselines3", "TRPO", "zzz", false, ""},
	} {
		requirements := []string{"numpy==2.4.6", "stable-baselines3==2.0.0", "ray[rllib]==2.60.1"}
		if test.newer {
			requirements = []string{"numpy==2.4.6", "stable-baselines3[extra]==2.10.0", "Ray[rllib,tune]==2.61.0"}
		}
		if got := Fault(test.library, test.algorithm, test.argument, requirements); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
