// Package keywords lists the arguments of the libraries' algorithms, so that a misspelled argument is found before a
// training starts.
package keywords

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest/nearest"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pins"
)

// releases are the releases of a package whose arguments are known: the name of the package, the releases in words, and
// the first later release. The generated scripts do not support earlier releases.
type releases struct{ name, words, after string }

var versions = map[string]releases{
	"stable-baselines3": {"stable-baselines3", "Stable-Baselines3 2.0 to 2.9", "2.10"},
	"rllib":             {"ray", "Ray 2.41 to 2.60", "2.61"},
}

// isNewer reports whether a requirement, NAME==VERSION, is a later release of the package.
func (r releases) isNewer(requirement string) bool {
	name, version := pins.NameAndVersion(requirement)
	return name == r.name && pins.Compare(version, r.after) >= 0
}

// known maps libraries and algorithms to the arguments that exist in any of these releases. The key "" has the
// arguments that all algorithms of the library share.
var known = map[string]map[string]string{
	"stable-baselines3": {
		"": "_init_setup_model device gamma learning_rate n_steps policy_kwargs seed tensorboard_log verbose",
		"A2C": "ent_coef gae_lambda max_grad_norm normalize_advantage rms_prop_eps rollout_buffer_class " +
			"rollout_buffer_kwargs sde_sample_freq stats_window_size use_rms_prop use_sde vf_coef",
		"DDPG": "action_noise batch_size buffer_size gradient_steps learning_starts optimize_memory_usage " +
			"replay_buffer_class replay_buffer_kwargs tau train_freq",
		"DQN": "batch_size buffer_size exploration_final_eps exploration_fraction exploration_initial_eps gradient_steps " +
			"learning_starts max_grad_norm optimize_memory_usage replay_buffer_class replay_buffer_kwargs " +
			"stats_window_size target_update_interval tau train_freq",
		"PPO": "batch_size clip_range clip_range_vf ent_coef gae_lambda max_grad_norm n_epochs normalize_advantage " +
			"rollout_buffer_class rollout_buffer_kwargs sde_sample_freq stats_window_size target_kl use_sde vf_coef",
		"SAC": "action_noise batch_size buffer_size ent_coef gradient_steps learning_starts optimize_memory_usage " +
			"replay_buffer_class replay_buffer_kwargs sde_sample_freq stats_window_size target_entropy " +
			"target_update_interval tau train_freq use_sde use_sde_at_warmup",
		"TD3": "action_noise batch_size buffer_size gradient_steps learning_starts optimize_memory_usage policy_delay " +
			"replay_buffer_class replay_buffer_kwargs stats_window_size target_noise_clip target_policy_noise tau " +
			"train_freq",
	},
	"rllib": {
		"": "add_default_connectors_to_learner_pipeline gamma grad_clip grad_clip_by learner_class " +
			"learner_config_dict learner_connector lr max_requests_in_flight_per_aggregator_actor " +
			"max_requests_in_flight_per_sampler_worker minibatch_size model num_aggregator_actors_per_learner " +
			"num_epochs num_sgd_iter optimizer shuffle_batch_per_epoch train_batch_size train_batch_size_per_learner",
		"APPO": "_lr_vf _separate_vf_optimizer broadcast_interval circular_buffer_iterations_per_batch " +
			"circular_buffer_num_batches clip_param decay entropy_coeff entropy_coeff_schedule epsilon kl_coeff " +
			"kl_target lambda_ learner_queue_size learner_queue_timeout lr_schedule " +
			"max_requests_in_flight_per_aggregator_worker minibatch_buffer_size momentum num_aggregation_workers " +
			"num_gpu_loader_threads num_multi_gpu_tower_stacks opt_type replay_buffer_num_slots replay_proportion " +
			"simple_queue_size target_network_update_freq target_update_frequency target_worker_clipping tau " +
			"timeout_s_aggregator_manager timeout_s_sampler_manager use_circular_buffer use_critic use_gae " +
			"use_kl_loss vf_loss_coeff vtrace vtrace_clip_pg_rho_threshold vtrace_clip_rho_threshold",
		"DQN": "adam_epsilon before_learn_on_batch burn_in_len categorical_distribution_temperature double_q dueling " +
			"epsilon hiddens lr_schedule n_step noisy num_atoms num_steps_sampled_before_learning_starts " +
			"replay_buffer_config sigma0 store_buffer_in_checkpoints target_network_update_freq tau td_error_loss_fn " +
			"training_intensity v_max v_min",
		"IMPALA": "_lr_vf _separate_vf_optimizer broadcast_interval decay entropy_coeff entropy_coeff_schedule epsilon " +
			"learner_queue_size learner_queue_timeout lr_schedule max_requests_in_flight_per_aggregator_worker " +
			"minibatch_buffer_size momentum num_aggregation_workers num_gpu_loader_threads num_multi_gpu_tower_stacks " +
			"opt_type replay_buffer_num_slots replay_proportion timeout_s_aggregator_manager " +
			"timeout_s_sampler_manager vf_loss_coeff vtrace vtrace_clip_pg_rho_threshold vtrace_clip_rho_threshold",
		"PPO": "clip_param entropy_coeff entropy_coeff_schedule kl_coeff kl_target lambda_ lr_schedule use_critic " +
			"use_gae use_kl_loss vf_clip_param vf_loss_coeff vf_share_layers",
		"SAC": "_deterministic_loss _use_beta_distribution actor_lr alpha_lr clip_actions critic_lr initial_alpha n_step " +
			"num_steps_sampled_before_learning_starts optimization_config policy_model_config q_model_config " +
			"replay_buffer_config store_buffer_in_checkpoints target_entropy target_network_update_freq tau " +
			"training_intensity twin_q",
	},
}

// mostTypos is the number of letters by which an argument may differ from a known one and still be reported as
// misspelled with a newer release, which may have other arguments.
const mostTypos = 2

// Fault returns what is wrong with the name of an argument, or "". It accepts most unknown names if the requirements
// contain a newer release than those whose arguments are known.
func Fault(library, algorithm, name string, requirements []string) string {
	all := of(library, algorithm)
	newer := slices.ContainsFunc(requirements, versions[library].isNewer)
	if all == nil || slices.Contains(slices.Collect(all), name) {
		return ""
	}
	if others := algorithmsWith(library, name); len(others) > 0 && !newer {
		return "is an argument of " + strings.Join(others, ", ") + ", not of " + algorithm
	}
	near := nearest.Of(name, all)
	switch {
	case near != "" && (!newer || nearest.Distance(name, near) <= mostTypos && len(name) > 2*mostTypos):
		return "is not an argument of " + algorithm + ` (did you mean "` + near + `"?)`
	case newer:
		return ""
	}
	return "is not an argument of " + algorithm + " in " + versions[library].words
}

// algorithmsWith returns the sorted algorithms of a library that have an argument with this name, apart from the shared
// ones.
func algorithmsWith(library, name string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(known[library])), func(algorithm string) bool {
		return algorithm == "" || !slices.Contains(strings.Fields(known[library][algorithm]), name)
	})
}

// of returns the arguments of an algorithm, or nil if they are unknown.
func of(library, algorithm string) iter.Seq[string] {
	own, ok := known[library][algorithm]
	if !ok {
		return nil
	}
	return slices.Values(strings.Fields(known[library][""] + " " + own))
}
