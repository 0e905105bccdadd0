package programs

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/commandline"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/headless"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/modules"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/saves"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/traits"
)

// savesNothing reports whether none of the code of a program saves a model.
func (f *Finder) savesNothing(p *program) bool {
	texts := f.reached(p)
	return f.Has(p.file) && slices.ContainsFunc(texts, saves.Fits) && saves.Nothing(texts)
}

// ofData matches arguments for input data from the repository.
var ofData = pattern.MustCompile(`(?:^|_)(?:data|datasets?|demos?|instances?|inputs?|assets|maps?|scenarios?|levels?|motions?|urdf|xml|csv)(?:_|$)`)

// asides returns what the user must know about a training: paths that do not exist in the image, and that it does not
// train, does not end, or saves no model.
func (f *Finder) asides(p *program, args []string, savesNothing bool) []string {
	out := saves.OnlyThere(f.withImports(p), f.Text, p.flags)
	if name := saves.Off(p.text); name != "" {
		out = append(out, p.file+" does not train with its current settings: change the value of "+name)
	}
	if headless.Endless(p.text) {
		out = append(out, p.file+" trains until interrupted: limit the number of steps")
	}
	for _, x := range p.flags {
		if at := saves.Elsewhere(`"` + x.Value + `"`); at != "" && !commandline.Has(args, x) {
			out = append(out, x.Name+" is set to "+at+", which does not exist in the image: set it to a path in $WORK")
		}
		if !x.Boolean && ofData.MatchString(x.Key()) && strings.Contains(x.Value, "/") && fs.ValidPath(path.Clean(x.Value)) && !f.exists(path.Clean(x.Value)) && !f.isDirectory(path.Clean(x.Value)) && !commandline.Has(args, x) {
			out = append(out, x.Name+" is set to "+x.Value+", which is not in the repository: add it, or set the argument")
		}
	}
	if savesNothing {
		out = append(out, p.file+" does not save a model: add code that saves it in $WORK")
	}
	return out
}

// forgets returns a shell command that deletes the models that a training both loads and writes from a copy of the
// project, or "". Otherwise, the training would continue from an earlier one.
func (f *Finder) forgets(p *program, at commandline.Place, training bool) string {
	if !at.Copied || !training {
		return ""
	}
	texts := strings.Join(f.textsOf(p), "\n")
	var saved, out []string
	for _, m := range traits.Saving.FindAllStringIndex(texts, 100) {
		for _, a := range modules.ArgumentsOf(texts, m[1]-1) {
			saved = append(saved, modules.Literal(a.Text))
		}
	}
	for _, name := range saves.Loaded(texts) {
		if file := path.Join(at.Dir, name); slices.Contains(saved, name) && ofModel.MatchString(name) && f.exists(file) && modules.PlainWord.MatchString(name) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	if len(out) == 0 {
		return ""
	}
	return "rm -f " + strings.Join(out, " ") + " && "
}

// readsWritten reports whether a program loads a file by the name under which the best training writes it.
func (f *Finder) readsWritten(p *program) bool {
	if len(f.trained) == 0 {
		return false
	}
	for _, name := range saves.Loaded(p.text) {
		if slices.ContainsFunc(f.textsOf(&f.trained[0]), func(text string) bool { return strings.Contains(text, name) }) {
			return true
		}
	}
	return false
}
