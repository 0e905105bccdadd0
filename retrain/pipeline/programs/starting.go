package programs

import (
	"cmp"
	"math"
	"strconv"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/literals"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/lookup"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
)

// lookup returns a lookup for the start of a program.
func (f *Finder) lookup(p *program) *lookup.Lookup {
	return lookup.New(&f.Files, f.hydra, f.Settings, lookup.Program{File: p.file, Flags: p.flags, Args: p.args, Page: p.page})
}

var (
	// makesNamed matches a call that makes an environment whose id is in a variable.
	makesNamed = pattern.MustCompile(`(?:\bmake|\bmake_vec|make_vec_env|make_atari_env|\.environment)\(\s*(?:env(?:_id)?\s*=\s*|id\s*=\s*)?([A-Za-z_][\w.]*(?:\[["']?[\w.]+["']?\])*)\s*[,)]`)
	// makesOne matches a call that makes an environment with a literal id.
	makesOne = pattern.MustCompile(`(?:\bmake|\bmake_vec|make_vec_env|make_atari_env|\.environment)\(\s*(?:env(?:_id)?\s*=\s*|id\s*=\s*)?["']([^"'\n]+-v[0-9]+)["']`)
	idAlone  = pattern.MustCompile(`^(?:[\w.]+:)?(?:[\w.-]+/)?[A-Za-z][\w.-]*-v[0-9]+$`)
)

// ofSteps matches arguments for the steps of a training.
var ofSteps = pattern.MustCompile(`^(?:(?:total|n|num)_)?(?:env_|train_|training_|environment_)?(?:timesteps|steps|frames)$|^max_(?:timesteps|train(?:ing)?_steps)$`)

// totalSteps matches those of them that are never for a rollout or an episode.
var totalSteps = pattern.MustCompile(`^total_(?:env_|train_|training_|environment_)?(?:timesteps|steps|frames)$|^(?:n_|num_)timesteps$`)

// Environment returns the id of the environment that the best training makes, through a variable or depending on its
// arguments, and the file with the id, or "".
func (f *Finder) Environment() (id, file string) {
	if len(f.trained) == 0 {
		return "", ""
	}
	p := &f.trained[0]
	l, text := f.lookup(p), f.Text[p.file]
	for _, m := range makesNamed.FindAllStringSubmatchIndex(text, 50) {
		v, ok := literals.Of(text[m[2]:m[3]], l.Names(p.file, m[0]))
		if ok && v.Kind == literals.String && idAlone.MatchString(v.Text) {
			return v.Text, cmp.Or(l.Source, p.file)
		}
	}
	return onlyMade(l, p.file, text), p.file
}

// onlyMade returns the id of the only environment that a file makes when it starts, if it makes others with other
// arguments, or "".
func onlyMade(l *lookup.Lookup, file, text string) string {
	only, others := "", false
	for _, m := range makesOne.FindAllStringSubmatchIndex(text, 50) {
		id := text[m[2]:m[3]]
		switch runs := l.Runs(file, m[0]); {
		case runs < 0:
			others = true
		case only != "" && only != id:
			return ""
		default:
			only = id
		}
	}
	if !others {
		return ""
	}
	return only
}

// Steps returns the steps of the best training if they have a known value, with the file that sets it, or "".
func (f *Finder) Steps() (number, from string) {
	if len(f.trained) == 0 {
		return "", ""
	}
	p := &f.trained[0]
	l, file := f.lookup(p), p.file
	for _, x := range p.flags {
		n := literals.NumberOf(p.flags.Given(p.args, x), l.Names(file, 0))
		if ofSteps.MatchString(x.Key()) && n >= 1 && n < 1e13 {
			return strconv.FormatInt(int64(n), 10), cmp.Or(p.page, file)
		}
	}
	for _, x := range p.flags {
		if n := literals.NumberOf(cmp.Or(x.Code, x.Value), l.Names(file, 0)); !x.OfHydra() && totalSteps.MatchString(x.Key()) && n >= 1000 && n < 1e13 {
			return strconv.FormatInt(int64(n), 10), file
		}
	}
	if n := p.ofEpochs(l); n >= 1000 && n < 1e13 {
		return strconv.FormatInt(int64(n), 10), cmp.Or(p.page, file)
	}
	l.Source = ""
	number = pytext.TotalOf(f.Text[file], func(at int) literals.Names { return l.Names(file, at) })
	return number, cmp.Or(l.Source, file)
}

var (
	epochsFlag   = pattern.MustCompile(`^(?:n_|num_|max_)?epochs?$`)
	perEpochFlag = pattern.MustCompile(`^(?:steps?_per_epoch|epoch_(?:num_)?steps)$`)
)

// ofEpochs returns the number of epochs of the best training times the steps per epoch, if the command sets at least
// one of them, or 0.
func (p *program) ofEpochs(l *lookup.Lookup) float64 {
	epochs, each, given := 0.0, 0.0, false
	for _, x := range p.flags {
		text := p.flags.Given(p.args, x)
		n := literals.NumberOf(cmp.Or(text, x.Value), l.Names(p.file, 0))
		switch {
		case epochsFlag.MatchString(x.Key()):
			epochs, given = n, given || text != ""
		case perEpochFlag.MatchString(x.Key()):
			each, given = n, given || text != ""
		}
	}
	if !given || math.IsNaN(epochs*each) {
		return 0
	}
	return epochs * each
}
