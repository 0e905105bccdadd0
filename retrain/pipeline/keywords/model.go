package keywords

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest/nearest"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// ofModel are the keys of RLlib's model argument: MODEL_DEFAULTS and the fields of DefaultModelConfig.
var ofModel = strings.Fields("_disable_action_flattening _disable_preprocessor_api _time_major _use_default_native_models always_check_shapes " +
	"attention_dim attention_head_dim attention_init_gru_gate_bias attention_memory_inference attention_memory_training attention_num_heads " +
	"attention_num_transformer_units attention_position_wise_mlp_dim attention_use_n_prev_actions attention_use_n_prev_rewards " +
	"conv_activation conv_filters custom_action_dist custom_model custom_model_config custom_preprocessor dim encoder_latent_dim " +
	"fcnet_activation fcnet_hiddens fcnet_use_layernorm framestack free_log_std fusionnet_activation fusionnet_hiddens grayscale " +
	"head_fcnet_activation head_fcnet_hiddens head_fcnet_use_layernorm log_std_clip_param lstm_cell_size " +
	"lstm_use_prev_action lstm_use_prev_action_reward lstm_use_prev_reward max_seq_len no_final_linear " +
	"post_fcnet_activation post_fcnet_hiddens use_attention use_lstm vf_share_layers zero_mean")

// initializes are the suffixes of further keys, which begin with the name of a part of the network.
var initializes = []string{"_initializer", "_initializer_config", "_initializer_kwargs"}

// OfModel returns what is wrong with a key of RLlib's model argument or with its value, or "". RLlib ignores unknown
// keys silently. OfModel accepts all keys of a newer release, which may have others.
func OfModel(key string, v yamlfile.Value, requirements []string) string {
	initial := slices.ContainsFunc(initializes, func(end string) bool { return strings.HasSuffix(key, end) })
	if slices.ContainsFunc(requirements, versions["rllib"].isNewer) {
		return ""
	}
	if initial || slices.Contains(ofModel, key) {
		return valueOfModel(key, v)
	}
	fault := "is not a model setting, and would be ignored"
	near := nearest.Of(key, slices.Values(ofModel))
	if near == "" {
		near = nearest.Of("fcnet_"+key, slices.Values(ofModel))
	}
	if near != "" {
		fault += fmt.Sprintf(" (did you mean %q?)", near)
	}
	return fault
}

// inPlace are the functions of torch.nn.init that RLlib accepts by name.
var inPlace = strings.Fields("uniform_ normal_ trunc_normal_ constant_ ones_ zeros_ eye_ dirac_ xavier_uniform_ xavier_normal_ kaiming_uniform_ kaiming_normal_ " +
	"orthogonal_ sparse_")

var (
	activation  = kind{want: "an activation function of PyTorch, such as relu, tanh, silu or linear", takes: isActivation}
	layers      = kind{want: "a list of layer sizes, such as [256, 256]", takes: areLayers}
	filters     = kind{want: "a list of [channels, kernel, stride], such as [[16, 8, 4], [32, 4, 2]]", takes: areFilters}
	initializer = kind{want: "a function of torch.nn.init that ends with _, such as xavier_uniform_", takes: func(v yamlfile.Value) bool {
		return v.Kind == yamlfile.String && slices.Contains(inPlace, strings.ToLower(v.Scalar))
	}}
	// initialized matches the initializers of DefaultModelConfig. Those of MODEL_DEFAULTS have other names.
	initialized = regexp.MustCompile(`^(?:fcnet|conv|head_fcnet|lstm|fusionnet)_(?:kernel|bias)_initializer$`)
	// activations are the names that RLlib itself supports, and those of the activation classes in torch.nn.
	activations = strings.Fields("linear relu tanh elu swish silu softmax " +
		"CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh Identity LeakyReLU LogSigmoid LogSoftmax Mish PReLU RReLU ReLU ReLU6 SELU Sigmoid SiLU Softmax Softmin " +
		"Softplus Softshrink Softsign Tanh Tanhshrink")
)

// inModel maps keys of the model argument to the values that they accept.
var inModel = table(map[*kind]string{
	&activation: "fcnet_activation? head_fcnet_activation? conv_activation? post_fcnet_activation? fusionnet_activation?",
	&layers:     "fcnet_hiddens head_fcnet_hiddens post_fcnet_hiddens? fusionnet_hiddens", &filters: "conv_filters?",
	&truth:    "fcnet_use_layernorm head_fcnet_use_layernorm free_log_std vf_share_layers use_lstm use_attention lstm_use_prev_action lstm_use_prev_reward no_final_linear framestack grayscale zero_mean",
	&count:    "lstm_cell_size max_seq_len dim attention_num_transformer_units attention_dim attention_num_heads attention_head_dim",
	&positive: "log_std_clip_param",
})

// inBuffer maps keys of replay_buffer_config to the values that they accept. Only buffers of episodes are valid types.
var inBuffer = table(map[*kind]string{
	&count: "capacity batch_size_B batch_length_T", &notNegative: "alpha", &unit: "beta", &ofEpisodes: "type",
})

var ofEpisodes = oneOf("EpisodeReplayBuffer", "PrioritizedEpisodeReplayBuffer", "MultiAgentEpisodeReplayBuffer", "MultiAgentPrioritizedEpisodeReplayBuffer")

// valueOfModel returns what is wrong with the value of a key of the model argument, or "".
func valueOfModel(key string, v yamlfile.Value) string {
	if k, ok := inModel[key]; ok {
		return k.fault(v)
	}
	if initialized.MatchString(key) {
		return orNull(initializer).fault(v)
	}
	return ""
}

func isActivation(v yamlfile.Value) bool {
	return v.Kind == yamlfile.String && (slices.Contains(activations, v.Scalar) || slices.Contains(activations, strings.ToLower(v.Scalar)))
}

// areFilters reports whether a value lists the layers of a convolutional network, each with an optional padding.
func areFilters(v yamlfile.Value) bool {
	isSize := func(v yamlfile.Value) bool { return count.takes(v) || len(v.Items) == 2 && areLayers(v) }
	return v.Kind == yamlfile.List && !slices.ContainsFunc(v.Items, func(f yamlfile.Value) bool {
		n := len(f.Items)
		return n != 3 && n != 4 || !count.takes(f.Items[0]) || !isSize(f.Items[1]) || !isSize(f.Items[2]) || n == 4 && f.Items[3].Scalar != "same" && f.Items[3].Scalar != "valid"
	})
}
