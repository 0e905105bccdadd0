package keywords

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest/nearest"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// ofPolicies maps the algorithms of Stable-Baselines3 to the keys of policy_kwargs that their policies accept. The key
// "" has the keys that all policies share.
var ofPolicies = map[string]string{
	"":     "activation_fn features_extractor_class features_extractor_kwargs net_arch normalize_images optimizer_class optimizer_kwargs",
	"A2C":  "full_std log_std_init ortho_init share_features_extractor squash_output use_expln",
	"PPO":  "full_std log_std_init ortho_init share_features_extractor squash_output use_expln",
	"SAC":  "clip_mean log_std_init n_critics share_features_extractor use_expln",
	"DDPG": "n_critics share_features_extractor",
	"TD3":  "n_critics share_features_extractor",
	"DQN":  "",
}

// inPolicy maps keys of policy_kwargs to the values that they accept.
var inPolicy = table(map[*kind]string{
	&truth:  "full_std normalize_images ortho_init share_features_extractor squash_output use_expln",
	&number: "log_std_init", &notNegative: "clip_mean", &count: "n_critics", &mapping: "features_extractor_kwargs? optimizer_kwargs?",
})

// Inside returns what is wrong with a key or value inside an argument that is a mapping, or "".
func Inside(library, algorithm, name, key string, v yamlfile.Value, requirements []string) string {
	switch {
	case library == "rllib" && name == "model":
		return OfModel(key, v, requirements)
	case library == "rllib" && name == "replay_buffer_config":
		if k, ok := inBuffer[key]; ok && !slices.ContainsFunc(requirements, versions["rllib"].isNewer) {
			return k.fault(v)
		}
	case library == "stable-baselines3" && name == "policy_kwargs":
		if k, ok := inPolicy[key]; ok && k.fault(v) != "" {
			return k.fault(v)
		}
		return ofPolicyOf(algorithm, key, requirements)
	}
	return ""
}

// ofPolicyOf is Inside for the names of keys in policy_kwargs. It reports a key of another algorithm and a misspelled
// key, but none with a newer release, which may have others.
func ofPolicyOf(algorithm, key string, requirements []string) string {
	own, known := ofPolicies[algorithm]
	all := strings.Fields(ofPolicies[""] + " " + own)
	if !known || slices.Contains(all, key) || slices.ContainsFunc(requirements, versions["stable-baselines3"].isNewer) {
		return ""
	}
	if key == "use_sde" {
		return "must be set next to policy_kwargs, because Stable-Baselines3 passes it to the policy itself"
	}
	fault := "is not an argument of the policies of " + algorithm
	if near := nearest.Of(key, slices.Values(all)); near != "" {
		return fmt.Sprintf("%s (did you mean %q?)", fault, near)
	}
	for _, others := range ofPolicies {
		if slices.Contains(strings.Fields(others), key) {
			return fault
		}
	}
	return ""
}
