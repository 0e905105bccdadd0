package programs

import (
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/hydra"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/modules"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/placeholders"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
)

// Limits for the pages that are searched for commands.
const (
	maxPages     = 200
	maxPageSize  = 256 << 10
	maxAdvice    = 2000
	maxEntries   = 50_000 // files and directories visited in search of pages
	maxWord      = 64     // words of a command line
	maxExplained = 20     // command lines with placeholders per page
)

// advice is a command line that a repository recommends.
type advice struct {
	file   string   // the file that recommends it
	target string   // a Python file, a module after "-m ", or a console script
	args   []string // nil if one of them is a placeholder for something that only the user knows
	words  []string // all arguments, including placeholders
	weight int
}

var (
	pythonLine = pattern.MustCompile(`(?:^|[\s` + "`" + `$>(&;"'])(?:python3?(?:\.[0-9]+)?|py(?:[ \t]+-3(?:\.[0-9]+)?)?|uv[ \t]+run|torchrun|accelerate[ \t]+launch)[ \t]+((?:-[uOWB][ \t]+|--[a-z_]+(?:=[^\s]+)?[ \t]+)*)(-m[ \t]+[\w.]+|[\w./-]+\.py)\b([^` + "`" + `\n]*)`)
	directLine = pattern.MustCompile("(?m)(?:^|[`$>])[ \t]*()(\\./[\\w./-]+\\.py)\\b([^`\n]*)")
	continued  = pattern.MustCompile("(?m)[ \t]*\\\\[ \t]*\r?\n[ \t]*|^([^`\n]*)[ \t]+`[ \t]*\r?\n") // the latter in PowerShell, up to the start of the next line, which may be continued too
	pageName   = pattern.MustCompile(`(?i)^(readme[^/]*|contributing\.md|makefile|justfile|taskfile\.ya?ml|.*\.(md|rst|sh))$`)
)

// advise collects the commands that the pages and scripts of a repository recommend.
func (f *Finder) advise() {
	names := slices.Sorted(maps.Keys(f.scripts))
	var console *pattern.Pattern
	if len(names) > 0 {
		for i, n := range names {
			names[i] = regexp.QuoteMeta(n)
		}
		console = pattern.MustCompile(`(?m)(?:^|[` + "`" + `$>]|\brun)[ \t]*(` + strings.Join(names, "|") + `)((?:[ \t][^` + "`" + `\n]*)?)(?:$|` + "`" + `)`)
	}
	pages, entries := 0, 0
	_ = fs.WalkDir(f.repository, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return fs.SkipDir
		}
		if entries++; entries > maxEntries || f.isLate() {
			return fs.SkipAll
		}
		depth := strings.Count(file, "/")
		if d.IsDir() {
			if file != "." && (depth > 3 || strings.HasPrefix(d.Name(), ".") && d.Name() != ".github" || IsForeign(f.repository, file)) {
				return fs.SkipDir
			}
			return nil
		}
		weight := weightOf(file)
		if !d.Type().IsRegular() || weight == 0 {
			return nil
		}
		if pages++; pages > maxPages {
			return fs.SkipAll
		}
		if info, err := d.Info(); err != nil || info.Size() > maxPageSize {
			return nil
		}
		if text, err := fs.ReadFile(f.repository, file); err == nil {
			f.adviceIn(file, string(text), weight, console)
		}
		return nil
	})
}

// foreign are names of directories that do not belong to the project unless they are packages.
var foreign = []string{"node_modules", "venv", "env", "site-packages", "build", "dist", "pipeline"}

// IsForeign reports whether a directory does not belong to the project, such as a virtual environment.
func IsForeign(repository fs.FS, dir string) bool {
	if !slices.Contains(foreign, path.Base(dir)) {
		return false
	}
	if path.Base(dir) == "env" {
		own, _ := fs.Glob(repository, dir+"/*.py") // a virtual environment has no Python files at its top level
		return len(own) == 0
	}
	_, err := fs.Stat(repository, path.Join(dir, "__init__.py"))
	return err != nil
}

// ofReadme is the weight of the README at the root, and ofWorkflow that of a workflow. Workflows mostly test programs,
// so their arguments are not those of a training.
const ofReadme, ofWorkflow = 50, 8

// weightOf returns the weight of a page as a source of commands, 0 if it is not one.
func weightOf(file string) int {
	dir, base := path.Split(file)
	switch {
	case strings.HasPrefix(dir, ".github/workflows"):
		return boolean(hydra.IsYAML(file)) * ofWorkflow
	case !pageName.MatchString(base) || strings.Contains(strings.ToLower(base), "changelog"):
		return 0
	case dir == "" && strings.HasPrefix(strings.ToLower(base), "readme"):
		return ofReadme
	case dir == "":
		return 25
	case strings.HasPrefix(strings.ToLower(base), "readme"):
		return 30
	case strings.HasSuffix(base, ".sh"):
		return 20
	}
	return 15
}

// adviceIn collects the commands in a text.
func (f *Finder) adviceIn(file, text string, weight int, console *pattern.Pattern) {
	text = continued.ReplaceAllString(text, "$1 ")
	explained := 0
	for _, m := range append(pythonLine.FindAllStringSubmatchIndex(text, 200), directLine.FindAllStringSubmatchIndex(text, 200)...) {
		target, rest := strings.Join(strings.Fields(text[m[4]:m[5]]), " "), text[m[6]:m[7]]
		if placeholders.In(rest) && explained < maxExplained {
			explained++
			rest = placeholders.Filled(text, m[1], rest, pythonLine.MatchString)
		}
		a := advice{file: file, target: strings.TrimPrefix(target, "./"), args: pageArguments(rest), words: pytext.Words(rest), weight: weight}
		if weight == ofWorkflow {
			a.args = nil
		}
		f.said.add(a)
	}
	if console == nil {
		return
	}
	for _, m := range console.FindAllStringSubmatch(text, 200) {
		f.said.add(advice{file: file, target: m[1], args: pageArguments(m[2]), words: pytext.Words(m[2]), weight: weight})
	}
}

// said is the advice of a repository.
type said struct {
	all []advice
	by  map[string][]int // indices by the last name of the target
}

func (s *said) add(a advice) {
	if len(s.all) < maxAdvice && len(a.words) < maxWord {
		key := lastName(a.target)
		s.by[key] = append(s.by[key], len(s.all))
		s.all = append(s.all, a)
	}
}

// lastName returns the last part of a target: a file, a module, or a console script.
func lastName(target string) string {
	if module, ok := strings.CutPrefix(target, "-m "); ok {
		return modules.LastName(module)
	}
	return path.Base(target)
}

// about returns the advice that may refer to a file.
func (s *said) about(file string) []advice {
	return s.at(s.named(path.Base(file), modules.LastName(modules.NameOf(file))))
}

// aboutProgram returns the advice that may refer to a program.
func (s *said) aboutProgram(p *program) []advice { return s.at(s.indices(p)) }

// indices returns the indices of the advice that may refer to a program, in order.
func (s *said) indices(p *program) []int {
	from, console := strings.CutPrefix(p.from, "console script ")
	keys := []string{path.Base(p.file), modules.LastName(modules.NameOf(p.file)), path.Base(from), modules.LastName(modules.NameOf(from))}
	if console && len(p.start) == 2 {
		keys = append(keys, modules.LastName(p.start[1]))
	}
	return s.named(keys...)
}

func (s *said) named(keys ...string) []int {
	var found []int
	for _, key := range keys {
		found = append(found, s.by[key]...)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func (s *said) at(indices []int) []advice {
	var out []advice
	for _, i := range indices {
		out = append(out, s.all[i])
	}
	return out
}

// pageArguments returns the arguments in a command line of a page, or nil if one of them is a placeholder.
func pageArguments(line string) []string {
	return placeholders.Arguments(line, forModel, loggingFlag.MatchString)
}

// forModel reports whether a flag is for the model. A page may leave its value open, because the pipeline knows it.
func forModel(flag string) bool {
	return strings.HasPrefix(flag, "-") && readsFrom.MatchString(modules.Option{Name: flag}.Key())
}

// known returns arguments up to the first word for which the program has no argument, because the text of the page
// begins there.
func (p *program) known(args []string) []string {
	places := 0
	for _, x := range p.flags {
		switch {
		case x.Position && x.Many:
			return args
		case x.Position:
			places++
		}
	}
	if len(p.flags) == 0 && readsWords.MatchString(p.text) {
		return args
	}
	for i, a := range args {
		plain := !strings.HasPrefix(a, "-") && !strings.ContainsAny(a, "=./")
		if plain && a == "with" && len(p.flags) > 0 { // settings of sacred follow
			return args
		}
		valueOf := i > 0 && strings.HasPrefix(args[i-1], "-") && !strings.Contains(args[i-1], "=") && !p.flags.IsBoolean(args[i-1])
		if strings.HasPrefix(a, "-") || valueOf {
			continue
		}
		if places--; places < 0 && plain {
			return args[:i]
		}
	}
	return args
}

// readsWords matches code of a program that may read arguments without declaring them.
var readsWords = pattern.MustCompile(`\bargv\b|\bhydra\b|\bsacred\b|\b[Ff]ire\b|\bOmegaConf\b|\bfrom_cli\b|\babsl\b|\bgin\b|\bclick\b|\btyper\b|\btyro\b|\bdocopt\b|\bargs\b|\bflags\b|(?i:pars(?:e|er)\w*)`)

// names reports whether advice is about a file. A page may give the path relative to its own directory, or only the
// last parts of it.
func (f *Finder) names(a advice, file string) bool {
	target, isModule := strings.CutPrefix(a.target, "-m ")
	switch {
	case isModule:
		name := modules.NameOf(file)
		return target == name || strings.HasPrefix(file, "src/") && target == "src."+name || f.Module(target) == "" && modules.Moved(target, name)
	case !strings.HasSuffix(target, ".py"):
		return false
	case target == file || path.Join(path.Dir(a.file), target) == file:
		return true
	}
	return !f.Has(target) && strings.HasSuffix(file, "/"+target)
}
