package pytext

import (
	"regexp"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

// Fields returns the source of the default values of a field in the classes of a file: numbers, strings, True, False
// and None.
func Fields(text, name string) []string {
	if !strings.Contains(text, name) {
		return nil
	}
	re := regexp.MustCompile(`(?m)^[ \t]+` + regexp.QuoteMeta(name) + `[ \t]*:[ \t]*[^=\n]+=[ \t]*(-?[0-9][\w.+-]*|True|False|None|"[^"\n]*"|'[^'\n]*')[ \t]*$`)
	var out []string
	for _, m := range re.FindAllStringSubmatch(text, maxMatches) {
		out = append(out, m[1])
	}
	return out
}

// SpeaksOfCommands reports whether a file may define commands of a program.
func SpeaksOfCommands(text string) bool {
	for _, word := range []string{"add_parser", "add_subparsers", "command(", "group(", "add_typer", "Typer(", "Fire(", "add_command"} {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

var suffixOfClick = pattern.MustCompile(`_(command|cmd|group|grp)$`)

// CommandOf returns the command name that click or typer derives from the name of a function.
func CommandOf(name string, click bool) string {
	if click {
		name = suffixOfClick.ReplaceAllString(name, "")
	}
	return strings.ReplaceAll(strings.ToLower(name), "_", "-")
}
