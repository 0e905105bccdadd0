package pipeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/parser"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/keep"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/secrets"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/words"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// maxRounds bounds the corrections of an artefact.
const maxRounds = 3

// rule is a check of artefacts. A fault with a unique correction is corrected.
type rule struct {
	name    string
	applies func(*Artefact) bool
	faults  func(*Artefact) []fault
	correct func(text string) string // nil if there is no correction
}

// fault is a mistake in an artefact.
type fault struct {
	line    int // from 1
	message string
}

func rules(w *Work) []rule {
	return []rule{
		{"spaces", everywhere, spaces, tidied},
		{"yaml", isYAML, syntax, nil},
		{"tabs", isYAML, tabs, nil},
		{"json", isJSON, notJSON, nil},
		{"shell", everywhere, unreadable, nil},
		{"pins", everywhere, unpinned, nil},
		{"secrets", everywhere, inClear, nil},
		{"keep", everywhere, unbalanced, nil},
		{"header", everywhere, withoutHeader, nil},
		{"references", everywhere, func(a *Artefact) []fault { return dangling(w, a) }, nil},
		{"wiring", everywhere, func(a *Artefact) []fault { return miswired(w, a) }, nil},
	}
}

// fromTemplate names the team's own template of an artefact, where the user must correct the mistake.
func (a *Artefact) fromTemplate() string {
	if a.source == "" {
		return ""
	}
	return " (generated from " + a.source + ")"
}

// verify checks all artefacts. Faults that remain after the corrections are reported at their lines.
func verify(w *Work) string {
	corrected := 0
	for i := range w.Artefacts {
		a := &w.Artefacts[i]
		for range maxRounds {
			if !correct(w, a) {
				break
			}
			corrected++
		}
		for _, r := range rules(w) {
			if !r.applies(a) {
				continue
			}
			for _, f := range r.faults(a) {
				w.Problems = append(w.Problems, yamlfile.Problem{Place: yamlfile.Place{File: a.Path, Line: f.line, Column: 1}, Message: r.name + ": " + f.message + a.fromTemplate()})
			}
		}
	}
	return fmt.Sprintf("%d generated files checked by %d rules, %d corrected", len(w.Artefacts), len(rules(w)), corrected)
}

// correct corrects an artefact once, and reports whether anything changed.
func correct(w *Work, a *Artefact) bool {
	before := a.Text
	for _, r := range rules(w) {
		if r.correct != nil && r.applies(a) && len(r.faults(a)) > 0 {
			a.Text = r.correct(a.Text)
		}
	}
	return a.Text != before
}

func everywhere(*Artefact) bool { return true }

func isYAML(a *Artefact) bool {
	return strings.HasSuffix(a.Path, ".yml") || strings.HasSuffix(a.Path, ".yaml")
}

func isJSON(a *Artefact) bool { return strings.HasSuffix(a.Path, ".json") }

func notJSON(a *Artefact) []fault {
	var at *json.SyntaxError
	if err := json.Unmarshal([]byte(a.Text), new(any)); errors.As(err, &at) {
		return []fault{{1 + strings.Count(a.Text[:min(int(at.Offset), len(a.Text))], "\n"), "is not JSON: " + err.Error()}}
	}
	return nil
}

// unreadable returns the syntax error of a shell script.
func unreadable(a *Artefact) []fault {
	if line, wrong := words.Unreadable(a.Text); wrong != "" {
		return []fault{{line, "is not a shell script: " + wrong}}
	}
	return nil
}

// eachLine returns the faults that check finds in the lines of an artefact.
func eachLine(a *Artefact, check func(line string) string) []fault {
	var out []fault
	for i, line := range strings.Split(a.Text, "\n") {
		if message := check(line); message != "" {
			out = append(out, fault{i + 1, message})
		}
	}
	return out
}

func spaces(a *Artefact) []fault {
	out := eachLine(a, func(line string) string {
		if line != strings.TrimRight(line, " \t\r") {
			return "the line ends with white space"
		}
		return ""
	})
	if !strings.HasSuffix(a.Text, "\n") || strings.HasSuffix(a.Text, "\n\n") {
		out = append(out, fault{strings.Count(a.Text, "\n") + 1, "the file must end with exactly one newline"})
	}
	return out
}

// tidied removes trailing white space and blank lines at the end. Other lines keep their numbers.
func tidied(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \t\r")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
}

func syntax(a *Artefact) []fault {
	file, err := parser.ParseBytes([]byte(a.Text), 0)
	if err != nil {
		return []fault{yamlFault(err)}
	}
	for _, doc := range file.Docs {
		var into any
		if doc.Body == nil {
			continue
		}
		if err := yaml.NodeToValue(doc.Body, &into); err != nil {
			return []fault{yamlFault(err)}
		}
	}
	return nil
}

func yamlFault(err error) fault {
	var at yaml.Error
	if errors.As(err, &at) && at.GetToken() != nil {
		return fault{at.GetToken().Position.Line, "is not YAML: " + at.GetMessage()}
	}
	return fault{1, "is not YAML: " + err.Error()}
}

func tabs(a *Artefact) []fault {
	return eachLine(a, func(line string) string {
		if strings.HasPrefix(strings.TrimLeft(line, " "), "\t") {
			return "YAML must not be indented with tabs"
		}
		return ""
	})
}

var (
	uses       = regexp.MustCompile(`^\s*(?:- )?uses:\s*(\S+)`)
	usedPinned = regexp.MustCompile(`^(\./.*|[^@]+@[0-9a-f]{40})$`)
	from       = regexp.MustCompile(`^FROM\s+(\S+)`)
	imageLine  = regexp.MustCompile(`^\s*(?:- )?image:\s*"?([^\s"]+)"?$`)
	piece      = regexp.MustCompile(`(==|@ )`)
)

// unpinned finds references whose meaning may change later.
func unpinned(a *Artefact) []fault {
	requirements := strings.HasSuffix(a.Path, "requirements.txt")
	dockerfile := strings.Contains(path.Base(a.Path), "Dockerfile")
	return eachLine(a, func(line string) string {
		if m := uses.FindStringSubmatch(line); m != nil && !usedPinned.MatchString(m[1]) {
			return "action " + m[1] + " is not pinned to a commit"
		}
		if m := from.FindStringSubmatch(line); m != nil && dockerfile && !pinnedImage.MatchString(m[1]) {
			return "image " + m[1] + " has neither a version nor a digest"
		}
		if m := imageLine.FindStringSubmatch(line); m != nil && !pinnedImage.MatchString(m[1]) && !builtHere(m[1]) {
			return "image " + m[1] + " has neither a version nor a digest"
		}
		if requirements && line != "" && line[0] != '#' && !piece.MatchString(line) {
			return "package " + line + " has no exact version"
		}
		return ""
	})
}

// builtHere reports whether an image is the pipeline's own, whose tag is set when it runs.
func builtHere(image string) bool {
	return strings.ContainsAny(image, "${") || strings.HasSuffix(image, ":__TAG__")
}

// inClear finds secrets.
func inClear(a *Artefact) []fault {
	return eachLine(a, func(line string) string {
		if secrets.Found(line) {
			return secrets.Message
		}
		return ""
	})
}

func unbalanced(a *Artefact) []fault {
	if _, err := keep.Parts(a.Text); err != nil {
		return []fault{{1, err.Error()}}
	}
	return nil
}

const (
	header     = keep.Header
	actionlint = keep.Actionlint
)

// Written is part of the first lines of every generated file without keep markers.
const Written = keep.Written

func withoutHeader(a *Artefact) []fault {
	if !strings.Contains(a.Text, header) {
		return []fault{{1, "the text must contain: " + header}}
	}
	return nil
}

var (
	script   = regexp.MustCompile(`pipeline/[A-Za-z0-9_./-]*\.(?:sh|py|yml|yaml|txt)`)
	stageRun = regexp.MustCompile(`pipeline/run\.sh ([a-z]+)`)
)

// dangling finds references to generated files and stages that do not exist.
func dangling(w *Work, a *Artefact) []fault {
	exists := func(path string) bool {
		return slices.ContainsFunc(w.Artefacts, func(b Artefact) bool { return b.Path == path })
	}
	// Values of the file are ignored, because they may refer to files of the project.
	own := Artefact{Text: strings.Join(a.template, "\n")}
	return eachLine(&own, func(line string) string {
		for _, path := range script.FindAllString(line, -1) {
			if !exists(path) {
				return "there is no generated file " + path
			}
		}
		if m := stageRun.FindStringSubmatch(line); m != nil && !slices.ContainsFunc(w.Stages, func(s Stage) bool { return s.Name == m[1] }) {
			return "there is no stage " + m[1]
		}
		return ""
	})
}

// CheckText returns the faults that verify would find if a text replaced that of an artefact.
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
