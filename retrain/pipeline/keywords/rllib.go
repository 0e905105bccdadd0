package keywords

import (
	"fmt"
	"slices"

	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// fragment is the number of steps that an env runner sends at once. Minibatches of IMPALA and APPO consist of these
// fragments.
const fragment = 50

// gone maps algorithms to the arguments that RLlib's classes still have but reject, unless they have the value of
// except. instead says what to write. The key "" applies to all algorithms.
var gone = map[string]map[string]struct{ except, instead string }{
	"": {
		"lr_schedule":            {"null", "set lr to a list of [step, rate]"},
		"entropy_coeff_schedule": {"null", "set entropy_coeff to a list of [step, number]"},
	},
	"SAC":    {"lr": {"null", "set actor_lr, critic_lr and alpha_lr"}},
	"PPO":    {"use_gae": {"true", "without it, episodes cannot be split into batches"}, "vf_share_layers": {"", "set it in model"}},
	"IMPALA": {"vtrace": {"true", "RLlib supports no other correction"}, "replay_proportion": {"0", ofBuffers}, "num_aggregation_workers": {"", aggregators}, "max_requests_in_flight_per_aggregator_worker": {"", aggregators}},
	"APPO": {
		"vtrace": {"true", "RLlib supports no other correction"}, "replay_proportion": {"0", ofBuffers}, "minibatch_buffer_size": {"1", ofBuffers}, "learner_queue_size": {"16", ofBuffers},
		"num_multi_gpu_tower_stacks": {"1", "one learner uses one GPU"}, "target_update_frequency": {"", "set target_network_update_freq"}, "use_critic": {"", "the critic is always used"},
		"num_aggregation_workers": {"", aggregators}, "max_requests_in_flight_per_aggregator_worker": {"", aggregators},
	},
}

const (
	ofBuffers   = "use circular_buffer_num_batches and circular_buffer_iterations_per_batch instead"
	aggregators = "aggregator actors are set in the generated script"
)

// besideOfRLlib is beside for RLlib. It reports nothing for a newer release, which may accept other values.
func (t Training) besideOfRLlib(name string, all yamlfile.Value) string {
	if slices.ContainsFunc(t.Requirements, versions["rllib"].isNewer) {
		return ""
	}
	v := all.Members[name]
	for _, of := range []string{"", t.Algorithm} {
		if g, ok := gone[of][name]; ok && !is(v, g.except) {
			return fmt.Sprintf("must be omitted, because RLlib rejects it with %s: %s", t.Algorithm, g.instead)
		}
	}
	if longest := numberOf(all.Members["model"], "max_seq_len", 20); name == "burn_in_len" && v.Float() >= longest {
		return fmt.Sprintf("must be below max_seq_len of model, %v", longest)
	}
	return minibatch(t.Algorithm, name, all)
}

// is reports whether a scalar or null equals a text. Numbers are compared by value.
func is(v yamlfile.Value, text string) bool {
	other := yamlfile.Value{Kind: yamlfile.Number, Scalar: text}
	return text != "" && (v.Scalar == text || v.Kind == yamlfile.Null && text == "null" || v.Kind == yamlfile.Number && v.Float() == other.Float())
}

// minibatch returns what is wrong with minibatch_size, or "", also for any other argument. The default batch has 4,000
// steps for PPO, and 500 for IMPALA and APPO.
func minibatch(algorithm, name string, all yamlfile.Value) string {
	of := "train_batch_size_per_learner"
	if _, given := all.Members[of]; !given && all.Members["train_batch_size"].Kind == yamlfile.Number {
		of = "train_batch_size"
	}
	batch := numberOf(all, of, map[string]float64{"PPO": 4000, "IMPALA": 500, "APPO": 500}[algorithm])
	size := all.Members[name].Float()
	switch {
	case name != "minibatch_size" || batch == 0:
	case size > batch:
		return fmt.Sprintf("must be at most %s, %v", of, batch)
	case algorithm != "PPO" && algorithm != "DQN" && algorithm != "SAC" && size != fragment*float64(int(size/fragment)):
		return fmt.Sprintf("must be a multiple of %d, the steps that an env runner sends at once", fragment)
	}
	return ""
}
