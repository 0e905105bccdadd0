package keywords

import (
	"strings"
	"testing"
)

// Each rule has a bad value and good ones that are close to it.
func TestFaultsOfArguments(t *testing.T) {
	const newer = "newer"
	for _, test := range []struct{ library, algorithm, arguments, want string }{
		{"rllib", "PPO", "model: {fcnet_activation: relux}", "model.fcnet_activation: must be an activation function of PyTorch"},
		{"rllib", "PPO", "model: {fcnet_activation: gelu}", "model.fcnet_activation"},
		{"rllib", "PPO", "model: {fcnet_activation: GELU, head_fcnet_activation: ReLU, conv_activation: null}", ""},
		{"rllib", "PPO", "model: {fcnet_hiddens: 128}", "model.fcnet_hiddens: must be a list of layer sizes, such as [256, 256], not 128"},
		{"rllib", "PPO", "model: {fcnet_hiddens: [64, 0]}", "model.fcnet_hiddens"},
		{"rllib", "PPO", "model: {fcnet_hiddens: [64.5]}", "model.fcnet_hiddens"},
		{"rllib", "PPO", "model: {fcnet_hiddens: [], head_fcnet_hiddens: [64]}", ""},
		{"rllib", "PPO", "model: {conv_filters: [[16, 8]]}", "model.conv_filters: must be a list of [channels, kernel, stride]"},
		{"rllib", "PPO", "model: {conv_filters: [[16, 8, 4], [32, [4, 3], [2, 1], valid]]}", ""},
		{"rllib", "PPO", "model: {use_lstm: 1}", "model.use_lstm: must be true or false, not 1"},
		{"rllib", "PPO", "model: {lstm_cell_size: 0}", "model.lstm_cell_size: must be a whole number of at least 1"},
		{"rllib", "PPO", "model: {fcnet_kernel_initializer: xavier_uniform}", "model.fcnet_kernel_initializer: must be a function of torch.nn.init"},
		{"rllib", "PPO", "model: {fcnet_kernel_initializer: xavier_uniform_, fcnet_weights_initializer: xavier_uniform}", ""},
		{"rllib", "SAC", "model: {fusionnet_hiddens: [64, 64], fusionnet_activation: silu}", ""},
		{newer, "PPO", "model: {fcnet_activation: relux}", ""},
		{"rllib", "SAC", "lr: 3e-4", "lr: must be omitted, because RLlib rejects it with SAC: set actor_lr, critic_lr and alpha_lr"},
		{"rllib", "SAC", "lr: null, actor_lr: 3e-4", ""},
		{"rllib", "PPO", "lr: 3e-4", ""},
		{newer, "SAC", "lr: 3e-4", ""},
		{"rllib", "PPO", "lr_schedule: [[0, 1e-3], [1000, 1e-4]]", "lr_schedule: must be omitted"},
		{"rllib", "PPO", "lr: [[0, 1e-3], [1000, 1e-4]], entropy_coeff_schedule: null", ""},
		{"rllib", "PPO", "use_gae: false", "use_gae: must be omitted"},
		{"rllib", "APPO", "use_gae: false", ""},
		{"rllib", "PPO", "vf_share_layers: true", "vf_share_layers: must be omitted, because RLlib rejects it with PPO: set it in model"},
		{"rllib", "PPO", "model: {vf_share_layers: true}", ""},
		{"rllib", "IMPALA", "vtrace: false", "vtrace: must be omitted"},
		{"rllib", "IMPALA", "vtrace: true, replay_proportion: 0.0", ""},
		{"rllib", "APPO", "learner_queue_size: 8", "learner_queue_size: must be omitted"},
		{"rllib", "APPO", "learner_queue_size: 16", ""},
		{"rllib", "IMPALA", "learner_queue_size: 8", ""},
		{"rllib", "IMPALA", "minibatch_size: 120", "minibatch_size: must be a multiple of 50"},
		{"rllib", "IMPALA", "minibatch_size: 550", "minibatch_size: must be at most train_batch_size_per_learner, 500"},
		{"rllib", "APPO", "minibatch_size: 550, train_batch_size_per_learner: 1000", ""},
		{"rllib", "PPO", "minibatch_size: 128", ""},
		{"rllib", "DQN", "burn_in_len: 20", "burn_in_len: must be below max_seq_len of model, 20"},
		{"rllib", "DQN", "burn_in_len: 20, model: {max_seq_len: 40}", ""},
		{"rllib", "DQN", "replay_buffer_config: {type: ReplayBuffer}", "replay_buffer_config.type: must be EpisodeReplayBuffer or"},
		{"rllib", "DQN", "replay_buffer_config: {type: PrioritizedEpisodeReplayBuffer, capacity: 1e5, alpha: 0.6, beta: 0.4}", ""},
		{"rllib", "DQN", "replay_buffer_config: {beta: 40}", "replay_buffer_config.beta: must be a number from 0 to 1"},
		{"stable-baselines3", "DQN", "optimize_memory_usage: true", "optimize_memory_usage: requires replay_buffer_kwargs: {handle_timeout_termination: false}"},
		{"stable-baselines3", "DQN", "optimize_memory_usage: true, replay_buffer_kwargs: {handle_timeout_termination: false}", ""},
		{"stable-baselines3", "DQN", "optimize_memory_usage: true, n_steps: 3, replay_buffer_kwargs: {handle_timeout_termination: false}", "must be false with n_steps above 1"},
		{"stable-baselines3", "DQN", "optimize_memory_usage: false, n_steps: 3", ""},
		{"stable-baselines3", "PPO", "use_sde: true", "use_sde: must be false, because it explores with continuous actions, which CartPole-v1 does not have"},
		{"stable-baselines3", "PPO", "use_sde: false", ""},
		{"stable-baselines3", "DQN", "train_freq: [1, episode]", "train_freq: must be in steps with several environments"},
		{"stable-baselines3", "DQN", "train_freq: [4, step]", ""},
		{"stable-baselines3", "DQN", "buffer_size: 1e6", "buffer_size: must be lower: the buffer would contain at least 2153 MiB of observations"},
		{"stable-baselines3", "DQN", "buffer_size: 15000", ""},
		{"stable-baselines3", "DQN", "buffer_size: 35000, optimize_memory_usage: true, replay_buffer_kwargs: {handle_timeout_termination: false}", ""},
		{"stable-baselines3", "DQN", "gradient_steps: 0", "gradient_steps: must be a whole number of at least 1, or -1"},
		{"stable-baselines3", "DQN", "gradient_steps: -1", ""},
		{"stable-baselines3", "PPO", "tensorboard_log: runs", "tensorboard_log: requires tensorboard among the requirements"},
		{"stable-baselines3", "PPO", "tensorboard_log: null", ""},
		{"stable-baselines3", "PPO", "policy_kwargs: {ortho_init: 1}", "policy_kwargs.ortho_init: must be true or false"},
		{"stable-baselines3", "PPO", "policy_kwargs: {ortho_init: false, log_std_init: -2}", ""},
		{"stable-baselines3", "SAC", "policy_kwargs: {net_arch: {pi: [64]}}", "policy_kwargs: must be a mapping"},
		{"stable-baselines3", "SAC", "policy_kwargs: {net_arch: {pi: [64], qf: [64]}, n_critics: 3}", ""},
		{"stable-baselines3", "PPO", "policy_kwargs: {net_arch: {pi: [64]}}", ""},
		{"stable-baselines3", "A2C", "policy_kwargs: {squash_output: true}", "policy_kwargs: must not set squash_output without use_sde"},
		{"stable-baselines3", "PPO", "policy_kwargs: {use_sde: true}", "policy_kwargs.use_sde: must be set next to policy_kwargs"},
		{"stable-baselines3", "SAC", "policy_kwargs: {n_critics: 0}", "policy_kwargs.n_critics: must be a whole number of at least 1"},
		{"cleanrl", "PPO", "num_steps: 40001", "num_steps: must be at most training.steps, 40000"},
		{"cleanrl", "PPO", "num_steps: 20000", ""}, // the environments together may exceed them
	} {
		in := Training{
			Library: test.library, Algorithm: test.algorithm, Policy: "MlpPolicy", Steps: 40_000, Environments: 2, Discrete: "CartPole-v1", Memory: 1024, Seen: 84 * 84 * 4, OfficialPython: true,
			Requirements: []string{"stable-baselines3==2.9.2", "ray[rllib]==2.60.0"},
		}
		if in.Library == newer {
			in.Library, in.Requirements = "rllib", []string{"ray[rllib]==2.61.0"}
		}
		var got string
		for _, p := range in.Faults("h", valueOf(t, "{"+test.arguments+"}")) {
			got += strings.TrimPrefix(p.Path, "h.") + ": " + p.Message + "\n"
		}
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s, %s: %q, want %q", test.algorithm, test.arguments, got, test.want)
		}
	}
	own := Training{Library: "rllib", Algorithm: "SAC", Own: true}
	if got := own.Faults("h", valueOf(t, "{lr: 1, other: 2}")); len(got) > 0 {
		t.Errorf("a command of one's own: %v", got)
	}
}

func TestTensorboardAmongTheRequirements(t *testing.T) {
	for requirement, want := range map[string]bool{"tensorboard==2.19.0": true, "stable-baselines3[extra]==2.9.2": true, "stable-baselines3==2.9.2": false, "tensorboardX==2.6": false} {
		if got := (Training{Requirements: []string{"numpy==2.4.6", requirement}}).hasTensorboard(); got != want {
			t.Errorf("%s: %v", requirement, got)
		}
	}
}
