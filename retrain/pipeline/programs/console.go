package programs

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
)

var (
	scriptLine     = regexp.MustCompile(`(?m)^\s*"?([\w.-]+)"?\s*=\s*(?:\{[^}\n]*(?:reference|callable)\s*=\s*)?["']([\w.]+):([\w.]+)["']`)
	scriptQuoted   = regexp.MustCompile(`([\w.-]+)\s*=\s*([\w.]+):([\w.]+)`)
	joinedStrings  = regexp.MustCompile(`["']\s*\n\s*["']`)
	commandAt      = regexp.MustCompile(`(?m)^[ \t]*@((?:\w+\.)*)(\w*(?:command|group)\w*)\b(\(?)`)
	defined        = regexp.MustCompile(`(?m)^[ \t]*(?:async[ \t]+)?def[ \t]+(\w+)`)
	addsObject     = regexp.MustCompile(`\b([\w.]+)\.(add_typer|add_command)(\()`)
	typerNamed     = regexp.MustCompile(`(?m)^(\w+)\s*=\s*(?:typer\.)?Typer(\()`)
	makesSubparser = regexp.MustCompile(`(?:\b(\w+)\s*=\s*)?\b([\w.]+)\.(add_subparsers|add_parser)(\()`)
	dispatches     = regexp.MustCompile(`["']([a-z][\w-]*)["']\s*:\s*([\w.]+)\s*[,}\n]`)
	firesAt        = regexp.MustCompile(`\b(?:fire\.)?Fire(\()`)
	nameAlone      = regexp.MustCompile(`^[A-Za-z_][\w.]*$`)
)

// command is a sub-command of a program.
type command struct {
	path  []string // its words
	file  string   // that defines it
	text  string   // of the function that it runs, "" if that is not known
	flags []option
}

// console takes the console scripts that the packaging declares: the function that each runs, as MODULE:FUNCTION.
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
		all = scriptQuoted.FindAllStringSubmatch(list[:min(len(list), maxCall)], -1)
	}
	for _, m := range all[:min(len(all), 40)] {
		f.scripts[m[1]] = m[2] + ":" + m[3]
	}
}

// table returns the lines of a table of TOML.
func table(text, name string) string {
	_, rest, _ := strings.Cut("\n"+text, "\n["+name+"]")
	rest, _, _ = strings.Cut(rest, "\n[")
	return rest
}

// started returns the words of Python that run a console script, and the file and function that it runs.
func (f *sources) started(target string) (words []string, file, function string) {
	module, function, _ := strings.Cut(target, ":")
	entry := f.module(module)
	if main := strings.ReplaceAll(module, ".", "/") + "/__main__.py"; entry == "" || path.Base(entry) == "__init__.py" && (f.has(main) || f.has("src/"+main)) {
		for _, root := range roots {
			if f.has(root + main) {
				entry = cmp.Or(entry, root+main)
			}
		}
	}
	if entry == "" {
		return nil, "", ""
	}
	file, name := f.resolve(entry, function)
	pack := path.Join(path.Dir(entry), "__main__.py")
	switch {
	case f.has(pack) && (strings.Contains(f.text[pack], function) || strings.Contains(f.text[pack], path.Base(module))):
		words = []string{"-m", moduleOf(pack)}
	case guarded.MatchString(f.text[entry]):
		words = []string{"-m", module}
	default:
		words = []string{"-c", "from " + module + " import " + function + "; " + function + "()"}
	}
	return words, file, name
}

// commands returns the sub-commands of a program, of which the file has the start.
func (f *sources) commands(file string) []command {
	g := &grammar{sources: f, above: map[string]edge{}, own: map[string]string{}}
	files := f.around(file)
	for _, x := range files {
		g.nameObjects(x)
	}
	for _, x := range files {
		g.structure(x)
	}
	var out []command
	for _, x := range files {
		out = append(out, g.decorated(x)...)
		out = append(out, f.parsers(x)...)
		out = append(out, f.fired(x)...)
	}
	if len(out) == 0 {
		out = g.dispatched(file)
	}
	if len(out) == 1 && len(out[0].path) == 1 && strings.Contains(f.text[file], "Typer(") && !strings.Contains(f.text[file], ".callback(") {
		out[0].path = nil // typer has no sub-commands then
	}
	return out[:min(len(out), maxCommands)]
}

// around returns a file and those of the repository that it imports, and that register commands with it.
func (f *sources) around(file string) []string {
	out := []string{file}
	for i := 0; i < len(out) && len(out) < maxAround; i++ {
		for _, next := range f.speaking(out[i]) {
			if len(out) < maxAround && !slices.Contains(out, next) {
				out = append(out, next)
			}
		}
	}
	top, _, _ := strings.Cut(strings.TrimPrefix(file, "src/"), "/")
	for _, x := range f.registering() {
		if len(out) < 2*maxAround && strings.HasPrefix(strings.TrimPrefix(x, "src/"), top+"/") && !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	return out
}

// speaking returns the files that a file imports and that speak of commands.
func (f *sources) speaking(file string) []string {
	if known, ok := f.speakingOf[file]; ok {
		return known
	}
	seen := map[string]bool{}
	for _, to := range f.imports(file) {
		if _, known := seen[to.file]; !known {
			seen[to.file] = pytext.SpeaksOfCommands(f.text[to.file])
		}
	}
	var out []string
	for to, speaks := range seen {
		if speaks {
			out = append(out, to)
		}
	}
	slices.Sort(out)
	out = out[:min(len(out), maxAround)]
	f.speakingOf[file] = out
	return out
}

// registering returns the files that register commands with a group by its name.
func (f *sources) registering() []string {
	if f.registers == nil {
		f.registers = []string{}
		for _, x := range f.order {
			if registersItself.MatchString(f.text[x]) {
				f.registers = append(f.registers, x)
			}
		}
	}
	return f.registers
}

var registersItself = regexp.MustCompile(`@(?:\w+\.)*\w*command\([^)]*\bgroup\s*=`)

// grammar is which words lead to which commands.
type grammar struct {
	*sources
	above map[string]edge   // by FILE:NAME of an object that has commands
	own   map[string]string // the word that such an object has for itself
}

// edge is the object above, and the word that leads from it.
type edge struct{ parent, word string }

// place returns the key of an object in a file.
func (g *grammar) place(file, name string) string {
	file, name = g.resolve(file, name)
	return file + ":" + name
}

// path returns the words that lead to an object.
func (g *grammar) path(key string) []string {
	var out []string
	for range 6 {
		e, ok := g.above[key]
		if !ok || e.parent == key {
			break
		}
		out = append([]string{e.word}, out...)
		key = e.parent
	}
	return out
}

// nameObjects takes the words that the objects of a file have for themselves.
func (g *grammar) nameObjects(file string) {
	s := g.scan(file)
	for _, d := range s.decorators {
		word := literal(given(d.arguments, "name", 0))
		g.own[file+":"+d.function] = cmp.Or(word, pytext.CommandOf(d.function, !strings.Contains(g.text[file], "yper")))
	}
	for variable, word := range s.typers {
		g.own[file+":"+variable] = word
	}
}

// structure takes how the objects of a file stand below each other.
func (g *grammar) structure(file string) {
	s := g.scan(file)
	for _, d := range s.decorators {
		if strings.HasSuffix(d.kind, "group") && d.owner != "" && d.owner != "click" {
			g.above[file+":"+d.function] = edge{g.place(file, d.owner), g.own[file+":"+d.function]}
		}
	}
	for _, x := range s.adds {
		object := given(x.arguments, "", 0)
		if !nameAlone.MatchString(object) {
			continue
		}
		key := g.place(file, object)
		_, plain, _ := strings.Cut(key, ":")
		position := 1
		if x.kind == "add_typer" {
			position = -1
		}
		word := cmp.Or(literal(given(x.arguments, "name", position)), g.own[key], pytext.CommandOf(plain, true))
		g.above[key] = edge{g.place(file, x.owner), word}
	}
}

// decorated returns the commands of click and typer, and of decorators made with them.
func (g *grammar) decorated(file string) []command {
	var out []command
	for _, d := range g.scan(file).decorators {
		if !strings.Contains(d.kind, "command") {
			continue
		}
		word := g.own[file+":"+d.function]
		c := command{file: file, text: g.body(file, d.function), flags: d.flags}
		switch e, added := g.above[file+":"+d.function]; {
		case added:
			c.path = append(g.path(e.parent), e.word)
		case literal(given(d.arguments, "group", -1)) != "":
			c.path = []string{literal(given(d.arguments, "group", -1)), word}
		case d.owner == "click" || d.owner == "":
			c.path = nil // it is a program of its own
		default:
			c.path = append(g.path(g.place(file, d.owner)), word)
		}
		out = append(out, c)
	}
	return out
}

// parsers returns the commands of argparse.
func (f *sources) parsers(file string) []command {
	if known, ok := f.parsersOf[file]; ok {
		return known
	}
	paths := map[string][]string{} // by the variable that has the parser, or its sub-parsers
	var out []command
	for _, x := range f.scan(file).subparsers {
		if x.kind == "add_subparsers" {
			paths[x.variable] = paths[x.owner]
			continue
		}
		word := literal(given(x.arguments, "name", 0))
		if word == "" || len(paths[x.owner]) >= maxWords {
			continue
		}
		p := append(slices.Clone(paths[x.owner]), word)
		if x.variable != "" {
			paths[x.variable] = p
		}
		out = append(out, command{path: p, file: file, flags: f.ofParser(file, x.variable, x.at)})
	}
	f.parsersOf[file] = out
	return out
}

// maxWords bounds the words of a sub-command.
const maxWords = 6

// ofParser returns the flags of the parser that a variable has from a place on, and those that functions add to it.
func (f *sources) ofParser(file, variable string, at int) []option {
	if variable == "" {
		return nil
	}
	s := f.scan(file)
	end := s.until(variable, at)
	var out []option
	for i := sort.Search(len(s.arguments), func(i int) bool { return s.arguments[i].at >= at }); i < len(s.arguments) && s.arguments[i].at < end; i++ {
		if s.arguments[i].owner == variable {
			out = append(out, s.arguments[i].option)
		}
	}
	all := s.passed[variable]
	for i := sort.Search(len(all), func(i int) bool { return all[i].at >= at }); i < len(all) && all[i].at < end && len(out) < maxFlags; i++ {
		of, function := f.resolve(file, all[i].function)
		if from, to, ok := f.part(of, function); ok {
			out = append(out, f.scan(of).within(from, to)...)
		}
	}
	return out[:min(len(out), maxFlags)]
}

// fired returns the commands of fire.
func (f *sources) fired(file string) []command {
	text := f.text[file]
	if !strings.Contains(text, "fire") {
		return nil
	}
	if known, ok := f.firedOf[file]; ok {
		return known
	}
	var out []command
	for _, m := range firesAt.FindAllStringSubmatchIndex(text, maxFires) {
		object := given(call(text, m[2]), "", 0)
		switch {
		case object == "":
			for _, d := range f.scan(file).tops {
				if len(out) < maxCommands {
					out = append(out, f.ofFire(file, d.name, d.name))
				}
			}
		case strings.HasPrefix(object, "{"):
			for _, d := range dispatches.FindAllStringSubmatch(object, maxCommands) {
				of, name := f.resolve(file, d[2])
				out = append(out, f.ofFire(of, name, d[1]))
			}
		default:
			out = append(out, f.firedObject(f.resolve(file, object))...)
		}
	}
	f.firedOf[file] = out
	return out
}

// maxFires bounds the calls of fire of a file: a program has one.
const maxFires = 5

// ofFire is the command that fire makes of a function, without words for one that has none.
func (f *sources) ofFire(file, function string, words ...string) command {
	return command{path: words, file: file, text: f.body(file, function), flags: f.scan(file).parameters(f.text[file], function, true)}
}

// firedObject returns the commands that fire makes of a function, or of the methods of a class.
func (f *sources) firedObject(file, name string) []command {
	c := f.ofFire(file, name)
	if !strings.Contains(c.text, "class "+name) {
		return []command{c}
	}
	from, to, _ := f.part(file, name)
	defines := f.scan(file)
	var out []command
	for i := sort.Search(len(defines.functions), func(i int) bool { return defines.functions[i].start >= from }); i < len(defines.functions) && defines.functions[i].start < to && len(out) < maxCommands; i++ {
		d := defines.functions[i]
		if d.isMethod(f.text[file]) {
			out = append(out, command{path: []string{d.name}, file: file, text: c.text, flags: defines.parametersOf(i, f.text[file], true)})
		}
	}
	return out
}

// dispatched returns the commands that a program tells apart by itself: by its first argument, or by an argument with
// choices.
func (f *sources) dispatched(file string) []command {
	text := f.text[file]
	var out []command
	if strings.Contains(text, "sys.argv[1]") || strings.Contains(text, "argv[0]") {
		for _, d := range dispatches.FindAllStringSubmatch(text, maxCommands) {
			of, name := f.resolve(file, d[2])
			if body := f.body(of, name); body != "" {
				out = append(out, command{path: []string{d[1]}, file: of, text: body, flags: f.flags(of)})
			}
		}
	}
	if len(out) == 0 {
		for _, m := range comparesWord.FindAllStringSubmatch(text, maxCommands) {
			out = append(out, command{path: []string{cmp.Or(m[1], m[2])}, file: file, text: text, flags: f.flags(file)})
		}
		if len(out) == 1 && out[0].path[0] == "train" { // any other word evaluates
			out = append(out, command{path: []string{"test"}, file: file, text: text, flags: out[0].flags})
		}
	}
	all := f.scan(file).within(0, len(text))
	for i, x := range all {
		if !modeName.MatchString(x.key()) || len(out) >= maxCommands {
			continue
		}
		rest := slices.Delete(slices.Clone(all), i, i+1)
		for _, choice := range x.choices[:min(len(x.choices), maxCommands)] {
			out = append(out, command{path: x.words(choice), file: file, text: text, flags: rest})
		}
	}
	return out
}

// comparesWord is a comparison of the first argument with the word of a command.
var comparesWord = regexp.MustCompile(`\bargv\[1\]\)?\s*==\s*(?:"([a-z][\w-]*)"|'([a-z][\w-]*)')`)

var modeName = regexp.MustCompile(`^(mode|command|cmd|action|phase|stage|run_mode|func|function)$`)
