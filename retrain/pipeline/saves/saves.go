// Package saves finds out whether code saves a model, and which files it reads. It examines only the source.
package saves

import (
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/modules"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/traits"
)

var (
	// fits matches code that changes the weights of a model, itself or through a library.
	fits = pattern.MustCompile(`\.backward\(|\.learn\(|\.fit\(|\.train_on_batch\(|\.minimize\(|\bGradientTape\(|\bvalue_and_grad\(|\boptimi[sz]er\.(?:step|update)\(|\.apply_gradients\(`)
	// models matches code that saves a model, itself or through a library.
	models = pattern.MustCompile(`(?:save\w*|dump|to_disk|export\w*|write_bytes)\(|(?i:checkpoint|ckpt)|\btune\.|\b(?:Tuner|Trainer|Saver|Runner)\(|save_(?:model|weights|path|dir)\s*=|\b(?:push_to_hub|to_bytes)\(|\bWandbCallback\(`)
	// others matches code about saving that saves no model: arguments, fields, pictures, statistics, replay buffers and
	// logs.
	others = pattern.MustCompile(`(?m)^[ \t]+\w+[ \t]*:[ \t]*[\w.\[\]| ]+(?:=[ \t]*[\w."'/-]*)?[ \t]*$|\badd_argument\([^\n]*|\bsave(?:fig|txt)\(|\b(?:args|config|cfg|opt)\.save_\w+|\bsave_?\w*(?:gif|video|plot|fig|frame|image|result|stats?(?:\b|_)|statistic|reward|histor|log|config|args|json|csv|hyperparam)\w*\(|\bjson\.dump\(|\byaml\.\w*dump\(|(?i:memory|buffer|replay|monitor|logger|writer)\w*(?:\[\w+\])?\.(?:save|dump)\w*\(`)
	// ofModel matches the name of a call that may save a model, whatever else it saves.
	ofModel = pattern.MustCompile(`model|weight|state|param`)
	// defined matches the header of a function whose name is about saving.
	defined = pattern.MustCompile(`(?m)^([ \t]*)(?:async[ \t]+)?def[ \t]+(_?(?:save|dump|export)\w*)[ \t]*\((?:[^()]|\([^()]*\))*\)[^\n:]*:[ \t]*\n`)
)

// maxDefined bounds the number of functions that are examined per file.
const maxDefined = 100

// ofRLlib and iterates match code that trains with RLlib iteration by iteration. Tune saves models by default.
var (
	ofRLlib  = pattern.MustCompile(`\b(?:ray\.rllib|from[ \t]+ray[ \t]+import[^\n]*\brllib)\b`)
	iterates = pattern.MustCompile(`\b(\w+)\.train\([ \t]*\)`)
)

// maxIterations bounds the number of calls that are examined per file.
const maxIterations = 100

// Fits reports whether code changes the weights of a model.
func Fits(code string) bool {
	return fits.MatchString(code) || ofRLlib.MatchString(code) && slices.ContainsFunc(iterates.FindAllStringSubmatch(code, maxIterations), func(m []string) bool {
		return !strings.Contains(code, m[1]+".eval(") // with eval, train only sets the mode of a network
	})
}

// Nothing reports whether none of the files of a training saves a model. A function that saves one counts only if other
// code refers to it.
func Nothing(texts []string) bool {
	var bodies, rest []string
	names := map[string]bool{}
	for _, text := range texts {
		text = others.ReplaceAllStringFunc(text, withoutModel)
		var kept strings.Builder
		from := 0
		for _, m := range defined.FindAllStringSubmatchIndex(text, maxDefined) {
			end := pytext.BlockEnd(text, m[1], m[3]-m[2])
			if m[0] < from {
				continue
			}
			kept.WriteString(text[from:m[0]])
			bodies, from = append(bodies, text[m[1]:end]), end
			names[text[m[4]:m[5]]] = true
		}
		rest = append(rest, kept.String()+text[from:])
	}
	if slices.ContainsFunc(rest, models.MatchString) {
		return false
	}
	return !slices.ContainsFunc(bodies, models.MatchString) || !slices.ContainsFunc(rest, func(text string) bool {
		for name := range names {
			if pattern.MustCompile(`\b` + name + `\b`).MatchString(text) {
				return true
			}
		}
		return false
	})
}

// withoutModel returns a match of others if it may save a model after all, and "" if it is to be ignored.
func withoutModel(found string) string {
	name := found[strings.LastIndexByte(found, '.')+1:]
	if called, ok := strings.CutSuffix(name, "("); ok && ofModel.MatchString(strings.ReplaceAll(called, "hyperparam", "")) {
		return found
	}
	return ""
}

// elsewhere matches an absolute path that exists only on the author's machine.
var elsewhere = pattern.MustCompile(`["'](/(?:content|home|Users|kaggle|gdrive|mnt|media|scratch)/[\w./ ()=,@+-]+|[A-Z]:[/\\][\w./\\ -]+)["']`)

// Elsewhere returns a path in code that exists only on the author's machine, or "".
func Elsewhere(code string) string {
	if m := elsewhere.FindStringSubmatch(code); m != nil {
		return m[1]
	}
	return ""
}

// OnlyThere returns a message about the first such path in the files of a program. It ignores paths that are the
// default of an argument.
func OnlyThere(files []string, texts map[string]string, arguments []modules.Option) []string {
	for _, file := range files {
		for _, m := range elsewhere.FindAllStringSubmatch(texts[file], 20) {
			if !slices.ContainsFunc(arguments, func(x modules.Option) bool { return x.Value == m[1] }) {
				return []string{file + " uses " + m[1] + ", which does not exist in the image: change it to a path relative to the working directory"}
			}
		}
	}
	return nil
}

var (
	// loadsNamed matches a call that loads a model from a file named by a literal.
	loadsNamed = pattern.MustCompile(`(?:\.load|load_\w+|\.restore)\(\s*(?:\w+\s*=\s*)?["']([^"'\n]+)["']`)
	// loadsVariable matches a call that loads a model from a file named by a variable.
	loadsVariable = pattern.MustCompile(`(?:\.load|load_\w+|\.restore)\(\s*(?:\w+\s*=\s*)?([A-Za-z_]\w*)\s*[,)]`)
	// formatted matches an f-string without expressions.
	formatted = pattern.MustCompile(`^[fF](["'][^{}]*["'])$`)
)

// Loaded returns the literal names of the files from which code loads a model, including those of variables that are
// assigned once.
func Loaded(code string) []string {
	var out []string
	for _, m := range loadsNamed.FindAllStringSubmatch(code, 20) {
		out = append(out, m[1])
	}
	for _, m := range loadsVariable.FindAllStringSubmatch(code, 20) {
		set := pattern.MustCompile(`(?m)^[ \t]*`+m[1]+`[ \t]*=[ \t]*([^=\n][^\n]*)$`).FindAllStringSubmatch(code, 2)
		if len(set) == 1 {
			if name := modules.Literal(formatted.ReplaceAllString(strings.TrimSpace(set[0][1]), "$1")); strings.ContainsAny(name, "./") {
				out = append(out, name)
			}
		}
	}
	return out
}

// named matches calls that save to a file with a literal name.
var named = pattern.MustCompile(`\.save\w*\(\s*(?:[\w.()]+,\s*)?["'][\w./-]+["']`)

// Named reports whether the files of a training save models only under literal names, and no callback saves them
// otherwise.
func Named(texts []string) bool {
	found := false
	for _, text := range texts {
		if strings.Contains(text, "Callback") {
			return false
		}
		found = found || named.MatchString(text)
	}
	return found && !slices.ContainsFunc(texts, func(text string) bool {
		return len(traits.Saving.FindAllString(text, 50)) > len(named.FindAllString(text, 50))
	})
}

var (
	// loadsOnly matches a constant that makes a program only run a trained model.
	loadsOnly = pattern.MustCompile(`(?m)^[ \t]*((?:\w+_)?(?:load|test|eval|evaluate|play|demo|inference)(?:_\w+)?)[ \t]*=[ \t]*True[ \t]*$`)
	// trainsNot matches a constant that keeps a program from training.
	trainsNot = pattern.MustCompile(`(?m)^[ \t]*((?:\w+_)?train(?:ing)?(?:_\w+)?)[ \t]*=[ \t]*False[ \t]*$`)
	// steps matches calls that may train, including functions of other files. A call of update alone may concern
	// statistics or a buffer.
	steps = pattern.MustCompile(`(?m)^[ \t]*(?:[\w., \t]+=[ \t]*)?[\w.]*\b(?:learn|fit|train\w*|update_(?:model|net|weight|polic|agent|actor|critic|param)\w*|optimi[sz]e\w*)\([^\n]*$`)
)

// Off returns the constant whose current value keeps a program from training, as in load_checkpoint = True, or "".
func Off(code string) string {
	for _, c := range []struct {
		set       *pattern.Pattern
		condition string
	}{{loadsOnly, `if[ \t]+not[ \t]+`}, {trainsNot, `if[ \t]+`}} {
		for _, m := range c.set.FindAllStringSubmatch(code, maxDefined) {
			set := pattern.MustCompile(`(?m)^[ \t]*` + m[1] + `[ \t]*=[^=]`)
			guards := pattern.MustCompile(`(?m)^([ \t]*)` + c.condition + m[1] + `[ \t]*:[ \t]*\n`)
			if len(set.FindAllString(code, 2)) == 1 && onlyGuarded(code, guards) {
				return m[1]
			}
		}
	}
	return ""
}

// onlyGuarded reports whether all training code is in the blocks of the given conditions.
func onlyGuarded(code string, guards *pattern.Pattern) bool {
	guarded, from := false, 0
	var outside strings.Builder
	for _, g := range guards.FindAllStringSubmatchIndex(code, maxDefined) {
		if g[0] < from {
			continue
		}
		end := pytext.BlockEnd(code, g[1], g[3]-g[2])
		guarded = guarded || steps.MatchString(code[g[1]:end])
		outside.WriteString(code[from:g[0]] + "\n")
		from = end
	}
	rest := outside.String() + code[from:]
	return guarded && !steps.MatchString(rest) && !fits.MatchString(rest)
}

var (
	// inDirectory matches the name of a file that code composes below a directory.
	inDirectory = pattern.MustCompile(`=[ \t]*(?:f["'](?:\./)?([\w-]+(?:/[\w-]+)*)/[^"'\n/]*\{|["'](?:\./)?([\w-]+(?:/[\w-]+)*)/["'][ \t]*\+)`)
	// ofOutput matches a parameter or constant that names a directory for the output of a training.
	ofOutput = pattern.MustCompile(`\b(?:chkpt|ckpt|checkpoints?|save|models?|logs?|results?|out\w*|plots?|figures?)_?(?:dir|path|folder)[ \t]*(?::[ \t]*\w+[ \t]*)?=[ \t]*["'](?:\./)?([\w-]+(?:/[\w-]+)*)/?["']`)
	saving   = pattern.MustCompile(`(?:save\w*|dump)\(`)
)

// Directories returns the relative paths of the directories to which code that saves something writes files.
func Directories(code string) []string {
	if !saving.MatchString(code) && !strings.Contains(code, "plot") {
		return nil
	}
	var out []string
	for _, m := range inDirectory.FindAllStringSubmatch(code, 20) {
		if dir := m[1] + m[2]; pytext.OfResults.MatchString(dir) || strings.Contains(dir, "plot") || strings.Contains(dir, "fig") || strings.HasPrefix(dir, "tmp") {
			out = append(out, dir)
		}
	}
	for _, m := range ofOutput.FindAllStringSubmatch(code, 20) {
		out = append(out, m[1])
	}
	return out
}
