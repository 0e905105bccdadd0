package pipeline

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A directory contains the pipeline of a single project. Another pipeline would overwrite most of it and delete the
// rest.
func TestSecondProjectInADirectoryIsRefused(t *testing.T) {
	dir := t.TempDir()
	first := mustRun(t)
	if err := Write(newFiles(first.Artefacts), dir); err != nil {
		t.Fatal(err)
	}
	second := mustRun(t, "project: cartpole\n", "project: lander\n")
	want := filepath.Join(dir, "pipeline/recipes/cartpole.yaml") + ":1:1: belongs to the pipeline of project cartpole, which the pipeline of lander would overwrite: generate into another directory (-o); " +
		"if you have renamed the project, rename this file to lander.yaml, and remove .github/workflows/retrain-cartpole.yml if there is one"
	if _, err := Changes(second, dir); err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("%v, want %s", err, want)
	}
	for _, a := range first.Artefacts {
		if text, err := os.ReadFile(filepath.Join(dir, a.Path)); err != nil || string(text) != a.Text {
			t.Errorf("%s is not what it was: %v", a.Path, err)
		}
	}
	// The message recommends this if the project was renamed.
	if err := os.Rename(filepath.Join(dir, "pipeline/recipes/cartpole.yaml"), filepath.Join(dir, "pipeline/recipes/lander.yaml")); err != nil {
		t.Fatal(err)
	}
	changes, err := Changes(second, dir)
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(changes, func(c Change) bool { return c.Removed }) {
		t.Errorf("the workflow of another project is removed: %v", changes)
	}
}

// A request for another policy starts nothing and reports nothing. Where no other pipeline can receive it, the run
// fails.
func TestRequestsForAnotherPolicyAreLeftAlone(t *testing.T) {
	for _, stage := range []string{"train", "evaluate", "gate", "deploy"} {
		runs := staged(t, "0")
		if code, calls := runs(stage, "REQUEST=rr_1", "REWARDWATCH_POLICY=lander"); code != 0 || calls != "" {
			t.Errorf("%s: exit code %d\n%s", stage, code, calls)
		}
		if code, calls := runs(stage, "REQUEST=rr_1", "REWARDWATCH_POLICY=Cartpole", "SKIPPED=2"); code != 2 || calls != "" {
			t.Errorf("%s: exit code %d\n%s", stage, code, calls)
		}
		if code, calls := runs(stage, "REQUEST=rr_1", "REWARDWATCH_POLICY=cartpole"); code != 0 || calls == "" {
			t.Errorf("%s for its policy: exit code %d\n%s", stage, code, calls)
		}
	}
	dir, w := t.TempDir(), mustRun(t)
	if err := Write(newFiles(w.Artefacts), dir); err != nil {
		t.Fatal(err)
	}
	if code, out := runScript(t, dir, "sh", []string{"pipeline/run.sh", "train"}, "REWARDWATCH_POLICY=lander", "SKIPPED=99"); code != 99 || !strings.Contains(out, "a policy other than cartpole") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	for file, want := range map[string]string{
		"pipeline/airflow_dag.py": `"REWARDWATCH_POLICY": "{{ ((dag_run.conf or {}).get('data') or {}).get('policy', '') }}"`,
		"pipeline/compose.yaml":   "      REWARDWATCH_POLICY:\n      RUN:\n      SKIPPED: \"2\"",
		"pipeline/argo.yaml":      "          - name: REWARDWATCH_POLICY\n            value: \"{{workflow.parameters.policy}}\"\n",
		"pipeline/kubeflow.yaml":  `          - REQUEST="$1" RUN="$2" REWARDWATCH_POLICY="$3" `,
	} {
		if text := artefact(t, w, file); !strings.Contains(text, want) {
			t.Errorf("%s: no %q in\n%s", file, want, text)
		}
	}
}

// GitHub and GitLab do not even start a job for another policy. Some names cannot be written in a GitLab condition, so
// only the scripts compare these.
func TestConditionsOfJobsNameThePolicy(t *testing.T) {
	for policy, want := range map[string]struct{ github, gitlab string }{
		"cartpole": {`"${{ (github.event.client_payload.data.policy || 'cartpole') == 'cartpole' }}"`, `"cartpole"`},
		`a's "b"`:  {`"${{ (github.event.client_payload.data.policy || 'a''s \"b\"') == 'a''s \"b\"' }}"`, ""},
		"$HOME":    {`"${{ (github.event.client_payload.data.policy || '$HOME') == '$HOME' }}"`, ""},
	} {
		w := mustRun(t, "project: cartpole\n", fmt.Sprintf("project: cartpole\npolicy: '%s'\n", strings.ReplaceAll(policy, "'", "''")))
		workflow := artefact(t, w, ".github/workflows/retrain-cartpole.yml")
		group := strings.Replace(strings.Replace(want.github, "${{ ", "retrain-cartpole${{ !(", 1), " }}", ") && github.run_id || '' }}", 1)
		if !strings.Contains(workflow, "\n    if: "+want.github+"\n") || !strings.Contains(workflow, "\n  group: "+group+"\n") {
			t.Errorf("%s: no %s or %s in\n%s", policy, want.github, group, workflow)
		}
		rule := "    - if: $REWARDWATCH_POLICY && $REWARDWATCH_POLICY != " + want.gitlab + "\n      when: never\n    - if: $REWARDWATCH_EVENT =="
		if text := artefact(t, w, ".gitlab-ci.yml"); strings.Contains(text, rule) != (want.gitlab != "") || strings.Contains(text, "$REWARDWATCH_POLICY") != (want.gitlab != "") {
			t.Errorf("%s:\n%s", policy, text)
		}
	}
}

// A deployment that is retried deploys the version that passed in its run, even if another run has used the directory
// since.
func TestOnlyTheVersionThatPassedInTheRunIsDeployed(t *testing.T) {
	stage, work := staged(t, "0 1 0"), t.TempDir()
	in := func(run, name string) (int, string) { return stage(name, "WORK="+work, "REQUEST=rr_"+run, "RUN="+run) }
	must := func(run string, want int, names ...string) string {
		t.Helper()
		calls := ""
		for i, name := range names {
			code, out := in(run, name)
			if expected := want * max(0, i-len(names)+2); code != expected {
				t.Fatalf("%s of run %s: exit code %d, want %d\n%s", name, run, code, expected, out)
			}
			calls = out
		}
		return calls
	}
	must("a", 0, "train", "evaluate", "gate")
	must("b", 1, "train", "evaluate", "gate")
	for _, run := range []string{"a", "b"} {
		if calls := must(run, 1, "deploy"); strings.Contains(calls, "deploy.py") || strings.Contains(calls, "succeeded") {
			t.Fatalf("run %s has deployed\n%s", run, calls)
		}
	}
	if calls := must("c", 0, "train", "evaluate", "gate", "deploy"); !strings.Contains(calls, "deploy.py --to") || !strings.Contains(calls, "status rr_c succeeded") {
		t.Errorf("run c has not deployed\n%s", calls)
	}
	// The verdict is about this version, not about the current contents of the directory.
	if err := os.WriteFile(filepath.Join(work, "version"), []byte("other\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	must("c", 1, "deploy")
}

// Each Airflow run has its own directory, which a retried task uses again. Old directories are removed, and kept
// versions remain.
func TestRunsOfAirflowHaveDirectories(t *testing.T) {
	dir := t.TempDir()
	if err := Write(newFiles(mustRun(t).Artefacts), dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte("#!/bin/sh\necho \"$*\"\n"), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	start := func(stage, id string) string {
		code, out := runScript(t, dir, "sh", []string{"pipeline/run.sh", stage}, "PATH="+dir+":"+os.Getenv("PATH"), "IMAGE=i:1", "RUN_ID="+id)
		if code != 0 || !strings.Contains(out, " -e IMAGE ") {
			t.Fatalf("exit code %d\n%s", code, out)
		}
		_, mounts, _ := strings.Cut(out, " -v ")
		mounts, _, _ = strings.Cut(mounts, " -e ")
		last := strings.LastIndex(mounts, " -v ")
		file, to, _ := strings.Cut(mounts[last+len(" -v "):], ":")
		users, err := os.ReadFile(file) //nolint:gosec // a file of the test
		if entry := fmt.Sprintf("\npipeline:x:%d:%d:", os.Getuid(), os.Getgid()); err != nil || to != "/etc/passwd:ro" || !strings.Contains(string(users), entry) {
			t.Errorf("ssh finds no user in %s, mounted at %s: %v", users, to, err)
		}
		return strings.ReplaceAll(mounts[:last], dir, "")
	}
	a, b := start("train", "manual__2026-11-29T10:00:00+00:00"), start("train", "manual__2026-11-29T10:00:00-00:00")
	if !strings.HasPrefix(a, "/work/runs/manual__2026-11-29T10_00_00_00_00-") || !strings.HasSuffix(a, ":/work -v /work/versions:/work/versions") || a == b {
		t.Errorf("%s and %s", a, b)
	}
	if again := start("deploy", "manual__2026-11-29T10:00:00+00:00"); again != a {
		t.Errorf("%s, then %s", a, again)
	}
	if plain := start("train", ""); plain != "/work:/work" {
		t.Error(plain)
	}
	old := filepath.Join(dir, strings.TrimPrefix(strings.Split(a, ":")[0], "/"))
	if out, err := exec.Command("touch", "-d", "30 days ago", old, filepath.Join(dir, "work", "versions")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	start("evaluate", "c")
	if _, err := os.Stat(old); err != nil {
		t.Errorf("a later stage has removed a run: %v", err)
	}
	start("train", "c")
	if _, err := os.Stat(old); !os.IsNotExist(err) {
		t.Errorf("the old run is there: %v", err)
	}
	for _, kept := range []string{"work/versions", strings.TrimPrefix(strings.Split(b, ":")[0], "/")} {
		if _, err := os.Stat(filepath.Join(dir, kept)); err != nil {
			t.Error(err)
		}
	}
}

// Two projects on one Airflow worker use different variables.
func TestProjectsOfAWorkerHaveDifferentVariables(t *testing.T) {
	text := artefact(t, mustRun(t, "project: cartpole\n", "project: pole-2\n"), "pipeline/airflow_dag.py")
	for _, want := range []string{"${RETRAIN_POLE_2_IMAGE:-}", "${RETRAIN_POLE_2_DIRECTORY:?", `"$RETRAIN_POLE_2_DIRECTORY"/pipeline/report.sh`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

// Each container has the variable IMAGE, which the docs list among the variables of a command.
func TestContainersKnowTheirImage(t *testing.T) {
	w := mustRun(t)
	for file, want := range map[string]string{
		"pipeline/argo.yaml":       "          - name: IMAGE\n            value: \"ghcr.io/example/cartpole:{{workflow.parameters.tag}}\"\n",
		"pipeline/kubernetes.yaml": "            - name: IMAGE\n              value: \"ghcr.io/example/cartpole:__TAG__\"\n",
		"pipeline/kubeflow.yaml":   "          - name: IMAGE\n            value: \"ghcr.io/example/cartpole:__TAG__\"\n",
	} {
		if n := strings.Count(artefact(t, w, file), want); n != len(w.Stages) {
			t.Errorf("%s: %d times %s", file, n, want)
		}
	}
	if text := artefact(t, w, "pipeline/compose.yaml"); !strings.Contains(text, "\n      IMAGE:\n") {
		t.Error(text)
	}
}

// A service that restarts is informed of the new version. If that fails, the version remains in service, and no failure
// is reported.
func TestSuccessIsReportedAgain(t *testing.T) {
	for name, test := range map[string]struct{ refused, refusal, code, tried int }{
		"at once": {0, 0, 0, 1}, "after a restart": {3, 2, 0, 4}, "at the end": {4, 2, 0, 5}, "never": {9, 2, 0, 5},
		"the request is closed": {9, 4, 0, 1},
	} {
		stage := staged(t, "")
		code, calls := stage("deploy", "REQUEST=rr_1", fmt.Sprintf("REFUSED=%d", test.refused), fmt.Sprintf("REFUSAL=%d", test.refusal))
		if tried := strings.Count(calls, "retrain status rr_1 succeeded --version v7"); code != test.code || tried != test.tried {
			t.Errorf("%s: exit code %d after %d reports\n%s", name, code, tried, calls)
		}
		if strings.Contains(calls, "--undo") || strings.Contains(calls, " failed ") {
			t.Errorf("%s: a deployment that worked is undone, or reported as failed\n%s", name, calls)
		}
		if waits := test.tried > 3; waits && !strings.Contains(calls, "sleep 30") {
			t.Errorf("%s: did not wait\n%s", name, calls)
		}
	}
}

// VERSION in the environment of the machine or image does not set the version of a run.
func TestVersionsDifferWhateverTheMachineSets(t *testing.T) {
	stage, work := staged(t, ""), t.TempDir()
	if code, calls := stage("train", "WORK="+work, "VERSION=v1"); code != 0 {
		t.Fatalf("exit code %d\n%s", code, calls)
	}
	if got, err := os.ReadFile(filepath.Join(work, "version")); err != nil || string(got) != "2026-11-25T00-00-00Z\n" {
		t.Errorf("%v: %q", err, got)
	}
}

// The shadow or canary deployment of a version is stopped if the version does not pass. Only these stages receive its
// secrets.
func TestVersionThatDoesNotPassIsWithdrawn(t *testing.T) {
	shadow := func(command string) []string {
		return []string{"data:\n", "shadow: {command: [" + command + "], stop: [sh, -c, 'python stop.py \"$VERSION\"'], secrets: [SHADOW_KEY]}\ndata:\n"}
	}
	for name, test := range map[string]struct {
		stage, command, verdicts string
		code, stopped            int
	}{
		"worse":            {"gate", "python, serve.py", "1", 1, 1},
		"undecided":        {"gate", "python, serve.py", "", 1, 1},
		"as good":          {"gate", "python, serve.py", "0", 0, 0},
		"served":           {"shadow", "python, serve.py", "", 0, 0},
		"cannot be served": {"shadow", "python, serve.py, --break", "", 1, 1},
		"interrupted":      {"shadow", "python, --hang, now", "", 143, 1},
	} {
		stage := staged(t, test.verdicts, shadow(test.command)...)
		code, calls := stage(test.stage, "REQUEST=rr_1")
		if stopped := strings.Count(calls, "python stop.py v7\n"); stopped != test.stopped || (code == 0) != (test.code == 0) {
			t.Errorf("%s: exit code %d, stopped %d times\n%s", name, code, stopped, calls)
		}
	}
	// If another run uses the directory, this run does not stop that run's version.
	stage, work := staged(t, "", shadow("python, serve.py")...), t.TempDir()
	if code, calls := stage("train", "WORK="+work, "RUN=b"); code != 0 {
		t.Fatalf("exit code %d\n%s", code, calls)
	}
	if code, calls := stage("gate", "WORK="+work, "RUN=a"); code != 1 || strings.Contains(calls, "stop.py") {
		t.Errorf("exit code %d\n%s", code, calls)
	}
	w := mustRun(t, shadow("serve")...)
	for file, want := range map[string]string{
		"pipeline/run.sh":          "shadow | gate) secrets=\"-e SHADOW_KEY\"",
		"pipeline/argo.yaml":       "                name: retrain-cartpole-shadow\n                key: SHADOW_KEY\n",
		"pipeline/kubernetes.yaml": "                  name: retrain-cartpole-shadow\n                  key: SHADOW_KEY\n",
		"pipeline/kubeflow.yaml":   "            - secretName: retrain-cartpole-shadow\n",
		".gitlab-ci.yml":           "  environment: retrain-cartpole/shadow\n",
		"pipeline/Makefile":        " -e SHADOW_KEY stage pipeline/stages/",
	} {
		least := 2
		if file == "pipeline/run.sh" {
			least = 1
		}
		if text := artefact(t, w, file); strings.Count(text, want) != least {
			t.Errorf("%s: not %d times %q in\n%s", file, least, want, text)
		}
	}
	if _, err := run(t, "data:\n", "shadow: {stop: [x]}\ndata:\n"); err == nil || !strings.Contains(err.Error(), "shadow.stop: requires shadow.command") {
		t.Error(err)
	}
}

// The pod fields that a cluster requires are preserved when the file is regenerated.
func TestPodsKeepWhatAClusterNeeds(t *testing.T) {
	w, dir := mustRun(t), t.TempDir()
	if err := Write(newFiles(w.Artefacts), dir); err != nil {
		t.Fatal(err)
	}
	for file, mark := range map[string]string{"argo.yaml": "  # rewardwatch:keep pods\n", "kubernetes.yaml": "      # rewardwatch:keep pod\n", "kubeflow.yaml": "          # rewardwatch:keep train\n"} {
		path := filepath.Join(dir, "pipeline", file)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		indent, _, _ := strings.Cut(mark, "#")
		own := strings.Replace(string(text), mark, mark+indent+"nodeSelector: {disk: ssd}\n", 1)
		if own == string(text) {
			t.Fatalf("%s: no %q in\n%s", file, mark, text)
		}
		if err := os.WriteFile(path, []byte(own), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	changes, err := Changes(w, dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range changes {
		if changes[i].Changed() {
			t.Errorf("%s changes:\n%s", changes[i].Path, changes[i].After)
		}
	}
}
