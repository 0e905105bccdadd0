package programs

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
)

// option is an argument of a program's command line.
type option struct {
	name     string // with its hyphens; that of its place for one without
	position bool   // it is given by its place
	many     bool   // any number of words
	required bool
	value    string // its default, "" for none that is a string or a number
	code     string // that computes its default, "" for none that is known
	boolean  bool
	choices  []string
	joined   bool // the value follows after =
	help     string
}

// key is the name as programs compare it. Of one with dots, it is the last, with the one before it if the last alone says
// little.
func (f option) key() string {
	name := strings.ReplaceAll(strings.Trim(strings.ToLower(f.name), "-"), "-", "_")
	parts := strings.Split(name, ".")
	n := len(parts)
	if n > 1 && slices.Contains([]string{"path", "dir", "file", "name", "id"}, parts[n-1]) {
		return parts[n-2] + "_" + parts[n-1]
	}
	return parts[n-1]
}

// ofHydra reports whether it is set without hyphens: agent.lr=1.
func (f option) ofHydra() bool { return f.joined && !strings.HasPrefix(f.name, "-") }

// on is the word that sets one that is true or false.
func (f option) on() string {
	if f.ofHydra() {
		return f.name + "=true"
	}
	return f.name
}

// isOn reports whether one that is true or false is set by default.
func (f option) isOn() bool { return strings.EqualFold(f.value, "true") }

// words are the words that set the flag.
func (f option) words(value string) []string {
	switch {
	case f.position:
		return []string{value}
	case f.joined:
		return []string{f.name + "=" + value}
	}
	return []string{f.name, value}
}

var (
	addsArgument   = regexp.MustCompile(`\b([\w.]+)\.add_argument\(`)
	clickOption    = regexp.MustCompile(`@(?:\w+\.)*\w*(option|argument)\(`)
	abslFlag       = regexp.MustCompile(`\bDEFINE_(\w+)\(`)
	abslRequired   = regexp.MustCompile(`\bmark_flags?_as_required\(([^)]*)\)`)
	dataclassArgs  = regexp.MustCompile(`(?m)^class (\w*(?:Args|Arguments|Config|Params|Options|Settings)\w*)\b[^\n]*:[ \t]*\n((?:[ \t]+[^\n]*\n|\n)+)`)
	dataclassField = regexp.MustCompile(`(?m)^[ \t]+(\w+)[ \t]*:[ \t]*([\w.\[\], |"']+?)(?:[ \t]*=[ \t]*([^\n]+))?$`)
	parsesClass    = regexp.MustCompile(`\btyro\.cli\(|\bsimple_parsing\b|\bHfArgumentParser\(|\bdraccus\b|\bpyrallis\b|\bjsonargparse\b`)
	parsingName    = regexp.MustCompile(`(?i)pars|arg|opt|cfg|config|cli`)
)

// flags returns the arguments of a program that is a whole file: those that it defines, or a parser that it imports.
func (f *sources) flags(file string) []option {
	if known, ok := f.flagsOf[file]; ok {
		return known
	}
	var out []option
	seen := map[string]bool{}
	next := []string{file}
	for depth := 0; depth < 5 && len(out) == 0; depth++ {
		var further []string
		for _, g := range next {
			if seen[g] || len(seen) > 12 {
				continue
			}
			seen[g] = true
			out = append(out, f.scan(g).within(0, len(f.text[g]))...)
			for as, from := range f.imports(g) {
				if parsingName.MatchString(as) {
					further = append(further, from.file)
				}
			}
		}
		slices.Sort(further)
		next = further
	}
	out = slices.Clip(out[:min(len(out), maxFlags)])
	f.flagsOf[file] = out
	return out
}

// argparseFlag is the flag of a call of add_argument.
func argparseFlag(a []argument) option {
	code := given(a, "default", -1)
	g := option{value: literal(code), code: code, required: given(a, "required", -1) == "True", help: given(a, "help", -1)}
	for _, x := range a {
		if name := literal(x.text); x.key == "" && (g.name == "" || strings.HasPrefix(name, "--") && !strings.HasPrefix(g.name, "--")) {
			g.name = name
		}
	}
	g.position = !strings.HasPrefix(g.name, "-")
	nargs := given(a, "nargs", -1)
	g.many = nargs != "" && literal(nargs) != "?"
	if text := literal(nargs); g.position && text != "?" && text != "*" {
		g.required = true
	}
	action := literal(given(a, "action", -1))
	if action == "store_true" && code == "" {
		g.code = "False"
	}
	g.boolean = strings.HasPrefix(action, "store_") || strings.Contains(given(a, "action", -1), "BooleanOptional")
	g.choices = stringsOf(given(a, "choices", -1))
	return g
}

// stringsOf returns the strings of a list.
func stringsOf(text string) []string {
	var out []string
	if strings.HasPrefix(text, "[") || strings.HasPrefix(text, "(") || strings.HasPrefix(text, "{") {
		for _, p := range pytext.Parts(text) {
			if s := literal(p); s != "" {
				out = append(out, s)
			}
		}
	}
	return out
}

// clickFlag is the flag of a decorator of click.
func clickFlag(kind string, a []argument) option {
	g := argparseFlag(a)
	if kind == "argument" {
		g.position = true
		g.required = given(a, "required", -1) != "False" && given(a, "default", -1) == "" && given(a, "nargs", -1) != "-1"
		return g
	}
	g.position = false
	if name, no, ok := strings.Cut(g.name, "/"); ok { // --render/--no-render
		g.name, g.boolean = name, true
		if g.value == "True" {
			g.name, g.value = strings.TrimSpace(no), "False"
		}
	}
	g.boolean = g.boolean || given(a, "is_flag", -1) == "True"
	if t := given(a, "type", -1); strings.Contains(t, "Choice(") {
		g.choices = stringsOf(t[strings.Index(t, "Choice(")+len("Choice("):])
	}
	return g
}

// fieldFlags are the flags of the fields of a class.
func fieldFlags(body string) []option {
	var out []option
	for _, m := range dataclassField.FindAllStringSubmatch(body, maxFlags) {
		value := m[3]
		if i := strings.Index(value, "field("); i >= 0 {
			value = given(call(value, i+len("field")), "default", 0)
		}
		out = append(out, option{name: "--" + strings.ReplaceAll(m[1], "_", "-"), required: m[3] == "", value: literal(value), code: strings.TrimSpace(value), boolean: m[2] == "bool"})
	}
	return out
}

var (
	parameter   = regexp.MustCompile(`(?s)^(\w+)\s*(?::\s*(.+?))?(?:\s*=\s*([^=].*))?$`)
	typerObject = regexp.MustCompile(`\b(?:typer\.)?(Option|Argument)(\()`)
)

func parameterFlag(text string, fire bool) (option, bool) {
	m := parameter.FindStringSubmatch(text)
	if m == nil || m[1] == "self" || strings.Contains(m[2], "Context") {
		return option{}, false
	}
	kind, value := m[2], m[3]
	g := option{name: "--" + strings.ReplaceAll(m[1], "_", "-"), boolean: strings.HasPrefix(kind, "bool"), required: value == ""}
	if fire {
		g.name, g.joined = "--"+m[1], true
		g.value, g.code = literal(value), value
		return g, true
	}
	g.position = value == "" // without a default
	if t := typerObject.FindStringSubmatchIndex(text); t != nil {
		a := call(text, t[4])
		g.position = text[t[2]:t[3]] == "Argument"
		if !strings.Contains(kind, "Annotated") {
			value = given(a, "default", 0)
		}
		for _, x := range a {
			if name := literal(x.text); strings.HasPrefix(name, "--") {
				g.name, _, _ = strings.Cut(name, "/")
			}
		}
	}
	g.required = value == "" || value == "..."
	g.value, g.code = literal(value), value
	if g.position {
		g.name = strings.TrimPrefix(g.name, "--")
	}
	if g.boolean && g.value == "True" {
		g.name, g.value = "--no-"+strings.TrimPrefix(g.name, "--"), "False"
	}
	return g, true
}

// extension returns that of a path that names a file, "" for that of a directory.
func extension(value string) string {
	if e := path.Ext(value); len(e) > 1 && len(e) <= 12 && plainWord.MatchString(e) && !numberAlone.MatchString(e[1:]) {
		return e
	}
	return ""
}
