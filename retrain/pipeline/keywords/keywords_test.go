package keywords

import "testing"

func TestMisspelledArguments(t *testing.T) {
	for name, test := range map[string]struct {
		library, algorithm, argument string
		exactly                      bool
		want                         string
	}{
		"known":                 {"stable-baselines3", "PPO", "n_epochs", true, ""},
		"known to all":          {"stable-baselines3", "TD3", "learning_rate", true, ""},
		"misspelled":            {"stable-baselines3", "PPO", "learning_rat", true, "is not an argument of PPO (did you mean \"learning_rate\"?)"},
		"misspelled for others": {"stable-baselines3", "PPO", "lerning_rate", false, "is not an argument of PPO (did you mean \"learning_rate\"?)"},
		"of another algorithm":  {"stable-baselines3", "PPO", "buffer_size", true, "is an argument of DDPG, DQN, SAC, TD3, not of PPO"},
		"of another in another": {"stable-baselines3", "SAC", "n_epochs", false, "is an argument of PPO, not of SAC"},
		"unknown":               {"stable-baselines3", "SAC", "zzz", true, "is not an argument of SAC in stable-baselines3==2.9.2"},
		"of another version":    {"stable-baselines3", "SAC", "create_eval_env", false, ""},
		"short in another":      {"rllib", "DQN", "lrs", false, ""},
		"RLlib":                 {"rllib", "PPO", "lambda_", true, ""},
		"misspelled RLlib":      {"rllib", "PPO", "clip_parm", true, "is not an argument of PPO (did you mean \"clip_param\"?)"},
		"another library":       {"cleanrl", "PPO", "zzz", true, ""},
		"another algorithm":     {"stable-baselines3", "TRPO", "zzz", true, ""},
	} {
		requirements := []string{"numpy==2.4.6", "stable-baselines3==2.0.0", "ray[rllib]==2.9.0"}
		if test.exactly {
			requirements = []string{"numpy==2.4.6", "stable-baselines3[extra]==2.9.2", "ray[rllib,tune]==2.60.0"}
		}
		if got := Fault(test.library, test.algorithm, test.argument, requirements); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
