// Package saves finds whether code leaves a model behind, and what it reads, by its text alone.
package saves

import (
	"regexp"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/modules"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/traits"
)

var (
	// fits is code that changes the weights of a model, by itself or by a library.
	fits = regexp.MustCompile(`\.backward\(|\.learn\(|\.fit\(|\.train_on_batch\(|\.minimize\(|\bGradientTape\(|\bvalue_and_grad\(|\boptimi[sz]er\.(?:step|update)\(|\.apply_gradients\(`)
	// models is code that leaves a model, also by a library.
	models = regexp.MustCompile(`(?:save\w*|dump|to_disk|export\w*|write_bytes)\(|(?i:checkpoint|ckpt)|\btune\.|\b(?:Tuner|Trainer|Saver|Runner)\(|save_(?:model|weights|path|dir)\s*=|\b(?:push_to_hub|to_bytes)\(|\bWandbCallback\(`)
	// others are words of saving that save no model: arguments, fields, pictures, and what an agent remembers.
	others = regexp.MustCompile(`(?m)^[ \t]+\w+[ \t]*:[ \t]*[\w.\[\]| ]+(?:=[ \t]*[\w."'/-]*)?[ \t]*$|\badd_argument\([^\n]*|\bsave(?:fig|txt)\(|\b(?:args|config|cfg|opt)\.save_\w+|\bsave_?\w*(?:gif|video|plot|fig|frame|image|result|stats?(?:\b|_)|statistic|reward|histor|log|config|args|json|csv|hyperparam)\w*\(|\bjson\.dump\(|\byaml\.\w*dump\(|(?i:memory|buffer|replay|monitor|logger|writer)\w*(?:\[\w+\])?\.(?:save|dump)\w*\(`)
	// ofModel are words in the name of a call that may save a model, whatever else it saves.
	ofModel = regexp.MustCompile(`model|weight|state|param`)
	// defined is a function that is named for saving, up to its body.
	defined = regexp.MustCompile(`(?m)^([ \t]*)(?:async[ \t]+)?def[ \t]+(_?(?:save|dump|export)\w*)[ \t]*\((?:[^()]|\([^()]*\))*\)[^\n:]*:[ \t]*\n`)
)

// maxDefined bounds the functions of a file that are looked at.
const maxDefined = 100

// ofRLlib and iterates are code that trains with RLlib, one iteration after another. Tune saves by itself.
var (
	ofRLlib  = regexp.MustCompile(`\b(?:ray\.rllib|from[ \t]+ray[ \t]+import[^\n]*\brllib)\b`)
	iterates = regexp.MustCompile(`\b(\w+)\.train\([ \t]*\)`)
)

// maxIterations bounds the calls of a file that are looked at.
const maxIterations = 100

// Fits reports whether code changes the weights of a model.
func Fits(code string) bool {
	return fits.MatchString(code) || ofRLlib.MatchString(code) && slices.ContainsFunc(iterates.FindAllStringSubmatch(code, maxIterations), func(m []string) bool {
		return !strings.Contains(code, m[1]+".eval(") // or else both only set the mode of a network
	})
}

// Nothing reports whether none of the files of a training leaves a model: a function for it counts only if something names
// it.
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
			if regexp.MustCompile(`\b` + name + `\b`).MatchString(text) {
				return true
			}
		}
		return false
	})
}

// withoutModel returns a match of others if it is a call that may save a model, "" if it is to be left out.
func withoutModel(found string) string {
	name := found[strings.LastIndexByte(found, '.')+1:]
	if called, ok := strings.CutSuffix(name, "("); ok && ofModel.MatchString(strings.ReplaceAll(called, "hyperparam", "")) {
		return found
	}
	return ""
}

// elsewhere is a path that only a machine of the authors has.
var elsewhere = regexp.MustCompile(`["'](/(?:content|home|Users|kaggle|gdrive|mnt|media|scratch)/[\w./ -]+|[A-Z]:[/\\][\w./\\ -]+)["']`)

// Elsewhere returns a path that code names and that only a machine of the authors has, "" for none.
func Elsewhere(code string) string {
	if m := elsewhere.FindStringSubmatch(code); m != nil {
		return m[1]
	}
	return ""
}

// OnlyThere says which of the files of a program first names such a path, nothing if none does. The default of an argument
// does not count.
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
	// loadsNamed is a call that loads a model from a file that it names.
	loadsNamed = regexp.MustCompile(`(?:\.load|load_\w+|\.restore)\(\s*(?:\w+\s*=\s*)?["']([^"'\n]+)["']`)
	// loadsVariable is a call that loads a model from a file that a name stands for.
	loadsVariable = regexp.MustCompile(`(?:\.load|load_\w+|\.restore)\(\s*(?:\w+\s*=\s*)?([A-Za-z_]\w*)\s*[,)]`)
	// formatted is a formatted string in which nothing is composed.
	formatted = regexp.MustCompile(`^[fF](["'][^{}]*["'])$`)
)

// Loaded returns the files that code loads a model from, as it spells them out, also in a name that has no other value.
func Loaded(code string) []string {
	var out []string
	for _, m := range loadsNamed.FindAllStringSubmatch(code, 20) {
		out = append(out, m[1])
	}
	for _, m := range loadsVariable.FindAllStringSubmatch(code, 20) {
		set := regexp.MustCompile(`(?m)^[ \t]*`+m[1]+`[ \t]*=[ \t]*([^=\n][^\n]*)$`).FindAllStringSubmatch(code, 2)
		if len(set) == 1 {
			if name := modules.Literal(formatted.ReplaceAllString(strings.TrimSpace(set[0][1]), "$1")); strings.ContainsAny(name, "./") {
				out = append(out, name)
			}
		}
	}
	return out
}

// named are calls that save something, with the name of a file that nothing composes.
var named = regexp.MustCompile(`\.save\w*\(\s*(?:[\w.()]+,\s*)?["'][\w./-]+["']`)

// Named reports whether the files of a training save its models under names that they spell out, and nothing else does that
// for it.
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
	// loadsOnly is a constant that makes a program only show what a model does.
	loadsOnly = regexp.MustCompile(`(?m)^[ \t]*((?:\w+_)?(?:load|test|eval|evaluate|play|demo|inference)(?:_\w+)?)[ \t]*=[ \t]*True[ \t]*$`)
	// trainsNot is a constant that keeps a program from training.
	trainsNot = regexp.MustCompile(`(?m)^[ \t]*((?:\w+_)?train(?:ing)?(?:_\w+)?)[ \t]*=[ \t]*False[ \t]*$`)
	// steps are calls that may train, in other files too. An update alone may be one of statistics or of a buffer.
	steps = regexp.MustCompile(`(?m)^[ \t]*(?:[\w., \t]+=[ \t]*)?[\w.]*\b(?:learn|fit|train\w*|update_(?:model|net|weight|polic|agent|actor|critic|param)\w*|optimi[sz]e\w*)\([^\n]*$`)
)

// Off returns the constant that keeps a program from training as it is written, as in load_checkpoint = True, "" for none.
func Off(code string) string {
	for _, c := range []struct {
		set       *regexp.Regexp
		condition string
	}{{loadsOnly, `if[ \t]+not[ \t]+`}, {trainsNot, `if[ \t]+`}} {
		for _, m := range c.set.FindAllStringSubmatch(code, maxDefined) {
			set := regexp.MustCompile(`(?m)^[ \t]*` + m[1] + `[ \t]*=[^=]`)
			guards := regexp.MustCompile(`(?m)^([ \t]*)` + c.condition + m[1] + `[ \t]*:[ \t]*\n`)
			if len(set.FindAllString(code, 2)) == 1 && onlyGuarded(code, guards) {
				return m[1]
			}
		}
	}
	return ""
}

// onlyGuarded reports whether all that code does to train is in the blocks after some conditions.
func onlyGuarded(code string, guards *regexp.Regexp) bool {
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
	// inDirectory is the name of a file that code puts below a directory.
	inDirectory = regexp.MustCompile(`=[ \t]*(?:f["'](?:\./)?([\w-]+(?:/[\w-]+)*)/[^"'\n/]*\{|["'](?:\./)?([\w-]+(?:/[\w-]+)*)/["'][ \t]*\+)`)
	// ofOutput is a parameter, or a constant, for a directory of what a training writes.
	ofOutput = regexp.MustCompile(`\b(?:chkpt|ckpt|checkpoints?|save|models?|logs?|results?|out\w*|plots?|figures?)_?(?:dir|path|folder)[ \t]*(?::[ \t]*\w+[ \t]*)?=[ \t]*["'](?:\./)?([\w-]+(?:/[\w-]+)*)/?["']`)
	saving   = regexp.MustCompile(`(?:save\w*|dump)\(`)
)

// Directories returns the directories, by relative paths, in which code that saves something expects to write files.
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
