package keywords

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pins"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// besideOfSB3 is beside for Stable-Baselines3.
func (t Training) besideOfSB3(name string, all yamlfile.Value) string {
	v := all.Members[name]
	switch isTrue := v.Scalar == "true"; {
	case name == "device" && t.NoGPU && strings.HasPrefix(v.Scalar, "cuda"):
		return "requires training.gpu: 1, because the container otherwise has no GPU"
	case name == "use_sde" && isTrue && t.Discrete != "":
		return "must be false, because it explores with continuous actions, which " + t.Discrete + " does not have"
	case name == "buffer_size" && t.Memory > 0 && t.buffered(all) > t.Memory:
		return fmt.Sprintf("must be lower: the buffer would contain at least %d MiB of observations, more than training.memory", t.buffered(all))
	case name == "optimize_memory_usage" && isTrue:
		return t.lessMemory(all)
	case name == "train_freq" && t.Environments > 1 && len(v.Items) == 2 && v.Items[1].Scalar == "episode":
		return "must be in steps with several environments, because their episodes end at different times"
	case name == "n_steps" && v.Float() > 1 && t.Policy == "MultiInputPolicy" && strings.Contains(" DDPG DQN SAC TD3 ", " "+t.Algorithm+" "):
		return "must be 1 with MultiInputPolicy, because dictionaries are not stored for several steps"
	case name == "tensorboard_log" && v.Kind == yamlfile.String && t.OfficialPython && !t.hasTensorboard():
		return "requires tensorboard among the requirements, such as tensorboard==VERSION"
	case name == "policy_kwargs" && v.Members["squash_output"].Scalar == "true" && all.Members["use_sde"].Scalar != "true":
		return "must not set squash_output without use_sde: true among the hyperparameters"
	case v.Float() == 1:
		return single(t.Algorithm, name, all, t.Environments)
	}
	return ""
}

// buffered returns the size in MiB of the observations in a full replay buffer. Unless memory usage is optimized, each
// observation is stored twice, the second time as the next observation of the preceding step.
func (t Training) buffered(all yamlfile.Value) int {
	times := 2.
	if all.Members["optimize_memory_usage"].Scalar == "true" {
		times = 1
	}
	return int(times * min(all.Members["buffer_size"].Float(), float64(t.Steps)) * float64(t.Seen) / (1 << 20))
}

// hasTensorboard reports whether the requirements include a package that writes logs for TensorBoard.
func (t Training) hasTensorboard() bool {
	return slices.ContainsFunc(t.Requirements, func(r string) bool {
		name, _, _ := strings.Cut(r, "==")
		return pins.HasTensorboard(name)
	})
}

// lessMemory returns why a replay buffer cannot store each observation only once, or "".
func (t Training) lessMemory(all yamlfile.Value) string {
	switch kwargs := all.Members["replay_buffer_kwargs"]; {
	case t.Policy == "MultiInputPolicy":
		return "must be false with MultiInputPolicy"
	case all.Members["n_steps"].Float() > 1:
		return "must be false with n_steps above 1"
	case kwargs.Members["handle_timeout_termination"].Scalar != "false":
		return "requires replay_buffer_kwargs: {handle_timeout_termination: false}, because Stable-Baselines3 cannot do both"
	}
	return ""
}

// single is beside for an argument of Stable-Baselines3 that is 1: normalizing a single advantage results in NaN.
func single(algorithm, name string, all yamlfile.Value, environments int) string {
	normalizes, alone := all.Members["normalize_advantage"].Scalar, name == "n_steps" && environments == 1
	if algorithm == "PPO" && normalizes != "false" && (alone || name == "batch_size") || algorithm == "A2C" && normalizes == "true" && alone {
		return "must be at least 2, because " + algorithm + " normalizes advantages; to use 1, set normalize_advantage: false"
	}
	return ""
}
