package keywords

import (
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

func valueOf(t *testing.T, text string) yamlfile.Value {
	t.Helper()
	var into struct {
		V yamlfile.Value `yaml:"v"`
	}
	if p := yamlfile.Read("f.yaml", []byte("v: "+text+"\n"), &into).Problems(); len(p) > 0 {
		t.Fatal(p)
	}
	return into.V
}

// Values that the libraries reject only once the training runs are rejected in the file.
func TestValuesOfArguments(t *testing.T) {
	const sb3 = "stable-baselines3"
	for _, test := range []struct{ library, algorithm, name, value, want string }{
		{sb3, "PPO", "n_steps", "256", ""},
		{sb3, "PPO", "n_steps", "many", "must be a whole number of at least 1, not many"},
		{sb3, "PPO", "n_steps", "-256", "must be a whole number of at least 1, not -256"},
		{sb3, "PPO", "n_steps", "true", "must be a whole number of at least 1, not true"},
		{sb3, "PPO", "n_steps", "0.5", "must be a whole number of at least 1, not 0.5"},
		{sb3, "PPO", "n_steps", "[1]", "must be a whole number of at least 1, not a list"},
		{sb3, "PPO", "n_steps", "null", "must be a whole number of at least 1, not null"},
		{sb3, "PPO", "learning_rate", "3e-4", ""},
		{sb3, "PPO", "learning_rate", "'3e-4'", `must be a number above 0, not the string "3e-4": remove the quotes`},
		{sb3, "PPO", "learning_rate", "lin_3e-4", "must be a number above 0, not lin_3e-4"},
		{sb3, "PPO", "gamma", "1", ""},
		{sb3, "PPO", "gamma", "1.5", "must be a number from 0 to 1, not 1.5"},
		{sb3, "PPO", "use_sde", "1", "must be true or false, not 1"},
		{sb3, "PPO", "target_kl", "null", ""},
		{sb3, "PPO", "ent_coef", "auto", "must be a number of at least 0, not auto"},
		{sb3, "SAC", "ent_coef", "auto", ""},
		{sb3, "SAC", "ent_coef", "auto_0.1", ""},
		{sb3, "SAC", "ent_coef", "auto_0", "must be a number of at least 0, auto, or auto and a number above 0, such as auto_0.1, not auto_0"},
		{sb3, "SAC", "gradient_steps", "-1", ""},
		{sb3, "SAC", "target_entropy", "-3.0", ""},
		{sb3, "DQN", "train_freq", "[4, step]", ""},
		{sb3, "DQN", "train_freq", "[4, steps]", "must be a whole number of at least 1, or a list such as [4, step] or [1, episode], not a list"},
		{sb3, "DQN", "train_freq", "step", "must be a whole number of at least 1, or a list such as [4, step] or [1, episode], not step"},
		{sb3, "TD3", "action_noise", "0.1", "must be omitted: a file cannot contain Python objects, so it requires training.command, not 0.1"},
		{sb3, "TD3", "action_noise", "null", ""},
		{sb3, "PPO", "policy_kwargs", "{net_arch: [64, 64]}", ""},
		{sb3, "PPO", "policy_kwargs", "{activation_fn: tanh}", "must be a mapping without classes and functions"},
		{sb3, "PPO", "policy_kwargs", "{net_arch: {pi: [64], vf: []}}", ""},
		{sb3, "PPO", "policy_kwargs", "{net_arch: [{pi: [64], vf: [64]}]}", ""},
		{sb3, "PPO", "policy_kwargs", "{net_arch: [64, {pi: [32]}]}", "must be a mapping without classes and functions"},
		{sb3, "PPO", "policy_kwargs", "{net_arch: {qf: [64]}}", "must be a mapping without classes and functions, whose net_arch is a list of layer sizes or a mapping from pi and vf"},
		{sb3, "SAC", "policy_kwargs", "{net_arch: {pi: [64], qf: [64]}}", ""},
		{sb3, "DQN", "policy_kwargs", "{net_arch: {pi: [64], vf: [64]}}", "must be a mapping without classes and functions, whose net_arch is a list of layer sizes: a file"},
		{sb3, "DQN", "policy_kwargs", "{net_arch: [64]}", ""},
		{sb3, "PPO", "policy_kwargs", "{net_arch: small}", "must be a mapping without classes and functions, whose net_arch is a list of layer sizes"},
		{sb3, "PPO", "policy_kwargs", "{net_arch: [64, 0.5]}", "must be a mapping without classes and functions"},
		{sb3, "PPO", "policy_kwargs", "{net_arch: {actor: [64]}}", "must be a mapping without classes and functions"},
		{sb3, "PPO", "device", "cuda:1", ""},
		{sb3, "PPO", "device", "gpu", "must be a PyTorch device, such as auto, cpu, cuda or cuda:0, not gpu"},
		{sb3, "PPO", "policy_kwargs", "tanh", "must be a mapping without classes and functions"},
		{sb3, "PPO", "of_another_version", "x", ""},
		{"rllib", "PPO", "lr", "[[0, 1e-3], [1000, 1e-4]]", ""},
		{"rllib", "PPO", "lr", "[[10, 1e-3], [1000, 1e-4]]", "must be a number above 0, or a list of [step, number] that begins at step 0, not a list"},
		{"rllib", "PPO", "lr", "-1e-3", "must be a number above 0, or a list of [step, number] that begins at step 0, not -0.001"},
		{"rllib", "PPO", "lambda_", "0.95", ""},
		{"rllib", "PPO", "grad_clip_by", "norms", "must be value or norm or global_norm, not norms"},
		{"rllib", "PPO", "train_batch_size_per_learner", "'500'", `must be a whole number of at least 1, not the string "500": remove the quotes`},
		{"rllib", "DQN", "epsilon", "[[0, 1.0], [10000, 0.05]]", ""},
		{"rllib", "DQN", "n_step", "[2, 5]", ""},
		{"rllib", "DQN", "n_step", "[5, 2]", "must be a whole number of at least 1, or a list of two such numbers, not a list"},
		{"rllib", "IMPALA", "epsilon", "2.0", ""},
		{"cleanrl", "PPO", "gamma", "-1", "must be a number from 0 to 1, not -1"},
		{"cleanrl", "PPO", "num_envs", "0", "must be a whole number of at least 1, not 0"},
		{"cleanrl", "PPO", "clip_coef", "null", "must be a number above 0, not null"},
	} {
		if got := Value(test.library, test.algorithm, test.name, valueOf(t, test.value)); got != test.want && (test.want == "" || !strings.HasPrefix(got, test.want)) {
			t.Errorf("%s %s: %q, want %q", test.name, test.value, got, test.want)
		}
	}
}

// Each argument whose values are checked is an argument of one of the algorithms.
func TestKindsAreOfArguments(t *testing.T) {
	for library, all := range known {
		names := ""
		for _, of := range all {
			names += " " + of
		}
		for _, name := range Arguments(library) {
			if !strings.Contains(names+" ", " "+name+" ") {
				t.Errorf("%s has no argument %s", library, name)
			}
		}
	}
}

// A list is a tuple in Python where the library requires one.
func TestTuplesOfArguments(t *testing.T) {
	for _, test := range []struct{ library, name, value, want string }{
		{"stable-baselines3", "train_freq", "[4, step]", `(4, "step")`},
		{"stable-baselines3", "train_freq", "4", "4"},
		{"stable-baselines3", "buffer_size", "1e6", "1000000"},
		{"stable-baselines3", "gamma", "1", "1"},
		{"cleanrl", "num_steps", "128.0", "128"},
		{"stable-baselines3", "policy_kwargs", "{net_arch: [64]}", `{"net_arch": [64]}`},
		{"rllib", "n_step", "[2, 5]", "(2, 5)"},
		{"rllib", "lr", "[[0, 1.0], [9, 0.5]]", "[[0, 1.0], [9, 0.5]]"},
	} {
		if got := Python(test.library, test.name, valueOf(t, test.value)); got != test.want {
			t.Errorf("%s %s: %s, want %s", test.name, test.value, got, test.want)
		}
	}
}
