package pipeline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// If a file does not set the URL of the service, each target uses the default that works for it.
func TestStagesReachTheServiceByDefault(t *testing.T) {
	const given = "  service: https://rewardwatch.example.com\n"
	w, with := mustRun(t, given, ""), mustRun(t)
	for file, want := range map[string]string{
		"pipeline/argo.yaml":                     "- name: REWARDWATCH_SERVICE\n            value: http://rewardwatch:9464\n",
		"pipeline/kubernetes.yaml":               "- name: REWARDWATCH_SERVICE\n              value: http://rewardwatch:9464\n",
		"pipeline/kubeflow.yaml":                 "- name: REWARDWATCH_SERVICE\n            value: http://rewardwatch:9464\n",
		".github/workflows/retrain-cartpole.yml": "  REWARDWATCH_SERVICE: ${{ vars.REWARDWATCH_SERVICE }}\n",
		".gitlab-ci.yml":                         "# Set REWARDWATCH_SERVICE, the URL of Rewardwatch, as a project variable",
		"pipeline/stages/gate.sh":                "SERVICE=${REWARDWATCH_SERVICE:-'http://127.0.0.1:9464'}\n",
	} {
		if text := artefact(t, w, file); !strings.Contains(text, want) {
			t.Errorf("%s: no %q in\n%s", file, want, text)
		}
		if text := artefact(t, with, file); strings.Contains(text, want) {
			t.Errorf("%s: %q although the file names the service", file, want)
		}
	}
	// GitHub-hosted runners cannot reach a service on localhost, so they fail immediately with a message about the
	// missing setting.
	const check, own = `test -n "$REWARDWATCH_SERVICE"`, "gate: {within: 4h, every: 5m, runner: [lab]}"
	for name, test := range map[string]struct {
		w    *Work
		want bool
	}{
		"GitHub's machines": {w, true}, "named": {with, false},
		"own machines": {mustRun(t, given, "", "gate: {within: 4h, every: 5m}", own, "cpu: 2,", "cpu: 2, runner: [lab],"), false},
		"reports":      {mustRun(t, given, "", "gate: {within: 4h, every: 5m}", "gate: {skip: true}"), true},
		"evaluation":   {mustRun(t, given, "", "gate: {within: 4h, every: 5m}", own, trigger, ""), true},
		"no questions": {mustRun(t, given, "", "gate: {within: 4h, every: 5m}", "gate: {skip: true}", "telemetry: true", "telemetry: false", trigger, ""), false},
	} {
		if got := strings.Contains(artefact(t, test.w, ".github/workflows/retrain-cartpole.yml"), check); got != test.want {
			t.Errorf("%s: checked %v, want %v", name, got, test.want)
		}
	}
}

// Telemetry of a stage is sent to the service that the stage polls.
func TestTelemetryGoesToTheService(t *testing.T) {
	stage := staged(t, "")
	if code, calls := stage("evaluate", "REWARDWATCH_SERVICE=http://rewardwatch:9464"); code != 0 || !strings.Contains(calls, "url http://rewardwatch:9464") {
		t.Errorf("exit code %d\n%s", code, calls)
	}
}

// Stages that prepare a version run on the runners of the training, and those that access the registry or production on
// the runners of the gate.
func TestStagesRunOnTheirMachines(t *testing.T) {
	w := mustRun(t, "cpu: 2,", "cpu: 2, runner: [big],", "gate: {within: 4h, every: 5m}", "gate: {within: 4h, every: 5m, runner: [inside]}")
	workflow := artefact(t, w, ".github/workflows/retrain-cartpole.yml")
	for stage, want := range map[string]string{"build": "[inside]", "train": "[big]", "evaluate": "[big]", "gate": "[inside]", "deploy": "[inside]"} {
		_, job, _ := strings.Cut(workflow, "\n  "+stage+":\n")
		if _, on, _ := strings.Cut(job, "runs-on: "); !strings.HasPrefix(on, want+"\n") {
			t.Errorf("%s runs on %s, want %s", stage, on[:20], want)
		}
	}
}

// If a command leaves its model elsewhere, the stage fails. Otherwise, an old model of the image or of an earlier run
// would be deployed.
func TestTrainingLeavesAModel(t *testing.T) {
	const generated = "  hyperparameters: {n_steps: 256, learning_rate: 3e-4}\nsimulation:\n  - {name: gravity, low: 9.3, high: 10.3}\n  - {name: length, low: 0.45, high: 0.55}\n"
	for name, test := range map[string]struct {
		old, command string
		code         int
	}{
		"nothing": {"", "my.py", 1}, "of the run before": {"model.pt", "my.py", 1}, "a model": {"model.pt", "--leave, model.pt", 0}, "in a directory": {"runs/1/old.pt", "--leave, runs/1/model.pt", 0},
	} {
		stage, work := staged(t, "", generated, "", "training: {steps: 100000,", "training: {command: [python, "+test.command+"],"), t.TempDir()
		if test.old != "" {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(work, test.old)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(work, test.old), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if code, calls := stage("train", "WORK="+work); code != test.code {
			t.Errorf("%s: exit code %d, want %d\n%s", name, code, test.code, calls)
		}
	}
}

// A pipeline whose gate can never decide, or whose contract can never be judged, is rejected, because it would fail
// each time after hours.
func TestGateAndContractCanBeJudged(t *testing.T) {
	const signals = "  signals: [return, action, \"observation.*\"]\n"
	const expected = "  expected: mean return >= 0.95 * baseline over 200 episodes within 7d\n"
	for name, test := range map[string]struct {
		replaced []string
		want     string
	}{
		"not monitored":         {[]string{signals, "  signals: [reward]\n"}, "monitoring.expected: must be about a signal that monitoring.signals includes, not return"},
		"an outcome":            {[]string{expected, "  expected: mean outcome.sale >= 0.95 * baseline over 200 episodes within 7d\n"}, "monitoring.expected: must be about a signal that monitoring.signals includes, not outcome.sale"},
		"a small baseline":      {[]string{signals, signals + "  baseline: 100\n"}, "monitoring.baseline: must be at least 223, and preferably 500: with a smaller baseline, the gate never finds a version to be the same"},
		"a patient gate":        {[]string{signals, signals + "  baseline: 100\n", "every: 5m}", "every: 5m, undecided: pass}"}, ""},
		"no data":               {[]string{"evaluation:\n  telemetry: true\n", "evaluation:\n  telemetry: false\n"}, "pipeline.yaml:26:14: evaluation.telemetry: must be true, because the gate has no other data"},
		"data of a shadow":      {[]string{"evaluation:\n  telemetry: true\n", "shadow: {command: [serve]}\nevaluation:\n  telemetry: false\n"}, ""},
		"few episodes":          {[]string{"evaluation:\n", "evaluation:\n  episodes: 2\n  seeds: [1, 2]\n"}, "pipeline.yaml:26:13: evaluation.episodes: must be at least 15 with 2 seeds"},
		"episodes of a shadow":  {[]string{"evaluation:\n", "shadow: {command: [serve]}\nevaluation:\n  episodes: 2\n  seeds: [1, 2]\n"}, ""},
		"an outcome of several": {[]string{expected, "  expected: mean observation.angle >= 0.95 * baseline over 200 episodes within 7d\n"}, ""},
	} {
		if _, err := run(t, test.replaced...); (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	w := mustRun(t, signals, "  signals: [reward]\n", expected, "")
	if got := w.File.Monitoring.Expected; !strings.HasPrefix(got, "mean reward >= ") {
		t.Errorf("without returns, %q is expected", got)
	}
}

// Services on a private network, with secrets, and over TLS can be configured.
func TestConfigurationOfTriggers(t *testing.T) {
	const github = "  target: github-actions\n  repository: example/cartpole\n"
	for name, test := range map[string]struct{ now, want string }{
		"Airflow":    {"  target: airflow\n  url: http://127.0.0.1:8080\n", "\n      allow_private: true"},
		"GitLab":     {"  target: gitlab-ci\n  repository: a/b\n  url: https://gitlab.example.com\n", ", url: \"https://gitlab.example.com\"}\n      allow_private: true"},
		"Enterprise": {"  target: github-actions\n  repository: a/b\n  url: https://github.example.com/api/v3\n", ", url: \"https://github.example.com/api/v3\"}\n      allow_private: true"},
	} {
		if text := artefact(t, mustRun(t, github, test.now), "pipeline/rewardwatch.yml"); !strings.Contains(text, test.want) {
			t.Errorf("%s: no %q in\n%s", name, test.want, text)
		}
	}
	text := artefact(t, mustRun(t, github, "  target: make\n  directory: /srv/x\n", "  token_file: /etc/rewardwatch/github.token\n", ""), "pipeline/rewardwatch.yml")
	if !strings.Contains(text, "[ ! -f .env.retrain ] || . ./.env.retrain; unset IMAGE REQUEST RUN VERSION; exec /usr/bin/make") || strings.Contains(text, "allow_private") {
		t.Error(text)
	}
	for _, want := range []string{"    # rewardwatch:keep kafka\n", "\n  - match: \"cartpole-training\"\n    learning: continuous\n"} {
		text := artefact(t, mustRun(t, append([]string{"steps: 100000", "telemetry: true, steps: 10000"}, cleanRL...)...), "pipeline/rewardwatch.yml")
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// Commands are lists, which no shell interprets, and simulation parameters have both bounds.
func TestCommandsAreLists(t *testing.T) {
	for command, want := range map[string]string{
		`["python deploy.py"]`:              "deploy.command[0]: must be a program without arguments",
		`[python, deploy.py, "&&", x]`:      "deploy.command[2]: must not be &&",
		`["/opt/my tools/deploy", "a | b"]`: "",
		`["/opt/my tools/deploy", "|"]`:     "deploy.command[1]: must not be |",
		`[python, "~/deploy.py"]`:           "deploy.command[1]: must not contain ~/",
		`[sh, -c, "a && b > $HOME/x"]`:      "",
		`[deploy, "two words", "a&&b|c"]`:   "",
	} {
		if _, err := run(t, "[python, deploy.py, --to, production]", command); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", command, err, want)
		}
	}
	if _, err := run(t, "{name: gravity, low: 9.3, high: 10.3}", "{name: gravity, low: -11}"); err == nil || !strings.Contains(err.Error(), "simulation[0]: must have low and high") {
		t.Error(err)
	}
}
