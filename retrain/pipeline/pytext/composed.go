package pytext

import (
	"regexp"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

// The ways in which code composes a path: %s stands for an argument, and the group is what precedes or follows it.
const (
	ofArgument = `(?:\w+(?:\.|\[["']))?%s(?:["']\])?`
	belowIt    = `(?:\bjoin(?:path)?\(\s*` + ofArgument + `\s*,\s*([^()\n]+)\)|\bPath\(\s*` + ofArgument + `\s*\)\s*/\s*([^\n,)]+)|\b` + ofArgument + `\s*\+\s*["']/["']\s*\+\s*([^\n,)]+)|\bf["']\{` + ofArgument + `\}/([^"'\n]+)["'])`
	aboveIt    = `(?:\bf["'][^"'\n]*[/}][^"'\n]*\{` + ofArgument + `\}([^"'\n]*)["']|\bjoin(?:path)?\([^()\n]+,\s*f["']\{` + ofArgument + `\}([^"'\n]+)["']\)|\bjoin(?:path)?\([^()\n]+,\s*` + ofArgument + `\s*\+\s*["']([^"'\n]+)["']\))`
)

// Below returns the code for what a program appends below an argument to compose a path.
func Below(text, argument string) (code string, found bool) { return composed(text, belowIt, argument) }

// Above returns the code for what a program appends to an argument that is the file name in a composed path.
func Above(text, argument string) (code string, found bool) { return composed(text, aboveIt, argument) }

func composed(text, way, argument string) (string, bool) {
	m := regexp.MustCompile(strings.ReplaceAll(way, "%s", regexp.QuoteMeta(argument))).FindStringSubmatch(text)
	if m == nil {
		return "", false
	}
	return strings.Join(m[1:], ""), true
}

// madeBelow matches code that creates directories with a relative path that it composes itself.
var madeBelow = pattern.MustCompile(`\b(?:makedirs|mkdir)\(\s*f?["'][^/"']|(?m:^[ \t]*(\w+)[ \t]*=[ \t]*(?:Path|os\.path\.join)\(f?["'][^/"'])`)

// MakesDirectories reports whether a program creates directories in its working directory that no argument names.
func MakesDirectories(text string) bool {
	for _, m := range madeBelow.FindAllStringSubmatch(text, 50) {
		if m[1] == "" || strings.Contains(text, m[1]+".mkdir(") || strings.Contains(text, "makedirs("+m[1]) {
			return true
		}
	}
	return false
}

var assignsSetting = pattern.MustCompile(`(?m)^[ \t]*(?:self\.)?\w+\.([\w.]+)[ \t]*=[^=]`)

// AssignsSetting reports whether a program assigns a setting itself, so that the user need not set it.
func AssignsSetting(text, name string) bool {
	for _, m := range assignsSetting.FindAllStringSubmatch(text, maxMatches) {
		if m[1] == name || strings.HasSuffix(name, "."+m[1]) { // a part of the settings may have been passed on
			return true
		}
	}
	return false
}
