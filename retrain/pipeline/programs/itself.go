package programs

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/commandline"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/modules"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/traits"
)

// namesAlgorithm reports whether an argument selects an algorithm, a policy or a network by its name, so that it does
// not take the path of a model. given is its value in a command, or "".
func namesAlgorithm(x modules.Option, given string) bool {
	return len(x.Choices) > 0 && traits.MayName(x.Key()) || traits.NamesAlgorithm(x.Key(), x.Help, x.Value, given)
}

// isItself reports whether a program is the training program, which an argument makes evaluate.
func (f *Finder) isItself(p *program) bool {
	if len(f.trained) == 0 || f.trained[0].file != p.file {
		return false
	}
	byMode := func(path []string) bool { return len(path) > 0 && strings.HasPrefix(path[0], "-") }
	return slices.Equal(f.trained[0].path, p.path) || byMode(f.trained[0].path) && byMode(p.path)
}

// asTrained passes to an evaluation by the training program the arguments with which the training decides what it
// trains and where. at is the argument for the model, or nil if the program finds the model in the directory of the
// training.
func (f *Finder) asTrained(p *program, at *modules.Option, args, trained []string) []string {
	if !f.isItself(p) {
		return f.alike(p, args, trained)
	}
	out := f.output(&f.trained[0])
	for _, x := range p.flags {
		given, isOutput := p.flags.Given(trained, x), out != nil && x.Name == out.Name
		decides := decidesTraining(x, given) || isOutput && at == nil
		switch {
		case x.Boolean || !decides || at != nil && x.Name == at.Name:
		case given != "":
			args = p.flags.Give(args, x, given)
		case !x.Position && commandline.Has(args, x):
			args = without(args, x)
		}
	}
	return args
}

// ofEachRun matches arguments whose values differ between a training and an evaluation: those for places and amounts.
var ofEachRun = pattern.MustCompile(`seed|episodes?|eval|test|(?:num|n)_|workers|threads|port|render|display|video|fps|steps|epochs?|batch|iter|dir|path|file|folder|checkpoint|ckpt|chkpt|load|save|out|log|device|gpu|verbose`)

// alike passes to an evaluation by another program the values that the training has for the same arguments, because the
// examples of a page may be for different trainings.
func (f *Finder) alike(p *program, args, trained []string) []string {
	if len(f.trained) == 0 {
		return args
	}
	flags := f.trained[0].flags
	for _, x := range p.flags {
		i := slices.IndexFunc(flags, func(y modules.Option) bool { return x.Name == y.Name })
		given := p.flags.Given(args, x)
		if i < 0 || given == "" || x.Boolean || x.Position || x.Many || ofEachRun.MatchString(x.Key()) || modules.Extension(given) != "" {
			continue
		}
		value := flags.Given(trained, flags[i])
		if nameFlag.MatchString(x.Key()) {
			value = cmp.Or(value, flags[i].Value)
		}
		if value != "" && !commandline.Expands(value) {
			args = p.flags.Give(args, x, value)
		}
	}
	return args
}

// decidesTraining reports whether an argument decides what is trained.
func decidesTraining(x modules.Option, given string) bool {
	key := x.Key()
	return envFlag.MatchString(key) || algoFlag.MatchString(key) || nameFlag.MatchString(key) || configFlag.MatchString(key) || namesAlgorithm(x, given)
}

// without removes an argument with its value.
func without(args []string, x modules.Option) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		switch {
		case !commandline.Has([]string{args[i]}, x):
			out = append(out, args[i])
		case !strings.Contains(args[i], "="):
			i++
		}
	}
	return out
}
