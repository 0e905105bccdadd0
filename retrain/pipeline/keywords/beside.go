package keywords

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest/nearest"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// Training is what the arguments of an algorithm are beside.
type Training struct {
	Environments, Steps int
	NoGPU               bool // its container has no GPU
}

// Beside returns what is wrong with the value of an argument beside the others and in a training, "" for nothing. It would
// fail only once the training runs, or learn nothing.
func Beside(library, algorithm, name string, all yamlfile.Value, in Training) string {
	switch {
	case name == "learning_starts" || name == "num_steps_sampled_before_learning_starts":
		if all.Members[name].Float() >= float64(in.Steps) {
			return fmt.Sprintf("must be below training.steps, %d, or nothing is learned", in.Steps)
		}
	case library == "cleanrl":
		return besideOfCleanRL(name, all, in.Environments)
	case library == "rllib":
		return besideOfRLlib(algorithm, name, all)
	case name == "device" && in.NoGPU && strings.HasPrefix(all.Members[name].Scalar, "cuda"):
		return "requires training.gpu: 1, or else the container has no GPU"
	case all.Members[name].Float() == 1:
		return single(algorithm, name, all, in.Environments)
	}
	return ""
}

// single is Beside for an argument of Stable-Baselines3 that is 1: of a single advantage, the normalization is not a number.
func single(algorithm, name string, all yamlfile.Value, environments int) string {
	normalizes, alone := all.Members["normalize_advantage"].Scalar, name == "n_steps" && environments == 1
	if algorithm == "PPO" && normalizes != "false" && (alone || name == "batch_size") || algorithm == "A2C" && normalizes == "true" && alone {
		return "must be at least 2, because " + algorithm + " normalizes advantages; to use 1, set normalize_advantage: false"
	}
	return ""
}

// numberOf returns the value of an argument, or another one if it is not given.
func numberOf(all yamlfile.Value, name string, otherwise float64) float64 {
	if v := all.Members[name]; v.Kind == yamlfile.Number {
		return v.Float()
	}
	return otherwise
}

// besideOfCleanRL is Beside for the generated script in the manner of CleanRL, which divides the steps of all environments
// into minibatches.
func besideOfCleanRL(name string, all yamlfile.Value, environments int) string {
	least, of := 2., "num_steps"
	if all.Members["norm_adv"].Scalar == "false" {
		least = 1
	}
	rows := numberOf(all, "num_steps", 128) * numberOf(all, "num_envs", 4) * float64(environments)
	if _, given := all.Members["num_minibatches"]; given {
		of = "num_minibatches"
	}
	if name != of || rows >= least*numberOf(all, "num_minibatches", 4) {
		return ""
	}
	return fmt.Sprintf("must leave at least %v steps for each minibatch: num_steps, num_envs and the environments result in %v", least, rows)
}

// besideOfRLlib is Beside for RLlib, which repeats steps in a minibatch that is larger than what it is taken from. Without a
// given size, PPO takes it from 4,000 steps; what the others take depends on more.
func besideOfRLlib(algorithm, name string, all yamlfile.Value) string {
	of, batch := "train_batch_size_per_learner", 0.
	if _, given := all.Members[of]; !given && all.Members["train_batch_size"].Kind == yamlfile.Number {
		of = "train_batch_size"
	}
	if algorithm == "PPO" {
		batch = 4000
	}
	if batch = numberOf(all, of, batch); name == "minibatch_size" && batch > 0 && all.Members[name].Float() > batch {
		return fmt.Sprintf("must be at most %s, %v", of, batch)
	}
	return ""
}

// ofModel are the keys of the argument model of RLlib: MODEL_DEFAULTS and the fields of DefaultModelConfig.
var ofModel = strings.Fields("_disable_action_flattening _disable_preprocessor_api _time_major _use_default_native_models always_check_shapes " +
	"attention_dim attention_head_dim attention_init_gru_gate_bias attention_memory_inference attention_memory_training attention_num_heads " +
	"attention_num_transformer_units attention_position_wise_mlp_dim attention_use_n_prev_actions attention_use_n_prev_rewards " +
	"conv_activation conv_filters custom_action_dist custom_model custom_model_config custom_preprocessor dim encoder_latent_dim " +
	"fcnet_activation fcnet_hiddens fcnet_use_layernorm framestack free_log_std grayscale " +
	"head_fcnet_activation head_fcnet_hiddens head_fcnet_use_layernorm log_std_clip_param lstm_cell_size " +
	"lstm_use_prev_action lstm_use_prev_action_reward lstm_use_prev_reward max_seq_len no_final_linear " +
	"post_fcnet_activation post_fcnet_hiddens use_attention use_lstm vf_share_layers zero_mean")

// initializes are the ends of other such keys, each of which begins with the name of a part of the network.
var initializes = []string{"_initializer", "_initializer_config", "_initializer_kwargs"}

// OfModel returns what is wrong with a key of the argument model of RLlib, which ignores what it does not know; "" for
// nothing. A newer release may have others.
func OfModel(key string, requirements []string) string {
	initial := slices.ContainsFunc(initializes, func(end string) bool { return strings.HasSuffix(key, end) })
	if initial || slices.Contains(ofModel, key) || slices.ContainsFunc(requirements, versions["rllib"].isNewer) {
		return ""
	}
	fault := "is not a setting of a model, and would be ignored"
	near := nearest.Of(key, slices.Values(ofModel))
	if near == "" {
		near = nearest.Of("fcnet_"+key, slices.Values(ofModel))
	}
	if near != "" {
		fault += fmt.Sprintf(" (did you mean %q?)", near)
	}
	return fault
}
