package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// Options are what is not in the file.
type Options struct {
	Release string   // of this program, a tag or a commit; "" if it has none
	Filters []Filter // that run before verify, such as those that add artefacts
}

// Work is what passes through the filters.
type Work struct {
	Options   Options
	Path      string // of the file
	File      File
	Stages    []Stage
	Artefacts []Artefact
	Problems  []yamlfile.Problem
	Trace     []Step

	chain []*yamlfile.Reader // of the file and what it extends, the file first
}

// Step is what one filter did.
type Step struct {
	Filter string `json:"filter"`
	Did    string `json:"did"`
}

// Filter is one step of the work.
type Filter struct {
	Name string
	Run  func(*Work) (did string)
}

// Filters returns the filters in their order.
func Filters() []Filter {
	return []Filter{
		{"parse", parse},
		{"resolve", resolve},
		{"validate", validate},
		{"plan", plan},
		{"render", render},
		{"verify", verify},
	}
}

// filters returns all filters, with those of the caller.
func (o Options) filters() []Filter {
	all := Filters()
	return slices.Insert(all, len(all)-1, o.Filters...)
}

// Run passes a file through all filters up to and including the one named last, or through all for "". A mistake in the
// file or in an artefact is a *yamlfile.Error with all mistakes of the filter that found it.
func Run(path, last string, o Options) (*Work, error) {
	w := &Work{Path: path, Options: o}
	for _, f := range o.filters() {
		did := f.Run(w)
		w.Trace = append(w.Trace, Step{f.Name, did})
		if err := yamlfile.ErrorOf(w.Problems); err != nil {
			return w, err
		}
		if f.Name == last {
			break
		}
	}
	return w, nil
}

// place returns where a value was set last, or no place if no file sets it.
func (w *Work) place(path string) yamlfile.Place {
	for _, r := range w.chain {
		if r.Given(path) {
			return r.Place(path)
		}
	}
	return valuesOf(&w.File).places[path] // of what is in a tree, of which the reader knows the place of the whole alone
}

// Add adds an artefact that no template makes. Its text must contain Written.
func (w *Work) Add(path, text string) {
	if slices.ContainsFunc(w.Artefacts, func(a Artefact) bool { return a.Path == path }) {
		at := yamlfile.Place{File: path, Line: 1, Column: 1}
		w.Problems = append(w.Problems, yamlfile.Problem{Place: at, Message: "is generated already, by a template"})
		return
	}
	w.Artefacts = append(w.Artefacts, Artefact{Path: path, Text: text, template: strings.Split(text, "\n")})
	slices.SortFunc(w.Artefacts, byPath)
}

// report reports a problem with the value of a path, in the file that set it, or set the nearest value around it.
func (w *Work) report(path, format string, args ...any) {
	at := w.place(path)
	for around := path; at == (yamlfile.Place{}); { // a value that is missing
		i := strings.LastIndexAny(around, ".[")
		if i < 0 {
			at = yamlfile.Place{File: w.Path, Line: 1, Column: 1}
			break
		}
		around = around[:i]
		at = w.place(around)
	}
	w.Problems = append(w.Problems, yamlfile.Problem{Place: at, Path: path, Message: fmt.Sprintf(format, args...)})
}
