package programs

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/lookup"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/modules"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
)

var (
	// usesLibrary matches code that uses RLlib, for true, or Stable-Baselines3, for false.
	usesLibrary = map[bool]*pattern.Pattern{
		false: pattern.MustCompile(`\b(?:stable_baselines3|sb3_contrib)\b`),
		true:  pattern.MustCompile(`\brllib\b|\bray import tune\b|\bray\.tune\b`),
	}
	// wrapsByGym matches imports of Gymnasium wrappers.
	wrapsByGym = pattern.MustCompile(`(?m)^[ \t]*from (?:gym|gymnasium)\.wrappers(?:\.\w+)? import (\([^)]*\)|[^\n]*)`)
	// ofWrappers matches calls of wrappers through their module.
	ofWrappers = pattern.MustCompile(`\b(?:gym|gymnasium)\.wrappers\.(?:\w+\.)?([A-Z]\w*)\(`)
	// sameWorld matches wrappers that change neither observations nor actions, or for which a pipeline file has keys.
	sameWorld = pattern.MustCompile(`^(?:Record\w*|Monitor|HumanRendering|AddRenderObservation|OrderEnforcing|PassiveEnvChecker|Autoreset\w*|FrameStack\w*|Atari\w*)$`)
	// byLibrary are calls that change environments or agents in the libraries, and for which a pipeline file has no
	// key.
	byLibrary = []struct{ calls, what string }{
		{"VecNormalize", "normalizes observations or rewards with VecNormalize"},
		{"register_env", "registers its environment with RLlib"},
	}
	severalAgents = pattern.MustCompile(`\.multi_agent\(`)
	worldOfAgents = pattern.MustCompile(`(?m)^class \w+\([^)\n]*\bMultiAgentEnv\b`)
	ofOwnModel    = pattern.MustCompile(`["']custom_model["']`)
	// ofWorldConfig matches a non-empty configuration of an RLlib environment.
	ofWorldConfig = pattern.MustCompile(`\benv_config\s*=\s*(?:\{\s*["'*]|dict\(\s*\w|[A-Za-z_])`)
	// isObject matches code whose value is not a number, string, list or mapping.
	isObject = pattern.MustCompile(`\blambda\b|\b(?:nn|torch|th)\.|\b[A-Z]\w*[a-z]\w*\(|_class\b`)
	schedule = pattern.MustCompile(`^\w*(?:schedule|linear|cosine|decay|anneal)\w*\(`)
)

// Beyond returns what the first training does with an algorithm that the generated scripts cannot do, because a
// pipeline file has no key for it. It returns "" if nothing is found. file mentions the algorithm, and own is the class
// of a policy that the program defines.
func (f *Finder) Beyond(rllib bool, algorithm, file, own string, known lookup.Hyperparameters) string {
	if !rllib && f.onlyLoads(file, algorithm) {
		return "no program trains " + algorithm + ": they only load it"
	}
	if rllib && len(f.trained) == 0 && worldOfAgents.MatchString(f.Text[file]) {
		return file + " defines an environment of several agents"
	}
	if len(f.trained) == 0 {
		return ""
	}
	p := &f.trained[0]
	if path.Ext(file) == ".py" && !f.uses(p, usesLibrary[rllib]) {
		return p.file + " does not use " + algorithm + ", which " + file + " mentions"
	}
	if own != "" {
		return "the policy " + own + " is a class defined in the program"
	}
	if why := f.otherWorld(p, rllib); why != "" {
		return why
	}
	for _, h := range known.All {
		_, code, _ := strings.Cut(h.Code, "=")
		if h.Value == "" && h.Name != "device" && (isObject.MatchString(code) || schedule.MatchString(code)) {
			return cmp.Or(known.File, p.file) + " sets " + h.Name + " to an object, which a pipeline file cannot contain"
		}
	}
	return ""
}

// onlyLoads reports whether the repository loads an algorithm of Stable-Baselines3, but neither constructs nor trains
// one.
func (f *Finder) onlyLoads(file, algorithm string) bool {
	if !strings.Contains(f.Text[file], algorithm+".load(") {
		return false
	}
	for _, text := range f.Text {
		if strings.Contains(text, ".learn(") || len(lookup.CallsOf(text, algorithm)) > 0 {
			return false
		}
	}
	return true
}

// uses reports whether the code of a program, including what it imports indirectly, matches a pattern.
func (f *Finder) uses(p *program, code *pattern.Pattern) bool {
	r := f.reach()
	r.followAll([]string{p.file})
	for file := range r.seen {
		if code.MatchString(f.Text[file]) {
			return true
		}
	}
	return false
}

// otherWorld returns how the first training, or a file that it imports, makes its environment differently from the
// generated scripts, or "".
func (f *Finder) otherWorld(p *program, rllib bool) string {
	own := f.worlds()
	for _, file := range f.withImports(p) {
		text := f.Text[file]
		for _, x := range byLibrary {
			if pytext.Calls(text, x.calls) {
				return file + " " + x.what
			}
		}
		if rllib && severalAgents.MatchString(text) {
			return file + " trains several agents"
		}
		if rllib && ofOwnModel.MatchString(text) {
			return file + " defines its own model"
		}
		if rllib && ofWorldConfig.MatchString(text) {
			return file + " creates the environment with env_config"
		}
		if name := wrapper(text, own); name != "" && !rllib {
			return file + " creates or wraps the environment with " + name
		}
	}
	return ""
}

// wrapper returns the name of a wrapper that code calls and that changes observations or actions, or "".
func wrapper(text string, own map[string]bool) string {
	var names []string
	for _, m := range wrapsByGym.FindAllStringSubmatch(text, modules.MaxMatches) {
		for name := range strings.SplitSeq(strings.Trim(m[1], "() \n"), ",") {
			if words := strings.Fields(name); len(words) > 0 && !sameWorld.MatchString(words[0]) {
				names = append(names, words[len(words)-1])
			}
		}
	}
	for _, m := range ofWrappers.FindAllStringSubmatch(text, modules.MaxMatches) {
		if !sameWorld.MatchString(m[1]) {
			return m[1]
		}
	}
	for i, class := range slices.Sorted(maps.Keys(own)) {
		if i < maxWorlds {
			names = append(names, class)
		}
	}
	for _, name := range names {
		if pytext.Calls(text, name) {
			return name
		}
	}
	return ""
}
