package programs

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/modules"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/traits"
)

// noModel is a file of settings, data or code.
var noModel = regexp.MustCompile(`(?i)\.(?:ya?ml|json[lc]?|toml|cfg|conf|ini|txt|md|csv|tsv|parquet|xml|urdf|py|sh)$`)

// committed reports whether the default of an argument for a model is a file of the repository: a model of another
// training, which an evaluation must not take for the new one.
func (f *Finder) committed(p *program, x modules.Option) bool {
	return x.Value != "" && !noModel.MatchString(x.Value) && readsFrom.MatchString(x.Key()) && (f.isFile(x.Value) || f.isFile(path.Join(path.Dir(p.file), x.Value)))
}

// loadsNamed is a call that loads a model from a file that it names.
var loadsNamed = regexp.MustCompile(`(?:\.load|load_\w+|\.restore)\(\s*(?:\w+\s*=\s*)?["']([^"'\n]+)["']`)

// loadsVariable is a call that loads a model from a file that a name stands for.
var loadsVariable = regexp.MustCompile(`(?:\.load|load_\w+|\.restore)\(\s*(?:\w+\s*=\s*)?([A-Za-z_]\w*)\s*[,)]`)

// loadedNames returns the files that code loads a model from, as it spells them out, also in a name that has no other value.
func loadedNames(text string) []string {
	var out []string
	for _, m := range loadsNamed.FindAllStringSubmatch(text, 20) {
		out = append(out, m[1])
	}
	for _, m := range loadsVariable.FindAllStringSubmatch(text, 20) {
		set := regexp.MustCompile(`(?m)^[ \t]*`+m[1]+`[ \t]*=[ \t]*([^=\n][^\n]*)$`).FindAllStringSubmatch(text, 2)
		if len(set) == 1 {
			if name := modules.Literal(strings.TrimSpace(set[0][1])); strings.ContainsAny(name, "./") {
				out = append(out, name)
			}
		}
	}
	return out
}

// otherModel returns a model of the repository that an evaluation loads by its name, although the training does not write
// it: the new one would never be tested. It is "" if it loads another too.
func (f *Finder) otherModel(p, training *program) string {
	other := ""
	for _, name := range loadedNames(p.text) {
		committed := slices.ContainsFunc([]string{"", ".zip", ".pt", ".pth"}, func(extension string) bool {
			return f.exists(path.Clean(name+extension)) || f.exists(path.Join(path.Dir(p.file), name+extension))
		})
		base := strings.TrimSuffix(path.Base(name), path.Ext(name))
		committed = committed || ofModel.MatchString(name) && savesNamed(f.textsOf(training))
		if !committed || noModel.MatchString(name) || slices.ContainsFunc(f.textsOf(training), func(text string) bool { return strings.Contains(text, base) }) {
			return ""
		}
		other = name
	}
	return other
}

// savedNames are calls that save something, with the name of a file that nothing composes.
var savedNames = regexp.MustCompile(`\.save\w*\(\s*(?:[\w.()]+,\s*)?["'][\w./-]+["']`)

// savesNamed reports whether a training saves its models under names that it spells out, and nothing else does that for it.
func savesNamed(texts []string) bool {
	named := false
	for _, text := range texts {
		if strings.Contains(text, "Callback") {
			return false
		}
		named = named || savedNames.MatchString(text)
	}
	return named && !slices.ContainsFunc(texts, func(text string) bool {
		return len(traits.Saving.FindAllString(text, 50)) > len(savedNames.FindAllString(text, 50))
	})
}

// ofTraining replaces the other models of the repository that an evaluation reads by those of the same names that the
// training leaves in $WORK.
func (f *Finder) ofTraining(p *program, at *modules.Option, args []string) []string {
	if len(f.trained) == 0 {
		return args
	}
	texts := f.textsOf(&f.trained[0])
	for _, x := range p.flags {
		name := path.Base(x.Value)
		if x.Boolean || x.Position || has(args, x) || at != nil && x.Name == at.Name || !ofModel.MatchString(name) || !f.committed(p, x) {
			continue
		}
		if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, name) }) {
			args = append(args, x.Words(lastModel+"/"+name)...)
		}
	}
	return args
}

// resultsInWork moves what an evaluation writes to $WORK, if it is the program of the training with its arguments for what
// it writes: the project's own directory cannot be written to.
func (f *Finder) resultsInWork(p *program, model *modules.Option, args []string) []string {
	if model == nil || len(f.trained) == 0 || f.trained[0].file != p.file || !slices.Equal(f.trained[0].path, p.path) || f.output(p) == nil || !slices.ContainsFunc(args, expands) {
		return args
	}
	out := f.output(p)
	if x := *out; x.Name != model.Name && !x.Position && !has(args, x) && !path.IsAbs(x.Value) && !readsAt(p.text, x.Key()) {
		args = append(args, x.Words(workDir+"evaluation")...)
	}
	return args
}

// readsAt reports whether a program reads something below the directory that an argument names.
func readsAt(text, key string) bool {
	return regexp.MustCompile(`(?:load\w*|restore\w*|read\w*|open|listdir|glob|exists|isfile|isdir)\([^\n]*\.` + regexp.QuoteMeta(key) + `\b`).MatchString(text)
}

var (
	// ofGPU is an argument that turns a GPU on.
	ofGPU = regexp.MustCompile(`^(?:use_?|with_?|enable_?)?(?:gpu|cuda)$`)
	isOne = regexp.MustCompile(`^--[\w-]+$`)
)

// turnsGPUOn reports whether an argument of a page, by its index, turns a GPU on, which a pipeline without training.gpu
// does not have.
func (p *program) turnsGPUOn(i int) bool {
	a := p.args[i]
	if !isOne.MatchString(a) || !ofGPU.MatchString(modules.Option{Name: a}.Key()) {
		return false
	}
	return p.isBoolean(a) || len(p.flags) == 0 && (i+1 == len(p.args) || strings.HasPrefix(p.args[i+1], "-"))
}
