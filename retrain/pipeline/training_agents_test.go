//go:build agents

package pipeline

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The generated training and evaluation run: PPO learns to balance the pole while gravity varies, and the evaluation
// keeps one constraint and breaks another.
func TestGeneratedTrainingRuns(t *testing.T) {
	venv, err := filepath.Abs("../../.cache/venv-agents/bin")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		least string
		fails bool
	}{"kept": {"20", false}, "broken": {"501", true}} { // an episode has at most 500 steps
		w := mustRun(t, "telemetry: true", "episodes: 3", "steps: 100000", "steps: 4000", "at_least: 300", "at_least: "+test.least)
		dir := t.TempDir()
		if err := Write(newFiles(w.Artefacts), dir); err != nil {
			t.Fatal(err)
		}
		stage := func(name string) (string, error) {
			cmd := exec.Command(filepath.Join(dir, "pipeline", "stages", name+".sh"))
			cmd.Env = append(os.Environ(), "PATH="+venv+":"+os.Getenv("PATH"), "WORK="+filepath.Join(dir, "work"), "VERSION=v2")
			out, err := cmd.CombinedOutput()
			return string(out), err
		}
		if out, err := stage("train"); err != nil {
			t.Fatalf("%s: train: %v\n%s", name, err, out)
		}
		out, err := stage("evaluate")
		if (err != nil) != test.fails || test.fails && !strings.Contains(out, "return in CartPole-v1: ") {
			t.Errorf("%s: evaluate: %v\n%s", name, err, out)
		}
		report, err := os.ReadFile(filepath.Join(dir, "work", "evaluation.json"))
		if err != nil || !strings.Contains(string(report), `"version": "v2"`) {
			t.Errorf("%s: %v\n%s", name, err, report)
		}
	}
}
