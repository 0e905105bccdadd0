package programs

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/hydra"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/modules"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
)

var (
	classLine = pattern.MustCompile(`(?m)^class (\w+)\(([^()\n]*)\)`)
	baseOfGym = pattern.MustCompile(`^(?:(?:gym|gymnasium)\.)?(?:Env|Wrapper|(?:Observation|Action|Reward)Wrapper)$`)
	makesByID = pattern.MustCompile(`\b(?:gym|gymnasium)\.make(?:_vec)?\(|(?:^|[^.\w])make\(|\bmake_(?:vec|atari)_env\(`)
)

const (
	maxDerived = 5   // levels of derivation from other classes of the repository
	maxWorlds  = 100 // classes that are searched for
)

// MakesOwnWorld reports whether the first training makes an environment from a class of the repository, and none by an
// id. The generated scripts would make a different environment.
func (f *Finder) MakesOwnWorld() bool {
	if len(f.trained) == 0 {
		return false
	}
	text := f.Text[f.trained[0].file]
	if makesByID.MatchString(text) {
		return false
	}
	for i, class := range slices.Sorted(maps.Keys(f.worlds())) {
		if i < maxWorlds && pytext.Calls(text, class) {
			return true
		}
	}
	return false
}

// UsesClass reports whether the first training calls a class, or passes it to a function that makes environments.
func (f *Finder) UsesClass(class string) bool {
	if len(f.trained) == 0 {
		return false
	}
	text := f.Text[f.trained[0].file]
	return pytext.Calls(text, class) || pattern.MustCompile(`\bmake_vec_env\(\s*`+regexp.QuoteMeta(class)+`\b`).MatchString(text)
}

// DefaultWorld returns the environment that is the default of an argument of the best training, or "".
func (f *Finder) DefaultWorld() string {
	if len(f.trained) == 0 {
		return ""
	}
	for _, x := range f.trained[0].flags {
		id := cmp.Or(f.trained[0].flags.Given(f.trained[0].args, x), x.Value)
		if !x.OfHydra() && envFlag.MatchString(x.Key()) && idInArgument.MatchString(id) {
			return id
		}
	}
	for i, a := range f.trained[0].args { // arguments and settings that the program reads itself
		if i > 0 && idInArgument.MatchString(a) && setsWorld.MatchString(f.trained[0].args[i-1]) && !slices.ContainsFunc(f.trained[0].flags, func(x modules.Option) bool { return envFlag.MatchString(x.Key()) }) {
			return a
		}
		name, id, ok := strings.Cut(a, "=")
		if ok && len(f.trained[0].flags) == 0 && !strings.HasPrefix(a, "-") && ofWorld.MatchString(name) && idInArgument.MatchString(id) {
			return id
		}
	}
	return ""
}

// setsWorld matches arguments before an environment in a command.
var setsWorld = pattern.MustCompile(`^--?(?:e|env|env[_-](?:id|name)|environment|gym[_-]id|task)$`)

// ofWorld matches names of settings for an environment.
var ofWorld = pattern.MustCompile(`^(?:env|environment|gym|task)(?:[._](?:args?|config|id|key|kwargs|name))*$`)

// worldConstant matches a constant of a program for the name of its environment.
var worldConstant = pattern.MustCompile(`(?m)^(?:env|environment|game|ENV|ENVIRONMENT|GAME)(?:_(?:name|id|NAME|ID))?[ \t]*=[ \t]*["']([A-Za-z][\w -]*)["'][ \t]*$`)

// Named returns the text of the best training, and what a constant and the arguments for its environment say, if none is
// an id. Programs may have names of their own for environments, such as lander.
func (f *Finder) Named() (text string, names []string) {
	if len(f.trained) == 0 {
		return "", nil
	}
	text = f.Text[f.trained[0].file]
	if m := worldConstant.FindStringSubmatch(text); m != nil {
		names = append(names, m[1])
	}
	for _, x := range f.trained[0].flags {
		value := cmp.Or(f.trained[0].flags.Given(f.trained[0].args, x), x.Value)
		switch {
		case x.Boolean || x.OfHydra() || !envFlag.MatchString(x.Key()):
		case idInArgument.MatchString(value):
			return text, nil
		default:
			names = append(names, value)
		}
	}
	return text, names
}

// ofSettings matches arguments for a settings file.
var ofSettings = pattern.MustCompile(`(?:^|_)(?:config|cfg|conf|settings)(?:_file|_path)?$`)

// NeedsSettings reports whether the first training requires a settings file. What it trains is then not apparent from
// its code.
func (f *Finder) NeedsSettings() bool {
	return len(f.trained) > 0 && slices.ContainsFunc(f.trained[0].flags, func(x modules.Option) bool {
		return !x.Boolean && (x.Position || x.Required) && ofSettings.MatchString(x.Key())
	})
}

// ReadsSettings reports whether the first training reads settings, which may decide which code it uses.
func (f *Finder) ReadsSettings() bool {
	return f.NeedsSettings() || len(f.Read()) > 0 || len(f.trained) > 0 && hydra.Uses(f.Text[f.trained[0].file])
}

// worlds returns the classes of the repository that are environments.
func (f *Finder) worlds() map[string]bool {
	bases := map[string][]string{}
	for _, file := range f.Order {
		for _, m := range classLine.FindAllStringSubmatch(f.Text[file], modules.MaxMatches) {
			for base := range strings.SplitSeq(m[2], ",") {
				bases[m[1]] = append(bases[m[1]], strings.TrimSpace(base))
			}
		}
	}
	out := map[string]bool{}
	for range maxDerived {
		for class, all := range bases {
			for _, base := range all {
				if baseOfGym.MatchString(base) || out[modules.LastName(base)] {
					out[class] = true
				}
			}
		}
	}
	return out
}
