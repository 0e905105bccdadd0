package wired

import (
	"strings"
	"testing"
)

func TestRepeatedLinesGrowWithTheStages(t *testing.T) {
	for _, file := range []string{".github/workflows/retrain-a.yml", "pipeline/argo.yaml"} {
		three, four := Repeated(file, 3, 1, false), Repeated(file, 4, 2, false)
		for i, b := range three {
			if four[i].Text != b.Text || four[i].Times <= b.Times || !strings.HasPrefix(b.Text, "\n ") {
				t.Errorf("%s: %q: %d times, and %d with another stage", file, b.Text, b.Times, four[i].Times)
			}
		}
	}
	if with, without := len(Repeated(".github/workflows/a.yml", 3, 1, false)), len(Repeated(".github/workflows/a.yml", 3, 1, true)); with != without+1 {
		t.Errorf("%d lines, and %d for an Enterprise Server", with, without)
	}
	if Repeated("pipeline/Makefile", 3, 1, false) != nil {
		t.Error("a Makefile has repeated lines")
	}
}
