// Package keep finds generated files, and extracts and merges the parts of them that people edit.
package keep

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/secrets"
)

var (
	keepMark = regexp.MustCompile(`rewardwatch:keep ([A-Za-z0-9_-]+)`)
	endMark  = regexp.MustCompile(`rewardwatch:end\b`)
)

// Parts returns the text between the markers of each kept part, by the name of the part.
func Parts(text string) (map[string]string, error) {
	parts := map[string]string{}
	name, from, at := "", 0, 0 // the open part, where its text begins, and where the line begins
	for i, line := range strings.SplitAfter(text, "\n") {
		next := at + len(line)
		switch m := keepMark.FindStringSubmatch(line); {
		case m != nil && name != "":
			return nil, fmt.Errorf("line %d: the keep marker %q is inside the kept part %q", i+1, m[1], name)
		case m != nil:
			if _, twice := parts[m[1]]; twice {
				return nil, fmt.Errorf("line %d: the keep marker %q is not unique", i+1, m[1])
			}
			name, from = m[1], next
		case endMark.MatchString(line):
			if name == "" {
				return nil, fmt.Errorf("line %d: an end marker has no keep marker", i+1)
			}
			parts[name], name = text[from:at], ""
		}
		at = next
	}
	if name != "" {
		return nil, fmt.Errorf("the keep marker %q has no end marker", name)
	}
	return parts, nil
}

// Secret returns the number, from 1, of the first line between markers that looks like a secret, or 0.
func Secret(text string) int {
	kept := false
	for i, line := range strings.Split(text, "\n") {
		switch {
		case keepMark.MatchString(line):
			kept = true
		case endMark.MatchString(line):
			kept = false
		case kept && secrets.Found(line):
			return i + 1
		}
	}
	return 0
}

// Merged returns a new text with the kept parts of the file that it replaces. It returns an error if the new text lacks
// the markers of a part that is not blank, because the part would be lost.
func Merged(text, before string) (string, error) {
	parts, err := Parts(before)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	keeping := ""
	for _, line := range strings.SplitAfter(text, "\n") {
		m := keepMark.FindStringSubmatch(line)
		ends := endMark.MatchString(line)
		if keeping == "" || ends {
			out.WriteString(line)
		}
		if ends {
			keeping = ""
		}
		if m == nil {
			continue
		}
		if body, ok := parts[m[1]]; ok {
			out.WriteString(body)
			delete(parts, m[1])
			keeping = m[1]
		}
	}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		if strings.TrimSpace(parts[name]) != "" {
			return "", fmt.Errorf("the new file has no keep marker %q", name)
		}
	}
	return out.String(), nil
}

// Part returns the text of a kept part, and the line number of its keep marker, from 1. If there is no such part, line
// is 0.
func Part(text, name string) (body string, line int, err error) {
	parts, err := Parts(text)
	if err != nil {
		return "", 0, err
	}
	body, ok := parts[name]
	if !ok {
		return "", 0, nil
	}
	for i, l := range strings.Split(text, "\n") {
		if m := keepMark.FindStringSubmatch(l); m != nil && m[1] == name {
			line = i + 1
		}
	}
	return body, line, nil
}

// WithPart returns a text with the body of a kept part replaced.
func WithPart(text, name, body string) (string, error) {
	if _, line, err := Part(text, name); err != nil || line == 0 {
		return "", fmt.Errorf("the text has no keep marker %q: %w", name, err)
	}
	var out strings.Builder
	inside := false
	for line := range strings.Lines(text) {
		if inside && endMark.MatchString(line) {
			inside = false
		}
		if inside {
			continue
		}
		out.WriteString(line)
		if m := keepMark.FindStringSubmatch(line); m != nil && m[1] == name {
			out.WriteString(body)
			inside = true
		}
	}
	return out.String(), nil
}
