package modules

import (
	"slices"
	"sort"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
)

// Limits per file, so that the time for a hostile file is proportional to its size.
const (
	maxCommands = 200
	maxOptions  = 1000
	MaxFlags    = 300 // per program
	MaxMatches  = 1000
	maxAround   = 40 // files that are examined together for the commands of a program
)

// scan is what a file defines. Each file is scanned once, and each pattern reads it once.
type scan struct {
	functions []span
	first     map[string]int // indices of the first functions with each name
	tops      []span         // functions and classes at the top level
	top       map[string]int // indices of the first of them with each name

	arguments, options, absl, fields, docopt []placedFlag

	decorators []decorator
	typers     map[string]string // default words of typer objects, by variable
	adds       []addition
	subparsers []subparser
	assigned   map[string][]int // where a variable becomes a parser or another value
	passed     map[string][]passing
}

// span is a named part of a text.
type span struct {
	name           string
	start, end     int // start of its first line; end of its name
	bodyFrom, next int // start including decorators; start of the next span
}

// placedFlag is an argument with the place where it is defined.
type placedFlag struct {
	at    int
	owner string // last part of the parser's name, or the short name of an option of docopt
	Option
}

// decorator turns a function into a command or a group of commands.
type decorator struct {
	owner, kind string
	arguments   []Argument
	function    string
	flags       []Option
}

// addition adds an object with commands to another.
type addition struct {
	owner, kind string
	arguments   []Argument
}

type subparser struct {
	at                    int
	variable, owner, kind string
	arguments             []Argument
}

// passing is a call that passes a parser to a function.
type passing struct {
	at       int
	function string
}

var (
	assignedAt = pattern.MustCompile(`(?m)^[ \t]*(\w+)[ \t]*=[^=]`)
	passedAt   = pattern.MustCompile(`(?m)^[ \t]*(\w+)\((\w+)\b`)
)

// scan returns what a file defines.
func (f *Files) scan(file string) *scan {
	if s, ok := f.scanned[file]; ok {
		return s
	}
	s := scanned(f.Text[file])
	f.scanned[file] = s
	if all := f.parsed(file); len(all) > 0 { // instead of those that classes seem to define
		s.fields = all
	}
	return s
}

func scanned(text string) *scan {
	s := &scan{first: map[string]int{}, top: map[string]int{}, typers: map[string]string{}, assigned: map[string][]int{}, passed: map[string][]passing{}}
	for _, m := range defined.FindAllStringSubmatchIndex(text, -1) {
		s.functions = append(s.functions, span{name: text[m[2]:m[3]], start: m[0], end: m[1]})
	}
	for _, m := range topFunction.FindAllStringSubmatchIndex(text, -1) {
		s.tops = append(s.tops, span{name: text[m[2]:m[3]], start: m[0], end: m[1], bodyFrom: decoratedFrom(text, m[0])})
	}
	index(s.functions, s.first, len(text))
	index(s.tops, s.top, len(text))
	s.flags(text)
	s.commands(text)
	return s
}

// index records the first span with each name, and where each span ends.
func index(all []span, first map[string]int, end int) {
	for i := range all {
		if all[i].next = end; i+1 < len(all) {
			all[i].next = all[i+1].start
		}
		if _, known := first[all[i].name]; !known {
			first[all[i].name] = i
		}
	}
}

// decoratedFrom returns where the decorators of a definition begin.
func decoratedFrom(text string, at int) int {
	from := max(0, at-MaxCall)
	before := strings.LastIndex(text[from:at], "\n\n")
	if before >= 0 && strings.HasPrefix(strings.TrimLeft(text[from+before:at], "\n"), "@") {
		return from + before
	}
	return at
}

// flags records the arguments that the file defines.
func (s *scan) flags(text string) {
	for _, m := range addsArgument.FindAllStringSubmatchIndex(text, maxOptions) {
		s.arguments = append(s.arguments, placedFlag{m[0], LastName(text[m[2]:m[3]]), argparseFlag(ArgumentsOf(text, m[1]-1))})
	}
	for _, m := range clickOption.FindAllStringSubmatchIndex(text, maxOptions) {
		s.options = append(s.options, placedFlag{m[0], "", clickFlag(text[m[2]:m[3]], ArgumentsOf(text, m[1]-1))})
	}
	required := map[string]bool{}
	for _, r := range abslRequired.FindAllStringSubmatch(text, maxOptions) {
		for _, q := range quotedName.FindAllStringSubmatch(r[1], maxOptions) {
			required["--"+q[1]+q[2]] = true
		}
	}
	for _, m := range abslFlag.FindAllStringSubmatchIndex(text, maxOptions) {
		a := ArgumentsOf(text, m[1]-1)
		g := Option{Name: "--" + Literal(Given(a, "name", 0)), Value: Literal(Given(a, "default", 1)), Boolean: strings.HasPrefix(text[m[2]:m[3]], "bool"), Joined: true}
		g.Required = required[g.Name]
		s.absl = append(s.absl, placedFlag{m[0], "", g})
	}
	if parsesClass.MatchString(text) {
		for _, m := range dataclassArgs.FindAllStringSubmatchIndex(text, maxOptions) {
			for _, g := range fieldFlags(text[m[4]:m[5]]) {
				if g.Name = argumentOf(g.Name, text); len(s.fields) < maxOptions {
					s.fields = append(s.fields, placedFlag{m[0], "", g})
				}
			}
		}
	}
	s.docoptFlags(text)
	for _, all := range []*[]placedFlag{&s.arguments, &s.options, &s.absl, &s.fields} {
		*all = slices.DeleteFunc(*all, func(g placedFlag) bool { return strings.Trim(g.Name, "-") == "" })
	}
}

var quotedName = pattern.MustCompile(`"([^"\n]*)"|'([^'\n]*)'`)

// LastName returns what follows the last dot of a name.
func LastName(dotted string) string { return dotted[strings.LastIndex(dotted, ".")+1:] }

// commands records how the file defines commands.
func (s *scan) commands(text string) {
	for _, m := range commandAt.FindAllStringSubmatchIndex(text, maxCommands) {
		i := sort.Search(len(s.functions), func(i int) bool { return s.functions[i].start >= m[1] })
		if i == len(s.functions) {
			break
		}
		function := s.functions[i]
		d := decorator{owner: strings.TrimSuffix(text[m[2]:m[3]], "."), kind: text[m[4]:m[5]], function: function.name}
		if m[6] < m[7] {
			d.arguments = ArgumentsOf(text, m[6])
		}
		d.flags = s.within(m[0], function.start)
		if d.owner != "click" && strings.Contains(text, "yper") {
			d.flags = s.parameters(text, d.function, false)
		}
		s.decorators = append(s.decorators, d)
	}
	for _, m := range typerNamed.FindAllStringSubmatchIndex(text, maxCommands) {
		s.typers[text[m[2]:m[3]]] = Literal(Given(ArgumentsOf(text, m[4]), "name", -1))
	}
	for _, m := range addsObject.FindAllStringSubmatchIndex(text, maxCommands) {
		s.adds = append(s.adds, addition{text[m[2]:m[3]], text[m[4]:m[5]], ArgumentsOf(text, m[6])})
	}
	for _, m := range makesSubparser.FindAllStringSubmatchIndex(text, 2*maxCommands) {
		p := subparser{at: m[1], owner: text[m[4]:m[5]], kind: text[m[6]:m[7]], arguments: ArgumentsOf(text, m[8])}
		if m[2] >= 0 {
			p.variable = text[m[2]:m[3]]
		}
		s.subparsers = append(s.subparsers, p)
	}
	if len(s.subparsers) == 0 {
		return
	}
	for _, m := range assignedAt.FindAllStringSubmatchIndex(text, -1) {
		s.assigned[text[m[2]:m[3]]] = append(s.assigned[text[m[2]:m[3]]], m[0])
	}
	for _, m := range passedAt.FindAllStringSubmatchIndex(text, -1) {
		s.passed[text[m[4]:m[5]]] = append(s.passed[text[m[4]:m[5]]], passing{m[0], text[m[2]:m[3]]})
	}
}

// within returns the arguments that are defined between two places of the file.
func (s *scan) within(from, to int) []Option {
	var out []Option
	for _, all := range [][]placedFlag{s.arguments, s.options, s.absl, s.fields, s.docopt} {
		i := sort.Search(len(all), func(i int) bool { return all[i].at >= from })
		for ; i < len(all) && all[i].at < to && len(out) < MaxFlags; i++ {
			out = append(out, all[i].Option)
		}
	}
	return out
}

// until returns where a variable stops referring to a parser: where it is next assigned, or where the next function
// begins.
func (s *scan) until(variable string, at int) int {
	end := int(^uint(0) >> 1)
	if all := s.assigned[variable]; len(all) > 0 {
		if i := sort.SearchInts(all, at); i < len(all) {
			end = all[i]
		}
	}
	if i := sort.Search(len(s.functions), func(i int) bool { return s.functions[i].start >= at }); i < len(s.functions) {
		end = min(end, s.functions[i].start)
	}
	return end
}

// parameters returns the arguments that typer or fire derives from the parameters of a function.
func (s *scan) parameters(text, name string, fire bool) []Option {
	if i, ok := s.first[name]; ok {
		return s.parametersOf(i, text, fire)
	}
	return nil
}

func (s *scan) parametersOf(i int, text string, fire bool) []Option {
	at := s.functions[i].end
	if at >= len(text) || text[at] != '(' {
		return nil
	}
	var out []Option
	for _, part := range pytext.Parts(text[at:min(len(text), at+4*MaxCall)]) {
		if g, ok := parameterFlag(strings.TrimSpace(part), fire); ok && len(out) < MaxFlags {
			out = append(out, g)
		}
	}
	return out
}

// isMethod reports whether a function is a public method.
func (d span) isMethod(text string) bool {
	line := text[d.start:d.end]
	indent := len(line) - len(strings.TrimLeft(line, " \t"))
	return indent > 0 && indent <= 4 && d.name[0] >= 'a' && d.name[0] <= 'z' && strings.HasPrefix(text[d.end:], "(self")
}
