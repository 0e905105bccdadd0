package modules

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

var (
	callsDocopt   = pattern.MustCompile(`\bdocopt\(`)
	docoptOption  = pattern.MustCompile(`(?m)^[ \t]+(?:(-\w)(?:[ =](?:<[\w -]+>|[A-Z_]+))?,?[ \t]+)?(--[a-z][\w-]*)(?:[ =](<[\w -]+>|[A-Z][A-Z_]*))?(?:[ \t]{2,}([^\n]*))?$`)
	docoptDefault = pattern.MustCompile(`\[default:[ \t]*([^\]\n]*?)[ \t]*\]`)
)

// docoptFlags records the options that a docopt text describes.
func (s *scan) docoptFlags(text string) {
	if !callsDocopt.MatchString(text) {
		return
	}
	for _, m := range docoptOption.FindAllStringSubmatchIndex(text, maxOptions) {
		g := Option{Name: text[m[4]:m[5]], Boolean: m[6] < 0, Help: Group(text, m, 4)}
		if d := docoptDefault.FindStringSubmatch(g.Help); d != nil && !g.Boolean {
			g.Value, g.Code = d[1], d[1]
		}
		if g.Name != "--help" && g.Name != "--version" && !strings.ContainsAny(g.Value, `"'`) {
			s.docopt = append(s.docopt, placedFlag{m[0], Group(text, m, 1), g})
		}
	}
}

var (
	// docoptUsage matches the lines after "Usage:", and docoptPart what follows the program in one of them.
	docoptUsage = pattern.MustCompile(`(?im)^[ \t"']*usage:[ \t]*\n?((?:[ \t]*\S[^\n]*\n)+)`)
	docoptPart  = pattern.MustCompile(`[\[\]()|]|--[a-z][\w-]*(?:[ =](?:<[\w -]+>|[A-Z][A-Z_]*))?|-\w[ =]?<[\w -]+>|-\w[ =][A-Z][A-Z_]*|-\w\b|<[\w -]+>|\.\.\.|[\w.-]+`)
	docoptWord  = pattern.MustCompile(`^[a-z][\w-]*$`)
)

// usages returns the commands that a docopt text describes, one for each of its lines that begins with a command.
func (f *Files) usages(file string) []SubCommand {
	text := f.Text[file]
	if !callsDocopt.MatchString(text) {
		return nil
	}
	m := docoptUsage.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	var out []SubCommand
	for line := range strings.Lines(m[1]) {
		parts := docoptPart.FindAllString(line, maxOptions)
		n := 1
		for n < len(parts) && docoptWord.MatchString(parts[n]) {
			n++
		}
		if n > 1 && len(out) < maxCommands && !chooses(parts[n-1:]) {
			u := usage{parts: parts[n:], described: f.scan(file).within(0, len(text)), short: f.scan(file).short()}
			out = append(out, SubCommand{Path: parts[1:n], File: file, Text: text, Flags: u.options()})
		}
	}
	return out
}

// chooses reports whether a line of a docopt text requires one of several words, so that its first words are not a
// complete command.
func chooses(parts []string) bool {
	depth := 0 // of brackets
	for i, part := range parts {
		switch {
		case part == "[":
			depth++
		case part == "]":
			depth--
		case part == "|" && depth <= 0 && (i > 0 && docoptWord.MatchString(parts[i-1]) || i+1 < len(parts) && docoptWord.MatchString(parts[i+1])):
			return true
		}
	}
	return false
}

// short returns the long names of the options of a docopt text by their short names.
func (s *scan) short() map[string]string {
	out := map[string]string{}
	for _, x := range s.docopt {
		if x.owner != "" {
			out[x.owner] = x.Name
		}
	}
	return out
}

// usage is a line of a docopt text after its command.
type usage struct {
	parts     []string
	described []Option          // all options that the text describes
	short     map[string]string // their long names by their short names
	out       []Option
}

// options returns the arguments in the line. Brackets and alternatives make them optional, and [options] stands for all
// other options that the text describes.
func (u *usage) options() []Option {
	alternatives := u.alternatives()
	groups := []bool{alternatives[-1]} // whether their parts are optional
	rest := false
	for i, part := range u.parts {
		optional := groups[len(groups)-1]
		switch {
		case part == "[", part == "(":
			groups = append(groups, optional || part == "[" || alternatives[i])
		case part == "]", part == ")":
			groups = groups[:max(1, len(groups)-1)]
		case part == "...":
			if len(u.out) > 0 {
				u.out[len(u.out)-1].Many = true
			}
		case part == "options" && optional:
			rest = true
		case strings.HasPrefix(part, "-"):
			u.option(part, !optional)
		case strings.HasPrefix(part, "<"), strings.ToUpper(part) == part && part != "|":
			u.add(Option{Name: strings.ToLower(strings.Trim(part, "<>")), Position: true, Required: !optional})
		}
	}
	if rest {
		for _, x := range u.described {
			u.add(x)
		}
	}
	return u.out
}

// alternatives returns the indices of the parts that open a group of alternatives. The line itself has the index -1.
func (u *usage) alternatives() map[int]bool {
	out := map[int]bool{}
	open := []int{-1}
	for i, part := range u.parts {
		switch part {
		case "[", "(":
			open = append(open, i)
		case "]", ")":
			open = open[:max(1, len(open)-1)]
		case "|":
			out[open[len(open)-1]] = true
		}
	}
	return out
}

// option adds an option that the line names. Short options without a value are not needed.
func (u *usage) option(part string, needed bool) {
	name, value := part, ""
	if i := strings.IndexAny(part, " =<"); i >= 0 {
		name, value = part[:i], part[i:]
	}
	if !strings.HasPrefix(name, "--") && value == "" {
		return
	}
	name = cmp.Or(u.short[name], name)
	x := Option{Name: name, Boolean: value == "", Required: value != "" && needed}
	if i := slices.IndexFunc(u.described, func(d Option) bool { return d.Name == name }); i >= 0 {
		x = u.described[i]
		x.Required = x.Required || needed && !x.Boolean && x.Value == ""
	}
	u.add(x)
}

// add adds an argument unless the line has it already. Two positional arguments that are required may have one name.
func (u *usage) add(x Option) {
	again := slices.ContainsFunc(u.out, func(o Option) bool { return o.Name == x.Name && (!o.Position || !x.Required) })
	if !again && len(u.out) < MaxFlags {
		u.out = append(u.out, x)
	}
}
