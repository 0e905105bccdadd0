package pipeline

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/strict"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// maxAncestors bounds the chain of files that extend each other.
const maxAncestors = 8

// parse reads the file and its ancestors, and merges them, starting with the root ancestor.
func parse(w *Work) string {
	var texts [][]byte
	paths := []string{w.Path}
	for at := 0; at < len(paths); at++ {
		text, parent, ok := w.read(paths[at], at)
		if !ok {
			return ""
		}
		texts = append(texts, text)
		if parent != "" {
			paths = append(paths, parent)
		}
	}
	for i := len(texts) - 1; i >= 0; i-- {
		w.File.Extends = ""
		r := yamlfile.Read(paths[i], texts[i], &w.File)
		if i < len(texts)-1 {
			strict.Remove(r, &w.File)
		}
		w.chain = append(w.chain, r)
		w.Problems = append(w.Problems, strict.Advised(r.Problems())...)
	}
	slices.Reverse(w.chain)
	strict.OneLine(reflect.ValueOf(&w.File).Elem())
	return fmt.Sprintf("%d file(s): %v", len(paths), paths)
}

// read loads the file at a depth of the chain, and returns the path of its parent, or "".
func (w *Work) read(path string, depth int) (text []byte, parent string, ok bool) {
	text, err := yamlfile.Load(path)
	if err != nil {
		w.Problems = append(w.Problems, yamlfile.Problem{Place: yamlfile.Place{File: path, Line: 1, Column: 1}, Message: "cannot be read: " + err.Error()})
		return nil, "", false
	}
	if depth == 0 && strict.IsBlank(text) {
		w.Problems = append(w.Problems, yamlfile.Problem{Place: yamlfile.Place{File: path, Line: 1, Column: 1}, Message: "is empty: rewardwatch pipeline init proposes a first version"})
		return nil, "", false
	}
	var f File
	r := yamlfile.Read(path, text, &f)
	if f.Extends == "" {
		return text, "", true
	}
	if depth == maxAncestors {
		w.Problems = append(w.Problems, yamlfile.Problem{Place: r.Place("extends"), Path: "extends", Message: fmt.Sprintf("must not lead back to this file or to more than %d files", maxAncestors)})
		return nil, "", false
	}
	parent = f.Extends
	if !filepath.IsAbs(parent) {
		parent = filepath.Join(filepath.Dir(path), parent)
	}
	if _, err := yamlfile.Load(parent); err != nil {
		w.Problems = append(w.Problems, yamlfile.Problem{Place: r.Place("extends"), Path: "extends", Message: "cannot be read: " + err.Error()})
		return nil, "", false
	}
	return text, parent, true
}
