package propose

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// runText passes the text of a file through all filters of the pipeline.
func runText(t *testing.T, text string) (*pipeline.Work, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pipeline.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return pipeline.Run(file, "", pipeline.Options{})
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
