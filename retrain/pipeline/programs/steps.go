package programs

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	stepsArgument = regexp.MustCompile(`(?:\.learn\(\s*(?:total_timesteps\s*=\s*)?|(?:(?:total|n|num|max)[_-](?:env[_-]|train(?:ing)?[_-]|environment[_-])?(?:(?:time)?steps|frames)|--timesteps)["']?\s*(?::\s*int\s*=\s*|:\s*(?:!!float\s+)?|=\s*|,[^\n]*default\s*=\s*)|DEFINE_\w+\(\s*["'](?:total|n|num|max)[_-](?:env[_-]|train(?:ing)?[_-])?(?:(?:time)?steps|frames)["'],\s*|(?i:\btimesteps)\s*=\s*)(?:int\()?\s*([1-9][0-9_]*(?:\.[0-9]+)?(?:e[0-9]+)?)`)
	// ofTraining is how the steps of a whole training are named.
	ofTraining = regexp.MustCompile(`(?i)\.learn\(|total|timesteps`)
)

// minSteps is the least number of steps that could be that of a training.
const minSteps = 1000

// Steps is a number of steps that could be that of a training.
type Steps struct {
	Number  string // digits
	Clearly bool   // else it may be that of a rollout or a callback
}

// StepsOf returns the numbers of a program, or of a file of settings, that could be the steps of a training.
func StepsOf(text []byte) []Steps {
	var out []Steps
	for _, m := range stepsArgument.FindAllSubmatch(text, maxMatches) {
		x, err := strconv.ParseFloat(strings.ReplaceAll(string(m[1]), "_", ""), 64)
		if err == nil && x >= minSteps && x <= 1e12 {
			out = append(out, Steps{strconv.FormatInt(int64(x), 10), ofTraining.Match(m[0])})
		}
	}
	return out
}
