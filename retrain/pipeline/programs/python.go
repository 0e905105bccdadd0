package programs

import (
	"path"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
)

// The limits of what is kept of a repository to find its programs.
const (
	maxKept = 32 << 20 // bytes of Python
	maxCall = 4000     // bytes of a call's arguments
)

var (
	importLine   = regexp.MustCompile(`(?m)^[ \t]*(?:from[ \t]+(\.*[\w.]*)[ \t]+import[ \t]+([^\n;]+)|import[ \t]+([\w., ]+))`)
	topFunction  = regexp.MustCompile(`(?m)^(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)`)
	relativeFrom = regexp.MustCompile(`(?m)^[ \t]*from[ \t]+\.`)
	plainImport  = regexp.MustCompile(`(?m)^(?:from|import)[ \t]+(\w+)`)
	stringAlone  = regexp.MustCompile(`^[rRuUbB]?(?:"([^"\\]*)"|'([^'\\]*)')$`)
	numberAlone  = regexp.MustCompile(`^-?[0-9][0-9_]*(?:\.[0-9]*)?(?:e[+-]?[0-9]+)?$`)
	keywordAlone = regexp.MustCompile(`^\s*(\w+)\s*=[^=]`)
)

// argument is one of a call, or a parameter of a function: its keyword, "" for one by position, and its expression.
type argument struct{ key, text string }

// call returns the arguments of the call, or the parameters of the function, whose parenthesis is at an index.
func call(text string, at int) []argument {
	var out []argument
	for _, part := range pytext.Parts(text[at:min(len(text), at+maxCall)]) {
		part = strings.TrimSpace(part)
		switch m := keywordAlone.FindStringSubmatchIndex(part); {
		case part == "":
		case m != nil:
			_, value, _ := strings.Cut(part, "=")
			out = append(out, argument{part[m[2]:m[3]], strings.TrimSpace(value)})
		default:
			out = append(out, argument{"", part})
		}
	}
	return out
}

// given returns the expression of a keyword, or the one at a position; "" without either.
func given(arguments []argument, key string, position int) string {
	for _, a := range arguments {
		if a.key == key {
			return a.text
		}
	}
	if position >= 0 && position < len(arguments) && arguments[position].key == "" {
		return arguments[position].text
	}
	return ""
}

// printable reports whether a text is one line without characters that a person cannot see.
func printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// literal returns the value of an expression that is a string or a number, "" for any other.
func literal(text string) string {
	text = strings.TrimSpace(text)
	if m := stringAlone.FindStringSubmatch(text); m != nil && printable(m[1]+m[2]) {
		return m[1] + m[2]
	}
	if numberAlone.MatchString(text) || text == "True" || text == "False" {
		return text
	}
	return ""
}

// sources are the Python files of a repository.
type sources struct {
	text      map[string]string // their code without comments
	order     []string          // of the files
	kept      int               // bytes of all
	importing map[string]map[string]imported

	scanned    map[string]*scan
	flagsOf    map[string][]option
	parsersOf  map[string][]command
	firedOf    map[string][]command
	speakingOf map[string][]string
	mainOf     map[string]*mainBlock
	registers  []string
}

func newSources() sources {
	return sources{
		text: map[string]string{}, importing: map[string]map[string]imported{}, scanned: map[string]*scan{}, flagsOf: map[string][]option{},
		parsersOf: map[string][]command{}, firedOf: map[string][]command{}, speakingOf: map[string][]string{},
		mainOf: map[string]*mainBlock{},
	}
}

// roots are the directories that the image imports from.
var roots = []string{"", "src/"}

// module returns the file of a module, "" if it is none of the repository.
func (f *sources) module(name string) string {
	base := strings.ReplaceAll(name, ".", "/")
	for _, root := range roots {
		for _, file := range []string{root + base + ".py", root + base + "/__init__.py"} {
			if _, ok := f.text[file]; ok {
				return file
			}
		}
	}
	return ""
}

// moduleOf returns the name that a file is imported by, "" if none is possible.
func moduleOf(file string) string {
	module := strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(file, "src/"), ".py"), "/__init__")
	module = strings.TrimSuffix(module, "/__main__")
	for part := range strings.SplitSeq(module, "/") {
		if !name.MatchString(part) {
			return ""
		}
	}
	return strings.ReplaceAll(module, "/", ".")
}

// imported is a name that a file imports from another of the repository.
type imported struct{ file, name string }

// imports returns the names that a file imports from the repository, by the names that it has for them. A whole module
// has no name of its own.
func (f *sources) imports(file string) map[string]imported {
	if known, ok := f.importing[file]; ok {
		return known
	}
	out := map[string]imported{}
	text := f.text[file]
	for _, at := range importLine.FindAllStringSubmatchIndex(text, maxMatches) {
		m := []string{"", part(text, at, 1), part(text, at, 2), part(text, at, 3)}
		if strings.HasPrefix(m[2], "(") { // it may go on in the next lines
			m[2], _, _ = strings.Cut(text[at[4]:min(len(text), at[4]+maxCall)], ")")
		}
		for item := range strings.SplitSeq(strings.Trim(m[2]+m[3], "() \n"), ",") {
			words := strings.Fields(item)
			if len(words) == 0 {
				continue
			}
			as := words[len(words)-1]
			if m[3] != "" {
				if from := f.module(words[0]); from != "" {
					out[as] = imported{from, ""}
				}
				continue
			}
			from := absolute(file, m[1])
			if whole := f.module(from + "." + words[0]); whole != "" {
				out[as] = imported{whole, ""}
			} else if of := f.module(from); of != "" && of != file {
				out[as] = imported{of, words[0]}
			}
		}
	}
	f.importing[file] = out
	return out
}

// part returns a group of a match, "" if it is not part of it.
func part(text string, at []int, group int) string {
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

// resolve follows imports to where a name is defined.
func (f *sources) resolve(file, name string) (string, string) {
	for range 4 {
		module, of, dotted := strings.Cut(name, ".")
		to, ok := f.imports(file)[module]
		switch {
		case !ok:
			return file, name
		case to.name == "" && dotted:
			file, name = to.file, of
		case to.name == "":
			return to.file, ""
		default:
			file, name = to.file, to.name
		}
	}
	return file, name
}

// part returns where a function or class of a file is, with what decorates it.
func (f *sources) part(file, name string) (from, to int, ok bool) {
	s := f.scan(file)
	i, ok := s.top[name]
	if !ok {
		return 0, 0, false
	}
	return s.tops[i].bodyFrom, s.tops[i].next, true
}

// body returns a function or class with what decorates it, "" if the file has none of that name.
func (f *sources) body(file, name string) string {
	from, to, _ := f.part(file, name)
	return f.text[file][from:to]
}

// words returns the arguments of Python that run a file: as a module if it is one of a package or imports like one.
func (f *sources) words(file string) []string {
	name, text := moduleOf(file), f.text[file]
	inPackage := f.has(path.Join(path.Dir(file), "__init__.py"))
	for _, m := range plainImport.FindAllStringSubmatch(text, maxMatches) {
		if f.has(path.Join(path.Dir(file), m[1]+".py")) && f.module(m[1]) == "" { // it is found beside the file alone
			inPackage = false
		}
	}
	if f.has("src/__init__.py") && strings.HasPrefix(file, "src/") && name != "" { // src is a package itself
		name = "src." + name
	}
	if name != "" && (inPackage || relativeFrom.MatchString(text)) && !strings.HasPrefix(file, "src/__main__") {
		return []string{"-m", name}
	}
	return []string{file}
}

// has reports whether a Python file is in the repository.
func (f *sources) has(file string) bool {
	_, ok := f.text[file]
	return ok
}
