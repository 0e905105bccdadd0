package pipeline

import (
	"errors"
	"os"
	"testing"

	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// Any text is either a pipeline in which no rule finds a fault, or an error with places.
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

// Lines of the file that are lost, doubled, indented or cut are mistakes with places, or make a pipeline without faults.
func TestBrokenFilesAreRefusedOrRight(t *testing.T) {
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
