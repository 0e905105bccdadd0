package programs

import (
	"cmp"
	"path"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/modules"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

var (
	scriptLine    = pattern.MustCompile(`(?m)^\s*"?([\w.-]+)"?\s*=\s*(?:\{[^}\n]*(?:reference|callable)\s*=\s*)?["']([\w.]+):([\w.]+)["']`)
	scriptQuoted  = pattern.MustCompile(`([\w.-]+)\s*=\s*([\w.]+):([\w.]+)`)
	joinedStrings = pattern.MustCompile(`["']\s*\n\s*["']`)
)

// console records the console scripts that the packaging declares, with the function that each runs, as
// MODULE:FUNCTION.
func (f *Finder) console(file, text string) {
	var all [][]string
	switch file {
	case "pyproject.toml":
		all = scriptLine.FindAllStringSubmatch(table(text, "project.scripts")+"\n"+table(text, "tool.poetry.scripts"), -1)
	case "setup.py", "setup.cfg":
		_, list, _ := strings.Cut(joinedStrings.ReplaceAllString(text, ""), "console_scripts")
		if end := strings.IndexAny(list, "]"); file == "setup.py" && end >= 0 && !strings.HasPrefix(list, "]") {
			list = list[:end]
		} else if next := strings.Index(list, "\n["); next >= 0 {
			list = list[:next]
		}
		all = scriptQuoted.FindAllStringSubmatch(list[:min(len(list), modules.MaxCall)], -1)
	}
	for _, m := range all[:min(len(all), 40)] {
		f.scripts[m[1]] = m[2] + ":" + m[3]
	}
}

// table returns the lines of a TOML table.
func table(text, name string) string {
	_, rest, _ := strings.Cut("\n"+text, "\n["+name+"]")
	rest, _, _ = strings.Cut(rest, "\n[")
	return rest
}

// started returns the arguments of Python that run a console script, and the file and function that it runs.
func (f *Finder) started(target string) (words []string, file, function string) {
	module, function, _ := strings.Cut(target, ":")
	entry := f.Module(module)
	if main := strings.ReplaceAll(module, ".", "/") + "/__main__.py"; entry == "" || path.Base(entry) == "__init__.py" && (f.Has(main) || f.Has("src/"+main)) {
		for _, root := range modules.Roots {
			if f.Has(root + main) {
				entry = cmp.Or(entry, root+main)
			}
		}
	}
	if entry == "" {
		return nil, "", ""
	}
	file, name := f.Resolve(entry, function)
	pack := path.Join(path.Dir(entry), "__main__.py")
	switch {
	case f.Has(pack) && (strings.Contains(f.Text[pack], function) || strings.Contains(f.Text[pack], path.Base(module))):
		words = []string{"-m", modules.NameOf(pack)}
	case modules.MainBlock.MatchString(f.Text[entry]):
		words = []string{"-m", module}
	default:
		words = []string{"-c", "from " + module + " import " + function + "; " + function + "()"}
	}
	return words, file, name
}
