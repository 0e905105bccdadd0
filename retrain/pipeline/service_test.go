package pipeline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file that does not say where the service is gets what reaches it from each orchestrator.
func TestStagesReachTheServiceByDefault(t *testing.T) {
	const given = "  service: https://rewardwatch.example.com\n"
	w, with := mustRun(t, given, ""), mustRun(t)
	for file, want := range map[string]string{
		"pipeline/argo.yaml":                     "- name: REWARDWATCH_SERVICE\n            value: http://rewardwatch:9464\n",
		"pipeline/kubernetes.yaml":               "- name: REWARDWATCH_SERVICE\n              value: http://rewardwatch:9464\n",
		"pipeline/kubeflow.yaml":                 "- name: REWARDWATCH_SERVICE\n            value: http://rewardwatch:9464\n",
		".github/workflows/retrain-cartpole.yml": "  REWARDWATCH_SERVICE: ${{ vars.REWARDWATCH_SERVICE }}\n",
		".gitlab-ci.yml":                         "# Set REWARDWATCH_SERVICE, the URL of Rewardwatch, as a variable",
		"pipeline/stages/gate.sh":                "SERVICE=${REWARDWATCH_SERVICE:-'http://127.0.0.1:9464'}\n",
	} {
		if text := artefact(t, w, file); !strings.Contains(text, want) {
			t.Errorf("%s: no %q in\n%s", file, want, text)
		}
		if text := artefact(t, with, file); strings.Contains(text, want) {
			t.Errorf("%s: %q although the file names the service", file, want)
		}
	}
	// GitHub's machines cannot reach a service on their own address, so they say at once what is missing.
	const check, own = `test -n "$REWARDWATCH_SERVICE"`, "gate: {within: 4h, every: 5m, runner: [lab]}"
	for name, test := range map[string]struct {
		w    *Work
		want bool
	}{
		"GitHub's machines": {w, true}, "named": {with, false},
		"own machines": {mustRun(t, given, "", "gate: {within: 4h, every: 5m}", own), false},
		"no gate":      {mustRun(t, given, "", "gate: {within: 4h, every: 5m}", "gate: {skip: true}", "  expected: mean return >= 0.95 * baseline over 200 episodes within 7d\n", ""), false},
	} {
		if got := strings.Contains(artefact(t, test.w, ".github/workflows/retrain-cartpole.yml"), check); got != test.want {
			t.Errorf("%s: checked %v, want %v", name, got, test.want)
		}
	}
}

// Telemetry of a stage goes to the service that the stage asks.
func TestTelemetryGoesToTheService(t *testing.T) {
	stage := staged(t, "")
	if code, calls := stage("evaluate", "REWARDWATCH_SERVICE=http://rewardwatch:9464"); code != 0 || !strings.Contains(calls, "url http://rewardwatch:9464") {
		t.Errorf("exit code %d\n%s", code, calls)
	}
}

// What prepares a version runs on the machines of the training, what faces production on those of the gate.
func TestStagesRunOnTheirMachines(t *testing.T) {
	w := mustRun(t, "cpu: 2,", "cpu: 2, runner: [big],", "gate: {within: 4h, every: 5m}", "gate: {within: 4h, every: 5m, runner: [inside]}")
	workflow := artefact(t, w, ".github/workflows/retrain-cartpole.yml")
	for stage, want := range map[string]string{"build": "ubuntu-24.04", "train": "[big]", "evaluate": "[big]", "gate": "[inside]", "deploy": "[inside]"} {
		_, job, _ := strings.Cut(workflow, "\n  "+stage+":\n")
		if _, on, _ := strings.Cut(job, "runs-on: "); !strings.HasPrefix(on, want+"\n") {
			t.Errorf("%s runs on %s, want %s", stage, on[:20], want)
		}
	}
}

// A command that leaves its model elsewhere would have an old model of the image deployed.
func TestTrainingLeavesAModel(t *testing.T) {
	const generated = "  hyperparameters: {n_steps: 256, learning_rate: 3e-4}\nsimulation:\n  - {name: gravity, low: 9.3, high: 10.3}\n  - {name: length, low: 0.45, high: 0.55}\n"
	stage := staged(t, "", generated, "", "training: {steps: 100000,", "training: {command: [python, my.py],")
	for name, test := range map[string]struct {
		files []string
		code  int
	}{
		"nothing": {nil, 1}, "only data": {[]string{"experience.parquet"}, 1}, "only old versions": {[]string{"versions/v1.tar.gz"}, 1},
		"a model": {[]string{"model.pt"}, 0}, "a directory": {[]string{"runs/1/model.pt"}, 0}, "hidden": {[]string{".hydra/config.yaml"}, 0},
	} {
		work := t.TempDir()
		for _, file := range test.files {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(work, file)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(work, file), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if code, calls := stage("train", "WORK="+work); code != test.code {
			t.Errorf("%s: exit code %d, want %d\n%s", name, code, test.code, calls)
		}
	}
}
