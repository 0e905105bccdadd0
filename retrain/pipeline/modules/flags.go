package modules

import (
	"path"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
)

// Option is an argument of a program's command line.
type Option struct {
	Name     string // with its hyphens; for a positional argument, the name of its place
	Position bool   // whether it is positional
	Many     bool   // whether it takes several words
	Required bool
	Value    string // its default, "" if that is not a string, number, True or False
	Code     string // the expression of its default, "" if unknown
	Boolean  bool
	Alone    bool // whether it may be given without a value
	Truthy   bool // whether the program gets True, or a string that counts as true, for every word except an empty one
	Choices  []string
	Joined   bool // whether the value follows after =
	Help     string
}

// Is reports whether a name refers to the argument. Hyphens and underscores are equivalent, as tyro accepts both and
// documentation mixes them.
func (f Option) Is(name string) bool {
	return strings.ReplaceAll(name, "_", "-") == strings.ReplaceAll(f.Name, "_", "-")
}

// Key returns the normalized name of the argument. Of a dotted name, it is the last part, preceded by the part before
// if the last part alone is too general.
func (f Option) Key() string {
	name := strings.ReplaceAll(strings.Trim(strings.ToLower(f.Name), "-"), "-", "_")
	parts := strings.Split(name, ".")
	n := len(parts)
	if n > 1 && slices.Contains([]string{"path", "dir", "file", "name", "id", "enable", "enabled"}, parts[n-1]) {
		return parts[n-2] + "_" + parts[n-1]
	}
	return parts[n-1]
}

// OfHydra reports whether the argument is set without hyphens, as in agent.lr=1.
func (f Option) OfHydra() bool { return f.Joined && !strings.HasPrefix(f.Name, "-") }

// On returns the word that sets a Boolean argument.
func (f Option) On() string {
	if f.OfHydra() {
		return f.Name + "=true"
	}
	return f.Name
}

// IsOn reports whether a Boolean argument is set by default.
func (f Option) IsOn() bool { return strings.EqualFold(f.Value, "true") }

// Words returns the words that set the argument to a value.
func (f Option) Words(value string) []string {
	switch {
	case f.Position:
		return []string{value}
	case f.Joined:
		return []string{f.Name + "=" + value}
	}
	return []string{f.Name, value}
}

var (
	addsArgument   = pattern.MustCompile(`\b([\w.]+)\.add_argument\(`)
	clickOption    = pattern.MustCompile(`@(?:\w+\.)*\w*(option|argument)\(`)
	abslFlag       = pattern.MustCompile(`\bDEFINE_(\w+)\(`)
	abslRequired   = pattern.MustCompile(`\bmark_flags?_as_required\(([^)]*)\)`)
	dataclassArgs  = pattern.MustCompile(`(?m)^class (\w*(?:Args|Arguments|Config|Params|Options|Settings)\w*)\b[^\n]*:[ \t]*\n((?:[ \t]+[^\n]*\n|\n)+)`)
	dataclassField = pattern.MustCompile(`(?m)^[ \t]+(\w+)[ \t]*:[ \t]*([\w.\[\], |"']+?)(?:[ \t]*=[ \t]*([^\n]+))?$`)
	parsesClass    = pattern.MustCompile(`\btyro\.cli\(|\bargparse_dataclass\b|\bsimple_parsing\b|\bHfArgumentParser\(|\bdraccus\b|\bpyrallis\b|\bjsonargparse\b`)
	parsingName    = pattern.MustCompile(`(?i)pars|param|arg|opt|cfg|config|cli`)
)

// FlagsIn returns the arguments that a function of a file declares.
func (f *Files) FlagsIn(file, name string) []Option {
	from, to, ok := f.part(file, name)
	if !ok {
		return nil
	}
	return f.scan(file).within(from, to)
}

// Flags returns the arguments of the program in a file: those that the file defines or, if it defines none, those of the
// parsers that it imports, directly or through files that define none.
func (f *Files) Flags(file string) []Option {
	if known, ok := f.flagsOf[file]; ok {
		return known
	}
	var out []Option
	seen := map[string]bool{}
	next := []string{file}
	for depth := 0; depth < 5 && len(next) > 0; depth++ {
		var further []string
		for _, g := range next {
			if seen[g] || len(seen) > 12 {
				continue
			}
			seen[g] = true
			if own := f.scan(g).within(0, len(f.Text[g])); len(own) > 0 {
				out = append(out, own...)
				continue
			}
			for as, from := range f.Imported(g) {
				if parsingName.MatchString(as) {
					further = append(further, from.File)
				}
			}
		}
		slices.Sort(further)
		next = further
	}
	out = slices.Clip(out[:min(len(out), MaxFlags)])
	f.flagsOf[file] = out
	return out
}

// argparseFlag returns the argument that a call of add_argument defines.
func argparseFlag(a []Argument) Option {
	code := Given(a, "default", -1)
	g := Option{Value: Literal(code), Code: code, Required: Given(a, "required", -1) == "True", Help: Given(a, "help", -1)}
	for _, x := range a {
		if name := Literal(x.Text); x.Key == "" && (g.Name == "" || strings.HasPrefix(name, "--") && !strings.HasPrefix(g.Name, "--")) {
			g.Name = name
		}
	}
	g.Position = !strings.HasPrefix(g.Name, "-")
	nargs := Given(a, "nargs", -1)
	g.Many = nargs != "" && Literal(nargs) != "?"
	g.Alone = slices.Contains([]string{"?", "*"}, Literal(nargs)) || Given(a, "action", -1) != ""
	if text := Literal(nargs); g.Position && text != "?" && text != "*" {
		g.Required = true
	}
	action := Literal(Given(a, "action", -1))
	if action == "store_true" && code == "" {
		g.Code = "False"
	}
	g.Boolean = strings.HasPrefix(action, "store_") || strings.Contains(Given(a, "action", -1), "BooleanOptional")
	g.Choices = stringsOf(Given(a, "choices", -1))
	kind := Given(a, "type", -1)
	g.Truthy = !g.Boolean && (kind == "" || kind == "bool" || kind == "str")
	return g
}

// stringsOf returns the literal strings in a list, tuple or set.
func stringsOf(text string) []string {
	var out []string
	if strings.HasPrefix(text, "[") || strings.HasPrefix(text, "(") || strings.HasPrefix(text, "{") {
		for _, p := range pytext.Parts(text) {
			if s := Literal(p); s != "" {
				out = append(out, s)
			}
		}
	}
	return out
}

// clickFlag returns the argument that a decorator of click defines.
func clickFlag(kind string, a []Argument) Option {
	g := argparseFlag(a)
	g.Truthy = false // click parses words such as False
	if kind == "argument" {
		g.Position = true
		g.Required = Given(a, "required", -1) != "False" && Given(a, "default", -1) == "" && Given(a, "nargs", -1) != "-1"
		return g
	}
	g.Position = false
	if name, no, ok := strings.Cut(g.Name, "/"); ok { // --render/--no-render
		g.Name, g.Boolean = name, true
		if g.Value == "True" {
			g.Name, g.Value = strings.TrimSpace(no), "False"
		}
	}
	g.Boolean = g.Boolean || Given(a, "is_flag", -1) == "True"
	g.Alone = g.Alone || Given(a, "count", -1) == "True" || Given(a, "flag_value", -1) != ""
	if t := Given(a, "type", -1); strings.Contains(t, "Choice(") {
		g.Choices = stringsOf(t[strings.Index(t, "Choice(")+len("Choice("):])
	}
	return g
}

// fieldFlags returns the arguments that the fields of a class define, with underscores in their names.
func fieldFlags(body string) []Option {
	var out []Option
	for _, m := range dataclassField.FindAllStringSubmatch(body, MaxFlags) {
		value := m[3]
		if i := strings.Index(value, "field("); i >= 0 {
			value = Given(ArgumentsOf(value, i+len("field")), "default", 0)
		}
		g := Option{Name: "--" + m[1], Required: m[3] == "", Value: Literal(value), Code: strings.TrimSpace(value), Boolean: m[2] == "bool"}
		if at := ofLiteral.FindStringSubmatchIndex(m[2]); at != nil {
			g.Choices = stringsOf(m[2][at[2]:])
		}
		out = append(out, g)
	}
	return out
}

var (
	parameter   = pattern.MustCompile(`(?s)^(\w+)\s*(?::\s*(.+?))?(?:\s*=\s*([^=].*))?$`)
	typerObject = pattern.MustCompile(`\b(?:typer\.)?(Option|Argument)(\()`)
)

func parameterFlag(text string, fire bool) (Option, bool) {
	m := parameter.FindStringSubmatch(text)
	if m == nil || m[1] == "self" || strings.Contains(m[2], "Context") {
		return Option{}, false
	}
	kind, value := m[2], m[3]
	g := Option{Name: "--" + strings.ReplaceAll(m[1], "_", "-"), Boolean: strings.HasPrefix(kind, "bool"), Required: value == ""}
	if fire {
		g.Name, g.Joined = "--"+m[1], true
		g.Value, g.Code = Literal(value), value
		return g, true
	}
	g.Position = value == "" // without a default
	if t := typerObject.FindStringSubmatchIndex(text); t != nil {
		a := ArgumentsOf(text, t[4])
		g.Position = text[t[2]:t[3]] == "Argument"
		if !strings.Contains(kind, "Annotated") {
			value = Given(a, "default", 0)
		}
		for _, x := range a {
			if name := Literal(x.Text); strings.HasPrefix(name, "--") {
				g.Name, _, _ = strings.Cut(name, "/")
			}
		}
	}
	g.Required = value == "" || value == "..."
	g.Value, g.Code = Literal(value), value
	if g.Position {
		g.Name = strings.TrimPrefix(g.Name, "--")
	}
	if g.Boolean && g.Value == "True" {
		g.Name, g.Value = "--no-"+strings.TrimPrefix(g.Name, "--"), "False"
	}
	return g, true
}

// PlainWord matches a word that needs no quotes in a shell or in any kind of file.
var PlainWord = pattern.MustCompile(`^[A-Za-z0-9_./:=@%+,-]+$`)

// Extension returns the extension of a path that names a file, or "" if it seems to name a directory.
func Extension(value string) string {
	if e := path.Ext(value); len(e) > 1 && len(e) <= 12 && PlainWord.MatchString(e) && !NumberAlone.MatchString(e[1:]) {
		return e
	}
	return ""
}
