package pytext

import (
	"regexp"
	"strings"
)

// The ways in which code composes a path: %s stands for an argument, and the group for what is below or above it.
const (
	ofArgument = `(?:\w+(?:\.|\[["']))?%s(?:["']\])?`
	belowIt    = `(?:\bjoin(?:path)?\(\s*` + ofArgument + `\s*,\s*([^()\n]+)\)|\bPath\(\s*` + ofArgument + `\s*\)\s*/\s*([^\n,)]+)|\b` + ofArgument + `\s*\+\s*["']/["']\s*\+\s*([^\n,)]+)|\bf["']\{` + ofArgument + `\}/([^"'\n]+)["'])`
	aboveIt    = `(?:\bf["'][^"'\n]*[/}][^"'\n]*\{` + ofArgument + `\}([^"'\n]*)["']|\bjoin(?:path)?\([^()\n]+,\s*f["']\{` + ofArgument + `\}([^"'\n]+)["']\)|\bjoin(?:path)?\([^()\n]+,\s*` + ofArgument + `\s*\+\s*["']([^"'\n]+)["']\))`
)

// Below returns what code adds below an argument to compose a path.
func Below(text, argument string) (code string, found bool) { return composed(text, belowIt, argument) }

// Above returns what code adds to an argument that is the name of a file in a path that it composes.
func Above(text, argument string) (code string, found bool) { return composed(text, aboveIt, argument) }

func composed(text, way, argument string) (string, bool) {
	m := regexp.MustCompile(strings.ReplaceAll(way, "%s", regexp.QuoteMeta(argument))).FindStringSubmatch(text)
	if m == nil {
		return "", false
	}
	return strings.Join(m[1:], ""), true
}

// madeBelow is code that makes directories whose path it composes of its own text.
var madeBelow = regexp.MustCompile(`\b(?:makedirs|mkdir)\(\s*f?["'][^/"']|(?m:^[ \t]*(\w+)[ \t]*=[ \t]*(?:Path|os\.path\.join)\(f?["'][^/"'])`)

// MakesDirectories reports whether a program makes directories where it runs, which no argument names.
func MakesDirectories(text string) bool {
	for _, m := range madeBelow.FindAllStringSubmatch(text, 50) {
		if m[1] == "" || strings.Contains(text, m[1]+".mkdir(") || strings.Contains(text, "makedirs("+m[1]) {
			return true
		}
	}
	return false
}

var assignsSetting = regexp.MustCompile(`(?m)^[ \t]*(?:self\.)?\w+\.([\w.]+)[ \t]*=[^=]`)

// AssignsSetting reports whether a program sets a setting itself, which is left open for that.
func AssignsSetting(text, name string) bool {
	for _, m := range assignsSetting.FindAllStringSubmatch(text, maxMatches) {
		if m[1] == name || strings.HasSuffix(name, "."+m[1]) { // also by what is handed on of the settings
			return true
		}
	}
	return false
}
