package pipeline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// example is the file in the documentation.
const example = "../../docs/examples/pipeline/pipeline.yaml"

// trigger is the trigger section of the example.
const trigger = "trigger:\n  target: github-actions\n  repository: example/cartpole\n  token_file: /etc/rewardwatch/github.token\n  approval: true\n"

// run passes the example through all filters, with values replaced: old, new, old, new, ...
func run(t *testing.T, replaced ...string) (*Work, error) {
	t.Helper()
	return runText(t, exampleWith(t, replaced...))
}

// exampleWith returns the example with values replaced, as in run.
func exampleWith(t *testing.T, replaced ...string) string {
	t.Helper()
	text, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(replaced); i += 2 {
		if !strings.Contains(string(text), replaced[i]) {
			t.Fatalf("the example has no %q", replaced[i])
		}
		text = []byte(strings.ReplaceAll(string(text), replaced[i], replaced[i+1]))
	}
	return string(text)
}

func runText(t *testing.T, text string) (*Work, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pipeline.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Run(file, "", Options{})
}

func mustRun(t *testing.T, replaced ...string) *Work {
	t.Helper()
	w, err := run(t, replaced...)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// artefact returns the text of a generated file.
func artefact(t *testing.T, w *Work, path string) string {
	t.Helper()
	for _, a := range w.Artefacts {
		if a.Path == path {
			return a.Text
		}
	}
	t.Fatalf("there is no %s", path)
	return ""
}

// mutations returns a text with each of its lines lost, doubled, indented, cut behind its key, and with another value.
func mutations(text string) []string {
	lines := strings.SplitAfter(text, "\n")
	var out []string
	for i, line := range lines {
		if strings.TrimSpace(line) == "" || line[0] == '#' {
			continue
		}
		key, _, _ := strings.Cut(line, ":")
		for _, now := range []string{"", line + line, "  " + line, key + ":\n", key + ": odd value\n", key + ": -1\n"} {
			out = append(out, strings.Join(lines[:i], "")+now+strings.Join(lines[i+1:], ""))
		}
	}
	return out
}

// cleanRL and rllib are the replacements in the example for other libraries.
var (
	cleanRL = []string{
		"library: stable-baselines3", "library: cleanrl", "n_steps: 256", "num_steps: 256", "stable-baselines3==2.9.2", "torch==2.15.0\n  - tyro==1.0.17",
	}
	rllibOf = []string{
		"library: stable-baselines3", "library: rllib", "stable-baselines3==2.9.2", "\"ray[rllib]==2.60.0\"\n  - torch==2.15.0",
	}
	rllib = append([]string{"n_steps: 256, learning_rate: 3e-4", "lr: 3e-4, num_epochs: 4"}, rllibOf...)
)
