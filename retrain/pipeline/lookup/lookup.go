package lookup

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/commandline"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/hydra"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/literals"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/modules"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
)

// maxLookups bounds the names that are evaluated per lookup, and maxLooked the bytes of a file that are examined.
const maxLookups, maxLooked = 200, 256 << 10

// Program is a program whose start is examined.
type Program struct {
	File  string
	Flags commandline.Flags
	Args  []string // with which it starts
	Page  string   // recommends the arguments, "" for none
}

// Lookup finds the values of names when a program starts: of constants, of names from other files of the repository, and
// of class attributes, parameters and arguments.
type Lookup struct {
	Source string // file of the value that was found last

	files   *modules.Files
	reader  hydra.Reader
	given   func() []hydra.Setting // the settings file in the command
	program Program
	known   map[named]*sourced        // nil if unknown
	looked  int                       // number of names
	read    map[string]*pytext.Scopes // by file and class

	conditions map[use]int // values of conditions, 0 if unknown

	imported        []string // files that the program imports
	hyperparameters []Hyperparameter
}

// New returns a lookup for a program. given returns the settings file in its command; it is called only when needed.
func New(files *modules.Files, reader hydra.Reader, given func() []hydra.Setting, p Program) *Lookup {
	return &Lookup{files: files, reader: reader, given: given, program: p, known: map[named]*sourced{}, read: map[string]*pytext.Scopes{}, conditions: map[use]int{}}
}

// use is a place in the code of a file.
type use struct {
	file string
	at   int
}

// sourced is a value with the file that sets it.
type sourced struct {
	literals.Value
	file string
}

// named is a name at a place.
type named struct {
	use
	name string
}

// Names returns the values of names at a place in a file.
func (l *Lookup) Names(file string, at int) literals.Names {
	return func(name string) (literals.Value, bool) { return l.named(use{file, at}, name) }
}

// of returns the place after all code of a file.
func (l *Lookup) of(file string) use { return use{file, len(l.files.Text[file])} }

func (l *Lookup) named(u use, name string) (literals.Value, bool) {
	key := named{u, name}
	v, ok := l.known[key]
	if !ok && l.looked < maxLookups {
		l.looked++
		l.known[key] = nil // in case it depends on itself
		if found, ok := l.find(u, name); ok {
			v = &sourced{found, l.Source}
			l.known[key] = v
		}
	}
	if v == nil {
		return literals.Value{}, false
	}
	l.Source = v.file
	return v.Value, true
}

func (l *Lookup) find(u use, name string) (literals.Value, bool) {
	first, rest, dotted := strings.Cut(name, ".")
	if to, ok := l.files.Imported(u.file)[first]; ok {
		switch {
		case to.Name != "" && dotted:
			return l.named(l.of(to.File), to.Name+"."+rest)
		case to.Name != "":
			return l.named(l.of(to.File), to.Name)
		case dotted:
			return l.named(l.of(to.File), rest)
		}
		return literals.Value{}, false
	}
	if v, ok := l.assigned(u, name); ok {
		file := l.fileOf(u.file, v)
		if l.readsSettings(file, v.Code) {
			return l.settings(file, v.Code)
		}
		l.Source = file
		return literals.Of(v.Code, l.Names(file, v.At))
	}
	if !dotted {
		return literals.Value{}, false
	}
	return l.attribute(u, first, rest)
}

var (
	madeOf = pattern.MustCompile(`^([A-Za-z_][\w.]*)\(`)
	alias  = pattern.MustCompile(`^[A-Za-z_]\w*$`)
)

// fileOf returns the file with the code of a value: the file that uses it, or the program that calls its function.
func (l *Lookup) fileOf(file string, v pytext.Value) string {
	if v.Of > 0 {
		return l.program.File
	}
	return file
}

// attribute returns the value of an attribute of a class or object, or of an argument of the program.
func (l *Lookup) attribute(u use, of, name string) (literals.Value, bool) {
	if body := l.files.Body(u.file, of); body != "" {
		if v, ok := l.scopes(u.file, of, body).Value(name, l.at(use{u.file, len(body)})); ok {
			return literals.Of(v.Code, l.Names(u.file, l.of(u.file).at))
		}
	}
	if v, ok := l.named(u, of); ok && v.Kind == literals.Dict {
		for key := range strings.SplitSeq(name, ".") {
			v, ok = v.Member(key)
		}
		return v, ok
	}
	if made, ok := l.assigned(u, of); ok {
		m, file := madeOf.FindStringSubmatch(made.Code), l.fileOf(u.file, made)
		if m != nil {
			if v, ok := l.named(use{file, made.At}, m[1]+"."+name); ok {
				return l.unlessGiven(file, made, len(m[0])-1, name, v)
			}
		}
		if alias.MatchString(made.Code) { // passed on by a call
			if v, ok := l.named(use{file, made.At}, made.Code+"."+name); ok {
				return v, ok
			}
		}
	}
	return l.argument(u, name)
}

// unlessGiven returns the value of an attribute of a new object: the keyword argument of that name, or else the default
// in the class unless a positional argument may set it.
func (l *Lookup) unlessGiven(file string, made pytext.Value, at int, name string, v literals.Value) (literals.Value, bool) {
	for _, a := range modules.ArgumentsOf(made.Code, at) {
		switch a.Key {
		case name:
			return literals.Of(a.Text, l.Names(file, made.At))
		case "":
			return literals.Value{}, false
		}
	}
	return v, true
}

// argument returns the value of an argument of the program: the one in the recommended command, or else the default.
func (l *Lookup) argument(u use, name string) (literals.Value, bool) {
	flags := l.program.Flags
	i := slices.IndexFunc(flags, func(x modules.Option) bool { return x.Key() == strings.ToLower(name) })
	if i < 0 {
		return literals.Value{}, false
	}
	x, text := flags[i], l.program.Flags.Given(l.program.Args, flags[i])
	l.Source = l.program.File
	if text != "" || commandline.Has(l.program.Args, x) {
		l.Source = cmp.Or(l.program.Page, l.program.File)
	}
	switch {
	case x.Boolean && commandline.Has(l.program.Args, x):
		return literals.Value{Kind: literals.Bool, Number: 1}, !strings.HasPrefix(x.Key(), "no_")
	case modules.NumberAlone.MatchString(text):
		return literals.Of(text, l.Names(u.file, u.at))
	case text != "":
		return literals.Value{Kind: literals.String, Text: text}, true
	case x.Code != "":
		return literals.Of(x.Code, l.Names(u.file, u.at))
	case x.Value == "":
		return literals.Value{}, false
	case modules.NumberAlone.MatchString(x.Value) || x.Value == "True" || x.Value == "False":
		return literals.Of(x.Value, l.Names(u.file, u.at))
	}
	return literals.Value{Kind: literals.String, Text: x.Value}, true
}

// at returns a place in a file in the form in which scopes resolve names.
func (l *Lookup) at(u use) pytext.Use {
	known := func(condition string, at int) int {
		c := use{u.file, at}
		holds, ok := l.conditions[c]
		if !ok {
			l.conditions[c] = 0 // in case it depends on itself
			holds = l.condition(c, condition)
			l.conditions[c] = holds
		}
		return holds
	}
	callers := []string{l.files.Text[u.file]}
	if u.file != l.program.File {
		callers = append(callers, l.files.Text[l.program.File])
	}
	return pytext.Use{At: u.at, Known: known, Callers: callers}
}

// scopes returns what sets the names of a file, or of a class in it.
func (l *Lookup) scopes(file, class, text string) *pytext.Scopes {
	key := file + "\n" + class
	s := l.read[key]
	if s == nil {
		s = pytext.ScopesOf(text[:min(len(text), maxLooked)])
		l.read[key] = s
	}
	return s
}

// assigned returns the source of a name's value at a place, or false if nothing sets the name there.
func (l *Lookup) assigned(u use, name string) (pytext.Value, bool) {
	return l.scopes(u.file, "", l.files.Text[u.file]).Value(name, l.at(u))
}

// Runs returns 1 if the code at a place in a file certainly runs when the program starts, 0 if this is unknown, and -1 if
// it does not run.
func (l *Lookup) Runs(file string, at int) int {
	return l.scopes(file, "", l.files.Text[file]).Runs(l.at(use{file, at}))
}
