package modules

import (
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
)

// Limits of what is read from a repository.
const (
	MaxKept = 32 << 20 // total bytes of Python
	MaxCall = 4000     // bytes of the arguments of a call
)

var (
	importLine   = pattern.MustCompile(`(?m)^[ \t]*(?:from[ \t]+(\.*[\w.]*)[ \t]+import[ \t]+([^\n;]+)|import[ \t]+([\w., ]+))`)
	topFunction  = pattern.MustCompile(`(?m)^(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)`)
	relativeFrom = pattern.MustCompile(`(?m)^[ \t]*from[ \t]+\.`)
	plainImport  = pattern.MustCompile(`(?m)^(?:from|import)[ \t]+(\w+)`)
	stringAlone  = pattern.MustCompile(`^[rRuUbB]?(?:"([^"\\]*)"|'([^'\\]*)')$`)
	keywordAlone = pattern.MustCompile(`^\s*(\w+)\s*=[^=]`)
)

// NumberAlone matches an expression that is a single number.
var NumberAlone = pattern.MustCompile(`^-?[0-9][0-9_]*(?:\.[0-9]*)?(?:e[+-]?[0-9]+)?$`)

// Argument is an argument of a call or a parameter of a function: its keyword, or "" if it is positional, and its
// expression.
type Argument struct{ Key, Text string }

// ArgumentsOf returns the arguments of the call, or the parameters of the function, whose opening parenthesis is at an
// index.
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

// Given returns the expression of the argument with a keyword or at a position, or "".
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

// Printable reports whether a text is one line of printable characters.
func Printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// Literal returns the value of an expression that is a single string, number or Boolean, or "".
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
	Text      map[string]string // source without comments, by path
	Order     []string          // paths in the order in which they were read
	Kept      int               // total bytes
	Nested    []string          // directories with packages of their own next to their packaging files, each with a trailing slash
	importing map[string]map[string]Origin

	scanned    map[string]*scan
	flagsOf    map[string][]Option
	parsersOf  map[string][]SubCommand
	firedOf    map[string][]SubCommand
	speakingOf map[string][]string
	registers  []string
}

// NewFiles returns an empty Files. The reader of a repository fills Text and Order.
func NewFiles() Files {
	return Files{
		Text: map[string]string{}, importing: map[string]map[string]Origin{}, scanned: map[string]*scan{}, flagsOf: map[string][]Option{},
		parsersOf: map[string][]SubCommand{}, firedOf: map[string][]SubCommand{}, speakingOf: map[string][]string{},
	}
}

// MainBlock matches the beginning of the block that runs only when a file is run as a program.
var MainBlock = pattern.MustCompile(`(?m)^if[ \t(]*(?:__name__[ \t]*==[ \t]*["']__main__["']|["']__main__["'][ \t]*==[ \t]*__name__)`)

// Roots are the directories from which modules are imported in the image.
var Roots = []string{"", "src/"}

// Module returns the file of a module, or "" if it is not in the repository.
func (f *Files) Module(name string) string {
	base := strings.ReplaceAll(name, ".", "/")
	for _, root := range slices.Concat(Roots, f.Nested) {
		if file := f.under(root + base); file != "" {
			return file
		}
	}
	return ""
}

// under returns the file of a module whose path without extension is given, or "".
func (f *Files) under(base string) string {
	for _, file := range []string{base + ".py", base + "/__init__.py"} {
		if f.Has(file) {
			return file
		}
	}
	return ""
}

// NameOf returns the module name under which a file can be imported, or "" if it cannot.
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

// Origin is where an imported name comes from: a file of the repository and the name in it, which is "" for a whole
// module.
type Origin struct{ File, Name string }

// Imported returns the names that a file imports from other files of the repository, by their local names.
func (f *Files) Imported(file string) map[string]Origin {
	if known, ok := f.importing[file]; ok {
		return known
	}
	out := map[string]Origin{}
	text := f.Text[file]
	for _, at := range importLine.FindAllStringSubmatchIndex(text, MaxMatches) {
		m := []string{"", Group(text, at, 1), Group(text, at, 2), Group(text, at, 3)}
		if strings.HasPrefix(m[2], "(") { // the list may continue on the next lines
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

// moduleFor returns the file of a module that a file imports, or "" if it is not in the repository. For a script, files
// in its own directory take precedence over those at the roots.
func (f *Files) moduleFor(file, name string) string {
	if dir := path.Dir(file); dir != "." && !f.InPackage(file) {
		if beside := f.under(path.Join(dir, strings.ReplaceAll(name, ".", "/"))); beside != "" && beside != file {
			return beside
		}
	}
	return f.Module(name)
}

// Group returns a group of a match, or "" if the group did not match.
func Group(text string, at []int, group int) string {
	if at[2*group] < 0 {
		return ""
	}
	return text[at[2*group]:at[2*group+1]]
}

// absolute converts the relative module name in an import of a file to an absolute one.
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

// Resolve follows imports to the file that defines a name, and returns that file and the name in it.
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

// part returns where a function or class of a file begins and ends, including its decorators.
func (f *Files) part(file, name string) (from, to int, ok bool) {
	s := f.scan(file)
	i, ok := s.top[name]
	if !ok {
		return 0, 0, false
	}
	return s.tops[i].bodyFrom, s.tops[i].next, true
}

// Body returns the source of a function or class with its decorators, or "" if the file does not define it.
func (f *Files) Body(file, name string) string {
	from, to, _ := f.part(file, name)
	return f.Text[file][from:to]
}

// Words returns the arguments with which Python runs a file: -m and the module if the file is in a package or has
// relative imports, or else its path.
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

// beside returns the file of a module that can be imported from the directory of a script but not from the roots, or
// "".
func (f *Files) beside(file, module string) string {
	dir := path.Dir(file)
	if dir == "." || slices.ContainsFunc(Roots, func(root string) bool { return f.under(root+module) != "" }) {
		return ""
	}
	return f.under(dir + "/" + module)
}

// ImportsPackageBeside reports whether a file imports a package that can be imported from the directory of the file but
// not from the roots.
func (f *Files) ImportsPackageBeside(file string) bool {
	return slices.ContainsFunc(plainImport.FindAllStringSubmatch(f.Text[file], MaxMatches), func(m []string) bool {
		return path.Base(f.beside(file, m[1])) == "__init__.py"
	})
}

// Has reports whether the repository contains a Python file.
func (f *Files) Has(file string) bool {
	_, ok := f.Text[file]
	return ok
}

// InPackage reports whether a file is in a package. The root of a repository is not a package, even with an
// __init__.py, because there is no name to import it by.
func (f *Files) InPackage(file string) bool {
	dir := path.Dir(file)
	return dir != "." && f.Has(path.Join(dir, "__init__.py"))
}

// Moved reports whether a module is another one that was moved into a subpackage since a page was written.
func Moved(from, to string) bool {
	a, b := strings.Split(from, "."), strings.Split(to, ".")
	return len(a) > 2 && len(b) == len(a)+1 && a[0] == b[0] && slices.Equal(a[len(a)-2:], b[len(b)-2:])
}
