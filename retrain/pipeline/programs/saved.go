package programs

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/modules"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/traits"
)

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
func (f *Finder) asides(p *program, savesNothing bool) []string {
	var out []string
	for _, file := range f.withImports(p) {
		if m := elsewhere.FindStringSubmatch(f.Text[file]); m != nil {
			out = append(out, file+" names "+m[1]+", which the image lacks: change it to a path relative to the working directory")
			break
		}
	}
	if savesNothing {
		out = append(out, p.file+" has no code that saves a model: add it, so that the training leaves one in $WORK")
	}
	return out
}

// forgets returns the words of a shell that delete from a copy of the project the models that a training both loads and
// writes: it would go on from another training. It returns "" for none.
func (f *Finder) forgets(p *program, at place, training bool) string {
	if !at.copied || !training {
		return ""
	}
	texts := strings.Join(f.textsOf(p), "\n")
	var saved, out []string
	for _, m := range traits.Saving.FindAllStringIndex(texts, 100) {
		for _, a := range modules.ArgumentsOf(texts, m[1]-1) {
			saved = append(saved, modules.Literal(a.Text))
		}
	}
	for _, name := range loadedNames(texts) {
		if file := path.Join(at.dir, name); slices.Contains(saved, name) && ofModel.MatchString(name) && f.exists(file) && modules.PlainWord.MatchString(name) && !slices.Contains(out, name) {
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
	for _, name := range loadedNames(p.text) {
		if slices.ContainsFunc(f.textsOf(&f.trained[0]), func(text string) bool { return strings.Contains(text, name) }) {
			return true
		}
	}
	return false
}
