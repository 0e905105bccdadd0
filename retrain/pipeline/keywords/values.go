package keywords

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/quote"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// kind describes the values that an argument accepts.
type kind struct {
	want  string // what a value must be, after "must be"
	takes func(yamlfile.Value) bool
	whole bool // whether a number such as 1e6 is converted to an int
}

var (
	positive    = kind{want: "a number above 0", takes: func(v yamlfile.Value) bool { return v.Float() > 0 }}
	notNegative = kind{want: "a number of at least 0", takes: func(v yamlfile.Value) bool { return v.Float() >= 0 }}
	number      = kind{want: "a number", takes: func(v yamlfile.Value) bool { return !math.IsNaN(v.Float()) }}
	unit        = kind{want: "a number from 0 to 1", takes: func(v yamlfile.Value) bool { return v.Float() >= 0 && v.Float() <= 1 }}
	count       = kind{want: "a whole number of at least 1", takes: whole(1), whole: true}
	fromZero    = kind{want: "a whole number of at least 0", takes: whole(0), whole: true}
	orAll       = kind{want: "a whole number of at least -1", takes: whole(-1), whole: true}
	someOrAll   = kind{want: "a whole number of at least 1, or -1 for as many as steps", takes: func(v yamlfile.Value) bool { return count.takes(v) || v.Float() == -1 }, whole: true}
	truth       = kind{want: "true or false", takes: func(v yamlfile.Value) bool { return v.Kind == yamlfile.Boolean }}
	text        = kind{want: "a string", takes: func(v yamlfile.Value) bool { return v.Kind == yamlfile.String && v.Scalar != "" }}
	mapping     = kind{want: "a mapping", takes: func(v yamlfile.Value) bool { return v.Kind == yamlfile.Mapping }}
	ofPolicy    = policyOf()
	onPolicy    = policyOf("pi", "vf")
	offPolicy   = policyOf("pi", "qf")
	object      = kind{want: "omitted: a file cannot contain Python objects, so it requires training.command", takes: func(yamlfile.Value) bool { return false }}
	frequency   = kind{want: "a whole number of at least 1, or a list such as [4, step] or [1, episode]", takes: isFrequency}
	entropy     = kind{want: "a number of at least 0, auto, or auto and a number above 0, such as auto_0.1", takes: isEntropy}
	orAuto      = kind{want: "a number or auto", takes: func(v yamlfile.Value) bool { return number.takes(v) || v.Kind == yamlfile.String && v.Scalar == "auto" }}
	rates       = kind{want: "a number above 0, or a list of [step, number] that begins at step 0", takes: scheduled(positive)}
	shares      = kind{want: "a number from 0 to 1, or a list of [step, number] that begins at step 0", takes: scheduled(unit)}
	weights     = kind{want: "a number of at least 0, or a list of [step, number] that begins at step 0", takes: scheduled(notNegative)}
	stretch     = kind{want: "a whole number of at least 1, or a list of two such numbers", takes: isStretch}
	device      = kind{want: "a PyTorch device, such as auto, cpu, cuda or cuda:0", takes: isDevice}
	clipping    = oneOf("value", "norm", "global_norm")
	ofErrors    = oneOf("huber", "mse")
	optimizer   = oneOf("adam", "rmsprop")
)

// kinds maps the arguments of each library to the values that they accept. Other arguments accept any value. A question
// mark after a name means that the argument also accepts null.
var kinds = map[string]map[string]kind{
	"stable-baselines3": table(map[*kind]string{
		&positive: "learning_rate clip_range clip_range_vf? target_kl? rms_prop_eps max_grad_norm",
		&unit:     "gamma gae_lambda tau exploration_final_eps exploration_fraction exploration_initial_eps",
		&count:    "n_steps batch_size buffer_size n_epochs policy_delay target_update_interval stats_window_size",
		&fromZero: "learning_starts seed? verbose", &someOrAll: "gradient_steps", &orAll: "sde_sample_freq", &notNegative: "vf_coef target_noise_clip target_policy_noise",
		&truth:  "normalize_advantage use_sde use_sde_at_warmup use_rms_prop optimize_memory_usage _init_setup_model",
		&device: "device", &text: "tensorboard_log?", &mapping: "rollout_buffer_kwargs? replay_buffer_kwargs?", &ofPolicy: "policy_kwargs?",
		&object: "action_noise? rollout_buffer_class? replay_buffer_class?", &frequency: "train_freq", &entropy: "ent_coef", &orAuto: "target_entropy",
	}),
	"rllib": table(map[*kind]string{
		&rates: "lr? actor_lr? critic_lr? alpha_lr?", &shares: "epsilon?", &weights: "entropy_coeff?",
		&unit:     "gamma? lambda_? tau?",
		&positive: "grad_clip? clip_param? vf_clip_param? kl_target? adam_epsilon? training_intensity? initial_alpha? vtrace_clip_rho_threshold? vtrace_clip_pg_rho_threshold?",
		&count: "train_batch_size? train_batch_size_per_learner? minibatch_size? num_epochs? num_sgd_iter? num_atoms? broadcast_interval? " +
			"target_network_update_freq? circular_buffer_num_batches? circular_buffer_iterations_per_batch? learner_queue_size? simple_queue_size?",
		&fromZero: "num_steps_sampled_before_learning_starts? burn_in_len?", &notNegative: "vf_loss_coeff? kl_coeff? sigma0?", &number: "v_min? v_max?",
		&truth: "use_critic? use_gae? use_kl_loss? vtrace? double_q? dueling? noisy? twin_q? clip_actions? shuffle_batch_per_epoch? store_buffer_in_checkpoints? use_circular_buffer? " +
			"add_default_connectors_to_learner_pipeline? _deterministic_loss? _use_beta_distribution?",
		&mapping: "model? optimizer? replay_buffer_config? learner_config_dict? q_model_config? policy_model_config? optimization_config?",
		&object:  "learner_class? learner_connector? before_learn_on_batch?", &stretch: "n_step?", &orAuto: "target_entropy?", &clipping: "grad_clip_by?",
		&ofErrors: "td_error_loss_fn?", &optimizer: "opt_type?",
	}),
	"cleanrl": table(map[*kind]string{
		&truth: "anneal_lr norm_adv", &positive: "clip_coef learning_rate max_grad_norm", &notNegative: "ent_coef vf_coef", &unit: "gae_lambda gamma",
		&count: "num_envs num_minibatches num_steps update_epochs", &fromZero: "seed",
	}),
}

// ofAlgorithm overrides kinds for arguments of a single algorithm.
var ofAlgorithm = map[string]map[string]kind{
	"stable-baselines3": {
		"A2C.ent_coef": notNegative, "PPO.ent_coef": notNegative,
		"A2C.policy_kwargs": orNull(onPolicy), "PPO.policy_kwargs": orNull(onPolicy),
		"DDPG.policy_kwargs": orNull(offPolicy), "SAC.policy_kwargs": orNull(offPolicy), "TD3.policy_kwargs": orNull(offPolicy),
	},
	"rllib": {"IMPALA.epsilon": orNull(positive), "APPO.epsilon": orNull(positive)},
}

// table inverts a map from kinds to the names of arguments.
func table(of map[*kind]string) map[string]kind {
	all := map[string]kind{}
	for k, names := range of {
		for _, name := range strings.Fields(names) {
			if plain, optional := strings.CutSuffix(name, "?"); optional {
				all[plain] = orNull(*k)
			} else {
				all[name] = *k
			}
		}
	}
	return all
}

func orNull(k kind) kind {
	return kind{k.want, func(v yamlfile.Value) bool { return v.Kind == yamlfile.Null || k.takes(v) }, k.whole}
}

// Arguments returns the sorted arguments of a library whose values are checked.
func Arguments(library string) []string { return slices.Sorted(maps.Keys(kinds[library])) }

// Value returns what is wrong with the value of an argument, or "".
func Value(library, algorithm, name string, v yamlfile.Value) string {
	k, ok := ofAlgorithm[library][algorithm+"."+name]
	if !ok {
		k, ok = kinds[library][name]
	}
	if !ok {
		return ""
	}
	return k.fault(v)
}

// fault returns what is wrong with a value, or "".
func (k kind) fault(v yamlfile.Value) string {
	if k.takes(v) {
		return ""
	}
	fault := "must be " + k.want
	switch {
	case v.Kind == yamlfile.String && !math.IsNaN(yamlfile.Value{Kind: yamlfile.Number, Scalar: v.Scalar}.Float()):
		fault += fmt.Sprintf(", not the string %q: remove the quotes", v.Scalar)
	case v.Kind == yamlfile.String || v.Kind == yamlfile.Number || v.Kind == yamlfile.Boolean:
		fault += ", not " + v.Scalar
	default:
		fault += ", not " + v.Kind.String()
	}
	return fault
}

// Python returns the value of an argument as a Python literal. A list is a tuple where the library requires a tuple.
func Python(library, name string, v yamlfile.Value) string {
	if library == "stable-baselines3" && name == "train_freq" || library == "rllib" && name == "n_step" {
		if v.Kind == yamlfile.List {
			return "(" + strings.Trim(quote.Python(v), "[]") + ")"
		}
	}
	if kinds[library][name].whole && v.Kind == yamlfile.Number {
		return strconv.FormatInt(int64(v.Float()), 10)
	}
	return quote.Python(v)
}

func whole(least float64) func(yamlfile.Value) bool {
	return func(v yamlfile.Value) bool {
		x := v.Float()
		return x == math.Trunc(x) && x >= least && x < 1<<53 // above 2^53, a float64 cannot represent every integer
	}
}

func oneOf(words ...string) kind {
	return kind{strings.Join(words, " or "), func(v yamlfile.Value) bool { return v.Kind == yamlfile.String && slices.Contains(words, v.Scalar) }, false}
}

// scheduled returns a function that also accepts a list of steps and values.
func scheduled(k kind) func(yamlfile.Value) bool {
	return func(v yamlfile.Value) bool {
		before := -1.0
		for i, item := range v.Items {
			if len(item.Items) != 2 || !fromZero.takes(item.Items[0]) || !k.takes(item.Items[1]) || item.Items[0].Float() <= before || i == 0 && item.Items[0].Float() != 0 {
				return false
			}
			before = item.Items[0].Float()
		}
		return k.takes(v) || len(v.Items) > 1
	}
}

func isFrequency(v yamlfile.Value) bool {
	return count.takes(v) || len(v.Items) == 2 && count.takes(v.Items[0]) && slices.Contains([]string{"step", "episode"}, v.Items[1].Scalar)
}

func isStretch(v yamlfile.Value) bool {
	return count.takes(v) || len(v.Items) == 2 && count.takes(v.Items[0]) && count.takes(v.Items[1]) && v.Items[0].Float() <= v.Items[1].Float()
}

var automatic = regexp.MustCompile(`^auto(_[0-9]*\.?[0-9]*[1-9][0-9]*(\.[0-9]*)?)?$`)

func isEntropy(v yamlfile.Value) bool {
	return notNegative.takes(v) || v.Kind == yamlfile.String && automatic.MatchString(v.Scalar)
}

// objects are the keys of policy_kwargs whose values are classes or functions.
var objects = strings.Fields("activation_fn features_extractor_class optimizer_class")

// policyOf returns the kind of policy_kwargs for a policy with the given networks. Without any, the policy has a single
// network.
func policyOf(networks ...string) kind {
	return kind{want: "a mapping without classes and functions, whose net_arch is a list of layer sizes" + orOf(networks) +
		": a file cannot contain Python objects, so a policy with them requires training.command", takes: func(v yamlfile.Value) bool {
		layers, given := v.Members["net_arch"]
		return v.Kind == yamlfile.Mapping && (!given || layers.Kind == yamlfile.Null || areLayers(layers) || areNetworks(layers, networks)) &&
			!slices.ContainsFunc(objects, func(key string) bool { _, ok := v.Members[key]; return ok })
	}}
}

func orOf(networks []string) string {
	if len(networks) == 0 {
		return ""
	}
	return " or a mapping from " + strings.Join(networks, " and ") + " to such lists"
}

func areLayers(v yamlfile.Value) bool {
	return v.Kind == yamlfile.List && !slices.ContainsFunc(v.Items, func(size yamlfile.Value) bool { return !count.takes(size) })
}

// areNetworks reports whether a value is a mapping to the layers of each network. It may be in a list, as before 2.0.
func areNetworks(v yamlfile.Value, networks []string) bool {
	if v.Kind == yamlfile.List && len(v.Items) == 1 && slices.Contains(networks, "vf") {
		v = v.Items[0]
	}
	if slices.Contains(networks, "qf") && len(v.Members) == 1 {
		return false // off-policy algorithms require both pi and qf
	}
	for network, layers := range v.Members {
		if !slices.Contains(networks, network) || !areLayers(layers) {
			return false
		}
	}
	return v.Kind == yamlfile.Mapping
}

var torchDevice = regexp.MustCompile(`^(auto|cpu|mps|(cuda|xpu|hpu|npu|xla|ipu|mtia)(:[0-9]+)?)$`)

func isDevice(v yamlfile.Value) bool {
	return v.Kind == yamlfile.String && torchDevice.MatchString(v.Scalar)
}
