package pipeline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The configuration of actionlint lists each label of a self-hosted runner once, and no other labels.
func TestLabelsOfOwnMachines(t *testing.T) {
	const gate = "gate: {within: 4h, every: 5m}"
	of := func(runner string) *Work {
		return mustRun(t, "timeout: 2h", "timeout: 2h, runner: "+runner, gate, "gate: {within: 4h, every: 5m, runner: [self-hosted, gpu-a100, \"8\"]}")
	}
	if text := artefact(t, of("[self-hosted, Linux, gpu-a100]"), actionlint); !strings.Contains(text, "\n  labels:\n    - gpu-a100\n    - \"8\"\n    # rewardwatch:keep labels\n") {
		t.Error(text)
	}
	for _, lost := range []string{"    - gpu-a100\n", "  labels:\n", "self-hosted-runner:\n"} {
		w := of("[gpu-a100]")
		for i := range w.Artefacts {
			if a := &w.Artefacts[i]; a.Path == actionlint && CheckText(w, actionlint, strings.Replace(a.Text, lost, "", 1)) == nil {
				t.Errorf("%q can be lost", lost)
			}
		}
	}
	w := mustRun(t, "timeout: 2h", "timeout: 2h, runner: [self-hosted, Linux, X64]", gate, "gate: {within: 4h, every: 5m, runner: [ubuntu-24.04-arm]}")
	for _, a := range w.Artefacts {
		if a.Path == actionlint {
			t.Errorf("labels of GitHub's own are listed:\n%s", a.Text)
		}
	}
	w = mustRun(t, "[github-actions, gitlab-ci, argo, kubernetes, kubeflow, airflow, make]", "[gitlab-ci]", "timeout: 2h", "timeout: 2h, runner: [gpu-a100]", trigger, "", "cpu: 2, memory: 4Gi, ", "", "image: ghcr.io/example/cartpole\n", "")
	for _, a := range w.Artefacts {
		if a.Path == actionlint {
			t.Errorf("without GitHub Actions, there is\n%s", a.Text)
		}
	}
}

// A team's own configuration of actionlint is preserved, whatever its extension, and no other is generated.
func TestOwnConfigurationOfActionlintStays(t *testing.T) {
	w := mustRun(t, "timeout: 2h", "timeout: 2h, runner: [gpu-a100]", "gate: {within: 4h, every: 5m}", "gate: {within: 4h, every: 5m}")
	for name, written := range map[string]bool{"actionlint.yaml": false, "actionlint.yml": false, "other.yml": true} {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, ".github"), 0o700); err != nil {
			t.Fatal(err)
		}
		own := filepath.Join(dir, ".github", name)
		if err := os.WriteFile(own, []byte("paths: {}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		changes, err := Changes(w, dir)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := Write(changes, dir); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(own); err != nil || string(text) != "paths: {}\n" {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
		_, err = os.Stat(filepath.Join(dir, filepath.FromSlash(actionlint)))
		if !written && name != "actionlint.yaml" && err == nil || written && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// If there are no more labels, the file is removed, unless a person has added to it.
func TestLabelsThatAreGone(t *testing.T) {
	dir := t.TempDir()
	write := func(runner string) error {
		w := mustRun(t, "timeout: 2h", "timeout: 2h, runner: "+runner)
		changes, err := Changes(w, dir)
		if err != nil {
			return err
		}
		return Write(changes, dir)
	}
	file := filepath.Join(dir, filepath.FromSlash(actionlint))
	if err := write("[gpu-a100]"); err != nil {
		t.Fatal(err)
	}
	if err := write("[self-hosted]"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the file stays")
	}
	if err := write("[gpu-a100]"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), "    # rewardwatch:end", "    - of-another-workflow\n    # rewardwatch:end", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := write("[gpu-h100]"); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "- gpu-h100\n") || !strings.Contains(string(text), "- of-another-workflow\n") {
		t.Errorf("%v\n%s", err, text)
	}
	if err := write("[self-hosted]"); err == nil || !strings.Contains(err.Error(), "is no longer generated, but contains lines between keep markers") {
		t.Errorf("labels of a person would be lost: %v", err)
	}
}

// The image of a base does not change over time.
func TestBasesThatMove(t *testing.T) {
	for base, moves := range map[string]bool{
		"python:3.12-slim": true, "python:3": true, "docker.io/library/python:3.12": true, "harbor.example:443/mirror/python:3.11-slim": true,
		"debian:12": true, "ghcr.io/acme/base:latest-py3": true, "nvcr.io/nvidia/jax:nightly-2": true,
		"python:3.12.11-slim-bookworm": false, "debian:12.9": false, "ubuntu:24.04": false, "nvcr.io/nvidia/jax:24.10-py3": false,
		"ghcr.io/acme/base:17": false, "ghcr.io/nvidia/jax:jax-2025-06-01": false, "vllm/vllm-openai:v0.8.5": false, "python@sha256:" + strings.Repeat("a", 64): false,
	} {
		_, err := run(t, "project: cartpole", "project: cartpole\nbase: "+base)
		if moves != (err != nil && strings.Contains(err.Error(), "base: must ")) || !moves && err != nil {
			t.Errorf("%s: %v", base, err)
		}
	}
}

// A project's own evaluation can send the data on which the gate decides.
func TestOwnEvaluationsCanSend(t *testing.T) {
	w := mustRun(t, "telemetry: true\n  constraints:\n    - {metric: return, at_least: 300}", "command: [make, evaluate]")
	if text := artefact(t, w, "pipeline/stages/evaluate.sh"); !strings.Contains(text, "export REWARDWATCH_TOKEN_FILE=") || !strings.Contains(text, "export REWARDWATCH_URL=") {
		t.Error(text)
	}
	for file, want := range map[string]string{
		".github/workflows/retrain-cartpole.yml": "REWARDWATCH_TELEMETRY_TOKEN: ${{ secrets.REWARDWATCH_TELEMETRY_TOKEN }}",
		"pipeline/argo.yaml":                     "key: telemetry-token",
		"pipeline/kubernetes.yaml":               "key: telemetry-token",
		"pipeline/kubeflow.yaml":                 "secretKey: telemetry-token",
	} {
		if text := artefact(t, w, file); strings.Count(text, want) != 1 {
			t.Errorf("%s has %q %d times", file, want, strings.Count(text, want))
		}
	}
	if text := artefact(t, w, "pipeline/world.py"); strings.Contains(text, "import rewardwatch") {
		t.Error("scripts that send nothing import the package")
	}
}

// Rewardwatch's package requires Python 3.11, so images with an older Python do not install it.
func TestOwnEvaluationsInOldPythons(t *testing.T) {
	for base, want := range map[string]bool{
		"python:3.7.17-slim-bookworm": false, "python:3.9.25-slim-bookworm": false, "python:3.10.19-slim-bookworm": false,
		"python:3.11.14-slim-bookworm": true, "python:3.12.12-slim-bookworm": true, "ghcr.io/acme/train:1.2.3": true,
	} {
		text := "project: ranker\nbase: " + base + "\nalgorithm: {library: custom}\nrelease: v0.1.0\ntargets: [make]\nrequirements: [tqdm==4.67.1]\n" +
			"training: {steps: 1000, command: [make, train]}\nevaluation: {command: [make, evaluate]}\n"
		w, err := runText(t, text)
		if err != nil {
			t.Fatal(err)
		}
		if has := strings.Contains(artefact(t, w, "pipeline/requirements.txt"), "\nrewardwatch @ "); has != want {
			t.Errorf("%s: %v", base, has)
		}
	}
}

// mujoco-py compiles itself when it is imported, which the user of the containers can do.
func TestMuJoCoPyCompilesItself(t *testing.T) {
	const line = "\nRUN chmod -R a+rwX \"$(python -c"
	if text := artefact(t, mustRun(t, "scipy==1.17.1", "scipy==1.17.1\n  - mujoco-py==2.1.2.14"), "pipeline/Dockerfile"); !strings.Contains(text, line) {
		t.Error(text)
	}
	if text := artefact(t, mustRun(t), "pipeline/Dockerfile"); strings.Contains(text, line) {
		t.Error(text)
	}
}
