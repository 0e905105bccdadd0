package kubejob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/retrain/training"
)

// server answers like an API server about one Job. Each field is the body of an answer; a *StatusError is an error.
type server struct {
	mu    sync.Mutex
	job   any
	pods  any
	logs  map[string]any // by pod/container
	asked []string
	token string
}

func (s *server) set(change func(*server)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.Method+" "+r.URL.String())
	s.token = r.Header.Get("Authorization")
	path, isPod := strings.CutPrefix(r.URL.Path, "/api/v1/namespaces/ml/pods")
	switch {
	case r.URL.Path == "/apis/batch/v1/namespaces/ml/jobs/rewardwatch-rr-1":
		answer(w, r, s.job)
	case isPod && path == "":
		answer(w, r, s.pods)
	case isPod:
		answer(w, r, s.logs[strings.TrimSuffix(path, "/log")+"/"+r.URL.Query().Get("container")])
	default:
		http.NotFound(w, r)
	}
}

func answer(w http.ResponseWriter, r *http.Request, with any) {
	switch with := with.(type) {
	case nil:
		answer(w, r, &StatusError{404, "NotFound", "not found"})
	case *StatusError:
		w.WriteHeader(with.Code)
		if with.Reason != "" {
			fmt.Fprintf(w, `{"kind": "Status", "reason": %q, "message": %q}`, with.Reason, with.Message)
		}
	case string:
		fmt.Fprint(w, with)
	case func(*http.Request):
		with(r)
	}
}

// follow returns a follower of a Job on a server.
func follow(t *testing.T, s http.Handler, timeout time.Duration) (*Follower, *bytes.Buffer) {
	t.Helper()
	at := httptest.NewServer(s)
	t.Cleanup(at.Close)
	c := testConfig(at.URL + "/")
	c.TokenFile = filepath.Join(t.TempDir(), "token")
	check(t, os.WriteFile(c.TokenFile, []byte("first-token\n"), 0o600))
	var log bytes.Buffer
	transport := &http.Transport{DisableKeepAlives: true}
	return NewFollower(map[string]*Client{"cluster": NewClient(c, transport)}, func(string) time.Duration { return timeout }, zerolog.New(&log)), &log
}

// look returns the reports of the given number of checks.
func look(t *testing.T, f *Follower, times int) (reports []training.Report) {
	t.Helper()
	for range times {
		check(t, f.look(t.Context(), "cluster", map[string]string{"rr_1": "cluster", "rr_2": "webhook"}, func(_ context.Context, request string, r training.Report) error {
			if request != "rr_1" {
				t.Errorf("a report on %s", request)
			}
			reports = append(reports, r)
			return nil
		}))
	}
	return reports
}

const (
	complete = `{"metadata": {"uid": "u1"}, "status": {"succeeded": 1, "conditions": [{"type": "SuccessCriteriaMet", "status": "True"}, {"type": "Complete", "status": "True"}]}}`
	backoff  = `{"metadata": {"uid": "u1"}, "status": {"failed": 2, "conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "Job has reached the specified backoff limit"}]}}`
	deadline = `{"metadata": {"uid": "u1"}, "spec": {"activeDeadlineSeconds": 21600}, "status": {"conditions": [{"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "Job was active longer than specified deadline"}]}}`
	running  = `{"metadata": {"uid": "u1"}, "status": {"active": 1, "ready": 1}}`
	exceeded = "the Job failed (BackoffLimitExceeded: Job has reached the specified backoff limit)"
)

// podOf returns a pod that was created in the given minute, with the ends of its containers.
func podOf(name, phase string, minute int, status string) string {
	return fmt.Sprintf(`{"metadata": {"name": %q, "creationTimestamp": "2026-11-28T00:%02d:00Z"}, "spec": {"containers": [{"name": "train"}, {"name": "proxy"}]}, "status": {"phase": %q, %s}}`, name, minute, phase, status)
}

// exits returns the status of a pod whose container exited.
func exits(container string, code int, minute int, reason, message string) string {
	return fmt.Sprintf(`"containerStatuses": [{"name": "proxy", "state": {"terminated": {"exitCode": 0}}}, {"name": %q, "state": {"terminated": {"exitCode": %d, "reason": %q, "message": %q, "finishedAt": "2026-11-28T01:%02d:00Z"}}}]`, container, code, reason, message, minute)
}

// ends returns the rest of the status of a pod, one of whose init containers ended.
func ends(container string, code int) string {
	return fmt.Sprintf(`, "initContainerStatuses": [{"name": %q, "state": {"terminated": {"exitCode": %d}}}]`, container, code)
}

// withSidecar adds a container that Kubernetes kills after the others have ended.
func withSidecar(pod string) string {
	return strings.Replace(pod, `"spec": {`, `"spec": {"initContainers": [{"name": "fetch"}, {"name": "mesh", "restartPolicy": "Always"}], `, 1)
}

func items(pods ...string) string { return `{"items": [` + strings.Join(pods, ",") + `]}` }

const wrote = `{"policy_version": "v7"}`

func TestReportsOnJobsThatEnded(t *testing.T) {
	for name, c := range map[string]struct {
		job, pods any
		logs      map[string]any
		want      training.Report
	}{
		"succeeded": {
			complete, items(podOf("a", "Succeeded", 1, exits("train", 0, 2, "Completed", wrote))),
			map[string]any{"/a/train": "epoch 1\ndone\n"},
			training.Report{State: training.Succeeded, Version: "v7", Log: "epoch 1\ndone\n"},
		},
		"succeeded the second time": {
			complete, items(podOf("b", "Succeeded", 3, exits("train", 0, 4, "Completed", wrote)), podOf("a", "Failed", 1, exits("train", 1, 9, "Error", ""))),
			map[string]any{"/b/train": "second\n"},
			training.Report{State: training.Succeeded, Version: "v7", Log: "second\n"},
		},
		"no version": {
			complete, items(podOf("a", "Succeeded", 1, exits("train", 0, 2, "Completed", "done"))),
			map[string]any{"/a/train": "done\n"},
			training.Report{State: training.Failed, Error: `the Job succeeded with exit code 0, but did not write {"policy_version": "..."} to the file in REWARDWATCH_RESULT`, Log: "done\n"},
		},
		"pods gone": {complete, items(), nil, training.Report{State: training.Failed, Error: "the Job succeeded, but its pods were deleted before the service could read the version it produced"}},
		"failed twice": {
			backoff, items(podOf("b", "Failed", 3, exits("train", 3, 5, "Error", "")), podOf("a", "Failed", 1, exits("train", 1, 2, "Error", ""))),
			map[string]any{"/b/train": "CUDA error\n", "/a/train": "first\n"},
			training.Report{State: training.Failed, Error: exceeded + ": container train of pod b exited with code 3", Log: "CUDA error\n"},
		},
		"out of memory": {
			backoff, items(podOf("a", "Failed", 1, exits("train", 137, 2, "OOMKilled", "")), podOf("b", "Running", 2, `"message": ""`)),
			map[string]any{"/a/train": "x"},
			training.Report{State: training.Failed, Error: exceeded + ": container train of pod a exited with code 137 (OOMKilled)", Log: "x"},
		},
		"says why": {
			backoff, items(podOf("a", "Failed", 1, exits("train", 2, 2, "Error", "no data\n"))),
			map[string]any{"/a/train": ""},
			training.Report{State: training.Failed, Error: exceeded + ": container train of pod a exited with code 2 (no data)"},
		},
		"says very much": {
			backoff, items(podOf("a", "Failed", 1, exits("train", 2, 2, "StartError", strings.Repeat("é", 1000)))),
			map[string]any{"/a/train": ""},
			training.Report{State: training.Failed, Error: exceeded + ": container train of pod a exited with code 2 (StartError: " + strings.Repeat("é", 150) + ")"},
		},
		"its sidecar failed": {
			backoff, items(podOf("a", "Failed", 1, exits("sidecar", 9, 2, "Error", ""))),
			map[string]any{"/a/sidecar": "of the sidecar"},
			training.Report{State: training.Failed, Error: exceeded + ": container sidecar of pod a exited with code 9", Log: "of the sidecar"},
		},
		"its first container failed": {
			backoff, items(podOf("a", "Failed", 1, `"initContainerStatuses": [{"name": "fetch", "state": {"terminated": {"exitCode": 4}}}]`)),
			map[string]any{"/a/fetch": "no network"},
			training.Report{State: training.Failed, Error: exceeded + ": container fetch of pod a exited with code 4", Log: "no network"},
		},
		"restarts": {
			backoff, items(podOf("a", "Failed", 1, `"containerStatuses": [{"name": "train", "state": {"waiting": {}}, "lastState": {"terminated": {"exitCode": 5}}}]`)),
			map[string]any{"/a/train": "y"},
			training.Report{State: training.Failed, Error: exceeded + ": container train of pod a exited with code 5", Log: "y"},
		},
		"evicted": {
			backoff, items(podOf("a", "Failed", 1, `"reason": "Evicted", "message": "The node was low on resource: memory."`)), nil,
			training.Report{State: training.Failed, Error: exceeded + ": pod a was evicted (Evicted: The node was low on resource: memory.)", Log: "(no log: read the log of pod a: status 404: not found)\n"},
		},
		"preempted": {
			backoff, items(podOf("a", "Failed", 1, `"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": "preempted"}], `+exits("train", 143, 2, "Error", ""))),
			map[string]any{"/a/train": "stopping\n"},
			training.Report{State: training.Failed, Error: exceeded + ": pod a was evicted (PreemptionByScheduler: preempted), container train of pod a exited with code 143", Log: "stopping\n"},
		},
		"evicted the second time": {
			backoff, items(podOf("a", "Failed", 1, exits("train", 1, 2, "Error", "")), podOf("b", "Failed", 3, `"reason": "Evicted", "message": "low on memory"`)),
			map[string]any{"/b/train": "of b", "/a/train": "of a"},
			training.Report{State: training.Failed, Error: exceeded + ": pod b was evicted (Evicted: low on memory)", Log: "of b"},
		},
		"refused by the node": {
			backoff, items(podOf("a", "Failed", 1, `"reason": "UnexpectedAdmissionError", "message": "no GPU"`)), nil,
			training.Report{State: training.Failed, Error: exceeded + ": pod a: UnexpectedAdmissionError: no GPU", Log: "(no log: read the log of pod a: status 404: not found)\n"},
		},
		"too long": {deadline, items(), nil, training.Report{State: training.Failed, Error: "the Job reached its time limit of 6h0m0s; its pods no longer exist"}},
		"too long, with its pod": {
			deadline, items(podOf("a", "Failed", 1, exits("train", 143, 2, "Error", ""))),
			map[string]any{"/a/train": "epoch 9\n"},
			training.Report{State: training.Failed, Error: "the Job reached its time limit of 6h0m0s: container train of pod a exited with code 143", Log: "epoch 9\n"},
		},
		"several pods": {
			complete, items(podOf("a", "Succeeded", 1, exits("train", 0, 2, "Completed", wrote)), podOf("b", "Succeeded", 1, exits("train", 0, 3, "Completed", ""))),
			map[string]any{"/a/train": "of worker 0", "/b/train": "of worker 1"},
			training.Report{State: training.Succeeded, Version: "v7", Log: "of worker 0"},
		},
		"killed sidecar": {
			complete, items(withSidecar(podOf("a", "Succeeded", 1, exits("train", 0, 2, "Completed", wrote)+ends("mesh", 143)))),
			map[string]any{"/a/train": "done\n", "/a/mesh": "of the mesh"},
			training.Report{State: training.Succeeded, Version: "v7", Log: "done\n"},
		},
		"succeeded in spite of a container": {
			complete, items(podOf("a", "Succeeded", 1, exits("train", 0, 2, "Completed", wrote)+ends("fetch", 1))),
			map[string]any{"/a/train": "done\n", "/a/fetch": "of fetch"},
			training.Report{State: training.Succeeded, Version: "v7", Log: "done\n"},
		},
		"evicted with its sidecar": {
			backoff, items(withSidecar(podOf("a", "Failed", 1, `"reason": "Evicted"`+ends("mesh", 137)))),
			map[string]any{"/a/train": "epoch 3\n", "/a/mesh": "of the mesh"},
			training.Report{State: training.Failed, Error: exceeded + ": pod a was evicted (Evicted)", Log: "epoch 3\n"},
		},
		"chosen container": {
			complete, items(strings.Replace(podOf("a", "Succeeded", 1, exits("train", 0, 2, "Completed", wrote)), `"name": "a"`, `"name": "a", "annotations": {"kubectl.kubernetes.io/default-container": "proxy"}`, 1)),
			map[string]any{"/a/proxy": "of the proxy"},
			training.Report{State: training.Succeeded, Version: "v7", Log: "of the proxy"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{job: c.job, pods: c.pods, logs: c.logs}
			f, _ := follow(t, s, time.Minute)
			if got := look(t, f, 1); !reflect.DeepEqual(got, []training.Report{c.want}) {
				t.Errorf("got\n%+v, want\n%+v", got, c.want)
			}
		})
	}
}

func TestReportsOnAJobThatRuns(t *testing.T) {
	s := &server{job: `{"metadata": {"uid": "u 1"}, "status": {"active": 1}}`}
	f, _ := follow(t, s, time.Minute)
	if got := look(t, f, 1); len(got) != 0 {
		t.Errorf("a pod that waits is reported as %v", got)
	}
	s.set(func(s *server) {
		s.job = strings.Replace(running, "u1", "u 1", 1)
		s.pods = items(podOf("a", "Running", 1, exits("train", 1, 1, "Error", "")))
		s.logs = map[string]any{"/a/train": "epoch 1\n"}
		s.asked = nil
	})
	if got := look(t, f, 3); len(got) != 1 || got[0].State != training.Started {
		t.Errorf("a pod that runs is reported as %v", got)
	}
	s.set(func(s *server) {
		jobs, pods := "GET /apis/batch/v1/namespaces/ml/jobs/rewardwatch-rr-1", "GET /api/v1/namespaces/ml/pods"
		want := []string{jobs, pods + "?labelSelector=batch.kubernetes.io%2Fcontroller-uid%3Du+1&limit=250", pods + "/a/log?container=train&tailLines=1000", jobs, jobs}
		if !reflect.DeepEqual(s.asked, want) || s.token != "Bearer first-token" {
			t.Errorf("asked with %q for %q", s.token, s.asked)
		}
		s.job, s.pods = deadline, items() // Kubernetes has deleted the pod
	})
	check(t, os.WriteFile(f.clusters["cluster"].client.TokenFile, []byte("second-token"), 0o600))
	want := training.Report{State: training.Failed, Error: "the Job reached its time limit of 6h0m0s: container train of pod a exited with code 1", Log: "epoch 1\n"}
	if got := look(t, f, 1); !reflect.DeepEqual(got, []training.Report{want}) || s.token != "Bearer second-token" {
		t.Errorf("got %+v with %q, want %+v", got, s.token, want)
	}
	if check(t, f.look(t.Context(), "cluster", nil, nil)); len(f.clusters["cluster"].known) > 0 {
		t.Errorf("of a request that is over, %v stays", f.clusters["cluster"].known)
	}
}

// If a Job is missing, its request ends only if the Job existed before, because the target may have changed.
func TestReportsOnAJobThatIsMissing(t *testing.T) {
	s := &server{}
	f, log := follow(t, s, time.Minute)
	if got := look(t, f, 3); len(got) != 0 || strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), "get Job rewardwatch-rr-1: status 404") {
		t.Errorf("reported %v, and logged\n%s", got, log)
	}
	s.set(func(s *server) { s.job = `{"metadata": {"uid": "u1"}, "status": {"active": 1}}` })
	if got := look(t, f, 1); len(got) != 0 {
		t.Errorf("a pod that waits is reported as %v", got)
	}
	s.set(func(s *server) { s.job = nil })
	if got, want := look(t, f, 1), (training.Report{State: training.Failed, Error: "the Job was deleted before it ended"}); !reflect.DeepEqual(got, []training.Report{want}) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// If its pods have been forbidden for some minutes, a Job that has ended is reported without them.
func TestReportsOnAJobWithForbiddenPods(t *testing.T) {
	forbidden := &StatusError{403, "Forbidden", `pods is forbidden: User "watch" cannot list resource "pods"`}
	unseen := ", but the service cannot read the version and the exit code from its pods: list pods: " + forbidden.Error()
	for name, c := range map[string]struct {
		before, job any
		want        training.Report
	}{
		"complete":         {nil, complete, training.Report{State: training.Failed, Error: "the Job succeeded" + unseen}},
		"failed":           {nil, backoff, training.Report{State: training.Failed, Error: exceeded + unseen}},
		"forbidden lately": {running, backoff, training.Report{State: training.Failed, Error: exceeded + ": container train of pod a exited with code 1" + unseen, Log: "epoch 1\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{job: c.before, pods: items(podOf("a", "Running", 1, exits("train", 1, 1, "Error", ""))), logs: map[string]any{"/a/train": "epoch 1\n"}}
			f, log := follow(t, s, time.Minute)
			if c.before != nil {
				look(t, f, 1)
			}
			s.set(func(s *server) { s.job, s.pods = c.job, forbidden })
			if got := look(t, f, podTries-1); len(got) > 0 || strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), forbidden.Message[:20]) {
				t.Errorf("reported %v, and logged\n%s", got, log)
			}
			if got := look(t, f, 1); !reflect.DeepEqual(got, []training.Report{c.want}) {
				t.Errorf("got\n%+v, want\n%+v", got, c.want)
			}
		})
	}
}

// A second outage is logged like the first one.
func TestEveryOutageIsLogged(t *testing.T) {
	s := &server{}
	f, log := follow(t, s, time.Minute)
	for range 2 {
		s.set(func(s *server) { s.job = &StatusError{500, "InternalError", "etcd is away"} })
		look(t, f, 2)
		s.set(func(s *server) { s.job = `{"status": {"active": 1}}` })
		look(t, f, 2)
	}
	if strings.Count(log.String(), "\n") != 2 {
		t.Errorf("two outages are logged as\n%s", log)
	}
}

// An API server that does not answer is asked about one request only, and does not delay other targets.
func TestSlowAPIServer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	asked := make(chan string, 100)
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		<-r.Context().Done()
	}))
	defer slow.Close()
	s := &server{job: running, pods: items()}
	f, _ := follow(t, s, time.Minute)
	c := f.clusters["cluster"].client.Config
	c.URL = slow.URL
	f.clusters["slow"] = &cluster{NewClient(c, &http.Transport{DisableKeepAlives: true}), map[string]*followed{}}
	underway := func(context.Context) (map[string]string, error) {
		return map[string]string{"rr_0": "slow", "rr_1": "cluster", "rr_2": "slow"}, nil
	}
	reports, done := make(chan string), make(chan error, 1)
	go func() {
		done <- f.Run(ctx, underway, func(_ context.Context, request string, r training.Report) error {
			reports <- request + " " + r.State
			return nil
		})
	}()
	if got, first := <-reports, <-asked; got != "rr_1 started" || !strings.HasSuffix(first, "rr-0") {
		t.Errorf("reported %s, and the slow API server was asked for %s", got, first)
	}
	cancel()
	check(t, <-done)

	f.timeout = func(string) time.Duration { return time.Millisecond }
	requests, err := underway(t.Context())
	check(t, err)
	for range 3 {
		check(t, f.look(t.Context(), "slow", requests, nil))
	}
	for len(asked) > 0 {
		if path := <-asked; !strings.HasSuffix(path, "rr-0") {
			t.Errorf("asked for %s too", path)
		}
	}
}

// While a second attempt runs, its log is kept, not that of the first attempt or of a container next to the
// training.
func TestKeepsTheLogOfTheLastAttempt(t *testing.T) {
	const crashed = `"containerStatuses": [{"name": "proxy", "lastState": {"terminated": {"exitCode": 1}}}, {"name": "train", "state": {"running": {}}}]`
	s := &server{
		job:  running,
		pods: items(podOf("a", "Failed", 1, exits("train", 1, 2, "Error", "")), podOf("b", "Running", 3, crashed)),
		logs: map[string]any{"/a/train": "first\n", "/b/train": "second\n", "/b/proxy": "of the proxy\n"},
	}
	f, _ := follow(t, s, time.Minute)
	look(t, f, 1)
	s.set(func(s *server) { s.job, s.pods, s.logs = deadline, items(), nil })
	if got := look(t, f, 1); len(got) != 1 || got[0].Log != "second\n" {
		t.Errorf("got %+v", got)
	}
}

// Answers that are missing, or not from Kubernetes, end nothing.
func TestAnswersThatSayNothing(t *testing.T) {
	for name, c := range map[string]struct {
		answer any
		want   string
	}{
		"forbidden":     {&StatusError{403, "Forbidden", "jobs.batch is forbidden"}, "get Job rewardwatch-rr-1: status 403: jobs.batch is forbidden"},
		"unauthorized":  {&StatusError{401, "Unauthorized", "Unauthorized"}, "status 401: Unauthorized"},
		"gone":          {&StatusError{410, "Gone", "gone"}, "status 410: gone"},
		"broken":        {&StatusError{500, "InternalError", "etcd is away"}, "status 500: etcd is away"},
		"away":          {&StatusError{503, "", ""}, "status 503: not a Kubernetes API response"},
		"proxy":         {&StatusError{404, "", ""}, "status 404: not a Kubernetes API response"},
		"redirected":    {&StatusError{302, "", ""}, "status 302: not a Kubernetes API response"},
		"no JSON":       {"<html>", "invalid character"},
		"cut off":       {running[:40], "unexpected EOF"},
		"takes forever": {func(r *http.Request) { <-r.Context().Done() }, "deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			timeout := time.Minute
			if name == "takes forever" {
				timeout = time.Millisecond
			}
			f, log := follow(t, &server{job: c.answer}, timeout)
			if got := look(t, f, 3); len(got) != 0 || strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), c.want) {
				t.Errorf("reported %v, and logged\n%s", got, log)
			}
		})
	}
	t.Run("no token", func(t *testing.T) {
		f, log := follow(t, &server{job: complete}, time.Minute)
		check(t, os.Remove(f.clusters["cluster"].client.TokenFile))
		if got := look(t, f, 1); len(got) != 0 || !strings.Contains(log.String(), "read token") {
			t.Errorf("reported %v, and logged\n%s", got, log)
		}
	})
}

func TestLogs(t *testing.T) {
	pods := items(podOf("a", "Succeeded", 1, exits("train", 0, 2, "Completed", wrote)))
	t.Run("of 10 MB", func(t *testing.T) {
		long := strings.Repeat("0123456789abcde\n", 10<<20/16) + "the end\n"
		f, _ := follow(t, &server{job: complete, pods: pods, logs: map[string]any{"/a/train": long}}, time.Minute)
		if got := look(t, f, 1); len(got) != 1 || got[0].Log != long[len(long)-keptLog-logMargin:] {
			t.Errorf("%d reports, of %d bytes", len(got), len(got[0].Log))
		}
	})
	for name, c := range map[string]struct {
		status *StatusError
		looks  int
	}{
		"of a node that is away": {&StatusError{500, "InternalError", "dial tcp: timeout"}, logTries},
		"that is forbidden":      {&StatusError{403, "Forbidden", "pods/log is forbidden"}, logTries},
		"of a pod that is gone":  {&StatusError{404, "NotFound", "pods a not found"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := follow(t, &server{job: complete, pods: pods, logs: map[string]any{"/a/train": c.status}}, time.Minute)
			if got := look(t, f, c.looks-1); len(got) != 0 {
				t.Errorf("reported %v too early", got)
			}
			want := training.Report{State: training.Succeeded, Version: "v7", Log: "(no log: read the log of pod a: " + c.status.Error() + ")\n"}
			if got := look(t, f, 1); !reflect.DeepEqual(got, []training.Report{want}) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
	t.Run("that were read before", func(t *testing.T) {
		s := &server{job: running, pods: items(podOf("a", "Running", 1, `"message": ""`)), logs: map[string]any{"/a/train": "epoch 1\n"}}
		f, _ := follow(t, s, time.Minute)
		look(t, f, 1)
		s.set(func(s *server) { s.job, s.pods, s.logs = complete, pods, nil })
		if got := look(t, f, 1); len(got) != 1 || got[0].Version != "v7" || got[0].Log != "epoch 1\n" {
			t.Errorf("got %+v", got)
		}
	})
}

func TestTail(t *testing.T) {
	const most = keptLog + logMargin
	var all strings.Builder
	var end tail
	for i := range 400 {
		text := strings.Repeat(string(rune('a'+i%26)), i*i%1000)
		all.WriteString(text)
		_, _ = end.Write([]byte(text))
		if whole := all.String(); end.String() != whole[max(0, len(whole)-most):] {
			t.Fatalf("after %d texts, %d bytes are kept of %d", i, len(end.String()), len(whole))
		}
	}
	long := strings.Repeat("x", 5) + strings.Repeat("y", most)
	if _, _ = end.Write([]byte(long)); end.String() != long[5:] {
		t.Errorf("%d bytes are kept", len(end.String()))
	}
}

func TestCreated(t *testing.T) {
	for name, c := range map[string]struct {
		job  any
		want string
	}{
		"its own":    {`{"metadata": {"annotations": {"rewardwatch/request": "rr_1"}}}`, ""},
		"of another": {`{"metadata": {"annotations": {"rewardwatch/request": "rr_2"}}}`, "the Job rewardwatch-rr-1 already exists and was not created for this request"},
		"gone":       {nil, "get Job rewardwatch-rr-1: status 404: not found"},
	} {
		f, _ := follow(t, &server{job: c.job}, time.Minute)
		if err := f.clusters["cluster"].client.Created(t.Context(), "rr_1"); err != nil && err.Error() != c.want || err == nil && c.want != "" {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// Run continues until its context ends, and after reports that arrive too late.
func TestRun(t *testing.T) {
	s := &server{job: running, pods: items()}
	f, log := follow(t, s, time.Minute)
	f.every = time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	underway := func(context.Context) (map[string]string, error) { return map[string]string{"rr_1": "cluster"}, nil }
	reports := make(chan training.Report)
	done := make(chan error, 1)
	go func() {
		done <- f.Run(ctx, underway, func(_ context.Context, _ string, r training.Report) error {
			reports <- r
			if r.State == training.Started {
				return fmt.Errorf("%w: withdrawn", training.ErrSettled)
			}
			return errors.New("the ledger is full")
		})
	}()
	if r := <-reports; r.State != training.Started {
		t.Errorf("reported %+v", r)
	}
	s.set(func(s *server) { s.job, s.pods = backoff, items() })
	if r := <-reports; r.State != training.Failed {
		t.Errorf("reported %+v", r)
	}
	if err := <-done; err == nil || err.Error() != "report the Job of rr_1: the ledger is full" || !strings.Contains(log.String(), "no longer accepts reports") {
		t.Errorf("Run returned %v, and logged\n%s", err, log)
	}
	lost := errors.New("the ledger is lost")
	if err := f.Run(ctx, func(context.Context) (map[string]string, error) { return nil, lost }, nil); !errors.Is(err, lost) {
		t.Errorf("Run returned %v", err)
	}
	cancel()
	if err := f.Run(ctx, func(context.Context) (map[string]string, error) { return nil, lost }, nil); err != nil {
		t.Errorf("Run returned %v after its end", err)
	}
}

func TestUnreachable(t *testing.T) {
	c := testConfig("http://127.0.0.1:1")
	err := NewClient(c, &http.Transport{}).Created(t.Context(), "rr_1")
	if _, is := errors.AsType[*url.Error](err); is || err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("%v", err)
	}
	c.URL = ""
	if _, err := NewClient(c, nil).Token(); err == nil || !strings.Contains(err.Error(), "service account token") {
		t.Errorf("%v", err)
	}
}
