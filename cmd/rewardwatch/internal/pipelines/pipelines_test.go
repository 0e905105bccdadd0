package pipelines

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/config"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/retrain/recipe"
)

const example = "../../../../docs/examples/pipeline/pipeline.yaml"

// verb runs a verb of pipeline, and returns its output.
func verb(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	c := &terminal.Console{Out: &out, Err: &out, In: strings.NewReader("")}
	cmd := NewCommand(c, "v0.1.0")
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	cmd.SetArgs(args)
	err := cmd.Execute()
	return out.String(), err
}

func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	out, err := verb(t, args...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return out
}

// With --output json, mistakes are a result that programs can read.
func TestMistakesAsJSON(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pipeline.yaml")
	if err := os.WriteFile(file, []byte("project: Odd\nreleese: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"validate", file}, {"generate", "-o", t.TempDir(), file}, {"plan", file}, {"explain", file, "x"}} {
		var out bytes.Buffer
		cmd := NewCommand(&terminal.Console{Out: &out, Output: terminal.OutputJSON}, "v0.1.0")
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(args)
		err := cmd.Execute()
		var got struct{ Errors []terminal.FileError }
		if decoded := json.Unmarshal(out.Bytes(), &got); decoded != nil || !errors.Is(err, terminal.ErrReported) || len(got.Errors) == 0 {
			t.Errorf("%v: %v, %v: %s", args, err, decoded, &out)
			continue
		}
		if e := got.Errors[0]; e.File != file || e.Line != 2 || e.Column != 1 || e.Text != file+":2:1: "+e.Message || !strings.HasPrefix(e.Message, `unknown key "releese"`) {
			t.Errorf("%v: %+v", args, e)
		}
	}
}

// The service accepts the generated configuration and recipe.
func TestGeneratedConfigurationIsValid(t *testing.T) {
	dir := t.TempDir()
	if out := mustRun(t, "generate", "-o", dir, example); strings.Count(out, "new     ") != 30 {
		t.Errorf("%s", out)
	}
	cfg, err := config.Load(filepath.Join(dir, "pipeline", "rewardwatch.yml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(cfg.Retrain.Triggers) != 1 || !cfg.Retrain.Triggers[0].Approval {
		t.Errorf("%+v", cfg.Retrain)
	}
	if len(cfg.Policies) != 1 || cfg.Policies[0].Match != "cartpole" {
		t.Errorf("%+v", cfg.Policies)
	}
	recipes, err := recipe.Load(filepath.Join(dir, "pipeline", "recipes"), []string{"env"})
	if err != nil || recipes["cartpole"] == nil {
		t.Errorf("%v, %v", recipes, err)
	}
	if out := mustRun(t, "generate", "-o", dir, example); strings.Count(out, "same    ") != 30 {
		t.Errorf("%s", out)
	}
}

// The service accepts each way to start a pipeline.
func TestGeneratedTriggersAreValid(t *testing.T) {
	text, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(text), "trigger:\n")
	for _, trigger := range []string{
		"{target: github-actions, repository: a/b, token_file: /t}",
		"{target: gitlab-ci, repository: a/b/c, token_file: /t, ref: trunk}",
		"{target: airflow, url: \"https://airflow.example\", token_file: /t}",
		"{target: make, directory: /srv/cartpole, approval: true}",
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "pipeline.yaml")
		if err := os.WriteFile(file, []byte(before+"trigger: "+trigger+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		mustRun(t, "generate", "-o", dir, file)
		cfg, err := config.Load(filepath.Join(dir, "pipeline", "rewardwatch.yml"))
		if err != nil || len(cfg.Retrain.Targets) != 1 {
			t.Errorf("%s: %v", trigger, err)
		}
	}
}

func TestVerbsPrintWhatTheyDo(t *testing.T) {
	dir := t.TempDir()
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"validate": {[]string{"validate", example}, []string{"parse", "resolve", "validate", "plan      4 stages: train, evaluate, gate, deploy", "render", "verify"}},
		"plan":     {[]string{"plan", example}, []string{"gate      evaluate", "Wait for Rewardwatch's verdict"}},
		"diff":     {[]string{"diff", "-o", dir, example}, []string{"+++ b/pipeline/train.py", "+from stable_baselines3 import PPO"}},
		"explain":  {[]string{"explain", example, "pipeline/train.py"}, []string{"model.learn(100000)", "training.steps (" + example}},
		"line":     {[]string{"explain", example, "--line", "4"}, []string{"MODEL_CARD.md", "recipes/cartpole.yaml", "owner ("}},
		"schema":   {[]string{"schema"}, []string{`"$schema"`}},
		"init":     {[]string{"init", filepath.Dir(example)}, []string{"project: pipeline"}},
	} {
		out := mustRun(t, test.args...)
		for _, want := range test.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in\n%s", name, want, out)
			}
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("diff wrote %v", entries)
	}
}

func TestNothingIsWrittenAfterAMistake(t *testing.T) {
	dir := t.TempDir()
	text, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "pipeline.yaml")
	if err := os.WriteFile(file, bytes.ReplaceAll(text, []byte("cpu: 2"), []byte("cpu: 0.5")), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out")
	if _, err := verb(t, "generate", "-o", out, file); err == nil || !strings.Contains(err.Error(), "pipeline.yaml:2") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(out); !os.IsNotExist(err) {
		t.Errorf("the directory was made: %v", err)
	}
	for _, args := range [][]string{{"explain", example}, {"explain", example, "nothing"}, {"explain", example, "pipeline/train.py", "--line", "3"}} {
		if _, err := verb(t, args...); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}

// A warning has its place, and the files are generated.
func TestWarningsDoNotPreventThePipeline(t *testing.T) {
	text, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	file, dir := filepath.Join(t.TempDir(), "pipeline.yaml"), t.TempDir()
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), "https://rewardwatch.example.com", "http://10.0.0.7:9464", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	want := file + ":36:12: monitoring.service: warning: GitHub-hosted runners cannot reach 10.0.0.7, which is an address in a private network"
	for _, args := range [][]string{{"validate", file}, {"generate", "-o", dir, file}} {
		if out := mustRun(t, args...); !strings.HasPrefix(out, want) {
			t.Errorf("%v: %s", args, out)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "pipeline", "Dockerfile")); err != nil {
		t.Error(err)
	}
}

// Limits of a range that are 0 are limits.
func TestRangesOfZeroHaveTheirOwnError(t *testing.T) {
	text, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "pipeline.yaml")
	limit := strings.Replace(string(text), "return_below: 20", "range: {min: 0, max: 0}", 1)
	if err := os.WriteFile(file, []byte(limit), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := verb(t, "validate", file); err == nil || !strings.Contains(err.Error(), "guards.limits[1].range: min must be less than max") {
		t.Error(err)
	}
}
