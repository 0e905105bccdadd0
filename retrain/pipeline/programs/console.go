package programs

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"
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
	classMethods   = regexp.MustCompile(`(?m)^(?:[ \t]{2,4})def[ \t]+([a-z]\w*)\(self`)
	suffixOfClick  = regexp.MustCompile(`_(command|cmd|group|grp)$`)
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
		out = append(out, g.parsers(x)...)
		out = append(out, g.fired(x)...)
	}
	if len(out) == 0 {
		out = g.dispatched(file)
	}
	if len(out) == 1 && len(out[0].path) == 1 && strings.Contains(f.text[file], "Typer(") && !strings.Contains(f.text[file], ".callback(") {
		out[0].path = nil // typer has no sub-commands then
	}
	return out[:min(len(out), 200)]
}

// around returns a file and those of the repository that it imports, and that register commands with it.
func (f *sources) around(file string) []string {
	out := []string{file}
	for i := 0; i < len(out) && len(out) < 40; i++ {
		var next []string
		for _, to := range f.imports(out[i]) {
			if !slices.Contains(out, to.file) && !slices.Contains(next, to.file) && speaksOfCommands(f.text[to.file]) {
				next = append(next, to.file)
			}
		}
		slices.Sort(next)
		out = append(out, next...)
	}
	top, _, _ := strings.Cut(strings.TrimPrefix(file, "src/"), "/")
	for _, x := range f.order {
		if len(out) < 80 && strings.HasPrefix(strings.TrimPrefix(x, "src/"), top+"/") && registersItself.MatchString(f.text[x]) && !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	return out
}

var registersItself = regexp.MustCompile(`@(?:\w+\.)*\w*command\([^)]*\bgroup\s*=`)

func speaksOfCommands(text string) bool {
	for _, word := range []string{"add_parser", "add_subparsers", "command(", "group(", "add_typer", "Typer(", "Fire(", "add_command"} {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

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

// ofFunction returns the word that click and typer make of the name of a function.
func ofFunction(name string, click bool) string {
	if click {
		name = suffixOfClick.ReplaceAllString(name, "")
	}
	return strings.ReplaceAll(strings.ToLower(name), "_", "-")
}

// nameObjects takes the words that the objects of a file have for themselves.
func (g *grammar) nameObjects(file string) {
	text := g.text[file]
	for _, m := range commandAt.FindAllStringSubmatchIndex(text, -1) {
		if d := defined.FindStringSubmatch(text[m[1]:]); d != nil {
			g.own[file+":"+d[1]] = ofFunction(d[1], !strings.Contains(text, "yper"))
			if m[6] < m[7] {
				g.own[file+":"+d[1]] = cmp.Or(literal(given(call(text, m[6]), "name", 0)), g.own[file+":"+d[1]])
			}
		}
	}
	for _, m := range typerNamed.FindAllStringSubmatchIndex(text, -1) {
		g.own[file+":"+text[m[2]:m[3]]] = literal(given(call(text, m[4]), "name", -1))
	}
}

// structure takes how the objects of a file stand below each other.
func (g *grammar) structure(file string) {
	text := g.text[file]
	for _, m := range commandAt.FindAllStringSubmatchIndex(text, -1) {
		owner, kind := strings.TrimSuffix(text[m[2]:m[3]], "."), text[m[4]:m[5]]
		if d := defined.FindStringSubmatch(text[m[1]:]); d != nil && strings.HasSuffix(kind, "group") && owner != "" && owner != "click" {
			g.above[file+":"+d[1]] = edge{g.place(file, owner), g.own[file+":"+d[1]]}
		}
	}
	for _, m := range addsObject.FindAllStringSubmatchIndex(text, -1) {
		a := call(text, m[6])
		object := given(a, "", 0)
		if !nameAlone.MatchString(object) {
			continue
		}
		key := g.place(file, object)
		_, plain, _ := strings.Cut(key, ":")
		position := 1
		if text[m[4]:m[5]] == "add_typer" {
			position = -1
		}
		word := cmp.Or(literal(given(a, "name", position)), g.own[key], ofFunction(plain, true))
		g.above[key] = edge{g.place(file, text[m[2]:m[3]]), word}
	}
}

// decorated returns the commands of click and typer, and of decorators made with them.
func (g *grammar) decorated(file string) []command {
	text := g.text[file]
	var out []command
	for _, m := range commandAt.FindAllStringSubmatchIndex(text, -1) {
		owner, kind := strings.TrimSuffix(text[m[2]:m[3]], "."), text[m[4]:m[5]]
		d := defined.FindStringSubmatchIndex(text[m[1]:])
		if d == nil || !strings.Contains(kind, "command") {
			continue
		}
		function := text[m[1]+d[2] : m[1]+d[3]]
		var a []argument
		if m[6] < m[7] {
			a = call(text, m[6])
		}
		word := g.own[file+":"+function]
		typer := owner != "click" && strings.Contains(text, "yper")
		c := command{file: file, text: g.body(file, function)}
		c.flags = flagsIn(text[m[0] : m[1]+d[0]])
		if typer {
			c.flags = parameterFlags(text, function, false)
		}
		switch e, added := g.above[file+":"+function]; {
		case added:
			c.path = append(g.path(e.parent), e.word)
		case literal(given(a, "group", -1)) != "":
			c.path = []string{literal(given(a, "group", -1)), word}
		case owner == "click" || owner == "":
			c.path = nil // it is a program of its own
		default:
			c.path = append(g.path(g.place(file, owner)), word)
		}
		out = append(out, c)
	}
	return out
}

// parsers returns the commands of argparse.
func (g *grammar) parsers(file string) []command {
	text := g.text[file]
	paths := map[string][]string{} // by the variable that has the parser, or its sub-parsers
	var out []command
	for _, m := range makesSubparser.FindAllStringSubmatchIndex(text, -1) {
		variable, owner := "", text[m[4]:m[5]]
		if m[2] >= 0 {
			variable = text[m[2]:m[3]]
		}
		if text[m[6]:m[7]] == "add_subparsers" {
			paths[variable] = paths[owner]
			continue
		}
		word := literal(given(call(text, m[8]), "name", 0))
		if word == "" {
			continue
		}
		p := append(slices.Clone(paths[owner]), word)
		if variable != "" {
			paths[variable] = p
		}
		out = append(out, command{path: p, file: file, flags: g.ofParser(file, variable, m[1])})
	}
	return out
}

// ofParser returns the flags of the parser that a variable has from a place on, and those that functions add to it.
func (g *grammar) ofParser(file, variable string, at int) []option {
	if variable == "" {
		return nil
	}
	text := g.text[file][at:]
	name := regexp.QuoteMeta(variable)
	if end := regexp.MustCompile(`(?m)^[ \t]*(?:` + name + `\s*=[^=]|def[ \t])`).FindStringIndex(text); end != nil {
		text = text[:end[0]]
	}
	var out []option
	for _, m := range regexp.MustCompile(`\b`+name+`\.add_argument\(`).FindAllStringIndex(text, -1) {
		out = append(out, argparseFlag(call(text, m[1]-1)))
	}
	for _, m := range regexp.MustCompile(`(?m)^[ \t]*(\w+)\(`+name+`\b`).FindAllStringSubmatch(text, 20) {
		of, function := g.resolve(file, m[1])
		out = append(out, flagsIn(g.body(of, function))...)
	}
	return out
}

// fired returns the commands of fire.
func (g *grammar) fired(file string) []command {
	text := g.text[file]
	var out []command
	if !strings.Contains(text, "fire") {
		return nil
	}
	for _, m := range firesAt.FindAllStringSubmatchIndex(text, -1) {
		a := call(text, m[2])
		object := given(a, "", 0)
		switch {
		case object == "":
			for _, d := range topFunction.FindAllStringSubmatch(text, -1) {
				out = append(out, command{path: []string{d[1]}, file: file, text: g.body(file, d[1]), flags: parameterFlags(text, d[1], true)})
			}
		case strings.HasPrefix(object, "{"):
			for _, d := range dispatches.FindAllStringSubmatch(object, -1) {
				of, name := g.resolve(file, d[2])
				out = append(out, command{path: []string{d[1]}, file: of, text: g.body(of, name), flags: parameterFlags(g.text[of], name, true)})
			}
		default:
			of, name := g.resolve(file, object)
			body := g.body(of, name)
			if !strings.Contains(body, "class "+name) {
				out = append(out, command{file: of, text: body, flags: parameterFlags(g.text[of], name, true)})
				continue
			}
			for _, d := range classMethods.FindAllStringSubmatch(body, -1) {
				out = append(out, command{path: []string{d[1]}, file: of, text: body, flags: parameterFlags(body, d[1], true)})
			}
		}
	}
	return out
}

// dispatched returns the commands that a program tells apart by itself: by its first argument, or by an argument with
// choices.
func (g *grammar) dispatched(file string) []command {
	text := g.text[file]
	var out []command
	if strings.Contains(text, "sys.argv[1]") || strings.Contains(text, "argv[0]") {
		for _, d := range dispatches.FindAllStringSubmatch(text, -1) {
			of, name := g.resolve(file, d[2])
			if body := g.body(of, name); body != "" {
				out = append(out, command{path: []string{d[1]}, file: of, text: body, flags: g.flags(of)})
			}
		}
	}
	all := flagsIn(text)
	for i, x := range all {
		if !modeName.MatchString(x.key()) {
			continue
		}
		for _, choice := range x.choices {
			c := command{path: x.words(choice), file: file, text: text, flags: slices.Delete(slices.Clone(all), i, i+1)}
			out = append(out, c)
		}
	}
	return out
}

var modeName = regexp.MustCompile(`^(mode|command|cmd|action|phase|stage|run_mode|func|function)$`)
