package strict

import (
	"strings"
	"unicode"
)

// Placeholder stands in a proposed file for what a person must fill in.
const Placeholder = "CHANGE-ME"

// Unprintable returns what forbids a value in every artefact, "" without anything. Braces would be templates of the
// orchestrators, private-use characters mark where a value is.
func Unprintable(s string) string {
	switch {
	case strings.ContainsFunc(s, func(r rune) bool {
		return unicode.In(r, unicode.Co, unicode.Bidi_Control) || unicode.IsControl(r) || r == '\u2028' || r == '\u2029'
	}):
		return "must be one line of printable characters"
	case strings.Contains(s, Placeholder):
		return "must be filled in: " + Placeholder + " stands for a value that only you know"
	case strings.Contains(s, "{{") || strings.Contains(s, "}}"):
		return "must not contain {{ or }}, because orchestrators would replace them"
	}
	return ""
}
