package modules

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
)

var (
	commandAt      = pattern.MustCompile(`(?m)^[ \t]*@((?:\w+\.)*)(\w*(?:command|group)\w*)\b(\(?)`)
	defined        = pattern.MustCompile(`(?m)^[ \t]*(?:async[ \t]+)?def[ \t]+(\w+)`)
	addsObject     = pattern.MustCompile(`\b([\w.]+)\.(add_typer|add_command)(\()`)
	typerNamed     = pattern.MustCompile(`(?m)^(\w+)\s*=\s*(?:typer\.)?Typer(\()`)
	makesSubparser = pattern.MustCompile(`(?:\b(\w+)\s*=\s*)?\b([\w.]+)\.(add_subparsers|add_parser)(\()`)
	dispatches     = pattern.MustCompile(`["']([a-z][\w-]*)["']\s*:\s*([\w.]+)\s*[,}\n]`)
	firesAt        = pattern.MustCompile(`\b(?:fire\.)?Fire(\()`)
	nameAlone      = pattern.MustCompile(`^[A-Za-z_][\w.]*$`)
)

// SubCommand is a subcommand of a program.
type SubCommand struct {
	Path  []string // the words that select it
	File  string   // the file that defines it
	Text  string   // source of the function that it runs, "" if unknown
	Flags []Option
}

// SubCommands returns the subcommands of the program that starts in the given file.
func (f *Files) SubCommands(file string) []SubCommand {
	g := &grammar{Files: f, above: map[string]edge{}, own: map[string]string{}}
	files := f.around(file)
	for _, x := range files {
		g.nameObjects(x)
	}
	for _, x := range files {
		g.structure(x)
	}
	var out []SubCommand
	for _, x := range files {
		out = append(out, g.decorated(x)...)
		out = append(out, f.parsers(x)...)
		out = append(out, f.fired(x)...)
	}
	if len(out) == 0 {
		out = f.usages(file)
	}
	if len(out) == 0 {
		out = g.dispatched(file)
	}
	if len(out) == 1 && len(out[0].Path) == 1 && strings.Contains(f.Text[file], "Typer(") && !strings.Contains(f.Text[file], ".callback(") {
		out[0].Path = nil // typer then has no subcommands
	}
	return out[:min(len(out), maxCommands)]
}

// around returns a file, the files that it imports and that may define commands, and files of the same package that
// register commands by themselves.
func (f *Files) around(file string) []string {
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

// speaking returns the files that a file imports and that may define commands.
func (f *Files) speaking(file string) []string {
	if known, ok := f.speakingOf[file]; ok {
		return known
	}
	seen := map[string]bool{}
	for _, to := range f.Imported(file) {
		if _, known := seen[to.File]; !known {
			seen[to.File] = pytext.SpeaksOfCommands(f.Text[to.File])
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

// registering returns the files that register commands with a group by the name of the group.
func (f *Files) registering() []string {
	if f.registers == nil {
		f.registers = []string{}
		for _, x := range f.Order {
			if registersItself.MatchString(f.Text[x]) {
				f.registers = append(f.registers, x)
			}
		}
	}
	return f.registers
}

var registersItself = pattern.MustCompile(`@(?:\w+\.)*\w*command\([^)]*\bgroup\s*=`)

// grammar maps words to commands.
type grammar struct {
	*Files
	above map[string]edge   // the parents of objects with commands, by FILE:NAME
	own   map[string]string // the words that select such objects by default
}

// edge is the parent of an object, and the word that selects the object in it.
type edge struct{ parent, word string }

// place returns the key of an object that a file refers to by a name.
func (g *grammar) place(file, name string) string {
	file, name = g.Resolve(file, name)
	return file + ":" + name
}

// path returns the words that select an object.
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

// nameObjects records the default words of the objects in a file.
func (g *grammar) nameObjects(file string) {
	s := g.scan(file)
	for _, d := range s.decorators {
		word := Literal(Given(d.arguments, "name", 0))
		g.own[file+":"+d.function] = cmp.Or(word, pytext.CommandOf(d.function, !strings.Contains(g.Text[file], "yper")))
	}
	for variable, word := range s.typers {
		g.own[file+":"+variable] = word
	}
}

// structure records the parents of the objects in a file.
func (g *grammar) structure(file string) {
	s := g.scan(file)
	for _, d := range s.decorators {
		if strings.HasSuffix(d.kind, "group") && d.owner != "" && d.owner != "click" {
			g.above[file+":"+d.function] = edge{g.place(file, d.owner), g.own[file+":"+d.function]}
		}
	}
	for _, x := range s.adds {
		object := Given(x.arguments, "", 0)
		if !nameAlone.MatchString(object) {
			continue
		}
		key := g.place(file, object)
		_, plain, _ := strings.Cut(key, ":")
		position := 1
		if x.kind == "add_typer" {
			position = -1
		}
		word := cmp.Or(Literal(Given(x.arguments, "name", position)), g.own[key], pytext.CommandOf(plain, true))
		g.above[key] = edge{g.place(file, x.owner), word}
	}
}

// decorated returns the commands of click, typer and similar decorators.
func (g *grammar) decorated(file string) []SubCommand {
	var out []SubCommand
	for _, d := range g.scan(file).decorators {
		if !strings.Contains(d.kind, "command") {
			continue
		}
		word := g.own[file+":"+d.function]
		c := SubCommand{File: file, Text: g.Body(file, d.function), Flags: d.flags}
		switch e, added := g.above[file+":"+d.function]; {
		case added:
			c.Path = append(g.path(e.parent), e.word)
		case Literal(Given(d.arguments, "group", -1)) != "":
			c.Path = []string{Literal(Given(d.arguments, "group", -1)), word}
		case d.owner == "click" || d.owner == "":
			c.Path = nil // it is a separate program
		default:
			c.Path = append(g.path(g.place(file, d.owner)), word)
		}
		out = append(out, c)
	}
	return out
}

// parsers returns the commands of argparse.
func (f *Files) parsers(file string) []SubCommand {
	if known, ok := f.parsersOf[file]; ok {
		return known
	}
	paths := map[string][]string{} // by the variable of the parser or of its subparsers
	var out []SubCommand
	for _, x := range f.scan(file).subparsers {
		if x.kind == "add_subparsers" {
			paths[x.variable] = paths[x.owner]
			continue
		}
		word := Literal(Given(x.arguments, "name", 0))
		if word == "" || len(paths[x.owner]) >= MaxWords {
			continue
		}
		p := append(slices.Clone(paths[x.owner]), word)
		if x.variable != "" {
			paths[x.variable] = p
		}
		out = append(out, SubCommand{Path: p, File: file, Flags: f.ofParser(file, x.variable, x.at)})
	}
	f.parsersOf[file] = out
	return out
}

// MaxWords bounds the number of words of a subcommand.
const MaxWords = 6

// ofParser returns the flags that are added to the parser in a variable from a place on, directly or by functions that
// receive the variable.
func (f *Files) ofParser(file, variable string, at int) []Option {
	if variable == "" {
		return nil
	}
	s := f.scan(file)
	end := s.until(variable, at)
	var out []Option
	for i := sort.Search(len(s.arguments), func(i int) bool { return s.arguments[i].at >= at }); i < len(s.arguments) && s.arguments[i].at < end; i++ {
		if s.arguments[i].owner == variable {
			out = append(out, s.arguments[i].Option)
		}
	}
	all := s.passed[variable]
	for i := sort.Search(len(all), func(i int) bool { return all[i].at >= at }); i < len(all) && all[i].at < end && len(out) < MaxFlags; i++ {
		of, function := f.Resolve(file, all[i].function)
		if from, to, ok := f.part(of, function); ok {
			out = append(out, f.scan(of).within(from, to)...)
		}
	}
	return out[:min(len(out), MaxFlags)]
}

// fired returns the commands of fire.
func (f *Files) fired(file string) []SubCommand {
	text := f.Text[file]
	if !strings.Contains(text, "fire") {
		return nil
	}
	if known, ok := f.firedOf[file]; ok {
		return known
	}
	var out []SubCommand
	for _, m := range firesAt.FindAllStringSubmatchIndex(text, maxFires) {
		object := Given(ArgumentsOf(text, m[2]), "", 0)
		switch {
		case object == "":
			for _, d := range f.scan(file).tops {
				if len(out) < maxCommands {
					out = append(out, f.ofFire(file, d.name, d.name))
				}
			}
		case strings.HasPrefix(object, "{"):
			for _, d := range dispatches.FindAllStringSubmatch(object, maxCommands) {
				of, name := f.Resolve(file, d[2])
				out = append(out, f.ofFire(of, name, d[1]))
			}
		default:
			out = append(out, f.firedObject(f.Resolve(file, object))...)
		}
	}
	f.firedOf[file] = out
	return out
}

// maxFires bounds the number of calls of fire per file. A program normally has one.
const maxFires = 5

// ofFire returns the command that fire creates from a function. Without words, the function is the whole program.
func (f *Files) ofFire(file, function string, words ...string) SubCommand {
	return SubCommand{Path: words, File: file, Text: f.Body(file, function), Flags: f.scan(file).parameters(f.Text[file], function, true)}
}

// firedObject returns the commands that fire creates from a function, or from the methods of a class.
func (f *Files) firedObject(file, name string) []SubCommand {
	c := f.ofFire(file, name)
	if !strings.Contains(c.Text, "class "+name) {
		return []SubCommand{c}
	}
	from, to, _ := f.part(file, name)
	defines := f.scan(file)
	var out []SubCommand
	for i := sort.Search(len(defines.functions), func(i int) bool { return defines.functions[i].start >= from }); i < len(defines.functions) && defines.functions[i].start < to && len(out) < maxCommands; i++ {
		d := defines.functions[i]
		if d.isMethod(f.Text[file]) {
			out = append(out, SubCommand{Path: []string{d.name}, File: file, Text: c.Text, Flags: defines.parametersOf(i, f.Text[file], true)})
		}
	}
	return out
}

// dispatched returns the commands that a program distinguishes without a library: by its first argument, or by an
// argument with choices.
func (f *Files) dispatched(file string) []SubCommand {
	text := f.Text[file]
	var out []SubCommand
	if strings.Contains(text, "sys.argv[1]") || strings.Contains(text, "argv[0]") {
		for _, d := range dispatches.FindAllStringSubmatch(text, maxCommands) {
			of, name := f.Resolve(file, d[2])
			if body := f.Body(of, name); body != "" {
				out = append(out, SubCommand{Path: []string{d[1]}, File: of, Text: body, Flags: f.Flags(of)})
			}
		}
	}
	if len(out) == 0 {
		for _, m := range comparesWord.FindAllStringSubmatch(text, maxCommands) {
			out = append(out, SubCommand{Path: []string{cmp.Or(m[1], m[2])}, File: file, Text: text, Flags: f.Flags(file)})
		}
		if len(out) == 1 && out[0].Path[0] == "train" { // any other word evaluates
			out = append(out, SubCommand{Path: []string{"test"}, File: file, Text: text, Flags: out[0].Flags})
		}
	}
	all := f.scan(file).within(0, len(text))
	for i, x := range all {
		if !modeName.MatchString(x.Key()) || len(out) >= maxCommands {
			continue
		}
		rest := slices.Delete(slices.Clone(all), i, i+1)
		for _, choice := range x.Choices[:min(len(x.Choices), maxCommands)] {
			out = append(out, SubCommand{Path: x.Words(choice), File: file, Text: text, Flags: rest})
		}
	}
	return out
}

// comparesWord matches a comparison of the first argument with the word of a command.
var comparesWord = pattern.MustCompile(`\bargv\[1\]\)?\s*==\s*(?:"([a-z][\w-]*)"|'([a-z][\w-]*)')`)

var modeName = pattern.MustCompile(`^(mode|command|cmd|action|phase|stage|run_mode|func|function)$`)
