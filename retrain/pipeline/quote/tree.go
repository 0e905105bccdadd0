package quote

import (
	"fmt"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// Line is a line of YAML with the path of its value.
type Line struct {
	Path, Text string
}

// lines returns a value as YAML, with each key and item on its own line.
func lines(path string, v yamlfile.Value) []Line {
	var out []Line
	add := func(path, opening string, v yamlfile.Value) {
		if len(v.Items)+len(v.Members) == 0 {
			out = append(out, Line{path, opening + " " + yamlScalar(v)})
			return
		}
		inner := lines(path, v)
		if opening == "-" { // the first key shares the line of the hyphen
			inner[0].Text = "- " + inner[0].Text
			for i := range inner[1:] {
				inner[i+1].Text = "  " + inner[i+1].Text
			}
			out = append(out, inner...)
			return
		}
		out = append(out, Line{path, opening})
		for _, l := range inner {
			out = append(out, Line{l.Path, "  " + l.Text})
		}
	}
	for i, item := range v.Items {
		add(fmt.Sprintf("%s[%d]", path, i), "-", item)
	}
	for _, key := range v.Keys() {
		add(yamlfile.JoinAny(path, key), key+":", v.Members[key])
	}
	return out
}

// Tree returns a value as indented YAML. shown renders each line.
func Tree(path string, v yamlfile.Value, indent int, shown func(Line) string) string {
	var out []string
	for _, l := range lines(path, v) {
		out = append(out, strings.Repeat(" ", indent)+shown(l))
	}
	return strings.Join(out, "\n")
}

// yamlScalar returns a value without members in YAML.
func yamlScalar(v yamlfile.Value) string {
	text, err := v.MarshalJSON()
	if err != nil { // not reached: every value is valid JSON
		return "null"
	}
	if v.Kind == yamlfile.Number {
		return WithPoint(string(text))
	}
	return string(text)
}
