// Package annotation shapes the texts of alerts: people read them on a phone, receivers such as Slack refuse long ones, and
// names from telemetry are part of them.
package annotation

import (
	"fmt"
	"strings"
	"unicode"
)

const (
	maxListed = 10
	// MaxLength is the length of the longest annotation, in runes.
	MaxLength = 2000
)

// All drops the empty texts, and truncates the long ones. Invisible characters are replaced, but for the ends of lines in
// those annotations that have several.
func All(texts map[string]string) map[string]string {
	out := map[string]string{}
	for name, text := range texts {
		if text == "" {
			continue
		}
		lines := []string{text}
		if name == "description" || name == "evidence" || name == "decisions" {
			lines = strings.Split(text, "\n")
		}
		out[name] = truncate(Lines(lines), MaxLength)
	}
	return out
}

// Lines joins texts, each of which is one line.
func Lines(texts []string) string { return joined(texts, "\n") }

// List joins texts, and counts those beyond ten. A name with the end of a line could make up further ones.
func List(texts []string, separator string) string {
	if len(texts) <= maxListed {
		return joined(texts, separator)
	}
	return joined(texts[:maxListed], separator) + separator + fmt.Sprintf("and %d more", len(texts)-maxListed)
}

func joined(texts []string, separator string) string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = Printable(text)
	}
	return strings.Join(out, separator)
}

// Printable replaces invisible characters. Names come from telemetry: one with a control sequence would reach the
// terminal, reverse the direction of the text after it, or begin a line.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}

// truncate cuts a text to n runes, the last of which is then an ellipsis.
func truncate(s string, n int) string {
	runes := []rune(s)
	if len(runes) <= n {
		return string(runes)
	}
	return string(runes[:n-1]) + "…"
}
