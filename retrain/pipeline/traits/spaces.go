package traits

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// spaces are the spaces of Gymnasium's own environments, from the tables in their documentation: the number of values
// of an observation, or image, followed by the number of values of an action. The prefix d stands for a discrete space,
// with its number of values. A question mark means that the size depends on the version.
var spaces = map[string]string{
	"CartPole": "4 d2", "MountainCar": "2 d3", "MountainCarContinuous": "2 1", "Acrobot": "6 d3", "Pendulum": "3 1",
	"LunarLander": "8 d4", "LunarLanderContinuous": "8 2", "BipedalWalker": "24 4", "BipedalWalkerHardcore": "24 4", "CarRacing": "image 3",
	"FrozenLake": "d16 d4", "FrozenLake8x8": "d64 d4", "CliffWalking": "d48 d4", "Taxi": "d500 d6",
	"Reacher": "? 2", "Pusher": "? 7", "InvertedPendulum": "4 1", "InvertedDoublePendulum": "? 1", "HalfCheetah": "17 6", "Hopper": "11 3",
	"Swimmer": "8 2", "Walker2d": "17 6", "Ant": "? 8", "Humanoid": "? 17", "HumanoidStandup": "? 17",
}

// limits are the lowest and highest return of an environment, and the length of its longest episode. The reward of each
// step is 1 in CartPole, and at most 0 in the other environments.
var limits = map[string]struct{ lowest, highest, longest float64 }{
	"CartPole-v0": {1, 200, 200}, "CartPole-v1": {1, 500, 500}, "MountainCar-v0": {-200, 0, 200}, "Acrobot-v1": {-500, 0, 500},
	"Pendulum-v1": {-3255, 0, 200},
}

// truncated is the metric by which environments report whether a time limit ended an episode: true or false, which
// count as 1 or 0.
const truncated = "TimeLimit.truncated"

// Impossible returns why no episode can satisfy a constraint, by the key of the limit. Limits that are not set are NaN.
func Impossible(metric string, atLeast, atMost float64) map[string]string {
	const share = "it is the share of episodes that end because of a time limit"
	out := map[string]string{}
	switch {
	case metric == "episode_length" && atMost < 1:
		out["at_most"] = "must be at least 1, because every episode has a step"
	case metric == truncated && atLeast > 1:
		out["at_least"] = "must be at most 1: " + share
	case metric == truncated && atMost < 0:
		out["at_most"] = "must be at least 0: " + share
	}
	return out
}

// Exceeded is Impossible for an environment, by its id.
func Exceeded(id, metric string, atLeast, atMost float64) map[string]string {
	out := map[string]string{}
	switch limit, known := limits[id]; {
	case !known:
	case metric == "return" && atLeast > limit.highest:
		out["at_least"] = fmt.Sprintf("must be at most %v, the highest return of %s", limit.highest, id)
	case metric == "return" && atMost < limit.lowest:
		out["at_most"] = fmt.Sprintf("must be at least %v, the lowest return of %s", limit.lowest, id)
	case metric == "episode_length" && atLeast > limit.longest:
		out["at_least"] = fmt.Sprintf("must be at most %v, the longest episode of %s", limit.longest, id)
	}
	return out
}

// ofGrids is the observation space of MiniGrid: dictionaries with a text and an image of a few pixels.
const ofGrids = "grid"

// spacesOf returns the spaces of an environment, or "" for unknown ones.
func spacesOf(id string) (observation, action string) {
	for _, module := range []string{"ale_py:", "gymnasium:", "minigrid:"} {
		id = strings.TrimPrefix(id, module)
	}
	if strings.HasPrefix(id, "MiniGrid-") || strings.HasPrefix(id, "BabyAI-") {
		return ofGrids, "d7"
	}
	if OfAtari(id) && strings.Contains(id, "-ram") {
		return "128", "d?"
	}
	if OfAtari(id) {
		return "image", "d?"
	}
	name, _, _ := strings.Cut(id, "-v")
	observation, action, _ = strings.Cut(spaces[name], " ")
	return observation, action
}

// NoImages returns why a network for images cannot process the observations of an environment, or "" if it may.
func NoImages(id string) string {
	if seen, _ := spacesOf(id); seen != "" && seen != "image" {
		return "must be MlpPolicy, because the observations of " + id + " are not images"
	}
	return ""
}

// NoDictionaries returns why a network for dictionaries cannot process the observations of an environment, or "" if it
// may.
func NoDictionaries(id string) string {
	switch seen, _ := spacesOf(id); seen {
	case "":
		return ""
	case "image":
		return "must be CnnPolicy or MlpPolicy, because the observations of " + id + " are images, not dictionaries"
	case ofGrids:
		return "must be MlpPolicy, because the images in the observations of " + id + " are too small for the networks of MultiInputPolicy"
	}
	return "must be MlpPolicy, because the observations of " + id + " are not dictionaries"
}

// Discrete returns its argument if the environment is known to have discrete actions, or "".
func Discrete(id string) string {
	if _, action := spacesOf(id); strings.HasPrefix(action, "d") {
		return id
	}
	return ""
}

// Bytes returns the minimum size of an observation of an environment in bytes, 0 if unknown. With Atari preprocessing,
// an observation is an image of 84 by 84 pixels.
func Bytes(id string, atari bool) int {
	seen, _ := spacesOf(id)
	size, err := strconv.Atoi(seen)
	switch {
	case atari:
		return 84 * 84
	case seen == "image" && OfAtari(id[strings.Index(id, ":")+1:]):
		return 210 * 160 * 3
	case seen == "image":
		return 96 * 96 * 3 // CarRacing
	case err != nil:
		return 0
	}
	return 4 * size // float32
}

// The algorithms that support only one kind of action space, by library.
var (
	continuous = map[string][]string{"stable-baselines3": {"DDPG", "SAC", "TD3"}}
	discrete   = map[string][]string{"stable-baselines3": {"DQN"}, "rllib": {"DQN"}}
)

// NoActions returns why an algorithm does not support the actions of an environment, or "" if it may.
func NoActions(library, algorithm, id string) string {
	_, action := spacesOf(id)
	whole := strings.HasPrefix(action, "d")
	switch {
	case whole && slices.Contains(continuous[library], algorithm):
		return fmt.Sprintf("must be an algorithm for discrete actions, which %s has, such as PPO or DQN, not %s", id, algorithm)
	case action != "" && !whole && slices.Contains(discrete[library], algorithm):
		return fmt.Sprintf("must be an algorithm for continuous actions, which %s has, such as PPO or SAC, not %s", id, algorithm)
	}
	return ""
}

// Unlike returns why one agent cannot act in two environments, or "" if it may.
func Unlike(id, other string) string {
	seen, action := spacesOf(id)
	otherSeen, otherAction := spacesOf(other)
	if differ(seen, otherSeen) || differ(action, otherAction) {
		return fmt.Sprintf("must have the same observations and actions as %s, because the same agent acts in all environments", other)
	}
	return ""
}

// differ reports whether two spaces are known to differ.
func differ(a, b string) bool {
	open := func(s string) bool { return s == "" || strings.HasSuffix(s, "?") }
	return a != b && !open(a) && !open(b)
}
