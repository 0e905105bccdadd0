package programs

import (
	"path"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/commandline"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/modules"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/saves"
)

// noModel matches files of settings, data or code.
var noModel = pattern.MustCompile(`(?i)\.(?:ya?ml|json[lc]?|toml|cfg|conf|ini|txt|md|csv|tsv|parquet|xml|urdf|py|sh)$`)

// committed reports whether the default of an argument for a model is a file of the repository. An evaluation must not
// mistake this model for the new one.
func (f *Finder) committed(p *program, x modules.Option) bool {
	return x.Value != "" && !noModel.MatchString(x.Value) && readsFrom.MatchString(x.Key()) && (f.isFile(x.Value) || f.isFile(path.Join(path.Dir(p.file), x.Value)))
}

// otherModel returns a model that an evaluation loads by its name although the training does not write it, so that the
// new model would never be tested. It returns "" if the evaluation also loads another model.
func (f *Finder) otherModel(p, training *program) string {
	other := ""
	for _, name := range saves.Loaded(p.text) {
		committed := slices.ContainsFunc([]string{"", ".zip", ".pt", ".pth"}, func(extension string) bool {
			return f.exists(path.Clean(name+extension)) || f.exists(path.Join(path.Dir(p.file), name+extension))
		})
		base := strings.TrimSuffix(path.Base(name), path.Ext(name))
		committed = committed || ofModel.MatchString(name) && saves.Named(f.textsOf(training))
		if !committed || noModel.MatchString(name) || slices.ContainsFunc(f.textsOf(training), func(text string) bool { return strings.Contains(text, base) }) {
			return ""
		}
		other = name
	}
	return other
}

// ofTraining replaces models of the repository that an evaluation reads by those with the same names that the training
// writes to $WORK.
func (f *Finder) ofTraining(p *program, at *modules.Option, args []string) []string {
	if len(f.trained) == 0 {
		return args
	}
	texts := f.textsOf(&f.trained[0])
	for _, x := range p.flags {
		name := path.Base(x.Value)
		if x.Boolean || x.Position || commandline.Has(args, x) || at != nil && x.Name == at.Name || !ofModel.MatchString(name) || !f.committed(p, x) {
			continue
		}
		if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, name) }) {
			args = append(args, x.Words(commandline.LastModel+"/"+name)...)
		}
	}
	return args
}

// resultsInWork redirects the output of an evaluation to $WORK if it is the program of the training, because the
// project's own directory is read-only.
func (f *Finder) resultsInWork(p *program, model *modules.Option, args []string) []string {
	if model == nil || len(f.trained) == 0 || f.trained[0].file != p.file || !slices.Equal(f.trained[0].path, p.path) || f.output(p) == nil || !slices.ContainsFunc(args, commandline.Expands) {
		return args
	}
	out := f.output(p)
	if x := *out; x.Name != model.Name && !x.Position && !commandline.Has(args, x) && !path.IsAbs(x.Value) && !saves.ReadsAt(p.text, x.Key()) {
		args = append(args, x.Words(commandline.Work+"evaluation")...)
	}
	return args
}

var (
	// ofGPU matches arguments that enable a GPU.
	ofGPU = pattern.MustCompile(`^(?:use_?|with_?|enable_?)?(?:gpu|cuda)$`)
	isOne = pattern.MustCompile(`^--[\w-]+$`)
)

// turnsGPUOn reports whether the argument at an index enables a GPU, which a pipeline without training.gpu does not
// have.
func (p *program) turnsGPUOn(i int) bool {
	a := p.args[i]
	if !isOne.MatchString(a) || !ofGPU.MatchString(modules.Option{Name: a}.Key()) {
		return false
	}
	return p.flags.IsBoolean(a) || len(p.flags) == 0 && (i+1 == len(p.args) || strings.HasPrefix(p.args[i+1], "-"))
}
