package retrain

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/retrain/kubejob"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/retraintest"
	"github.com/rewardwatch/rewardwatch/retrain/target"
	"github.com/rewardwatch/rewardwatch/retrain/training"
)

const jobToken = "token-of-the-service-account"

// jobConfig returns the configuration of a desk whose target creates Jobs on an API server.
func jobConfig(t *testing.T, api string, on ledger.Config) Config {
	t.Helper()
	dir := t.TempDir()
	manifest, token := filepath.Join(dir, "train.yaml"), filepath.Join(dir, "token")
	check(t, os.WriteFile(token, []byte(jobToken+"\n"), 0o600))
	check(t, os.WriteFile(manifest, []byte(`
apiVersion: batch/v1
kind: Job
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: train, image: trainer, resources: {limits: {nvidia.com/gpu: 1}}}]
`), 0o600))
	return Config{
		OnMet: OnMetPromote, Ledger: on, Recipes: "recipe/testdata/recipes",
		Targets: []target.Target{{
			Name: "trainer", Timeout: target.DefaultTimeout, CompletesWithin: target.DefaultCompletesWithin, AllowPrivate: true,
			Kubernetes: target.Kubernetes{Config: kubejob.Config{
				Manifest: manifest, Namespace: "ml", URL: api, TokenFile: token, TimeLimit: kubejob.DefaultTimeLimit,
			}},
		}},
		Triggers: []Trigger{{On: OnIncident, Recipe: "ranker", Target: "trainer", Cooldown: defaultCooldown}},
	}
}

// jobServer holds one Job, like an API server.
type jobServer struct {
	mu      sync.Mutex
	created []map[string]any
	status  map[string]any
	pod     map[string]any // its status
	log     string
}

// become sets the status of the Job and of its pod.
func (s *jobServer) become(status, pod map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status, s.pod = status, pod
}

func (s *jobServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	reply := func(code int, with any) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(with) // the client checks the result
	}
	switch {
	case r.Header.Get("Authorization") != "Bearer "+jobToken:
		reply(401, map[string]any{"kind": "Status", "reason": "Unauthorized"})
	case r.Method == http.MethodPost:
		var job map[string]any
		if err := json.NewDecoder(r.Body).Decode(&job); err != nil {
			reply(400, map[string]any{"kind": "Status", "message": err.Error()})
			return
		}
		s.created = append(s.created, job)
		reply(201, job)
	case strings.HasPrefix(r.URL.Path, "/apis/batch/v1/namespaces/ml/jobs/rewardwatch-rr-"):
		reply(200, map[string]any{"metadata": map[string]any{"uid": "u"}, "spec": map[string]any{"activeDeadlineSeconds": 60}, "status": s.status})
	case strings.HasSuffix(r.URL.Path, "/log"):
		_, _ = io.WriteString(w, s.log)
	default:
		pod := map[string]any{"metadata": map[string]any{"name": "a"}, "spec": map[string]any{"containers": []any{map[string]any{"name": "train"}}}, "status": s.pod}
		reply(200, map[string]any{"items": []any{pod}})
	}
}

// statusOf returns the status of a Job or a pod with one condition.
func statusOf(condition, reason string) map[string]any {
	return map[string]any{"failed": 1, "conditions": []any{map[string]any{"type": condition, "status": "True", "reason": reason, "message": "by the test"}}}
}

// exited returns the status of a pod whose container has exited.
func exited(phase string, code int, message string) map[string]any {
	return map[string]any{"phase": phase, "containerStatuses": []any{map[string]any{
		"name": "train", "state": map[string]any{"terminated": map[string]any{"exitCode": code, "reason": "Error", "message": message}},
	}}}
}

// A Job is created for a request, and followed to its end by desks that share no state.
func testJobMakesAVersion(t *testing.T, on storage) {
	s := &jobServer{log: "epoch 1 with " + jobToken + "\n"}
	api := httptest.NewServer(s)
	defer api.Close()
	d, stop := runDesk(t, jobConfig(t, api.URL, on(t)))
	decision, err := d.Consider(t.Context(), retraintest.Incident("i1", "ranker"), time.Time{})
	check(t, err)
	awaitState(t, d, decision.Request, ledger.StateDelivered)
	stop()
	s.become(map[string]any{"active": 1, "ready": 1}, map[string]any{"phase": "Running"})
	d, stop = runDesk(t, d.cfg)
	awaitState(t, d, decision.Request, ledger.StateRunning)
	stop()
	s.become(statusOf("Complete", ""), exited("Succeeded", 0, `{"policy_version": "v7"}`))
	longAgo(t, d.cfg.Ledger)
	d, stop = runDesk(t, d.cfg)
	defer stop()
	q := awaitState(t, d, decision.Request, ledger.StateVerifying)
	if q.NewVersion != "v7" || q.Log != "epoch 1 with [secret]\n" {
		t.Errorf("version %q and log %q", q.NewVersion, q.Log)
	}
	history, err := d.History(t.Context(), decision.Request)
	check(t, err)
	if last := history[len(history)-1]; last.By != "kubernetes" {
		t.Errorf("the last line of the history is %+v", last)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.created) != 1 || s.created[0]["metadata"].(map[string]any)["name"] != kubejob.Name(decision.Request) {
		t.Errorf("the Jobs are %v", s.created)
	}
}

// The result of a Job that ended while no instance ran is seen after the start, however late that is.
func testJobEndsWhileNothingRuns(t *testing.T, on storage) {
	s := &jobServer{}
	api := httptest.NewServer(s)
	defer api.Close()
	d, stop := runDesk(t, jobConfig(t, api.URL, on(t)))
	decision, err := d.Consider(t.Context(), retraintest.Incident("i1", "ranker"), time.Time{})
	check(t, err)
	awaitState(t, d, decision.Request, ledger.StateDelivered)
	stop()
	s.become(statusOf("Complete", ""), exited("Succeeded", 0, `{"policy_version": "v7"}`))
	longAgo(t, d.cfg.Ledger)
	d, stop = runDesk(t, d.cfg)
	defer stop()
	if q := awaitState(t, d, decision.Request, ledger.StateVerifying); q.NewVersion != "v7" {
		t.Errorf("version %q", q.NewVersion)
	}
}

// longAgo makes all requests overdue while no desk runs.
func longAgo(t *testing.T, on ledger.Config) {
	t.Helper()
	put(t, on, `UPDATE requests SET due_at = $1 WHERE closed_at IS NULL`, time.Now().Add(-time.Hour).UnixMilli())
}

func testJobFails(t *testing.T, on storage) {
	s := &jobServer{log: "CUDA out of memory\n"}
	api := httptest.NewServer(s)
	defer api.Close()
	d, stop := runDesk(t, jobConfig(t, api.URL, on(t)))
	decision, err := d.Consider(t.Context(), retraintest.Incident("i1", "ranker"), time.Time{})
	check(t, err)
	awaitState(t, d, decision.Request, ledger.StateDelivered)
	stop()
	s.become(statusOf("Failed", "BackoffLimitExceeded"), exited("Failed", 3, ""))
	d, stop = runDesk(t, d.cfg)
	defer stop()
	q := awaitState(t, d, decision.Request, ledger.StateFailed)
	if want := "the Job failed (BackoffLimitExceeded: by the test): container train of pod a exited with code 3"; q.Reason != want || q.Log != s.log {
		t.Errorf("reason %q and log %q", q.Reason, q.Log)
	}
}

// A training that has reported its version may leave another one in its result. The first version counts, and the
// desk continues.
func TestResultOfAnotherVersion(t *testing.T) {
	dir := t.TempDir()
	d, stop := runDesk(t, commandConfig(t, dir, onSQLite(t), "while [ ! -e go ]; do sleep 0.01; done", `echo '{"policy_version": "v8"}' > "$REWARDWATCH_RESULT"`))
	decision, err := d.Consider(t.Context(), retraintest.Incident("i1", "ranker"), time.Time{})
	check(t, err)
	awaitState(t, d, decision.Request, ledger.StateRunning)
	_, err = d.Report(t.Context(), decision.Request, Report{State: JobSucceeded, Version: "v7", By: "job"})
	check(t, err)
	check(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	reported := filepath.Join(dir, "runs", decision.Request, "reported")
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(reported); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the run of the command is reported again and again")
		}
	}
	err = d.reporter(byJob)(t.Context(), decision.Request, training.Report{State: training.Succeeded, Version: "v8"})
	if !errors.Is(err, training.ErrSettled) || !errors.Is(err, ErrOtherVersion) {
		t.Errorf("the report of a Job: %v", err)
	}
	if q := awaitState(t, d, decision.Request, ledger.StateVerifying); q.NewVersion != "v7" {
		t.Errorf("version %q", q.NewVersion)
	}
	stop() // also checks that the desk ended without an error
}

func TestManifestsAreChecked(t *testing.T) {
	cfg := jobConfig(t, "https://kubernetes.example", ledger.Config{})
	found := func() (mistakes int, path string) {
		return len(cfg.CheckManifests(func(at, _ string) { path = at })), path
	}
	if n, at := found(); n > 0 || at != "" {
		t.Errorf("%d mistakes, at %q", n, at)
	}
	check(t, os.WriteFile(cfg.Targets[0].Kubernetes.Manifest, []byte("a"), 0o600))
	if n, at := found(); n != 1 || at != "" {
		t.Errorf("%d mistakes, at %q", n, at)
	}
	check(t, os.Remove(cfg.Targets[0].Kubernetes.Manifest))
	if n, at := found(); n > 0 || at != "targets[0].kubernetes.manifest" {
		t.Errorf("%d mistakes, at %q", n, at)
	}
}
