package modules

import (
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

var (
	callsDocopt   = pattern.MustCompile(`\bdocopt\(`)
	docoptOption  = pattern.MustCompile(`(?m)^[ \t]+(?:-\w(?:[ =](?:<[\w -]+>|[A-Z_]+))?,?[ \t]+)?(--[a-z][\w-]*)(?:[ =](<[\w -]+>|[A-Z][A-Z_]*))?(?:[ \t]{2,}([^\n]*))?$`)
	docoptDefault = pattern.MustCompile(`\[default:[ \t]*([^\]\n]*?)[ \t]*\]`)
)

// docoptFlags records the options that a docopt text describes.
func (s *scan) docoptFlags(text string) {
	if !callsDocopt.MatchString(text) {
		return
	}
	for _, m := range docoptOption.FindAllStringSubmatchIndex(text, maxOptions) {
		g := Option{Name: text[m[2]:m[3]], Boolean: m[4] < 0, Help: Group(text, m, 3)}
		if d := docoptDefault.FindStringSubmatch(g.Help); d != nil && !g.Boolean {
			g.Value, g.Code = d[1], d[1]
		}
		if g.Name != "--help" && g.Name != "--version" && !strings.ContainsAny(g.Value, `"'`) {
			s.docopt = append(s.docopt, placedFlag{m[0], "", g})
		}
	}
}

var (
	// docoptUsage matches the lines after "Usage:", and docoptPart what follows the program in one of them.
	docoptUsage = pattern.MustCompile(`(?im)^[ \t"']*usage:[ \t]*\n?((?:[ \t]*\S[^\n]*\n)+)`)
	docoptPart  = pattern.MustCompile(`\[|\]|--[a-z][\w-]*(?:[ =](?:<[\w -]+>|[A-Z][A-Z_]*))?|-\w\b|<[\w -]+>|\.\.\.|[\w.-]+`)
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
		if n > 1 && len(out) < maxCommands {
			out = append(out, SubCommand{Path: parts[1:n], File: file, Text: text, Flags: f.usage(file, parts[n:])})
		}
	}
	return out
}

// usage returns the arguments in the parts of a line of a docopt text. Brackets make them optional, and [options] stands
// for all options that the text describes.
func (f *Files) usage(file string, parts []string) []Option {
	described := f.scan(file).within(0, len(f.Text[file]))
	var out []Option
	depth := 0
	for _, part := range parts {
		switch {
		case part == "[":
			depth++
		case part == "]":
			depth--
		case part == "...":
			if len(out) > 0 {
				out[len(out)-1].Many = true
			}
		case part == "options" && depth > 0:
			out = append(out, described...)
		case strings.HasPrefix(part, "--"):
			name, value, _ := strings.Cut(strings.Replace(part, " ", "=", 1), "=")
			x := Option{Name: name, Boolean: value == "", Required: value != "" && depth == 0}
			if i := slices.IndexFunc(described, func(d Option) bool { return d.Name == name }); i >= 0 {
				x = described[i]
				x.Required = x.Required || depth == 0 && !x.Boolean && x.Value == ""
			}
			out = append(out, x)
		case strings.HasPrefix(part, "<"), strings.ToUpper(part) == part && !strings.HasPrefix(part, "-"):
			out = append(out, Option{Name: strings.ToLower(strings.Trim(part, "<>")), Position: true, Required: depth == 0})
		}
	}
	return out
}
