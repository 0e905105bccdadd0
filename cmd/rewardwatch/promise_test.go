package main

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what the release promises")

// nextRelease is the file of the release that is in the making. It is rewritten by `go test ./cmd/rewardwatch -run Promise
// -update` until the release is tagged. From then on it stays, and the release after it gets a file of its own.
const nextRelease = "0.1.txt"

// promises returns what users build on, a line each: keys of the configuration with their types, metrics with their labels,
// and the paths and fields of the API. The pages that they are read from are complete by tests of their packages.
func promises(t *testing.T) []string {
	t.Helper()
	read := func(file string) []byte {
		text, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	lines := map[string]bool{}
	key, section := regexp.MustCompile("^\\| `([^`]+)` \\| ([^|]+) \\|"), ""
	for line := range strings.Lines(string(read("docs/configuration.md"))) {
		if name, is := strings.CutPrefix(line, "## "); is {
			section = strings.TrimSpace(name)
		}
		if found := key.FindStringSubmatch(line); found != nil {
			lines["key "+section+"."+found[1]+": "+found[2]] = true
		}
	}
	metric, label := regexp.MustCompile("(?m)^\\| `(rewardwatch_\\w+)` \\| (\\w+) \\| ([^|]+) \\|"), regexp.MustCompile("`(\\w+)`|group")
	for _, found := range metric.FindAllStringSubmatch(string(read("docs/metrics.md")), -1) {
		lines["metric "+found[1]+": "+found[2]] = true
		for _, l := range label.FindAllString(found[3], -1) {
			lines["metric "+found[1]+": label "+strings.Trim(l, "`")] = true
		}
	}
	api(t, read("cmd/rewardwatch/internal/api/web/openapi.json"), lines)
	return slices.Sorted(maps.Keys(lines))
}

// api adds the paths with their parameters, and the fields of what they return.
func api(t *testing.T, openapi []byte, lines map[string]bool) {
	t.Helper()
	var page struct {
		Paths      map[string]map[string]struct{ Parameters []struct{ Name, In string } }
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct{ Type any }
			}
		}
	}
	if err := json.Unmarshal(openapi, &page); err != nil {
		t.Fatal(err)
	}
	for path, methods := range page.Paths {
		for method, operation := range methods {
			name := "path " + strings.ToUpper(method) + " " + path
			lines[name] = true
			for _, p := range operation.Parameters {
				lines[name+": "+p.In+" "+p.Name] = true
			}
		}
	}
	for name, schema := range page.Components.Schemas {
		for field, is := range schema.Properties {
			text, err := json.Marshal(is.Type)
			if err != nil {
				t.Fatal(err)
			}
			lines["field "+name+"."+field+": "+string(text)] = true
		}
	}
}

// What a release has promised is there in every build after it: what users wrote against it goes on to work. More may be added.
func TestPromisesOfReleasesAreKept(t *testing.T) {
	now := promises(t)
	if len(now) < 800 {
		t.Fatalf("only %d promises were found", len(now))
	}
	const dir = "testdata/promises"
	if *update {
		if err := os.WriteFile(filepath.Join(dir, nextRelease), []byte(strings.Join(now, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(dir + "/*.txt")
	if err != nil || !slices.Contains(files, filepath.Join(dir, nextRelease)) {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); !slices.Contains(now, line) {
				t.Errorf("%s: %s is gone, which breaks what users wrote", file, line)
			}
		}
	}
}
