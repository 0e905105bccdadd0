package pipeline

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// Any input results in a pipeline in which no rule finds a fault, or in an error with places.
func FuzzFile(f *testing.F) {
	text, err := os.ReadFile(example)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	f.Add("project: a\n")
	f.Fuzz(func(t *testing.T, text string) {
		w, err := runText(t, text)
		if err != nil {
			if _, ok := errors.AsType[*yamlfile.Error](err); !ok {
				t.Fatalf("%v has no place", err)
			}
			return
		}
		for i := range w.Artefacts {
			for _, r := range rules(w) {
				if r.applies(&w.Artefacts[i]) {
					for _, fault := range r.faults(&w.Artefacts[i]) {
						t.Errorf("%s:%d: %s: %s", w.Artefacts[i].Path, fault.line, r.name, fault.message)
					}
				}
			}
		}
	})
}

// Any input results in a description with a deterministic plan, or in an error with places.
func FuzzPlan(f *testing.F) {
	for _, pattern := range []string{example, "testdata/*/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(text))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		file := filepath.Join(t.TempDir(), "pipeline.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		w, err := Run(file, "plan", Options{Release: "v0.1.0"})
		again, errAgain := Run(file, "plan", Options{Release: "v0.1.0"})
		if fmt.Sprint(err) != fmt.Sprint(errAgain) || !reflect.DeepEqual(w.Stages, again.Stages) {
			t.Fatalf("%v and then %v", err, errAgain)
		}
		if err != nil {
			haveAllPlaces(t, err)
			return
		}
		if n := len(w.Stages); n < 3 || w.Stages[n-1].Name != "deploy" && w.Stages[n-1].Name != "keep" {
			t.Fatalf("%+v", w.Stages)
		}
	})
}

// haveAllPlaces checks that an error consists of mistakes that all have places.
func haveAllPlaces(t *testing.T, err error) {
	t.Helper()
	mistakes, ok := errors.AsType[*yamlfile.Error](err)
	if !ok || len(mistakes.Problems) == 0 {
		t.Fatalf("%v has no place", err)
	}
	for _, p := range mistakes.Problems {
		if p.File == "" || p.Line < 1 || p.Column < 1 {
			t.Fatalf("%v has no place", p)
		}
	}
}

// Lines that are lost, doubled, indented or cut in a file are mistakes with places, or result in a pipeline without
// faults.
func TestSimBrokenFilesAreRefusedOrRight(t *testing.T) {
	text, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	refused, right := 0, 0
	for _, broken := range mutations(string(text)) {
		w, err := runText(t, broken)
		if err == nil {
			right++
			continue
		}
		refused++
		problems, ok := errors.AsType[*yamlfile.Error](err)
		if !ok || len(problems.Problems) == 0 {
			t.Fatalf("%v has no place, after %v", err, w.Trace)
		}
		for _, p := range problems.Problems {
			if p.Line < 1 {
				t.Errorf("%v has no place", p)
			}
		}
	}
	t.Logf("%d refused, %d right", refused, right)
	if refused < 100 || right < 20 {
		t.Errorf("%d refused, %d right", refused, right)
	}
}
