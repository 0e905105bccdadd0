package pipeline

import (
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// Explained is a line of an artefact with the values of the file that it contains.
type Explained struct {
	File    string   `json:"file"`
	Line    int      `json:"line"`
	Text    string   `json:"text"`
	Origins []Origin `json:"origins"` // none if the line is from the template alone
}

// Explain returns the lines of an artefact that contain values of the file or, if all is true, all lines.
func Explain(a *Artefact, all bool) []Explained {
	var out []Explained
	for i, text := range strings.Split(strings.TrimSuffix(a.Text, "\n"), "\n") {
		e := Explained{File: a.Path, Line: i + 1, Text: text}
		for _, o := range a.Origins {
			if o.Line == e.Line {
				e.Origins = append(e.Origins, o)
			}
		}
		if all || len(e.Origins) > 0 {
			out = append(out, e)
		}
	}
	return out
}

// Made returns the lines of all artefacts that contain values from a line of a file.
func Made(w *Work, file string, line int) []Explained {
	var out []Explained
	for i := range w.Artefacts {
		for _, e := range Explain(&w.Artefacts[i], false) {
			if slices.ContainsFunc(e.Origins, func(o Origin) bool { return at(o.Place, file, line) }) {
				out = append(out, e)
			}
		}
	}
	return out
}

func at(p yamlfile.Place, file string, line int) bool { return p.File == file && p.Line == line }
