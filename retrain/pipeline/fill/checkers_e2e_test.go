//go:build e2e

package fill

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline"
)

// Functions that pass the checks have no faults according to Python's linters and type checkers, whatever allowed names
// they use.
func TestE2ECheckersFindNoFaultInFilledFiles(t *testing.T) {
	for _, text := range functions {
		s := newService(t, func(w http.ResponseWriter, r *http.Request, hole string, call int) {
			if hole == "features" {
				say(w, text)
				return
			}
			right(w, r, hole, call)
		})
		w, dir := generated(t, s.URL, "")
		if _, _, err := Fill(t.Context(), w, dir); err != nil {
			t.Fatal(err)
		}
		_, changes, err := Accept(w, dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := pipeline.Write(changes, dir); err != nil {
			t.Fatal(err)
		}
		world := filepath.Join(dir, "pipeline", "world.py")
		for _, args := range [][]string{{"-m", "py_compile", world}, {"-m", "pyflakes", world}} {
			if out, err := exec.Command("../../../.cache/venv-pipeline/bin/python", args...).CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", strings.Join(args, " "), err, out)
			}
		}
	}
}
