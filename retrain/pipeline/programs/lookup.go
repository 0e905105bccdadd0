package programs

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/literals"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
)

// maxLookups and maxLooked bound the names that are looked up for one use, and how far a file is looked into.
const maxLookups, maxLooked = 200, 256 << 10

// lookup finds the values that the names of programs have when the best training starts: constants, those of other files
// of the repository, attributes of classes, parameters, and arguments.
type lookup struct {
	*Finder
	program *program
	known   map[string]*literals.Value // by file and name; nil for none
	looked  int                        // names
	place   use                        // where the names are used

	hyperparameters []Hyperparameter
}

// use is a place in the code of a file.
type use struct {
	file string
	at   int
}

func (f *Finder) lookup() *lookup {
	return &lookup{Finder: f, program: &f.trained[0]}
}

// names returns the values of the names that a file uses at a place.
func (l *lookup) names(file string, at int) literals.Names {
	l.place, l.known = use{file, at}, map[string]*literals.Value{}
	return l.of(file)
}

func (l *lookup) of(file string) literals.Names {
	return func(name string) (literals.Value, bool) { return l.named(file, name) }
}

func (l *lookup) named(file, name string) (literals.Value, bool) {
	key := file + "\n" + name
	v, ok := l.known[key]
	if !ok && l.looked < maxLookups {
		l.looked++
		l.known[key] = nil // also while it is looked for
		if found, ok := l.find(file, name); ok {
			v = &found
			l.known[key] = v
		}
	}
	if v == nil {
		return literals.Value{}, false
	}
	return *v, true
}

func (l *lookup) find(file, name string) (literals.Value, bool) {
	first, rest, dotted := strings.Cut(name, ".")
	if to, ok := l.imports(file)[first]; ok {
		switch {
		case to.name != "" && dotted:
			return l.named(to.file, to.name+"."+rest)
		case to.name != "":
			return l.named(to.file, to.name)
		case dotted:
			return l.named(to.file, rest)
		}
		return literals.Value{}, false
	}
	if code, ok := l.assigned(file, l.text[file], name); ok {
		if readsSettings.MatchString(code) {
			return l.settings(file, code)
		}
		return literals.Of(code, l.of(file))
	}
	if !dotted {
		return literals.Value{}, false
	}
	return l.attribute(file, first, rest)
}

var madeOf = regexp.MustCompile(`^([A-Za-z_][\w.]*)\(`)

// attribute returns the value of an attribute of a class or of its object, or of an argument of the program.
func (l *lookup) attribute(file, of, name string) (literals.Value, bool) {
	if body := l.body(file, of); body != "" {
		if code, ok := l.assigned("", body, name); ok {
			return literals.Of(code, l.of(file))
		}
	}
	if v, ok := l.named(file, of); ok && v.Kind == literals.Dict {
		for key := range strings.SplitSeq(name, ".") {
			v, ok = v.Member(key)
		}
		return v, ok
	}
	if code, ok := l.assigned(file, l.text[file], of); ok {
		m := madeOf.FindStringSubmatch(code)
		if m != nil {
			if v, ok := l.named(file, m[1]+"."+name); ok {
				return v, true
			}
		}
	}
	return l.argument(file, name)
}

// argument returns the value of an argument of the program: the one that a page gives it, or else its default.
func (l *lookup) argument(file, name string) (literals.Value, bool) {
	flags := l.program.flags
	i := slices.IndexFunc(flags, func(x option) bool { return x.key() == strings.ToLower(name) })
	if i < 0 {
		return literals.Value{}, false
	}
	x, text := flags[i], l.program.given(l.program.args, flags[i])
	switch {
	case x.boolean && has(l.program.args, x):
		return literals.Value{Kind: literals.Bool, Number: 1}, !strings.HasPrefix(x.key(), "no_")
	case numberAlone.MatchString(text):
		return literals.Of(text, l.of(file))
	case text != "":
		return literals.Value{Kind: literals.String, Text: text}, true
	case x.code != "":
		return literals.Of(x.code, l.of(file))
	case x.value == "":
		return literals.Value{}, false
	case numberAlone.MatchString(x.value) || x.value == "True" || x.value == "False":
		return literals.Of(x.value, l.of(file))
	}
	return literals.Value{Kind: literals.String, Text: x.value}, true
}

// assigned returns the code that a name gets its value from in a text: where it is used, in the function there; else at
// the top; else as a default of the function's parameter; and else anywhere.
func (l *lookup) assigned(file, text, name string) (string, bool) {
	re := regexp.MustCompile(`(?m)^([ \t]*)` + regexp.QuoteMeta(name) + `[ \t]*(?::[^=\n]+)?=[ \t]*`)
	from, to := 0, 0
	if file == l.place.file {
		from, to = l.function(file, l.place.at), l.place.at
	}
	local, top, first := "", "", ""
	text = text[:min(len(text), maxLooked)]
	for _, m := range re.FindAllStringSubmatchIndex(text, maxMatches) {
		code := expressionAt(text, m[1])
		switch {
		case strings.HasPrefix(code, "="): // compared
			continue
		case m[0] >= from && m[0] < to:
			local = code
		case m[2] == m[3] && top == "":
			top = code
		}
		if first == "" {
			first = code
		}
	}
	for _, code := range []string{local, top, l.parameter(file, name, from), first, l.parameter(file, name, -1)} {
		if code != "" {
			return code, true
		}
	}
	return "", false
}

// function returns where the function begins that a place of a file is in, 0 for none.
func (l *lookup) function(file string, at int) int {
	begin := 0
	for _, s := range l.scan(file).functions {
		if s.start < at {
			begin = s.start
		}
	}
	return begin
}

// parameter returns the default of a parameter of the function that begins at a place, or with -1 of any.
func (l *lookup) parameter(file, name string, from int) string {
	for _, s := range l.scan(file).functions {
		text := l.text[file]
		if from >= 0 && s.start != from || s.end >= len(text) || text[s.end] != '(' {
			continue
		}
		for _, part := range parts(text[s.end:min(len(text), s.end+maxCall)]) {
			if m := parameter.FindStringSubmatch(strings.TrimSpace(part)); m != nil && m[1] == name && m[3] != "" {
				return m[3]
			}
		}
	}
	return ""
}

// expressionAt returns the expression that begins at a place: up to the end of the line that no bracket is open in.
func expressionAt(text string, at int) string {
	text = text[at:min(len(text), at+maxCall)]
	depth, quote := 0, byte(0)
	for i := range len(text) {
		switch c := text[i]; {
		case quote != 0:
			if c == quote || c == '\n' {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case strings.IndexByte("([{", c) >= 0:
			depth++
		case strings.IndexByte(")]}", c) >= 0:
			depth--
		case c == '\n' && depth <= 0:
			return strings.TrimSpace(text[:i])
		}
	}
	return strings.TrimSpace(text)
}

var (
	// makesNamed is how a program makes an environment whose id is the value of a name.
	makesNamed = regexp.MustCompile(`(?:\bmake|\bmake_vec|make_vec_env|make_atari_env|\.environment)\(\s*(?:env(?:_id)?\s*=\s*|id\s*=\s*)?([A-Za-z_][\w.]*(?:\[["']\w+["']\])*)\s*[,)]`)
	idAlone    = regexp.MustCompile(`^(?:[\w.]+:)?(?:[\w.-]+/)?[A-Za-z][\w.-]*-v[0-9]+$`)
)

// ofSteps is an argument for the steps of a training.
var ofSteps = regexp.MustCompile(`^(?:(?:total|n|num)_)?(?:env_|train_|training_|environment_)?(?:timesteps|steps|frames)$|^max_(?:timesteps|train(?:ing)?_steps)$`)

// Environment returns the id of the environment that the best training makes by a name for it, "" for none.
func (f *Finder) Environment() string {
	if len(f.trained) == 0 {
		return ""
	}
	l := f.lookup()
	text := f.text[l.program.file]
	for _, m := range makesNamed.FindAllStringSubmatchIndex(text, 50) {
		v, ok := literals.Of(text[m[2]:m[3]], l.names(l.program.file, m[0]))
		if ok && v.Kind == literals.String && idAlone.MatchString(v.Text) {
			return v.Text
		}
	}
	return ""
}

// Steps returns the steps of the best training if names have them that the file of the program does not define; "" for
// none.
func (f *Finder) Steps() string {
	if len(f.trained) == 0 {
		return ""
	}
	l := f.lookup()
	file := l.program.file
	for _, x := range l.program.flags {
		n := literals.NumberOf(l.program.given(l.program.args, x), l.names(file, 0))
		if ofSteps.MatchString(x.key()) && n >= 1 && n < 1e13 {
			return strconv.FormatInt(int64(n), 10)
		}
	}
	return pytext.TotalOf(f.text[file], func(at int) literals.Names { return l.names(file, at) })
}
