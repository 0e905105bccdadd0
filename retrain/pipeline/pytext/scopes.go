package pytext

import (
	"regexp"
	"slices"
	"strings"
)

// Scopes says which values the names of a program have at its places.
type Scopes struct {
	text string
	all  []statement
	sets map[string][]assignment
}

// assignment is how a statement sets a name. Its value is not known without code.
type assignment struct {
	statement int
	code      int  // where it begins, 0 for none
	changes   bool // the object that has the name, or the name of the module
	global    bool
}

// Known returns whether the condition of a block is true, 1, or false, -1; 0 if that is not known. The block of a
// function is true if it starts with the program; its condition begins with def.
type Known func(condition string, at int) int

// Use is a place where names are used. Callers are the programs that may call its functions.
type Use struct {
	At      int
	Known   Known
	Callers []string
}

const targets = `([A-Za-z_]\w*(?:[ \t]*\.[ \t]*[A-Za-z_]\w*)*)`

var (
	setsOne  = regexp.MustCompile(`^` + targets + `[ \t]*(?::[^=\n]+)?(=)[ \t]*(?:[^=]|$)`)
	computes = regexp.MustCompile(`^` + targets + `[ \t]*(?:\*\*|//|<<|>>|[-+*/%@&|^])=`)
	changes  = regexp.MustCompile(`^(?:del[ \t]+)?` + targets + `(?:[ \t]*\[.*\][ \t]*(?:\*\*|//|[-+*/%|&^])?=(?:[^=]|$)|\.(?:update|pop|popitem|setdefault|clear|append|extend|insert|remove)\()`)
	setsMany = regexp.MustCompile(`^(?:(?:async[ \t]+)?for[ \t]+(.+?)[ \t]+in\b|global[ \t]+(.+)$|del[ \t]+([\w, \t]+)$|([(\[]?[\w.* \t]+,[\w.,*() \t\]]*)=(?:[^=]|$))`)
	target   = regexp.MustCompile(targets)
	begins   = regexp.MustCompile(`^(?:async[ \t]+)?(\w+)[ \t]*`)
	spaces   = strings.NewReplacer(" ", "", "\t", "")
)

// ScopesOf reads a program without comments.
func ScopesOf(text string) *Scopes {
	s := &Scopes{text: text, all: statements(text), sets: map[string][]assignment{}}
	for i, line := range s.all {
		code := text[line.at:min(line.end, line.at+maxCode)]
		s.assigns(code, assignment{statement: i, code: line.at})
	}
	return s
}

// assigns notes the names that the code of a statement sets.
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

// at returns the last statement that begins at a place or before it, -1 for none, and the number of all after the last.
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

// keyword returns what a statement begins with, and the rest.
func (s *Scopes) keyword(i int) (word, rest string) {
	code := s.text[s.all[i].at:s.all[i].end]
	m := begins.FindStringSubmatchIndex(code)
	if m == nil {
		return "", code
	}
	return code[m[2]:m[3]], code[m[1]:]
}

// function returns the innermost function around a statement, -1 for none.
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

// Runs returns 1 if the statement at a place runs when the program starts, -1 if not, 0 if that is not known.
func (s *Scopes) Runs(u Use) int {
	if i := s.at(u.At); i >= 0 && i < len(s.all) {
		return s.runs(i, -1, u.Known)
	}
	return 0
}

// runs returns whether a statement runs if another does, -1 for none.
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

// holds returns whether a block runs, which another statement is not in.
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

// maxBranches bounds the branches before one.
const maxBranches = 50

// otherwise returns whether none of the branches before one runs.
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
			return out // of a loop, or what is tried
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

// Value is where a name has its value from, without code if only the program can compute it: also if it may have one
// value or another.
type Value struct {
	Code string
	At   int
	Of   int // which of the callers has the code
}

// maxAssignments bounds those of a name that are looked at: a name with more has no known value.
const maxAssignments = 100

// Value returns where a name has its value from at a place, false if nothing sets it there. A name with dots is one of an
// object, which all functions may set.
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

// next returns the value of a name after an assignment, by whether that runs. If it may run or not, the value is known if
// it is the one before, or without it there would be none.
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

// isLocal reports whether a name in a function is none of the module.
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

var parameterAt = regexp.MustCompile(`^\s*\**(\w+)\s*(?::[^=]*)?(=?)\s*`)

// maxHeader bounds the parameters of a function, in bytes.
const maxHeader = 4000

// parameter returns the value of a function's parameter if the function is called once: that of the call, or else the
// default.
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

// given returns how many calls of a function may set its parameter, and the value from the last of them.
func (s *Scopes) given(function, index int, name string, callers []string) (v Value, n int) {
	_, of := s.keyword(function)
	of, _, _ = strings.Cut(of, "(")
	method := false
	if class := s.all[function].in; class >= 0 {
		if word, rest := s.keyword(class); word == "class" {
			method = true
			index-- // the object
			if of == "__init__" {
				of = target.FindString(rest)
			}
		}
	}
	calls := regexp.MustCompile(`\b(def[ \t]+|class[ \t]+)?` + regexp.QuoteMeta(strings.TrimSpace(of)) + `\(`)
	for caller, text := range callers {
		for _, m := range calls.FindAllStringSubmatchIndex(text, maxAssignments) {
			if m[2] >= 0 || !method && caller == 0 && m[0] > 0 && text[m[0]-1] == '.' { // it is another one
				continue
			}
			if code, at, passed := passes(text[m[1]-1:min(len(text), m[1]+maxHeader)], index, name); passed {
				v, n = Value{code, m[1] - 1 + at, caller}, n+1
			}
		}
	}
	return v, n
}

// passes reports whether arguments include one of a name or at a position, and where its code is, "" if others may.
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
