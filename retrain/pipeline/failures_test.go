package pipeline

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/goccy/go-yaml"
)

// reported is a service that records the reports that it receives.
type reported struct {
	*httptest.Server
	mu  sync.Mutex
	all []string
}

func newReported(t *testing.T, status int) *reported {
	t.Helper()
	r := &reported{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		var report map[string]string
		if err := json.Unmarshal(body, &report); err != nil {
			t.Errorf("%v: %s", err, body)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all = append(r.all, strings.Join([]string{q.Method, q.URL.Path, q.Header.Get("Content-Type"), q.Header.Get("Authorization"), report["state"], report["error"], report["by"]}, " | "))
		w.WriteHeader(status)
	}))
	t.Cleanup(r.Close)
	return r
}

// take returns the reports since the last call.
func (r *reported) take() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := strings.Join(r.all, "\n")
	r.all = nil
	return all
}

// runScript runs a shell script in a directory with only the given variables.
func runScript(t *testing.T, dir, shell string, args []string, env ...string) (code int, out string) {
	t.Helper()
	c := exec.Command(shell, args...)
	c.Dir = dir
	c.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	text, err := c.CombinedOutput()
	if err != nil && c.ProcessState == nil {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), string(text)
}

// document returns a document of a generated YAML file.
func document(t *testing.T, w *Work, file string, into any) {
	t.Helper()
	if err := yaml.NewDecoder(strings.NewReader(artefact(t, w, file))).Decode(into); err != nil {
		t.Fatal(err)
	}
}

// argoTemplate is the executable part of a workflow template.
type argoTemplate struct {
	Name      string
	Container struct{ Args []string }
}

// reporters return, for each target, the script that reports a failed run as the shell receives it, with its arguments
// and with its variables after a failure of the stage train.
func reporters(t *testing.T, w *Work) map[string]struct{ args, env []string } {
	t.Helper()
	var workflow struct {
		Jobs map[string]struct {
			Steps []struct {
				Run string
				Env map[string]string
			}
		}
	}
	document(t, w, ".github/workflows/retrain-cartpole.yml", &workflow)
	var gitlab struct {
		Report struct{ Script []string }             `yaml:".report"`
		Train  struct{ Variables map[string]string } `yaml:"report-train"`
	}
	document(t, w, ".gitlab-ci.yml", &gitlab)
	var argo struct {
		Spec struct {
			Templates []argoTemplate
		}
	}
	document(t, w, "pipeline/argo.yaml", &argo)
	var kubeflow struct {
		DeploymentSpec struct {
			Executors map[string]struct{ Container struct{ Command []string } }
		} `yaml:"deploymentSpec"`
	}
	document(t, w, "pipeline/kubeflow.yaml", &kubeflow)
	i := slices.IndexFunc(argo.Spec.Templates, func(x argoTemplate) bool { return x.Name == "report-failure" })
	exit := kubeflow.DeploymentSpec.Executors["exec-report"].Container.Command
	// Argo inserts it as a quoted JSON string.
	const failures = `"[{\"displayName\":\"train\",\"message\":\"ImagePullBackOff: \\\"no\\\"\",\"templateName\":\"train\",\"phase\":\"Error\",\"podName\":\"retrain-cartpole-x-train-1\",\"finishedAt\":\"2026-11-29T10:00:00Z\"},{\"displayName\":\"retrain-cartpole-x\",\"message\":\"\",\"templateName\":\"retrain\",\"phase\":\"Error\"}]"`
	return map[string]struct{ args, env []string }{
		"GitHub":   {[]string{"-e", "-c", workflow.Jobs["report"].Steps[0].Run}, []string{"STAGE=train", "RESULT=cancelled"}},
		"GitLab":   {[]string{"-e", "-c", strings.Join(gitlab.Report.Script, "\n")}, []string{"FAILED=" + gitlab.Train.Variables["FAILED"]}},
		"Argo":     {[]string{"-c", argo.Spec.Templates[i].Container.Args[0]}, []string{"STATUS=Error", "FAILURES=" + failures}},
		"Kubeflow": {append(slices.Clone(exit[1:3]), "report", "$REQUEST", "$RUN", "", "run-7"), nil},
		"Airflow":  {[]string{"pipeline/report.sh"}, nil},
	}
}

// Failures outside of a stage, such as an image that cannot be pulled, are reported with the stage, and only for
// requests of the service.
func TestFailuresOutsideOfStagesAreReported(t *testing.T) {
	w, dir := mustRun(t), t.TempDir()
	if err := Write(newFiles(w.Artefacts), dir); err != nil {
		t.Fatal(err)
	}
	service := newReported(t, http.StatusOK)
	want := map[string]string{"GitHub": "stage train ended with result cancelled", "GitLab": "stage train failed", "Argo": "stage train ended with status Error", "Kubeflow": "stage train failed", "Airflow": "stage train failed"}
	all := reporters(t, w)
	for _, target := range slices.Sorted(maps.Keys(all)) {
		r := all[target]
		run := func(request, token string) (int, string) {
			args := strings.Split(strings.NewReplacer("\x00$REQUEST", "\x00"+request, "\x00$RUN", "\x00run-7").Replace(strings.Join(r.args, "\x00")), "\x00")
			return runScript(t, dir, "sh", args, append(slices.Clone(r.env), "REQUEST="+request, "RUN=run-7", "REWARDWATCH_STATUS_TOKEN="+token, "REWARDWATCH_SERVICE="+service.URL+"/ops/")...)
		}
		code, out := run("rr_1", "it's \"one\"")
		if got := service.take(); code != 0 || got != "POST | /ops/api/v1/retrain-requests/rr_1/status | application/json | Bearer it's \"one\" | failed | "+want[target]+" | cartpole pipeline, run-7" {
			t.Errorf("%s: exit code %d, %s\n%s", target, code, got, out)
		}
		code, out = run("rr_1", "")
		if got := service.take(); code != 0 || !strings.Contains(got, "json |  | failed") {
			t.Errorf("%s without a token: exit code %d, %s\n%s", target, code, got, out)
		}
		code, out = run("../x", "")
		if got := service.take(); code != 2 || got != "" {
			t.Errorf("%s for what is no id: exit code %d, %s\n%s", target, code, got, out)
		}
		if target == "Argo" || target == "Kubeflow" { // the others check this before the script runs
			if code, out = run("", ""); code != 0 || service.take() != "" {
				t.Errorf("%s without a request: exit code %d\n%s", target, code, out)
			}
		}
	}
	refused := newReported(t, http.StatusConflict)
	code, out := runScript(t, dir, "sh", all["GitLab"].args, "REQUEST=rr_1", "REWARDWATCH_SERVICE="+refused.URL)
	if got := refused.take(); code != 0 || strings.Count(got, "POST") != 1 || !strings.Contains(out, "Failed to report the status") {
		t.Errorf("a closed request: exit code %d, %s\n%s", code, got, out)
	}
}

// If the stages share a directory, the failed stage is the first one that has not succeeded in this run. A run whose
// stages have all succeeded has not failed.
func TestFailedStageIsTheFirstThatDidNotSucceed(t *testing.T) {
	w, service := mustRun(t), newReported(t, http.StatusOK)
	stages := names(w)
	for n := range len(stages) + 1 {
		dir, log := t.TempDir(), ""
		if err := Write(newFiles(w.Artefacts), dir); err != nil {
			t.Fatal(err)
		}
		for i, s := range stages {
			log += s + ", run-6\n" // of the previous run
			if i < n {
				log += s + ", run-7\n"
			}
		}
		work := filepath.Join(dir, "work")
		if err := os.Mkdir(work, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(work, "succeeded.log"), []byte(log), 0o600); err != nil {
			t.Fatal(err)
		}
		all := reporters(t, w)
		script := strings.ReplaceAll(all["Kubeflow"].args[1], "/work/runs/$4", "work")
		code, out := runScript(t, dir, "sh", []string{"-c", script, "report", "rr_1", "run-7", "", "run-7"}, "REWARDWATCH_SERVICE="+service.URL)
		want := ""
		if n < len(stages) {
			want = "stage " + stages[n] + " failed"
		}
		if got := service.take(); code != 0 || (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("Kubeflow after %d stages: exit code %d, %s\n%s", n, code, got, out)
		}
		if n == len(stages) {
			continue // Airflow runs the script only after a failure
		}
		if _, out := runScript(t, dir, "sh", all["Airflow"].args, "REQUEST=rr_1", "RUN=run-7", "REWARDWATCH_SERVICE="+service.URL); !strings.Contains(service.take(), want) {
			t.Errorf("Airflow after %d stages: %s", n, out)
		}
	}
}

// A stage that succeeds records this with its run, and one that fails does not.
func TestStagesNoteThatTheySucceed(t *testing.T) {
	stage, work := staged(t, "0 1"), t.TempDir()
	if err := os.WriteFile(filepath.Join(work, "version"), []byte("v7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, run := range []string{"run-6", "run-7"} {
		for _, s := range []string{"train", "evaluate", "gate"} {
			stage(s, "WORK="+work, "RUN="+run)
		}
	}
	got, err := os.ReadFile(filepath.Join(work, "succeeded.log"))
	if want := "train, run-6\nevaluate, run-6\ngate, run-6\ntrain, run-7\nevaluate, run-7\n"; err != nil || string(got) != want {
		t.Errorf("%v\n%s", err, got)
	}
}

// Each orchestrator reports any failure, and only for requests. GitHub determines the first job that has not succeeded.
// GitLab has a job for each stage, of which only one follows a failure.
func TestReportsFollowEachStage(t *testing.T) {
	w := mustRun(t)
	workflow, gitlab := artefact(t, w, ".github/workflows/retrain-cartpole.yml"), artefact(t, w, ".gitlab-ci.yml")
	for i, s := range append([]string{"build"}, names(w)...) {
		if want := "report-" + s + ":\n  extends: .report\n  needs: [{job: " + s + ", artifacts: false}]\n  variables: {FAILED: " + s + ","; strings.Count(gitlab, want) != 1 {
			t.Errorf("no %q in\n%s", want, gitlab)
		}
		parts := strings.Split(regexp.MustCompile(`STAGE: \$\{\{ (.*) }}`).FindStringSubmatch(workflow)[1], " || ")
		if want := "needs." + s + ".result != 'success' && '" + s + "'"; parts[i] != want {
			t.Errorf("part %d is %q, want %q", i, parts[i], want)
		}
	}
}
