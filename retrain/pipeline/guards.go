package pipeline

import (
	"fmt"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/quote"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// validateGuards checks what would make the generated configuration another one. What the keys mean is checked by the
// configuration itself.
func validateGuards(w *Work) {
	g := w.File.Guards
	switch g.Kind {
	case yamlfile.Absent:
	case yamlfile.Mapping:
		w.plainKeys("guards", g)
		if len(g.Members) == 0 {
			w.report("guards", "must contain limits")
		}
	default:
		w.report("guards", "must be a mapping that contains limits, not %s", g.Kind)
	}
}

// plainKeys reports keys that are no names.
func (w *Work) plainKeys(path string, v yamlfile.Value) {
	for i, item := range v.Items {
		w.plainKeys(element(path, i), item)
	}
	for _, key := range v.Keys() {
		at, member := yamlfile.JoinAny(path, key), v.Members[key]
		if !identifier.MatchString(key) {
			w.Problems = append(w.Problems, yamlfile.Problem{Place: member.Key, Path: at, Message: fmt.Sprintf("must be a name of letters, digits and underscores, not %q", key)})
		}
		w.plainKeys(at, member)
	}
}

// treeLine is a line of YAML that a value of the file makes.
type treeLine struct {
	path, text string
}

// treeLines returns a value as lines of YAML, so that each of its keys and items is on a separate line.
func treeLines(path string, v yamlfile.Value) []treeLine {
	var out []treeLine
	add := func(path, opening string, v yamlfile.Value) {
		if len(v.Items)+len(v.Members) == 0 {
			out = append(out, treeLine{path, opening + " " + asYAMLScalar(v)})
			return
		}
		inner := treeLines(path, v)
		if opening == "-" { // the first key is on the line of the hyphen
			inner[0].text = "- " + inner[0].text
			for i := range inner[1:] {
				inner[i+1].text = "  " + inner[i+1].text
			}
			out = append(out, inner...)
			return
		}
		out = append(out, treeLine{path, opening})
		for _, l := range inner {
			out = append(out, treeLine{l.path, "  " + l.text})
		}
	}
	for i, item := range v.Items {
		add(element(path, i), "-", item)
	}
	for _, key := range v.Keys() {
		add(yamlfile.JoinAny(path, key), key+":", v.Members[key])
	}
	return out
}

// asTree returns a value as YAML with an indentation, and each line as shown returns it.
func asTree(path string, v yamlfile.Value, indent int, shown func(treeLine) string) string {
	var lines []string
	for _, l := range treeLines(path, v) {
		lines = append(lines, strings.Repeat(" ", indent)+shown(l))
	}
	return strings.Join(lines, "\n")
}

// asYAMLScalar returns a value without members as YAML.
func asYAMLScalar(v yamlfile.Value) string {
	text, err := v.MarshalJSON()
	if err != nil { // a string is always JSON
		return "null"
	}
	if v.Kind == yamlfile.Number {
		return quote.WithPoint(string(text))
	}
	return string(text)
}
