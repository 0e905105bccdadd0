//go:build e2e

package pipeline

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The directory in which `make test` installs the checkers.
const (
	checkers = "../../.cache/venv-pipeline/bin"
	airflow  = "../../.cache/venv-airflow/bin"
	linter   = "../../.cache/bin/actionlint-v1.7.12"
)

// models checks Argo objects with the models of Argo's own API. Fields that these drop are not part of the API.
const models = `
import sys, yaml
from hera.workflows import models

def unknown(given, kept, path):
    if isinstance(given, dict):
        for key, value in given.items():
            if not isinstance(kept, dict) or key not in kept:
                yield f"{path}.{key}"
            else:
                yield from unknown(value, kept[key], f"{path}.{key}")
    elif isinstance(given, list):
        for i, value in enumerate(given):
            yield from unknown(value, kept[i], f"{path}[{i}]")

for name in sys.argv[1:]:
    for document in yaml.safe_load_all(open(name)):
        model = getattr(models, document["kind"]).model_validate(document)
        faults = list(unknown(document, model.model_dump(mode="json", by_alias=True, exclude_none=True), document["kind"]))
        if faults:
            sys.exit(f"{name}: unknown {faults}")
`

// specs checks Kubeflow pipelines with the messages of Kubeflow's own API, and loads them as the SDK does.
const specs = `
import sys, yaml
from google.protobuf.json_format import ParseDict
from kfp import components
from kfp.kubernetes import kubernetes_executor_config_pb2
from kfp.pipeline_spec import pipeline_spec_pb2

for name in sys.argv[1:]:
    pipeline, platform = yaml.safe_load_all(open(name))
    ParseDict(pipeline, pipeline_spec_pb2.PipelineSpec())
    ParseDict(platform, pipeline_spec_pb2.PlatformSpec())
    executors = platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    for executor in executors.values():
        ParseDict(executor, kubernetes_executor_config_pb2.KubernetesExecutorConfig())
    if set(executors) != set(pipeline["deploymentSpec"]["executors"]):
        sys.exit(f"{name}: the executors differ")
    components.load_component_from_file(name)
`

// dags loads DAGs as Airflow's DAG processor does. Each file must define one DAG whose last task follows all stages.
const dags = `
import sys
from airflow.dag_processing.dagbag import DagBag

for name in sys.argv[1:]:
    bag = DagBag(name)
    if bag.import_errors or len(bag.dags) != 1:
        sys.exit(f"{name}: {bag.import_errors}, {list(bag.dags)}")
    report, *tasks = next(iter(bag.dags.values())).tasks
    if report.upstream_task_ids != {t.task_id for t in tasks} or report.trigger_rule != "one_failed":
        sys.exit(f"{name}: {report} does not follow {tasks}")
    if [sorted(t.upstream_task_ids) for t in tasks] != [[], *([t.task_id] for t in tasks[:-1])]:
        sys.exit(f"{name}: {tasks} do not follow one another")
`

// furtherFiles lets maintainers check files that are not part of the repository.
var furtherFiles = flag.String("further-files", "", "directory with further pipeline files to check")

// variants are projects that differ in everything that the templates depend on.
func variants() map[string][]string {
	const (
		train    = "steps: 100000, cpu: 2, memory: 4Gi, timeout: 2h"
		gate     = "gate: {within: 4h, every: 5m}"
		schedule = "schedule: \"0 3 * * 1\"\n"
		param    = "simulation:\n  - {name: gravity, low: 9.3, high: 10.3}\n  - {name: length, low: 0.45, high: 0.55}\n"
		limit    = "  constraints:\n    - {metric: return, at_least: 300}\n"
		rollback = "rollback:\n  command: [python, deploy.py, --undo]\n"
		library  = "library: stable-baselines3\n  name: PPO\n  hyperparameters: {n_steps: 256, learning_rate: 3e-4}"
	)
	return map[string][]string{
		"the example":         nil,
		"odd words":           {"control@example.com", `"it's # \"on\" $HOME: \\ é 🎉"`, "Balances a pole on a cart.", "'| * _ < > ` $(id) ; & %'"},
		"odd command":         {"--to, production]", `--to, "it's; rm -rf $HOME", "a\\b", "\\", "\\'\\\\", "# x", "%s", "é"]`},
		"shortest name":       {"project: cartpole", "project: a"},
		"longest name":        {"project: cartpole", "project: a234567890123456789012345678901234567-9z"},
		"GPU":                 {train, "steps: 1, cpu: 16, memory: 512Mi, gpu: 1, timeout: 4d, runner: [self-hosted, gpu-8]"},
		"long gate":           {gate, "gate: {within: 4d, every: 1h, undecided: pass, runner: [self-hosted]}"},
		"no gate":             {gate, "gate: {skip: true}"},
		"export and shadow":   {"data:\n", "shadow: {command: [./serve.sh, --shadow]}\ndata:\n  export: true\n"},
		"no schedule":         {schedule, ""},
		"odd schedule":        {schedule, "schedule: \"*/15 0-6,22 1 JAN-MAR SUN\"\n"},
		"no simulation":       {param, ""},
		"no constraints":      {limit, ""},
		"many constraints":    {limit, limit + "    - {metric: episode_length, at_least: 1, at_most: 500}\n    - {metric: crashes, at_most: 0.05}\n", "id: CartPole-v1", "id: \"lab:CartPole-v1\""},
		"no telemetry":        {"telemetry: true", "telemetry: false", gate, "gate: {skip: true}"},
		"no rollback":         {rollback, ""},
		"own scripts":         {library, "library: custom", param, "", "steps: 100000,", "command: [bash, -c, \"make train\"],", "telemetry: true\n  constraints:\n    - {metric: return, at_least: 300}", "command: [make, evaluate]"},
		"several environs":    {"  - {id: CartPole-v1, env: lab}", "  - {id: \"ale_py:ALE/Pong-v5\"}\n  - {id: \"my_module:My.World-v0\", env: \"prod: eu\"}"},
		"private registry":    {"ghcr.io/example/cartpole", "registry.example.com:5000/ml/team-a/cartpole", "project: cartpole", "project: cartpole\nbase: registry.example.com:5000/python@sha256:" + strings.Repeat("a", 64)},
		"digest and commit":   {"release: v0.1.0", "release: " + strings.Repeat("1f", 20)},
		"CleanRL":             append([]string{"telemetry: true", "episodes: 6", "steps: 100000", "telemetry: true, steps: 10000"}, cleanRL...),
		"Atari":               {"id: CartPole-v1", "id: \"ale_py:ALE/Breakout-v5\"", "name: PPO\n", "name: PPO\n  policy: CnnPolicy\n  frame_stack: 4\n  atari: true\n", "  - scipy==1.17.1\n", "  - scipy==1.17.1\n  - ale-py==0.12.1\n  - opencv-python-headless==5.0.0.93\n"},
		"frames alone":        {"name: PPO\n", "name: PPO\n  frame_stack: 3\n", "telemetry: true", "episodes: 6"},
		"RLlib":               append([]string{"steps: 100000, cpu: 2", "telemetry: true, steps: 1, cpu: 1"}, rllib...),
		"RLlib alone":         append([]string{"telemetry: true", "episodes: 6", ", learning_rate: 3e-4}", ", learning_rate: 3e-4}"}, rllib...),
		"several brokers":     {"[\"kafka-1:9092\"]", "[\"kafka-1:9092\", \"[::1]:9093\"]"},
		"odd policy":          {"project: cartpole", "project: cartpole\npolicy: \"shop/ranker v2: it's\""},
		"deep arguments":      {"n_steps: 256", "policy_kwargs: {net_arch: {pi: [64, 64], vf: []}, squash: true, note: \"it's\"}, target_kl: null"},
		"another algorithm":   {param, "", "id: CartPole-v1", "id: Pendulum-v1", "at_least: 300", "at_least: -300", "name: PPO", "name: SAC", "n_steps: 256", "buffer_size: 1000000"},
		"one target":          {"[github-actions, gitlab-ci, argo, kubernetes, kubeflow, airflow, make]", "[kubernetes]", trigger, ""},
		"a budget in days":    {"per: 20000 episodes", "per: 30d", "budget: 1", "budget: 0.5"},
		"seeds and level":     {"telemetry: true", "telemetry: true\n  seeds: [0, 2147483647]\n  confidence: 0.999"},
		"requirement extras":  {"gymnasium==1.2.2", "gymnasium[box2d,mujoco]==1.2.2"},
		"started by make":     {trigger, "trigger: {target: make, directory: \"/srv/it's here\"}\n"},
		"secrets of stages":   {"data:\n", "shadow: {command: [serve], secrets: [SHADOW_KEY]}\ndata:\n", "deploy.py, --to, production]", "deploy.py]\n  secrets: [FLEET_KEY, FLEET_USER]"},
		"no Kafka":            {"data:\n  brokers: [\"kafka-1:9092\"]\n", ""},
		"service with a path": {"https://rewardwatch.example.com", "http://10.0.0.7:9464/ops"},
	}
}

// None of the checkers that these systems publish, or that are commonly used for them, finds a fault.
func TestE2ECheckersFindNoFault(t *testing.T) {
	dirs := map[string]string{}
	artefacts := 0
	generate := func(name string, w *Work, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		dirs[name] = t.TempDir()
		artefacts += len(w.Artefacts)
		if err := Write(newFiles(w.Artefacts), dirs[name]); err != nil {
			t.Fatal(err)
		}
	}
	for name, replaced := range variants() {
		w, err := run(t, replaced...)
		generate(name, w, err)
	}
	for i := range *randomFiles {
		seed := *randomSeed + uint64(i)
		w, err := runText(t, newDrawer(t, seed).file())
		generate(fmt.Sprintf("seed %d", seed), w, err)
	}
	projects, err := filepath.Glob("testdata/[ps]*/*.yaml") // test projects, and files in unusual styles
	if err != nil || len(projects) != 124 {
		t.Fatalf("%v, %v", projects, err)
	}
	if *furtherFiles != "" {
		further, err := filepath.Glob(filepath.Join(*furtherFiles, "*.yaml"))
		if err != nil || len(further) == 0 {
			t.Fatalf("%v, %v", further, err)
		}
		projects = append(projects, further...)
	}
	for _, file := range projects {
		w, err := Run(file, "", Options{Release: "v0.1.0"})
		generate(file, w, err)
	}
	t.Logf("%d projects, %d files", len(dirs), artefacts)
	files := func(pattern string) []string {
		var out []string
		for _, dir := range dirs {
			found, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, found...)
		}
		if len(out) < len(variants())-1 { // one variant has a single target
			t.Errorf("only %d of %s", len(out), pattern)
		}
		return differing(t, out)
	}
	scripts := slices.Concat(files("pipeline/stages/*.sh"), files("pipeline/run.sh"), files("pipeline/report.sh"))
	check(t, "shellcheck", append([]string{"--exclude", "SC2016"}, scripts...)...) // dollar signs in single quotes are intended
	for _, s := range scripts {
		check(t, "bash", "-n", s)
	}
	check(t, checkers+"/check-jsonschema", append([]string{"--builtin-schema", "vendor.github-workflows"}, files(".github/workflows/*.yml")...)...)
	check(t, checkers+"/check-jsonschema", append([]string{"--builtin-schema", "vendor.gitlab-ci", "--data-transform", "gitlab-ci"}, files(".gitlab-ci.yml")...)...)
	check(t, checkers+"/check-jsonschema", append([]string{"--builtin-schema", "vendor.compose-spec"}, files("pipeline/compose.yaml")...)...)
	for _, file := range files("pipeline/compose.yaml") {
		if err := loadCompose(t, file); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	check(t, checkers+"/hadolint", files("pipeline/Dockerfile")...)
	check(t, checkers+"/pyflakes", append(files("pipeline/airflow_dag.py"), scriptsOf(t, dirs, ".py")...)...)
	check(t, checkers+"/python", append([]string{"-m", "py_compile"}, scriptsOf(t, dirs, ".py")...)...)
	check(t, checkers+"/python", append([]string{"-c", models}, files("pipeline/argo.yaml")...)...)
	check(t, checkers+"/python", append([]string{"-c", specs}, files("pipeline/kubeflow.yaml")...)...)
	t.Setenv("AIRFLOW_HOME", t.TempDir())
	check(t, airflow+"/python", append([]string{"-c", dags}, files("pipeline/airflow_dag.py")...)...)
	var jobs []string
	for _, file := range files("pipeline/kubernetes.yaml") {
		jobs = append(jobs, named(t, file))
	}
	check(t, checkers+"/kubernetes-validate", append([]string{"--strict", "--quiet"}, jobs...)...)
	for _, file := range files("pipeline/Makefile") {
		check(t, "make", "--dry-run", "--file", file, "retrain")
		check(t, "make", "--dry-run", "--file", file, "HAS_LOCK=yes", "retrain")
	}
	lintWorkflows(t, files(".github/workflows/*.yml"))
}

// check runs a checker, which must find nothing.
func check(t *testing.T, program string, args ...string) {
	t.Helper()
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", filepath.Base(program), err, out)
	}
}

func scriptsOf(t *testing.T, dirs map[string]string, suffix string) []string {
	t.Helper()
	var out []string
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if strings.HasSuffix(path, suffix) {
				out = append(out, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return differing(t, out)
}

// differing returns one of each set of files with the same text, for checkers that examine files individually.
func differing(t *testing.T, files []string) []string {
	t.Helper()
	seen := map[string]bool{}
	return slices.DeleteFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		before := seen[string(text)]
		seen[string(text)] = true
		return before
	})
}

// named returns a copy of a job with a name, which the checker requires although the API would generate one.
func named(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "job.yaml")
	text = regexp.MustCompile(`(?m)^  generateName: (.*)-$`).ReplaceAll(text, []byte("  name: $1"))
	if err := os.WriteFile(copied, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return copied
}

// lintWorkflows runs actionlint with the generated labels, and shellcheck for the scripts in workflows.
func lintWorkflows(t *testing.T, files []string) {
	t.Helper()
	for _, file := range files { // actionlint reads its configuration only in Git repositories
		if err := os.MkdirAll(filepath.Join(filepath.Dir(file), "../../.git"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	check(t, linter, append([]string{"-shellcheck", "shellcheck"}, files...)...)
}

// The checkers report actual faults, so their silence is meaningful.
func TestE2ECheckersFindFaults(t *testing.T) {
	w, dir := mustRun(t), t.TempDir()
	if err := Write(newFiles(w.Artefacts), dir); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AIRFLOW_HOME", t.TempDir())
	for name, test := range map[string]struct {
		file, old, now string
		command        []string
	}{
		"workflow": {".github/workflows/retrain-cartpole.yml", "runs-on:", "runs_on:", []string{checkers + "/check-jsonschema", "--builtin-schema", "vendor.github-workflows"}},
		"action":   {".github/workflows/retrain-cartpole.yml", "needs: [build]", "needs: [built]", []string{linter}},
		"GitLab":   {".gitlab-ci.yml", "  stage: build", "  stages: build", []string{checkers + "/check-jsonschema", "--builtin-schema", "vendor.gitlab-ci"}},
		"compose":  {"pipeline/compose.yaml", "    volumes:", "    volume:", []string{checkers + "/check-jsonschema", "--builtin-schema", "vendor.compose-spec"}},
		"Argo":     {"pipeline/argo.yaml", "dependencies:", "depend:", []string{checkers + "/python", "-c", models}},
		"Kubeflow": {"pipeline/kubeflow.yaml", "dependentTasks:", "dependsOn:", []string{checkers + "/python", "-c", specs}},
		"Airflow":  {"pipeline/airflow_dag.py", "before >> task", "task >> task", []string{airflow + "/python", "-c", dags}},
		"Docker":   {"pipeline/Dockerfile", "pip install --no-cache-dir -r pipeline/requirements.txt", "cd x && pip install y", []string{checkers + "/hadolint"}},
		"shell":    {"pipeline/stages/gate.sh", `"$VERSION"`, `$VERSION`, []string{"shellcheck"}},
		"Python":   {"pipeline/train.py", "import functools\n", "", []string{checkers + "/pyflakes"}},
	} {
		file := filepath.Join(dir, filepath.FromSlash(test.file))
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), test.old) {
			t.Fatalf("%s: %v, no %q", name, err, test.old)
		}
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), test.old, test.now)), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(test.command[0], append(test.command[1:], file)...).CombinedOutput()
		if _, failed := errors.AsType[*exec.ExitError](err); !failed {
			t.Errorf("%s: no fault was found: %v\n%s", name, err, out)
		}
	}
}
