package pipeline

import (
	"fmt"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// Part returns the lines of a kept part of a text, and the line of its opening mark from 1. Without it, line is 0.
func Part(text, name string) (body string, line int, err error) {
	parts, err := keptParts(text)
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

// WithPart returns a text with other lines in a kept part.
func WithPart(text, name, body string) (string, error) {
	if _, line, err := Part(text, name); err != nil || line == 0 {
		return "", fmt.Errorf("the text has no keep mark %q: %w", name, err)
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

// CheckText returns what the rules of verify find in a text that would replace an artefact.
func CheckText(w *Work, path, text string) []yamlfile.Problem {
	var problems []yamlfile.Problem
	for i := range w.Artefacts {
		if w.Artefacts[i].Path != path {
			continue
		}
		a := w.Artefacts[i]
		a.Text = text
		for _, r := range rules(w) {
			if !r.applies(&a) {
				continue
			}
			for _, f := range r.faults(&a) {
				at := yamlfile.Place{File: path, Line: f.line, Column: 1}
				problems = append(problems, yamlfile.Problem{Place: at, Message: r.name + ": " + f.message})
			}
		}
	}
	return problems
}

// LooksSecret reports whether a text has what looks like a secret.
func LooksSecret(text string) bool { return secret.MatchString(text) }
