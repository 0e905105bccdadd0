package traits

import (
	"slices"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

// AlgorithmNames is a regular expression for the names of algorithms in lower case.
const AlgorithmNames = `(?:ma|ha|i|r|c|d|d3|qr)?(?:ppo[0-9]?|dqn|ddqn|sac|td3|ddpg|a2c|a3c|trpo|cem|es|ars|qmix|vdn|impala|appo|reinforce|rainbow|sarsa|tqc|bc|iql|cql)`

var (
	// ofAlgorithm matches names of algorithms, policies and networks.
	ofAlgorithm = pattern.MustCompile(`(?i)^(?:` + AlgorithmNames + `|(?:ma|ha|i|r|c|d|d3|qr)?random|(?:\w*[a-z])?(?:mlp|cnn|rnn|gru|lstm|transformer)(?:policy)?)$`)
	// listsNames matches a help text that asks for a name instead of a file.
	listsNames = pattern.MustCompile(`(?i)\bname of the (?:agent|algorithm|policy|model class)|\b(?:one of|choose from|options?:|choices:|must be)\b|\b(?:type of|which) (?:agent|algorithm|policy|model)\b`)
	mayName    = pattern.MustCompile(`^(?:model|policy|agent)$`)
)

// MayName reports whether an argument with a key may either select an algorithm, a policy or a network by its name, or
// take the path of a model.
func MayName(key string) bool { return mayName.MatchString(key) }

// NamesAlgorithm reports whether such an argument selects by name, judging by its help text and values.
func NamesAlgorithm(key, help string, values ...string) bool {
	return MayName(key) && (listsNames.MatchString(help) || slices.ContainsFunc(values, ofAlgorithm.MatchString))
}

var asksForFile = pattern.MustCompile(`(?i)\b(?:json|ya?ml|toml|config\w*) files?\b|\bpath (?:to|of)\b`)

// AsksForFile reports whether the help text of an argument asks for a file.
func AsksForFile(help string) bool { return asksForFile.MatchString(help) }
