// Package annotation makes the texts of alerts safe to send: people read them on a phone, receivers such as Slack
// refuse long texts, and the texts contain names from telemetry.
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

// All returns the texts that are not empty, truncated to MaxLength. It replaces invisible characters, except the line
// breaks of annotations with several lines.
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

// Lines joins texts, one per line.
func Lines(texts []string) string { return joined(texts, "\n") }

// List joins at most ten texts, and says how many more there are. It replaces line breaks within a name, which could
// otherwise fake another line.
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

// Printable replaces invisible characters. Names come from telemetry: a control sequence in a name would reach the
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
