package strict

import (
	"strings"
	"unicode"
)

// Placeholder marks a value that a person must fill in in a proposed file.
const Placeholder = "CHANGE-ME"

// Unprintable returns why a value must not appear in any artefact, or "". Orchestrators would expand double braces as
// templates, and private-use characters mark the places of values in the artefacts.
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
