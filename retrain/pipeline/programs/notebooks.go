package programs

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/headless"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/modules"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/traits"
)

// fits is code that changes the weights of a model, by itself or by a library.
var fits = regexp.MustCompile(`\.backward\(|\.learn\(|\.fit\(|\.train_on_batch\(|\.minimize\(|\bGradientTape\(|\bvalue_and_grad\(|\boptimi[sz]er\.(?:step|update)\(|\.apply_gradients\(`)

// byCode returns the programs that train by what they do, as no program is named for it.
func (f *Finder) byCode(all []program) []program {
	var out []program
	for _, p := range all {
		leads := f.code.Of(p.text).Trains && slices.ContainsFunc(f.textsOf(&p), fits.MatchString)
		if leads && !asidePath.MatchString(p.file) && traits.Weigh(p.names(), traits.Evaluation) < 80 && !f.demonstrates(&p, f.code.Of(p.text)) {
			p.score = 1
			out = append(out, p)
		}
	}
	return out
}

// Notebook makes the best of the notebooks that train the training, as no program does, and returns it; "" for none.
func (f *Finder) Notebook() string {
	var out []program
	for file, text := range f.Text {
		p := program{file: file, start: []string{file}, text: text, from: file}
		if path.Ext(file) != ".ipynb" || !modules.Printable(file) || asidePath.MatchString(file) || !ofNotebook(text) || !slices.ContainsFunc(f.textsOf(&p), fits.MatchString) {
			continue
		}
		p.score = max(1, 50+traits.Weigh([]string{strings.ToLower(strings.TrimSuffix(path.Base(file), ".ipynb"))}, traits.Training)) - strings.Count(file, "/")
		out = append(out, p)
	}
	if len(f.trained) > 0 || len(out) == 0 {
		return ""
	}
	slices.SortFunc(out, func(a, b program) int { return strings.Compare(a.file, b.file) })
	f.trained = ranked(out)
	return f.trained[0].file
}

// ofNotebook reports whether the code of a notebook runs elsewhere than on the servers of Colab, and steps an environment
// or has a library do that.
func ofNotebook(code string) bool {
	return !strings.Contains(code, "google.colab") && (steps.MatchString(code) || strings.Contains(code, ".step(") || strings.Contains(code, ".learn("))
}

// executed returns the command that runs a notebook in a copy of the project, because it writes beside itself.
func (f *Finder) executed(p *program) Command {
	words := []string{"python", "-m", "nbconvert", "--to", "notebook", "--execute", "--ExecutePreprocessor.timeout=-1", "--ExecutePreprocessor.kernel_name=python3", "--output-dir=" + strings.TrimSuffix(workDir, "/"), path.Base(p.file)}
	if variables := f.variables(p); len(variables) > 0 {
		words = append(append([]string{"env"}, variables...), words...)
	}
	line := f.copied.enter(true) + f.forgets(p, f.copied, true) + f.home(p) + f.nestedPaths(p, f.copied) + "exec"
	for _, w := range words {
		if name, ok := strings.CutSuffix(w, strings.TrimSuffix(workDir, "/")); ok {
			line += " " + name + `"$WORK"`
			continue
		}
		line += " " + inShell(w)
	}
	out := Command{Words: []string{"sh", "-c", line}, From: p.file}
	out.Notes = f.asides(p)
	return out
}

// DefaultWorld returns the environment that is the default of an argument of the best training, "" for none.
func (f *Finder) DefaultWorld() string {
	if len(f.trained) == 0 {
		return ""
	}
	for _, x := range f.trained[0].flags {
		if !x.OfHydra() && envFlag.MatchString(x.Key()) && idInArgument.MatchString(x.Value) {
			return x.Value
		}
	}
	return ""
}

// variables returns the environment variables by which a program runs without a person: neither an account nor a screen.
func (f *Finder) variables(p *program) []string {
	var out []string
	if f.tracks(p) {
		out = append(out, "WANDB_MODE=offline")
	}
	return append(out, headless.Variables(f.textsOf(p), f.env)...)
}

// savesModels is code that leaves a model, also by a library.
var savesModels = regexp.MustCompile(`(?:save\w*|dump|to_disk|export\w*|write_bytes)\(|(?i:checkpoint|ckpt)|\btune\.|\b(?:Tuner|Trainer|Saver|Runner)\(|save_(?:model|weights|path|dir)\s*=|\bWandbCallback\(`)

// savesNothing reports whether neither a program nor a file of the repository that it leads to has code that leaves a model.
func (f *Finder) savesNothing(p *program) bool {
	texts := f.reached(p)
	return f.Has(p.file) && slices.ContainsFunc(texts, fits.MatchString) && !slices.ContainsFunc(texts, func(text string) bool {
		return savesModels.MatchString(notSaving.ReplaceAllString(text, ""))
	})
}

// notSaving are words of saving that save no model: arguments, and pictures.
var notSaving = regexp.MustCompile(`\badd_argument\([^\n]*|\bsave(?:fig|txt)\(|\b(?:args|config|cfg|opt)\.save_\w+|\bsave_?\w*(?:gif|video|plot|fig|frame|image|result|stat|reward|histor|log|config|args|json|csv)\w*\(|\bjson\.dump\(|\byaml\.\w*dump\(`)

// elsewhere is a path that only a machine of the authors has.
var elsewhere = regexp.MustCompile(`["'](/(?:content|home|Users|kaggle|gdrive|mnt|media|scratch)/[\w./ -]+|[A-Z]:[/\\][\w./\\ -]+)["']`)

// asides returns what a person must know of a training: a path that the image lacks, or that it saves nothing.
func (f *Finder) asides(p *program) []string {
	var out []string
	for _, file := range f.withImports(p) {
		if m := elsewhere.FindStringSubmatch(f.Text[file]); m != nil {
			out = append(out, file+" names "+m[1]+", which the image lacks: change it to a path relative to the working directory")
			break
		}
	}
	if f.savesNothing(p) {
		out = append(out, unsaved(p))
	}
	return out
}

// unsaved tells a person that a training leaves no model.
func unsaved(p *program) string {
	return p.file + " has no code that saves a model: add it, so that the training leaves one in $WORK"
}

// forgets returns the words of a shell that delete from a copy of the project the models that a training both loads and
// writes: it would go on from another training. It returns "" for none.
func (f *Finder) forgets(p *program, at place, training bool) string {
	if !at.copied || !training {
		return ""
	}
	texts, out := strings.Join(f.textsOf(p), "\n"), ""
	saved := ""
	for _, m := range traits.Saving.FindAllStringIndex(texts, 100) {
		for _, a := range modules.ArgumentsOf(texts, m[1]-1) {
			saved += " " + modules.Literal(a.Text) + " "
		}
	}
	for _, name := range loadedNames(texts) {
		if file := path.Join(at.dir, name); strings.Contains(saved, " "+name+" ") && ofModel.MatchString(name) && f.exists(file) && modules.PlainWord.MatchString(name) && !strings.Contains(out, " "+name+" ") {
			out += " " + name + " "
		}
	}
	if out == "" {
		return ""
	}
	return "rm -f " + strings.Join(strings.Fields(out), " ") + " && "
}

// readsWritten reports whether a program loads a file by the name under which the best training writes it.
func (f *Finder) readsWritten(p *program) bool {
	if len(f.trained) == 0 {
		return false
	}
	for _, name := range loadedNames(p.text) {
		if slices.ContainsFunc(f.textsOf(&f.trained[0]), func(text string) bool { return strings.Contains(text, name) }) {
			return true
		}
	}
	return false
}
