package words

import (
	"errors"
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxFile is the size in bytes of the longest script file that is parsed.
const maxFile = 64 << 10

// oneQuote matches a single quote in braces, which dash takes literally, as in "${VERSION:-it's none}".
var oneQuote = regexp.MustCompile(`\$\{[^}']*'[^}']*\}`)

// interpreted matches the first line of a script for a shell.
var interpreted = regexp.MustCompile(`^#!\s*/(?:usr/)?bin/(?:env\s+)?(bash|dash|sh)\b`)

// Unreadable returns the line and the description of the syntax error in a script file for sh, dash or bash, or "" if it
// has none. Files for other programs are ignored.
func Unreadable(script string) (line int, fault string) {
	m := interpreted.FindStringSubmatch(script)
	if m == nil || len(script) > maxFile || m[1] != "bash" && oneQuote.MatchString(script) {
		return 0, ""
	}
	for _, language := range languages[m[1]] {
		_, err := syntax.NewParser(syntax.Variant(language)).Parse(strings.NewReader(script), "")
		if err == nil {
			return 0, ""
		}
		if wrong, ok := errors.AsType[syntax.ParseError](err); ok && fault == "" {
			line, fault = int(wrong.Pos.Line()), wrong.Text
		}
	}
	return line, fault
}
