package programs

import (
	"path"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/commandline"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/modules"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/saves"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/traits"
)

// byCode returns the programs that train judging by their code, for repositories in which none has a suitable name.
func (f *Finder) byCode(all []program) []program {
	var out []program
	for _, p := range all {
		leads := f.code.Of(p.text).Trains && slices.ContainsFunc(f.textsOf(&p), saves.Fits)
		if leads && !asidePath.MatchString(p.file) && traits.Weigh(p.names(), traits.Evaluation) < 80 && !f.demonstrates(&p, f.code.Of(p.text)) {
			p.score = 1
			out = append(out, p)
		}
	}
	return out
}

// Notebook selects the best notebook that trains if no program does, and returns its file, or "".
func (f *Finder) Notebook() string {
	if len(f.trained) > 0 {
		return ""
	}
	var out []program
	for file, text := range f.Text {
		p := program{file: file, start: []string{file}, text: text, from: file}
		if path.Ext(file) != ".ipynb" || !modules.Printable(file) || asidePath.MatchString(file) || !f.ofNotebook(&p) || !slices.ContainsFunc(f.textsOf(&p), saves.Fits) {
			continue
		}
		p.score = max(1, 50+traits.Weigh([]string{strings.ToLower(strings.TrimSuffix(path.Base(file), ".ipynb"))}, traits.Training)) - strings.Count(file, "/")
		out = append(out, p)
	}
	if len(out) == 0 {
		return ""
	}
	slices.SortFunc(out, func(a, b program) int { return strings.Compare(a.file, b.file) })
	f.trained = ranked(out)
	return f.trained[0].file
}

// ofNotebook reports whether the code of a notebook runs outside of Colab, and steps an environment itself or through a
// library or a file of the repository.
func (f *Finder) ofNotebook(p *program) bool {
	code := p.text
	steppedFor := (strings.Contains(code, ".train(") || strings.Contains(code, ".fit(")) && slices.ContainsFunc(f.textsOf(p), stepsAny.MatchString)
	return !strings.Contains(code, "google.colab") && (steps.MatchString(code) || strings.Contains(code, ".step(") || strings.Contains(code, ".learn(") || steppedFor)
}

// executed returns the command that runs a notebook in a copy of the project, because notebooks write to their own
// directory.
func (f *Finder) executed(p *program) Command {
	words := f.withVariables(p, []string{"python", "-m", "nbconvert", "--to", "notebook", "--execute", "--ExecutePreprocessor.timeout=-1", "--ExecutePreprocessor.kernel_name=python3", "--output-dir=" + commandline.WorkItself, path.Base(p.file)})
	before := f.copied.Enter(true) + f.forgets(p, f.copied, true) + f.home(p) + f.nestedPaths(p, f.copied)
	return Command{commandline.Shell(before, words), p.file, f.asides(p, nil, f.savesNothing(p))}
}
