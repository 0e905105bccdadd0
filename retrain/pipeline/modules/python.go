package modules

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
)

// Limits of what is read of a repository.
const (
	MaxKept = 32 << 20 // bytes of Python
	MaxCall = 4000     // bytes of a call's arguments
)

var (
	importLine   = regexp.MustCompile(`(?m)^[ \t]*(?:from[ \t]+(\.*[\w.]*)[ \t]+import[ \t]+([^\n;]+)|import[ \t]+([\w., ]+))`)
	topFunction  = regexp.MustCompile(`(?m)^(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)`)
	relativeFrom = regexp.MustCompile(`(?m)^[ \t]*from[ \t]+\.`)
	plainImport  = regexp.MustCompile(`(?m)^(?:from|import)[ \t]+(\w+)`)
	stringAlone  = regexp.MustCompile(`^[rRuUbB]?(?:"([^"\\]*)"|'([^'\\]*)')$`)
	keywordAlone = regexp.MustCompile(`^\s*(\w+)\s*=[^=]`)
)

// NumberAlone matches an expression that is only a number.
var NumberAlone = regexp.MustCompile(`^-?[0-9][0-9_]*(?:\.[0-9]*)?(?:e[+-]?[0-9]+)?$`)

// Argument is one of a call, or a parameter of a function: its keyword, "" for one by position, and its expression.
type Argument struct{ Key, Text string }

// ArgumentsOf returns the arguments of the call, or the parameters of the function, whose parenthesis is at an index.
func ArgumentsOf(text string, at int) []Argument {
	var out []Argument
	for _, part := range pytext.Parts(text[at:min(len(text), at+MaxCall)]) {
		part = strings.TrimSpace(part)
		switch m := keywordAlone.FindStringSubmatchIndex(part); {
		case part == "":
		case m != nil:
			_, value, _ := strings.Cut(part, "=")
			out = append(out, Argument{part[m[2]:m[3]], strings.TrimSpace(value)})
		default:
			out = append(out, Argument{"", part})
		}
	}
	return out
}

// Given returns the expression of a keyword, or the one at a position; "" without either.
func Given(arguments []Argument, key string, position int) string {
	for _, a := range arguments {
		if a.Key == key {
			return a.Text
		}
	}
	if position >= 0 && position < len(arguments) && arguments[position].Key == "" {
		return arguments[position].Text
	}
	return ""
}

// Printable reports whether a text is one line without characters that a person cannot see.
func Printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// Literal returns the value of an expression that is a string or a number, "" for any other.
func Literal(text string) string {
	text = strings.TrimSpace(text)
	if m := stringAlone.FindStringSubmatch(text); m != nil && Printable(m[1]+m[2]) {
		return m[1] + m[2]
	}
	if NumberAlone.MatchString(text) || text == "True" || text == "False" {
		return text
	}
	return ""
}

// Files are the Python files of a repository.
type Files struct {
	Text      map[string]string // their code without comments
	Order     []string          // of the files
	Kept      int               // bytes of all
	Nested    []string          // directories, with a slash at their end, that have packages of their own beside their packaging
	importing map[string]map[string]Origin

	scanned    map[string]*scan
	flagsOf    map[string][]Option
	parsersOf  map[string][]SubCommand
	firedOf    map[string][]SubCommand
	speakingOf map[string][]string
	registers  []string
}

// NewFiles returns no files. The reader of a repository adds their texts, and their names to the order.
func NewFiles() Files {
	return Files{
		Text: map[string]string{}, importing: map[string]map[string]Origin{}, scanned: map[string]*scan{}, flagsOf: map[string][]Option{},
		parsersOf: map[string][]SubCommand{}, firedOf: map[string][]SubCommand{}, speakingOf: map[string][]string{},
	}
}

// Roots are the directories that the image imports from.
var Roots = []string{"", "src/"}

// Module returns the file of a module, "" if it is none of the repository.
func (f *Files) Module(name string) string {
	base := strings.ReplaceAll(name, ".", "/")
	for _, root := range slices.Concat(Roots, f.Nested) {
		if file := f.under(root + base); file != "" {
			return file
		}
	}
	return ""
}

// under returns the file of a module by its path without an extension, "" for none.
func (f *Files) under(base string) string {
	for _, file := range []string{base + ".py", base + "/__init__.py"} {
		if f.Has(file) {
			return file
		}
	}
	return ""
}

// NameOf returns the name that a file is imported by, "" if none is possible.
func NameOf(file string) string {
	module := strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(file, "src/"), ".py"), "/__init__")
	module = strings.TrimSuffix(module, "/__main__")
	for part := range strings.SplitSeq(module, "/") {
		if !pytext.Identifier.MatchString(part) {
			return ""
		}
	}
	return strings.ReplaceAll(module, "/", ".")
}

// Origin is a name that a file imports from another of the repository.
type Origin struct{ File, Name string }

// Imported returns the names that a file imports from the repository, by the names that it has for them. A whole module
// has no name of its own.
func (f *Files) Imported(file string) map[string]Origin {
	if known, ok := f.importing[file]; ok {
		return known
	}
	out := map[string]Origin{}
	text := f.Text[file]
	for _, at := range importLine.FindAllStringSubmatchIndex(text, MaxMatches) {
		m := []string{"", Group(text, at, 1), Group(text, at, 2), Group(text, at, 3)}
		if strings.HasPrefix(m[2], "(") { // it may go on in the next lines
			m[2], _, _ = strings.Cut(text[at[4]:min(len(text), at[4]+MaxCall)], ")")
		}
		for item := range strings.SplitSeq(strings.Trim(m[2]+m[3], "() \n"), ",") {
			words := strings.Fields(item)
			if len(words) == 0 {
				continue
			}
			as := words[len(words)-1]
			if m[3] != "" {
				if from := f.moduleFor(file, words[0]); from != "" {
					out[as] = Origin{from, ""}
				}
				continue
			}
			from := absolute(file, m[1])
			if whole := f.moduleFor(file, from+"."+words[0]); whole != "" {
				out[as] = Origin{whole, ""}
			} else if of := f.moduleFor(file, from); of != "" && of != file {
				out[as] = Origin{of, words[0]}
			}
		}
	}
	f.importing[file] = out
	return out
}

// moduleFor returns the file of a module as a file imports it: one beside it, if the file is a script, or else one from
// the root of the repository; "" if it is none of the repository.
func (f *Files) moduleFor(file, name string) string {
	if dir := path.Dir(file); dir != "." && !f.InPackage(file) {
		if beside := f.under(path.Join(dir, strings.ReplaceAll(name, ".", "/"))); beside != "" && beside != file {
			return beside
		}
	}
	return f.Module(name)
}

// Group returns a group of a match, "" if it is not part of it.
func Group(text string, at []int, group int) string {
	if at[2*group] < 0 {
		return ""
	}
	return text[at[2*group]:at[2*group+1]]
}

// absolute returns the module that an import of a file names.
func absolute(file, name string) string {
	plain := strings.TrimLeft(name, ".")
	up := len(name) - len(plain)
	if up == 0 {
		return name
	}
	dir := path.Dir(strings.TrimPrefix(file, "src/"))
	for range up - 1 {
		dir = path.Dir(dir)
	}
	return strings.Trim(strings.ReplaceAll(dir, "/", ".")+"."+plain, ".")
}

// Resolve follows imports to where a name is defined.
func (f *Files) Resolve(file, name string) (string, string) {
	for range 4 {
		module, of, dotted := strings.Cut(name, ".")
		to, ok := f.Imported(file)[module]
		switch {
		case !ok:
			return file, name
		case to.Name == "" && dotted:
			file, name = to.File, of
		case to.Name == "":
			return to.File, ""
		default:
			file, name = to.File, to.Name
		}
	}
	return file, name
}

// part returns where a function or class of a file is, with what decorates it.
func (f *Files) part(file, name string) (from, to int, ok bool) {
	s := f.scan(file)
	i, ok := s.top[name]
	if !ok {
		return 0, 0, false
	}
	return s.tops[i].bodyFrom, s.tops[i].next, true
}

// Body returns a function or class with what decorates it, "" if the file has none of that name.
func (f *Files) Body(file, name string) string {
	from, to, _ := f.part(file, name)
	return f.Text[file][from:to]
}

// Words returns the arguments of Python that run a file: as a module if it is one of a package or imports like one.
func (f *Files) Words(file string) []string {
	name, text := NameOf(file), f.Text[file]
	inPackage := f.InPackage(file)
	for _, m := range plainImport.FindAllStringSubmatch(text, MaxMatches) {
		if f.beside(file, m[1]) != "" {
			inPackage = false
		}
	}
	if f.Has("src/__init__.py") && strings.HasPrefix(file, "src/") && name != "" { // src is a package itself
		name = "src." + name
	}
	if name != "" && (inPackage || relativeFrom.MatchString(text)) && !strings.HasPrefix(file, "src/__main__") {
		return []string{"-m", name}
	}
	return []string{file}
}

// beside returns the file of a module that is found beside a file, as that is run by its path, but not from the root; ""
// for none.
func (f *Files) beside(file, module string) string {
	dir := path.Dir(file)
	if dir == "." || slices.ContainsFunc(Roots, func(root string) bool { return f.under(root+module) != "" }) {
		return ""
	}
	return f.under(dir + "/" + module)
}

// ImportsPackageBeside reports whether a file imports a package that is found beside it, as it is run by its path, but not
// from the root.
func (f *Files) ImportsPackageBeside(file string) bool {
	return slices.ContainsFunc(plainImport.FindAllStringSubmatch(f.Text[file], MaxMatches), func(m []string) bool {
		return path.Base(f.beside(file, m[1])) == "__init__.py"
	})
}

// Has reports whether a Python file is in the repository.
func (f *Files) Has(file string) bool {
	_, ok := f.Text[file]
	return ok
}

// InPackage reports whether a file is one of a package. The root of a repository is none, whatever it contains: it has no
// name to import it by.
func (f *Files) InPackage(file string) bool {
	dir := path.Dir(file)
	return dir != "." && f.Has(path.Join(dir, "__init__.py"))
}
