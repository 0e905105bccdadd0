package programs

import (
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/literals"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/lookup"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/modules"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/traits"
)

var (
	// makesWorld matches a call that makes an environment by its id, possibly with further arguments.
	makesWorld = pattern.MustCompile(`\b(?:(?:gym|gymnasium)\.make(?:_vec)?|make_vec_env)\(`)
	// notOfWorld are the arguments of such a call that change neither observations nor actions.
	notOfWorld = strings.Fields("id env_id render_mode disable_env_checker apply_api_compatibility autoreset n_envs num_envs seed start_index monitor_dir monitor_kwargs vec_env_cls vec_env_kwargs vectorization_mode vector_kwargs")
)

// Unmade returns why the generated scripts, which make environments only by id, cannot make the environment of the best
// training: the program, or a file that it imports, passes further arguments. It returns "" if they can.
func (f *Finder) Unmade(id string) string {
	if len(f.trained) == 0 {
		return ""
	}
	p := &f.trained[0]
	l := f.lookup(p)
	for _, file := range f.withImports(p) {
		for _, m := range makesWorld.FindAllStringIndex(f.Text[file], modules.MaxMatches) {
			all := modules.ArgumentsOf(f.Text[file], m[1]-1)
			made, known := literals.Of(modules.Given(all, "id", 0), l.Names(file, m[0]))
			if known && made.Kind == literals.String && !strings.HasSuffix(id, made.Text) {
				continue
			}
			i := slices.IndexFunc(all, func(a modules.Argument) bool {
				return !traits.IsAsMade(id, a.Key, a.Text) && changes(l.Names(file, m[0]), a)
			})
			if i >= 0 && l.Runs(file, m[0]) >= 0 {
				return file + " makes the environment with " + shown(all[i]) + ", which the generated scripts do not"
			}
		}
	}
	return ""
}

// changes reports whether an argument of a call changes the environment.
func changes(names literals.Names, a modules.Argument) bool {
	code, several := strings.CutPrefix(a.Text, "**")
	v, known := literals.Of(code, names)
	switch {
	case several, a.Key == "env_kwargs":
		return known && slices.ContainsFunc(v.Keys, func(key string) bool { return !slices.Contains(notOfWorld, key) })
	case a.Key == "" || slices.Contains(notOfWorld, a.Key):
		return false
	}
	return !known || v.Kind != literals.None
}

// shown returns an argument for output.
func shown(a modules.Argument) string {
	if a.Key == "" || len(a.Text) > lookup.MaxShown {
		return strings.TrimLeft(a.Key+"=...", "=")
	}
	return a.Key + "=" + strings.Join(strings.Fields(a.Text), " ")
}
