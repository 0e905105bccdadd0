package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// arrows says what each room may import of the others, beside itself. The command may import all.
func arrows() map[string][]string {
	return map[string][]string{
		"ingest":              nil,
		"ingest/assemble":     {"ingest"},
		"ingest/checkpoint":   {"ingest"},
		"ingest/ingesttest":   {"ingest"},
		"detectors":           nil,
		"detectors/kstable":   {"detectors"}, // the generator of a table
		"detectors/bank":      {"detectors", "ingest"},
		"alerts":              {"detectors/bank", "ingest"},
		"retrain":             {"alerts", "detectors/bank", "ingest", "retrain/command", "retrain/yamlfile"},
		"retrain/command":     nil,
		"retrain/experience":  {"ingest", "ingest/assemble"},
		"retrain/expectation": {"ingest"},
		"retrain/yamlfile":    nil,
		"dashboards":          {"alerts", "detectors/bank", "ingest", "ingest/assemble", "retrain"}, // their metric names
	}
}

func TestRoomsImportAlongTheArrows(t *testing.T) {
	const module = "github.com/rewardwatch/rewardwatch/"
	allowed := arrows()
	seen := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		room, err := filepath.Rel("../..", filepath.Dir(path))
		if err != nil || strings.HasPrefix(room, "cmd") {
			return err
		}
		may, known := allowed[room]
		if !known {
			t.Errorf("%s is a room without arrows: say in arrows what it may import", room)
			return nil
		}
		seen[room] = true
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			if other, ours := strings.CutPrefix(name, module); ours && !slices.Contains(may, other) {
				t.Errorf("%s imports %s", path, other)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for room := range allowed {
		if !seen[room] {
			t.Errorf("%s has arrows but no Go files", room)
		}
	}
}
