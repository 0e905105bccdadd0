package modules

import (
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
)

// The limits of what is taken of one file, so that the cost of a hostile one grows no faster than its size.
const (
	maxCommands = 200
	maxOptions  = 1000
	MaxFlags    = 300 // of one program
	MaxMatches  = 1000
	maxAround   = 40 // files that are read together for the commands of a program
)

// scan is what a file defines. It is made once for each file, and each pattern reads the file once.
type scan struct {
	functions []span
	first     map[string]int // of the functions of a name
	tops      []span         // functions and classes that are in no other
	top       map[string]int // the first of a name

	arguments, options, absl, fields, docopt []placedFlag

	decorators []decorator
	typers     map[string]string // words of objects of typer, by variable
	adds       []addition
	subparsers []subparser
	assigned   map[string][]int // where a variable becomes a parser or another value
	passed     map[string][]passing
}

// span is a named part of a text.
type span struct {
	name           string
	start, end     int // of its first line; of what defines it, up to its name
	bodyFrom, next int // with decorators; where the next begins
}

// placedFlag is an argument that is defined at a place.
type placedFlag struct {
	at    int
	owner string // the last name of the parser
	Option
}

// decorator makes a command, or a group of them, of a function.
type decorator struct {
	owner, kind string
	arguments   []Argument
	function    string
	flags       []Option
}

// addition puts an object below another.
type addition struct {
	owner, kind string
	arguments   []Argument
}

type subparser struct {
	at                    int
	variable, owner, kind string
	arguments             []Argument
}

// passing is a call of a function with a parser.
type passing struct {
	at       int
	function string
}

var (
	assignedAt = regexp.MustCompile(`(?m)^[ \t]*(\w+)[ \t]*=[^=]`)
	passedAt   = regexp.MustCompile(`(?m)^[ \t]*(\w+)\((\w+)\b`)
)

// scan returns what a file defines.
func (f *Files) scan(file string) *scan {
	if s, ok := f.scanned[file]; ok {
		return s
	}
	s := scanned(f.Text[file])
	f.scanned[file] = s
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

// index notes the first span of each name, and where each ends.
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

// flags takes the arguments that the file defines.
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
				if len(s.fields) < maxOptions {
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

var quotedName = regexp.MustCompile(`"([^"\n]*)"|'([^'\n]*)'`)

// LastName returns the name after the last dot, or all of one without.
func LastName(dotted string) string { return dotted[strings.LastIndex(dotted, ".")+1:] }

// commands takes how the file makes commands.
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

// within returns the arguments that a part of the file defines.
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

// until returns where a variable that has a parser stops having it: where it is assigned again, or the next function
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

// parameters are the flags of the first function of a name, which typer or fire makes a command of.
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

// isMethod reports whether a function is a method of a class that people may call.
func (d span) isMethod(text string) bool {
	line := text[d.start:d.end]
	indent := len(line) - len(strings.TrimLeft(line, " \t"))
	return indent > 0 && indent <= 4 && d.name[0] >= 'a' && d.name[0] <= 'z' && strings.HasPrefix(text[d.end:], "(self")
}
