package pipeline

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// inNoArtefact are the keys of the file that no artefact contains, with the reason.
var inNoArtefact = map[string]string{
	"extends":       "its file is read in its place: TestFilesExtendOneAnother",
	"model.url":     "fill alone reads it",
	"model.name":    "fill alone reads it",
	"model.timeout": "fill alone reads it",
	"model.calls":   "fill alone reads it",
	"model.readme":  "fill alone reads it",
}

// Each key of the schema affects an artefact: another value results in another pipeline.
func TestSimEachKeyReachesAnArtefact(t *testing.T) {
	if testing.Short() {
		t.Skip("it generates some hundred pipelines")
	}
	d := newDrawer(t, 1)
	own := t.TempDir()
	if err := os.WriteFile(filepath.Join(own, "extra.yaml.tmpl"), []byte("# "+header+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	leaves := maps.Clone(leaves)
	leaves["templates[]"] = func(*drawer) any { return own }
	leaves["extends"] = func(*drawer) any { return "" }
	leaves["trigger.target"] = func(d *drawer) any { return pick(d, GitHub, GitLab) } // other targets require other keys
	leaves["algorithm.name"] = func(d *drawer) any { return pick(d, "A2C", "SAC") }
	var bases []base
	for _, text := range reachBases(t) {
		bases = append(bases, newBase(t, text))
	}
	for _, key := range leafKeys("", d.schema) {
		reached := map[string]bool{}
		_, excused := inNoArtefact[key]
		for i, b := range bases {
			for draw := 0; draw < 6 && len(reached) == 0 && (i == 0 || !excused); draw++ {
				b.change(t, key, valueFor(d, key, leaves), reached)
			}
		}
		switch {
		case len(reached) == 0 && !excused:
			t.Errorf("%s is in no artefact", key)
		case len(reached) > 0 && excused:
			t.Errorf("%s is in %v", key, slices.Sorted(maps.Keys(reached)))
		}
		t.Logf("%s: %s", key, strings.Join(slices.Sorted(maps.Keys(reached)), " "))
	}
}

// reachBases are files that together have all keys: the unusual ones, one for each target of a trigger, and one with
// its own commands.
func reachBases(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/strangers/everything.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all := string(text)
	before, rest, _ := strings.Cut(all, "trigger: {")
	_, after, _ := strings.Cut(rest, "}\n")
	out := []string{all}
	for _, trigger := range []string{
		"target: gitlab-ci, repository: acme/x, ref: trunk, token_file: /t", "target: airflow, url: \"https://airflow.example.com\", token_file: /t", "target: make, directory: /srv/x",
	} {
		out = append(out, before+"trigger: {"+trigger+"}\n"+after)
	}
	alone := "project: alone\nrelease: v0.1.0\ntargets: [make]\nrequirements: [stable-baselines3==2.9.2, scipy==1.17.1, ale-py==0.12.1, opencv-python-headless==5.0.0.93]\nenvironments: [{id: Pole-v1}]\n" +
		"algorithm: {library: stable-baselines3, name: PPO}\nevaluation: {seeds: [1, 2]}\ndeploy: {command: [x]}\nimage: ghcr.io/acme/alone\n"
	custom := "project: own\nrelease: v0.1.0\ntargets: [make]\nrequirements: [gymnasium==1.2.2, numpy==2.4.6, torch==2.15.0, tyro==1.0.17, ray==2.60.0, stable-baselines3==2.9.2]\n" +
		"algorithm: {library: custom, name: PPO}\ntraining: {command: [train]}\nevaluation: {command: [evaluate]}\ndeploy: {command: [x]}\n"
	return append(out, custom, alone)
}

// base is a valid file with the artefacts that it generates.
type base struct {
	file map[string]any
	made map[string]string
}

func newBase(t *testing.T, text string) base {
	t.Helper()
	var b base
	if err := yaml.Unmarshal([]byte(text), &b.file); err != nil {
		t.Fatal(err)
	}
	var err error
	if b.made, err = madeOf(t, b.file); err != nil {
		t.Fatal(err)
	}
	return b
}

// madeOf returns the texts of the artefacts of a file by path.
func madeOf(t *testing.T, file map[string]any) (map[string]string, error) {
	t.Helper()
	text, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	w, err := runText(t, string(text))
	if err != nil {
		return nil, err
	}
	made := map[string]string{}
	for _, a := range w.Artefacts {
		made[a.Path] = a.Text
	}
	return made, nil
}

// change sets a key, and records the artefacts that differ. A file that is no longer valid is ignored.
func (b *base) change(t *testing.T, key string, value any, reached map[string]bool) {
	t.Helper()
	var file map[string]any
	text, err := json.Marshal(b.file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	set(file, strings.Split(key, "."), value)
	made, err := madeOf(t, file)
	if err != nil {
		return
	}
	for path, text := range made {
		if b.made[path] != text {
			reached[path] = true
		}
	}
}

// set sets a key in a mapping. In a path, key[] is the first element of a list: a value is inserted before the others.
func set(in map[string]any, path []string, value any) {
	key, inList := strings.CutSuffix(path[0], "[]")
	if len(path) == 1 {
		if before, _ := in[key].([]any); inList {
			value = append([]any{value}, before...)
		}
		in[key] = value
		return
	}
	var next map[string]any
	if list, _ := in[key].([]any); inList && len(list) > 0 {
		next, _ = list[0].(map[string]any)
	} else {
		next, _ = in[key].(map[string]any)
	}
	if next == nil {
		next = map[string]any{}
		if in[key] = next; inList {
			in[key] = []any{next}
		}
	}
	set(next, path[1:], value)
}

// leafKeys returns the keys of a schema that have scalar values.
func leafKeys(path string, schema map[string]any) []string {
	if properties, ok := schema["properties"].(map[string]any); ok {
		var out []string
		for _, key := range slices.Sorted(maps.Keys(properties)) {
			out = append(out, leafKeys(strings.TrimPrefix(path+"."+key, "."), properties[key].(map[string]any))...)
		}
		return out
	}
	if items, ok := schema["items"].(map[string]any); ok {
		return leafKeys(path+"[]", items)
	}
	return []string{path}
}

// valueFor draws a value of a key.
func valueFor(d *drawer, key string, leaves map[string]func(*drawer) any) any {
	d.t.Helper()
	if key == "algorithm.hyperparameters" {
		return map[string]any{"gamma": pick(d, .9, .99)}
	}
	if leaf, ok := leaves[key]; ok {
		return leaf(d)
	}
	at := d.schema
	for _, part := range strings.Split(key, ".") {
		name, inList := strings.CutSuffix(part, "[]")
		if at = at["properties"].(map[string]any)[name].(map[string]any); inList {
			at = at["items"].(map[string]any)
		}
	}
	of, ok := at["enum"].([]any)
	if !ok {
		d.t.Fatalf("%s has no values to draw", key)
	}
	return d.oneOf(of)
}
