package pytext

import (
	"regexp"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

// Scopes resolves which values the names of a program have at a place in it.
type Scopes struct {
	text string
	all  []statement
	sets map[string][]assignment
}

// assignment is a statement that sets a name. Without code, the value is unknown.
type assignment struct {
	statement int
	code      int  // where the code of the value begins, 0 if unknown
	changes   bool // whether it changes the object that the name refers to, or declares a global name
	global    bool
}

// Known returns 1 if the condition of a block is true, -1 if it is false, and 0 if this is unknown. The condition of a
// function is its header, which begins with def; it is true if the program calls the function when it starts.
type Known func(condition string, at int) int

// Use is a place where names are used. Callers are the sources of the programs that may call its functions.
type Use struct {
	At      int
	Known   Known
	Callers []string
}

const targets = `([A-Za-z_]\w*(?:[ \t]*\.[ \t]*[A-Za-z_]\w*)*)`

var (
	setsOne  = pattern.MustCompile(`^` + targets + `[ \t]*(?::[^=\n]+)?(=)[ \t]*(?:[^=]|$)`)
	computes = pattern.MustCompile(`^` + targets + `[ \t]*(?:\*\*|//|<<|>>|[-+*/%@&|^])=`)
	changes  = pattern.MustCompile(`^(?:del[ \t]+)?` + targets + `(?:[ \t]*\[.*\][ \t]*(?:\*\*|//|[-+*/%|&^])?=(?:[^=]|$)|\.(?:update|pop|popitem|setdefault|clear|append|extend|insert|remove)\()`)
	setsMany = pattern.MustCompile(`^(?:(?:async[ \t]+)?for[ \t]+(.+?)[ \t]+in\b|global[ \t]+(.+)$|del[ \t]+([\w, \t]+)$|([(\[]?[\w.* \t]+,[\w.,*() \t\]]*)=(?:[^=]|$))`)
	target   = pattern.MustCompile(targets)
	begins   = pattern.MustCompile(`^(?:async[ \t]+)?(\w+)[ \t]*`)
	spaces   = strings.NewReplacer(" ", "", "\t", "")
)

// ScopesOf parses a program without comments.
func ScopesOf(text string) *Scopes {
	s := &Scopes{text: text, all: statements(text), sets: map[string][]assignment{}}
	for i, line := range s.all {
		code := text[line.at:min(line.end, line.at+maxCode)]
		s.assigns(code, assignment{statement: i, code: line.at})
	}
	return s
}

// assigns records the names that a statement sets.
func (s *Scopes) assigns(code string, a assignment) {
	add := func(name string, a assignment) {
		name = spaces.Replace(name)
		s.sets[name] = append(s.sets[name], a)
	}
	if m := setsOne.FindStringSubmatchIndex(code); m != nil {
		a.code += m[5]
		add(code[m[2]:m[3]], a)
		return
	}
	a.code = 0
	if m := computes.FindStringSubmatch(code); m != nil {
		add(m[1], a)
	} else if m := changes.FindStringSubmatch(code); m != nil {
		a.changes = true
		for name := m[1]; name != ""; name = name[:max(0, strings.LastIndexByte(name, '.'))] {
			add(name, a)
		}
	} else if m := setsMany.FindStringSubmatch(code); m != nil {
		a.changes, a.global = m[2] != "", m[2] != ""
		for _, name := range target.FindAllString(m[1]+m[2]+m[3]+m[4], maxMatches) {
			add(name, a)
		}
	}
}

// at returns the index of the last statement that begins at or before a place, or -1. For a place after the end of the
// text, it returns the number of statements.
func (s *Scopes) at(place int) int {
	if place >= len(s.text) {
		return len(s.all)
	}
	place += len(s.text[place:]) - len(strings.TrimLeft(s.text[place:], blanks))
	i, found := slices.BinarySearchFunc(s.all, place, func(a statement, place int) int { return a.at - place })
	if !found {
		i--
	}
	return i
}

// keyword returns the first word of a statement, and what follows it.
func (s *Scopes) keyword(i int) (word, rest string) {
	code := s.text[s.all[i].at:s.all[i].end]
	m := begins.FindStringSubmatchIndex(code)
	if m == nil {
		return "", code
	}
	return code[m[2]:m[3]], code[m[1]:]
}

// function returns the innermost function around a statement, or -1.
func (s *Scopes) function(i int) int { return s.around(i, "def") }

func (s *Scopes) around(i int, keyword string) int {
	for i >= 0 && i < len(s.all) {
		if i = s.all[i].in; i >= 0 {
			if word, _ := s.keyword(i); word == keyword {
				return i
			}
		}
	}
	return -1
}

// Rest returns what follows a place in its statement.
func (s *Scopes) Rest(place int) string {
	if i := s.at(place); i >= 0 && i < len(s.all) && place < s.all[i].end {
		return strings.TrimSpace(s.text[place:s.all[i].end])
	}
	return ""
}

// Runs returns 1 if the statement at a place runs when the program starts, -1 if it does not, and 0 if this is unknown.
func (s *Scopes) Runs(u Use) int {
	if i := s.at(u.At); i >= 0 && i < len(s.all) {
		return s.runs(i, -1, u.Known)
	}
	return 0
}

// runs returns whether a statement runs, provided that another one does; -1 stands for no other statement.
func (s *Scopes) runs(i, other int, known Known) int {
	out := 1
	for block := s.all[i].in; block >= 0; block = s.all[block].in {
		if s.isIn(other, block) {
			return out
		}
		out = min(out, s.holds(block, other, known))
	}
	return out
}

func (s *Scopes) isIn(i, block int) bool {
	if i >= len(s.all) {
		return false
	}
	for i > block {
		i = s.all[i].in
	}
	return i == block && i >= 0
}

// holds returns whether a block that does not contain another statement runs.
func (s *Scopes) holds(block, other int, known Known) int {
	word, condition := s.keyword(block)
	at := s.all[block].at
	switch word {
	case "if", "elif":
		out := known(condition, at)
		if word == "elif" {
			out = min(out, s.otherwise(block, other, known))
		}
		return out
	case "else":
		return s.otherwise(block, other, known)
	case "except":
		return -1
	case "case":
		return 0
	case "def":
		return known("def "+condition, at)
	}
	return 1
}

// maxBranches bounds the number of preceding branches that are examined.
const maxBranches = 50

// otherwise returns whether none of the preceding branches runs.
func (s *Scopes) otherwise(block, other int, known Known) int {
	out := 1
	for i, n := block-1, 0; i >= 0 && n < maxBranches; n++ {
		for i > s.all[block].in && s.all[i].in != s.all[block].in {
			i = s.all[i].in
		}
		if i <= s.all[block].in {
			return 0
		}
		word, condition := s.keyword(i)
		switch {
		case word != "if" && word != "elif":
			return out // the else of a loop or try statement
		case s.isIn(other, i):
			return -1
		}
		if out = min(out, -known(condition, s.all[i].at)); word == "if" {
			return out
		}
		i--
	}
	return 0
}

// Value is the source of a name's value. Code is "" if the value depends on how the program runs.
type Value struct {
	Code string
	At   int
	Of   int // index of the caller that contains Code
}

// maxAssignments bounds the number of assignments to a name. A name with more has no known value.
const maxAssignments = 100

// Value returns the source of a name's value at a place, or false if nothing sets the name there. A name with dots is
// an attribute, which any function may set.
func (s *Scopes) Value(name string, u Use) (v Value, found bool) {
	place, sets := s.at(u.At), s.sets[name]
	if len(sets) > maxAssignments {
		return v, true
	}
	dotted, own := strings.Contains(name, "."), strings.HasPrefix(name, "self.")
	for scope, first := s.function(place), s.function(place); ; scope = s.function(scope) {
		if scope >= 0 && !dotted {
			v, found = s.parameter(scope, name, u.Callers)
		}
		for _, a := range sets {
			within := s.function(a.statement)
			if within == scope && (a.statement < place || scope < 0 && first >= 0) || a.changes && within != scope && !s.isLocal(within, name) {
				v, found = s.next(v, found, a, s.runs(a.statement, place, u.Known), dotted && !own)
			}
		}
		if found || scope < 0 {
			break
		}
	}
	if found || !dotted {
		return v, found
	}
	for _, a := range sets {
		if !own || s.around(a.statement, "class") == s.around(place, "class") {
			v, found = s.next(v, found, a, min(0, s.runs(a.statement, place, u.Known)), !own)
		}
	}
	return v, found
}

// next returns the value of a name after an assignment. If it is uncertain whether the assignment runs, the value is
// known only if it does not change, or if the name had no value before.
func (s *Scopes) next(before Value, found bool, a assignment, runs int, elsewhere bool) (Value, bool) {
	after := Value{}
	if a.code > 0 {
		after = Value{Code: strings.TrimSpace(s.text[a.code:s.all[a.statement].end]), At: a.code}
	}
	switch {
	case runs < 0:
		return before, found
	case runs == 0 && (found && before.Code != after.Code || !found && elsewhere):
		return Value{}, true
	}
	return after, true
}

// isLocal reports whether a name in a function does not refer to the module's name.
func (s *Scopes) isLocal(function int, name string) bool {
	local := false
	if function >= 0 {
		_, local = s.parameter(function, name, nil)
	}
	for _, a := range s.sets[name] {
		if s.function(a.statement) == function {
			if a.global {
				return false
			}
			local = local || !a.changes
		}
	}
	return local
}

var parameterAt = pattern.MustCompile(`^\s*\**(\w+)\s*(?::[^=]*)?(=?)\s*`)

// maxHeader bounds the length in bytes of a function's parameters.
const maxHeader = 4000

// parameter returns the value of a function's parameter, if it is certain: the argument of the only call that passes
// it, or the default if none does.
func (s *Scopes) parameter(function int, name string, callers []string) (v Value, found bool) {
	line := s.all[function]
	open := strings.IndexByte(s.text[line.at:line.end], '(')
	if open < 0 {
		return v, false
	}
	at := line.at + open + 1
	for i, part := range Parts(s.text[at-1 : min(line.end, at+maxHeader)]) {
		m := parameterAt.FindStringSubmatchIndex(part)
		if m != nil && part[m[2]:m[3]] == name {
			given, calls := s.given(function, i, name, callers)
			switch {
			case calls == 1:
				v = given
			case calls == 0 && m[4] < m[5]:
				v = Value{Code: strings.TrimSpace(part[m[1]:]), At: at + m[1]}
			}
			return v, true
		}
		at += len(part) + 1
	}
	return v, false
}

// given returns the number of calls that may set a function's parameter, and the argument of the last of them.
func (s *Scopes) given(function, index int, name string, callers []string) (v Value, n int) {
	_, of := s.keyword(function)
	of, _, _ = strings.Cut(of, "(")
	method := false
	if class := s.all[function].in; class >= 0 {
		if word, rest := s.keyword(class); word == "class" {
			method = true
			index-- // self
			if of == "__init__" {
				of = target.FindString(rest)
			}
		}
	}
	calls := regexp.MustCompile(`\b(def[ \t]+|class[ \t]+)?` + regexp.QuoteMeta(strings.TrimSpace(of)) + `\(`)
	for caller, text := range callers {
		for _, m := range calls.FindAllStringSubmatchIndex(text, maxAssignments) {
			if m[2] >= 0 || !method && caller == 0 && m[0] > 0 && text[m[0]-1] == '.' { // another function or method
				continue
			}
			if code, at, passed := passes(text[m[1]-1:min(len(text), m[1]+maxHeader)], index, name); passed {
				v, n = Value{code, m[1] - 1 + at, caller}, n+1
			}
		}
	}
	return v, n
}

// passes reports whether arguments include the one with a name or position, and returns its code, which is "" if an
// unpacked argument may include it.
func passes(arguments string, index int, name string) (code string, at int, passed bool) {
	at = 1
	for i, part := range Parts(arguments) {
		key, value, keyword := strings.Cut(strings.TrimSpace(part), "=")
		switch keyword = keyword && !strings.HasPrefix(value, "="); {
		case strings.HasPrefix(key, "*"):
			return "", 0, true
		case keyword && strings.TrimSpace(key) == name:
			return strings.TrimSpace(value), at, true
		case !keyword && i == index && key != "":
			return strings.TrimSpace(part), at, true
		}
		at += len(part) + 1
	}
	return "", 0, false
}
