package pipeline

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// staged generates a pipeline and returns a function that runs one of its stages, with fake programs: rewardwatch
// records its arguments and exits with the next of the given exit codes of the gate, sleep returns immediately, and
// each call of date is a minute later.
func staged(t *testing.T, verdicts string, replaced ...string) (runs func(stage string, env ...string) (code int, calls string)) {
	t.Helper()
	dir := t.TempDir()
	if err := Write(newFiles(mustRun(t, replaced...).Artefacts), dir); err != nil {
		t.Fatal(err)
	}
	programs := map[string]string{
		"rewardwatch": `echo "$*" >> "$CALLS"
[ "$2" = export ] && [ -n "${EXPORTED:-}" ] && exit "$EXPORTED"
case $* in *" succeeded "*) [ "$(grep -c " succeeded " "$CALLS")" -gt "${REFUSED:-0}" ] || exit "${REFUSAL:-1}" ;; esac
[ "$1" = gate ] || exit 0
read -r code < "$VERDICTS" || exit 3
sed -i 1d "$VERDICTS"
exit "$code"`,
		"sleep": `echo "sleep $*" >> "$CALLS"`,
		"date": `n=$(cat "$CALLS.time" 2>/dev/null || echo 0)
echo $((n + 60)) > "$CALLS.time"
[ "$1" = +%s ] && echo "$n" || echo 2026-11-25T00-00-00Z`,
		"python": `if [ "$1" = --hang ]; then kill "$PPID"; exec /bin/sleep 60; fi
if [ "$1" = --leave ]; then mkdir -p "$(dirname "$WORK/$2")"; echo > "$WORK/$2"; fi
[ -z "${REWARDWATCH_URL:-}" ] || echo "url $REWARDWATCH_URL" >> "$CALLS"
echo "python $*" >> "$CALLS"; [ "$2" != --break ]`,
	}
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, body := range programs {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+body+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	calls, codes, work := filepath.Join(dir, "calls"), filepath.Join(dir, "verdicts"), filepath.Join(dir, "work")
	if err := os.WriteFile(codes, []byte(strings.ReplaceAll(verdicts, " ", "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(work, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(work, "version"), []byte("v7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return func(stage string, env ...string) (int, string) {
		t.Helper()
		cmd := exec.Command(filepath.Join(dir, "pipeline", "stages", stage+".sh"))
		cmd.Env = append([]string{"PATH=" + bin + ":" + os.Getenv("PATH"), "CALLS=" + calls, "VERDICTS=" + codes, "WORK=" + work}, env...)
		passBefore(t, stage, cmd.Env)
		out, err := cmd.CombinedOutput()
		if err != nil && cmd.ProcessState == nil {
			t.Fatalf("%v\n%s", err, out)
		}
		text, _ := os.ReadFile(calls)
		return cmd.ProcessState.ExitCode(), string(text)
	}
}

// passBefore records that the stages before one that uses a version have passed it in its run, unless they have
// recorded something themselves.
func passBefore(t *testing.T, stage string, env []string) {
	t.Helper()
	of := map[string]string{"RUN": "a run by hand"}
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		of[name] = value
	}
	version, err := os.ReadFile(filepath.Join(of["WORK"], "version"))
	if noted, _ := filepath.Glob(filepath.Join(of["WORK"], "passed.*")); err != nil || len(noted) > 0 {
		return
	}
	for _, before := range []string{"train", "evaluate", "shadow", "gate"} {
		if before == stage {
			return
		}
		text := strings.TrimSpace(string(version)) + ", " + of["REQUEST"] + ", " + of["RUN"] + "\n"
		if err := os.WriteFile(filepath.Join(of["WORK"], "passed."+before), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// NaN violates a constraint.
func TestConstraintsAreKeptByNumbersAlone(t *testing.T) {
	dir := t.TempDir()
	if err := Write(newFiles(mustRun(t, "at_least: 300", "at_least: 300, at_most: 500").Artefacts), dir); err != nil {
		t.Fatal(err)
	}
	const program = `
import sys
from unittest import mock
for name in ("scipy", "scipy.stats", "stable_baselines3", "rewardwatch", "world"):
    sys.modules[name] = mock.MagicMock()
import evaluate
for low, high in ((301, 499), (299, 499), (301, 501), (float("nan"), float("nan"))):
    print(len(list(evaluate.broken({"x": {"return": {"low": low, "high": high}}}))))
`
	cmd := exec.Command("python3", "-c", program)
	cmd.Dir = filepath.Join(dir, "pipeline")
	cmd.Env = append(os.Environ(), "PYTHONPATH="+cmd.Dir)
	out, err := cmd.CombinedOutput()
	if got := strings.Join(strings.Fields(string(out)), " "); err != nil || got != "0 1 1 2" {
		t.Errorf("%v\n%s", err, out)
	}
}

// Two environments may have the same id and differ in their labels.
func TestEachEnvironmentHasItsResults(t *testing.T) {
	dir := t.TempDir()
	w := mustRun(t, "  - {id: CartPole-v1, env: lab}", "  - {id: CartPole-v1, env: lab}\n  - {id: CartPole-v1, env: field}\n  - {id: CartPole-v1}")
	if err := Write(newFiles(w.Artefacts), dir); err != nil {
		t.Fatal(err)
	}
	const program = `
import json, os, sys, types
from unittest import mock
for name in ("scipy", "scipy.stats", "stable_baselines3", "rewardwatch", "agent"):
    sys.modules[name] = mock.MagicMock()
sys.modules["world"] = types.SimpleNamespace(ENVIRONMENTS=[("CartPole-v1", "lab"), ("CartPole-v1", "field"), ("CartPole-v1", None)], EMITTER=mock.MagicMock())
import evaluate
evaluate.evaluate = lambda act, id, env: {"return": {"low": {"lab": 299, "field": 301, None: 302}[env], "high": 400}}
code = evaluate.main()
report = json.load(open("evaluation.json"))
print(code, sorted(report["environments"]), report["broken"])
`
	cmd := exec.Command("python3", "-c", program)
	cmd.Dir = filepath.Join(dir, "pipeline")
	cmd.Env = append(os.Environ(), "PYTHONPATH="+cmd.Dir, "WORK="+cmd.Dir, "VERSION=v")
	out, err := cmd.CombinedOutput()
	want := "1 ['CartPole-v1', 'CartPole-v1 in field', 'CartPole-v1 in lab'] ['return in CartPole-v1 in lab: 299 is below the minimum of 300']"
	if !strings.Contains(string(out), want) {
		t.Errorf("%v, want %s\n%s", err, want, out)
	}
}

// The resources of the training, and the owner of the files that a container writes, also apply on one's own machine.
func TestContainersOfAMachineHaveTheirLimits(t *testing.T) {
	w := mustRun(t)
	for file, want := range map[string]string{"pipeline/run.sh": "train | evaluate) resources=\"--cpus 2 --memory 4g --shm-size 4g", "pipeline/compose.yaml": "    shm_size: 4g", "pipeline/Makefile": `run --rm --user "$$(id -u):$$(id -g)" train pipeline/stages/evaluate.sh`} {
		if text := artefact(t, w, file); !strings.Contains(text, want) {
			t.Errorf("%s: no %q in\n%s", file, want, text)
		}
	}
}

// The evaluation has the GPU of the training too, and no other stage does.
func TestEvaluationHasTheGPU(t *testing.T) {
	w := mustRun(t, "timeout: 2h", "timeout: 2h, gpu: 1, runner: [gpu]")
	for file, want := range map[string]string{"pipeline/argo.yaml": "nvidia.com/gpu:", "pipeline/kubernetes.yaml": "nvidia.com/gpu:", "pipeline/kubeflow.yaml": "resourceType: nvidia.com/gpu"} {
		text := artefact(t, w, file)
		first, last := strings.Index(text, "stages/evaluate.sh"), strings.Index(text, "stages/gate.sh")
		if strings.Count(text, want) != 2 || strings.Count(text[first:last], want) != 1 {
			t.Errorf("%s: the evaluation has no GPU, or another stage has one\n%s", file, text)
		}
	}
}

// Two runs in a checkout would mix their files. The second one fails, whether it is started with make or run.sh.
func TestRunsDoNotShareTheirDirectory(t *testing.T) {
	dir := t.TempDir()
	if err := Write(newFiles(mustRun(t).Artefacts), dir); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{
		"docker":    "case $* in *evaluate.sh*) for again in ./by-make ./by-script; do $again > again 2>&1 && exit 1; grep 'Another run is using work/.' again >> refused; done ;; esac",
		"by-make":   "exec env -u MAKEFLAGS -u HAS_LOCK -u MFLAGS make --file pipeline/Makefile train",
		"by-script": "exec pipeline/run.sh train",
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte("#!/bin/sh\nPATH=$OLD_PATH\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the lock is released when a run ends
		run := exec.Command("make", "--file", "pipeline/Makefile", "retrain")
		run.Dir = dir
		run.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "OLD_PATH="+os.Getenv("PATH"))
		if out, err := run.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	refused, _ := os.ReadFile(filepath.Join(dir, "refused"))
	if n := strings.Count(string(refused), "Another run"); n != 4 {
		t.Errorf("%d runs were refused: %s", n, refused)
	}
}

// A base without CA certificates receives them, and others are not changed.
func TestImagesHaveCertificates(t *testing.T) {
	const step = "RUN if [ -e /etc/ssl/certs/ca-certificates.crt ]"
	for base, want := range map[string]bool{"": false, "base: python:3.12.3-slim-bookworm\n": false, "base: debian:12.11-slim\n": true} {
		w := mustRun(t, "project: cartpole\n", "project: cartpole\n"+base)
		if text := artefact(t, w, "pipeline/Dockerfile"); strings.Contains(text, step) != want {
			t.Errorf("%s\n%s", base, text)
		}
	}
}

// A signal ends a stage immediately, with a report, because orchestrators soon kill what still runs.
func TestStageEndsAtASignal(t *testing.T) {
	stage := staged(t, "", "deploy.py, --to, production]", "--hang, now]")
	start := time.Now()
	code, calls := stage("deploy", "REQUEST=rr_1")
	if code != 143 || !strings.Contains(calls, "retrain status rr_1 failed --error stage deploy ended with exit code 143") || !strings.Contains(calls, "python deploy.py --undo") {
		t.Errorf("exit code %d\n%s", code, calls)
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
}

// All processes of a deployment end before it is rolled back, even if they ignore TERM.
func TestDeploymentThatIsUndoneDoesNotGoOn(t *testing.T) {
	const goesOn = "#!/bin/sh\ntrap '' TERM\nwhile true; do echo deployed >> trace; sleep 0.05; done\n"
	for name, test := range map[string]struct {
		deployment string
		stopped    bool
		code       int
	}{
		"stopped": {"./goes-on.sh\ntrue", true, 143},
		"failed":  {"./goes-on.sh &\nsleep 0.3\nfalse", false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			w := mustRun(t, "[python, deploy.py, --to, production]", "[./deployment.sh]", "[python, deploy.py, --undo]", "[sh, -c, 'echo undone >> trace']")
			if err := Write(newFiles(w.Artefacts), dir); err != nil {
				t.Fatal(err)
			}
			for file, text := range map[string]string{"goes-on.sh": goesOn, "deployment.sh": "#!/bin/sh\n" + test.deployment + "\n", "version": "v7\n", "trace": ""} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			traced := func() string {
				text, _ := os.ReadFile(filepath.Join(dir, "trace"))
				return string(text)
			}
			stage := exec.Command(filepath.Join(dir, "pipeline", "stages", "deploy.sh"))
			stage.Env = append(os.Environ(), "WORK="+dir)
			passBefore(t, "deploy", stage.Env)
			if err := stage.Start(); err != nil {
				t.Fatal(err)
			}
			for deadline := time.Now().Add(20 * time.Second); test.stopped && traced() == "" && time.Now().Before(deadline); {
				time.Sleep(10 * time.Millisecond)
			}
			if test.stopped {
				_ = stage.Process.Signal(syscall.SIGTERM)
			}
			_ = stage.Wait()
			time.Sleep(300 * time.Millisecond) // in which it would continue
			if code := stage.ProcessState.ExitCode(); code != test.code || !strings.HasPrefix(traced(), "deployed\n") || !strings.HasSuffix(traced(), "deployed\nundone\n") {
				t.Errorf("exit code %d, %q", code, traced())
			}
		})
	}
}

// A runner that cancels a job signals only the shell of the step, which must be replaced by docker, which forwards the
// signal.
func TestSignalOfARunnerReachesTheContainer(t *testing.T) {
	dir := t.TempDir()
	w := mustRun(t)
	if err := Write(newFiles(w.Artefacts), dir); err != nil {
		t.Fatal(err)
	}
	docker := "#!/bin/sh\n[ \"$1\" = run ] || exit 0\ntrap 'echo INT >> signals; exit 130' INT\necho ready >> signals\nwhile true; do sleep 0.05; done\n"
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte(docker), 0o700); err != nil {
		t.Fatal(err)
	}
	_, step, _ := strings.Cut(artefact(t, w, ".github/workflows/retrain-cartpole.yml"), "        run: |\n          printf '%s' \"$REGISTRY_PASSWORD\" | docker login \"${IMAGE%%/*}\" --username \"$REGISTRY_USER\" --password-stdin\n          exec")
	step, _, _ = strings.Cut("exec"+step, "\n")
	job := exec.Command("bash", "-e", "-c", "docker login\n"+step+"\n")
	job.Dir = dir
	job.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "IMAGE=i:1")
	if err := job.Start(); err != nil {
		t.Fatal(err)
	}
	signals := func() string {
		text, _ := os.ReadFile(filepath.Join(dir, "signals"))
		return string(text)
	}
	for deadline := time.Now().Add(20 * time.Second); signals() == "" && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	_ = job.Process.Signal(syscall.SIGINT)
	_ = job.Wait()
	if code := job.ProcessState.ExitCode(); code != 130 || signals() != "ready\nINT\n" {
		t.Errorf("step %q: exit code %d, %q", step, code, signals())
	}
}

// GitHub Enterprise Server supports only version 3 of the artifact actions, and the token is sent to the registry of
// its server.
func TestWorkflowsFitTheirServer(t *testing.T) {
	const v3, v4, token = "upload-artifact@c6a3b2bd78b3985e4b2f15397fec357f0fd808de # v3.", "overwrite: true", "|| github.token"
	for name, test := range map[string]struct {
		url, image  string
		three, sees bool
	}{
		"GitHub":                        {"", "ghcr.io/example/cartpole", false, true},
		"GitHub, by its address":        {"\n  url: https://api.github.com", "ghcr.io/example/cartpole", false, true},
		"another registry":              {"", "ghcr.io.example.com/example/cartpole", false, false},
		"Enterprise Server":             {"\n  url: https://git.example.com/api/v3", "containers.git.example.com/a/cartpole", true, true},
		"its neighbor":                  {"\n  url: https://git.example.com/api/v3", "containers-git.example.com/a/cartpole", true, false},
		"Enterprise Server and ghcr.io": {"\n  url: https://git.example.com/api/v3", "ghcr.io/example/cartpole", true, false},
		"data residency":                {"\n  url: https://api.acme.ghe.com", "containers.acme.ghe.com/a/cartpole", false, true},
	} {
		w := mustRun(t, "ghcr.io/example/cartpole", test.image, "repository: example/cartpole", "repository: example/cartpole"+test.url)
		text := artefact(t, w, ".github/workflows/retrain-cartpole.yml")
		if strings.Contains(text, v3) != test.three || strings.Contains(text, v4) == test.three || strings.Contains(text, "# v4.3") == test.three || strings.Contains(text, token) != test.sees {
			t.Errorf("%s:\n%s", name, text)
		}
	}
}

// An unwritable working directory is reported as well.
func TestStageWithoutItsDirectoryReports(t *testing.T) {
	stage := staged(t, "")
	if code, calls := stage("train", "REQUEST=rr_1", "WORK=/dev/null/work"); code == 0 || !strings.Contains(calls, "retrain status rr_1 failed") {
		t.Errorf("exit code %d\n%s", code, calls)
	}
}

// A run does not use the data of an earlier run.
func TestExportRemovesWhatIsOld(t *testing.T) {
	stage, work := staged(t, "", "data:\n", "data:\n  export: true\n"), t.TempDir()
	old := filepath.Join(work, "experience.parquet")
	if err := os.WriteFile(old, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, calls := stage("export", "WORK="+work); code != 0 {
		t.Errorf("exit code %d\n%s", code, calls)
	}
	if _, err := os.Stat(old); !os.IsNotExist(err) {
		t.Errorf("the old data are there: %v", err)
	}
}

// The gate polls until there is a verdict, or its time is over.
func TestGateWaitsForAVerdict(t *testing.T) {
	for name, test := range map[string]struct {
		verdicts  string
		undecided string
		code      int
		asked     int
	}{
		"as good":               {"0", Fail, 0, 1},
		"as good later":         {"3 3 2 0", Fail, 0, 4},
		"worse":                 {"3 1", Fail, 1, 2},
		"undecided":             {"", Fail, 1, 4},
		"undecided, and passes": {"", Pass, 0, 4},
		"unreachable":           {"2 2 2 2 2 2", Pass, 1, 4},
		"unreachable at last":   {"3 3 2 2 2 2", Pass, 1, 4},
		"undecided at last":     {"2 2 3 3 3 3", Pass, 0, 4},
		"refused":               {"4", Pass, 1, 1},
		"refused between":       {"3 4 0", Fail, 0, 3},
	} {
		stage := staged(t, test.verdicts, "gate: {within: 4h, every: 5m}", "gate: {within: 4m, every: 1m, undecided: "+test.undecided+"}")
		code, calls := stage("gate", "REQUEST=rr_1")
		asked := strings.Count(calls, "gate cartpole v7 --server https://rewardwatch.example.com")
		if code != test.code || asked != test.asked {
			t.Errorf("%s: exit code %d after %d questions, want %d after %d\n%s", name, code, asked, test.code, test.asked, calls)
		}
		if reported := strings.Contains(calls, "retrain status rr_1 failed --error stage gate ended with exit code 1"); reported != (test.code != 0) {
			t.Errorf("%s: reported a failure: %v\n%s", name, reported, calls)
		}
	}
}

// The gate decides at its deadline even with a long polling interval, because the orchestrator would end it soon after.
func TestGateDoesNotSleepPastItsDeadline(t *testing.T) {
	stage := staged(t, "", "gate: {within: 4h, every: 5m}", "gate: {within: 5m, every: 4m, undecided: pass}")
	code, calls := stage("gate")
	slept := 0
	for _, m := range regexp.MustCompile(`sleep ([0-9]+)`).FindAllStringSubmatch(calls, -1) {
		seconds, _ := strconv.Atoi(m[1])
		slept = max(slept, seconds)
	}
	if code != 0 || slept == 0 || slept > 4*60 || strings.Count(calls, "sleep 240") > 1 {
		t.Errorf("exit code %d\n%s", code, calls)
	}
}

func TestStagesReportToTheService(t *testing.T) {
	stage := staged(t, "")
	if code, calls := stage("train", "REQUEST=rr_1"); code != 0 || !strings.Contains(calls, "retrain status rr_1 started") || !strings.Contains(calls, "python pipeline/train.py") {
		t.Errorf("train: %d\n%s", code, calls)
	}
	stage = staged(t, "")
	if code, calls := stage("deploy", "REQUEST=rr_1", "REWARDWATCH_STATUS_TOKEN=x"); code != 0 || !strings.Contains(calls, "retrain status rr_1 succeeded --version v7 --by cartpole pipeline, a run by hand --server https://rewardwatch.example.com --token-file ") {
		t.Errorf("deploy: %d\n%s", code, calls)
	}
	stage = staged(t, "")
	if code, calls := stage("deploy"); code != 0 || strings.Contains(calls, "retrain status") {
		t.Errorf("without a request: %d\n%s", code, calls)
	}
	stage = staged(t, "", "deploy.py, --to, production]", "deploy.py, --break]")
	if code, calls := stage("deploy", "REQUEST=rr_1"); code != 1 || !strings.Contains(calls, "python deploy.py --undo") || !strings.Contains(calls, "retrain status rr_1 failed") {
		t.Errorf("a deployment that fails: %d\n%s", code, calls)
	}
	stage = staged(t, "", "data:\n", "data:\n  export: true\n")
	if code, calls := stage("export"); code != 0 || strings.Contains(calls, "export") {
		t.Errorf("export without a request: %d\n%s", code, calls)
	}
	if code, calls := stage("export", "REQUEST=rr_1"); code != 0 || !strings.Contains(calls, "retrain export rr_1 --config pipeline/rewardwatch.yml --format parquet --out ") {
		t.Errorf("export: %d\n%s", code, calls)
	}
}

// undeployed removes the deployment from the example, and the targets that delete files after the run.
var undeployed = []string{
	"deploy:\n  command: [python, deploy.py, --to, production]\n", "", "rollback:\n  command: [python, deploy.py, --undo]\n", "",
	", argo, kubernetes, kubeflow", "",
}

// Without a deployment command, a new version is kept, and Rewardwatch is informed of it. It verifies the version once
// that is in service.
func TestVersionWithoutADeploymentIsKept(t *testing.T) {
	stage, work := staged(t, "", undeployed...), t.TempDir()
	for name, text := range map[string]string{"version": "v 8/a\n", "model.zip": "model", "experience.parquet": "old"} {
		if err := os.WriteFile(filepath.Join(work, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // earlier kept versions are not part of a version
		if code, calls := stage("keep", "REQUEST=rr_1", "WORK="+work); code != 0 || !strings.Contains(calls, "retrain status rr_1 succeeded --version v 8/a ") {
			t.Fatalf("exit code %d\n%s", code, calls)
		}
	}
	out, err := exec.Command("tar", "--list", "--file", filepath.Join(work, "versions", "v_8_a.tar.gz")).CombinedOutput()
	if got := strings.Join(strings.Fields(string(out)), " "); err != nil || !strings.Contains(got, "./model.zip") || !strings.Contains(got, "./version") || strings.Contains(got, "versions/") || strings.Contains(got, "parquet") {
		t.Errorf("%v: %s", err, got)
	}
}

// REQUEST is validated before it is used.
func TestStagesRefuseARequestThatIsNoID(t *testing.T) {
	stage := staged(t, "")
	for _, request := range []string{"--server=http://other", "rr_1; x", "../rr_1", "rr 1", "rr_1\nx"} {
		if code, calls := stage("deploy", "REQUEST="+request); code != 2 || calls != "" {
			t.Errorf("%q: exit code %d\n%s", request, code, calls)
		}
	}
}
