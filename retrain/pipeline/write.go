package pipeline

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/keep"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/secrets"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// Change is the change that generating makes to a file.
type Change struct {
	Path       string
	Before     string // "" if the file does not exist
	After      string
	Exists     bool
	Executable bool
	Removed    bool // whether it was generated earlier but is no longer an artefact
}

// Changed reports whether the file would change.
func (c *Change) Changed() bool { return !c.Exists || c.Before != c.After }

// Changes compares the artefacts with a directory. It preserves kept parts of the files. A file that was not generated,
// or whose kept parts have no place in the new text, is a problem, so that nothing written by people is lost.
func Changes(w *Work, dir string) ([]Change, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return newFiles(w.Artefacts), nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // it was only read
	var changes []Change
	var problems []yamlfile.Problem
	for i := range w.Artefacts {
		if w.Artefacts[i].Path == actionlint && keep.HasOwnLabels(root) {
			continue
		}
		c, err := change(root, &w.Artefacts[i])
		if err != nil {
			problems = append(problems, problemIn(dir, c.Path, 1, err.Error()))
		}
		for _, f := range c.miswritten() {
			problems = append(problems, problemIn(dir, c.Path, f.line, f.message+", with the lines between keep markers"))
		}
		if line := keep.Secret(c.Before); line > 0 {
			problems = append(problems, problemIn(dir, c.Path, line, secrets.Message+"; read it from the environment instead"))
		}
		changes = append(changes, c)
	}
	if other := keep.OtherProject(root, w.File.Project); other != "" {
		problems = append(problems, problemIn(dir, keep.Recipe(other), 1, fmt.Sprintf("belongs to the pipeline of project %s, which the pipeline of %s would overwrite: generate into another directory (-o); "+
			"if you have renamed the project, rename this file to %s.yaml, and remove %s if there is one", other, w.File.Project, w.File.Project, keep.Workflow(other))))
	}
	gone, err := keep.Stale(root, w.File.Project, func(path string) bool {
		return slices.ContainsFunc(w.Artefacts, func(a Artefact) bool { return a.Path == path })
	})
	if err != nil {
		return nil, err
	}
	for _, f := range gone {
		c := Change{Path: f.Path, Before: f.Text, Exists: true, Removed: true}
		written, err := keep.Parts(keep.Untouched(embedded, c.Path, c.Before, ""))
		if err != nil || slices.ContainsFunc(slices.Collect(maps.Values(written)), func(s string) bool { return strings.TrimSpace(s) != "" }) {
			problems = append(problems, problemIn(dir, c.Path, 1, "is no longer generated, but contains lines between keep markers: move them, and remove the file"))
		}
		changes = append(changes, c)
	}
	return changes, yamlfile.ErrorOf(problems)
}

func problemIn(dir, path string, line int, message string) yamlfile.Problem {
	return yamlfile.Problem{Place: yamlfile.Place{File: filepath.Join(dir, path), Line: line, Column: 1}, Message: message}
}

func newFiles(artefacts []Artefact) []Change {
	var out []Change
	for i := range artefacts {
		a := &artefacts[i]
		out = append(out, Change{Path: a.Path, After: a.Text, Executable: a.Executable()})
	}
	return out
}

func change(root *os.Root, a *Artefact) (Change, error) {
	c := Change{Path: a.Path, After: a.Text, Executable: a.Executable()}
	before, err := root.ReadFile(filepath.FromSlash(a.Path))
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	c.Exists, c.Before = true, string(before)
	if !strings.Contains(c.Before, header) {
		return c, errors.New("exists but was not generated: move it, or generate into another directory")
	}
	c.After, err = keep.Merged(a.Text, keep.Untouched(embedded, a.Path, c.Before, a.Text))
	return c, err
}

// miswritten returns syntax errors in a YAML file that are caused by its kept lines, such as a repeated key.
func (c *Change) miswritten() []fault {
	merged := Artefact{Path: c.Path, Text: c.After}
	if !c.Exists || !isYAML(&merged) {
		return nil
	}
	return syntax(&merged)
}

// temporary is the suffix of a file until it is complete.
const temporary = ".new"

// Write writes the changed files, each atomically, and none outside of the directory. If a problem is found in advance,
// it changes no file.
func Write(changes []Change, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	var done []string
	for i := range changes {
		if c := &changes[i]; c.Changed() {
			done = append(done, filepath.FromSlash(c.Path)+temporary)
			if err := prepare(root, c); err != nil {
				for _, path := range done {
					_ = root.Remove(path) // the last one may not exist
				}
				return errors.Join(fmt.Errorf("write %s: %w; no files were changed", c.Path, err), root.Close())
			}
		}
	}
	done = nil
	for i := range changes {
		if c := &changes[i]; c.Changed() {
			if err := finish(root, filepath.FromSlash(c.Path), c.Removed); err != nil {
				return errors.Join(fmt.Errorf("write %s: %w; already written: %s", c.Path, err, strings.Join(done, ", ")), root.Close())
			}
			done = append(done, c.Path)
		}
	}
	return root.Close()
}

// prepare writes a temporary file next to its place. For a file to be removed, this tests whether its directory is
// writable.
func prepare(root *os.Root, c *Change) error {
	path := filepath.FromSlash(c.Path)
	if err := root.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	mode := os.FileMode(0o644)
	if c.Executable {
		mode = 0o755
	}
	return root.WriteFile(path+temporary, []byte(c.After), mode)
}

func finish(root *os.Root, path string, removed bool) error {
	if removed {
		return errors.Join(root.Remove(path+temporary), root.Remove(path))
	}
	return root.Rename(path+temporary, path)
}
