package programs

import (
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/lookup"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

// Hyperparameters returns the arguments that an algorithm has in the best training, in a file that it imports, or in
// the given file, which mentions the algorithm.
func (f *Finder) Hyperparameters(algorithm, file string) lookup.Hyperparameters {
	p := &program{file: file} // a notebook
	if len(f.trained) > 0 {
		p = &f.trained[0]
	}
	imported := f.withImports(p)
	return f.lookup(p).Hyperparameters(algorithm, append(slices.Clone(imported), file), imported)
}

// ofSB3 matches a call of a Stable-Baselines3 class.
var ofSB3 = pattern.MustCompile(`\b(?:A2C|DDPG|DQN|PPO|SAC|TD3)\(`)

// ComputesAgent reports whether a program constructs a Stable-Baselines3 algorithm from a table of classes with
// arguments that only the program can compute. What it trains is then not apparent from its code.
func (f *Finder) ComputesAgent(aside func(file string) bool) bool {
	if len(f.trained) == 0 {
		return false
	}
	computes := false
	for _, file := range f.Order {
		text := f.Text[file]
		if aside(file) || !strings.Contains(text, "Policy") && !strings.Contains(text, "stable_baselines3") {
			continue
		}
		if ofSB3.MatchString(text) {
			return false
		}
		if at := lookup.CallByTable(text); at >= 0 {
			computes = computes || slices.ContainsFunc(f.lookup(&f.trained[0]).Call(file, at), func(h lookup.Hyperparameter) bool { return strings.HasPrefix(h.Name, "**") })
		}
	}
	return computes
}
