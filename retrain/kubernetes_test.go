//go:build kubernetes

package retrain

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/rewardwatch/rewardwatch/deploy/deploytest"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain/kubejob"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/retraintest"
	"github.com/rewardwatch/rewardwatch/retrain/target"
)

// cluster is a real API server with RBAC. It has no controllers and no nodes: the test acts as both.
type cluster struct {
	t      *testing.T
	url    string
	ca     string
	admin  string // token
	client *http.Client
}

// startCluster starts an API server with the namespaces of the service and of the trainings.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	ports, dir := deploytest.FreePorts(t, 3), t.TempDir()
	run := func(verb string) {
		cmd := exec.Command("../deploy/local/kubernetes/kubernetes.sh", verb)
		cmd.Env = append(os.Environ(), "KUBERNETES_DIR="+dir, "KUBERNETES_PORT="+ports[0], "KUBERNETES_ETCD_PORT="+ports[1], "KUBERNETES_ETCD_PEER_PORT="+ports[2])
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("kubernetes.sh %s: %v\n%s", verb, err, out)
		}
	}
	t.Cleanup(func() { run("stop") })
	run("start")
	c := &cluster{t: t, url: "https://127.0.0.1:" + ports[0], ca: filepath.Join(dir, "ca.crt")}
	token, err := os.ReadFile(filepath.Join(dir, "admin.token"))
	check(t, err)
	c.admin = strings.TrimSpace(string(token))
	authority, err := os.ReadFile(c.ca)
	check(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	c.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}}
	for _, name := range []string{"watch", "ml"} {
		c.must("POST", "/api/v1/namespaces", map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}})
	}
	return c
}

// ask sends a request with a token, and returns the answer.
func (c *cluster) ask(token, method, path string, body any) (status int, answer map[string]any) {
	c.t.Helper()
	var text []byte
	if body != nil { // otherwise, the options of a deletion are in its path
		var err error
		text, err = json.Marshal(body)
		check(c.t, err)
	}
	req, err := http.NewRequest(method, c.url+path, bytes.NewReader(text))
	check(c.t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	if method == "PATCH" {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	resp, err := c.client.Do(req)
	check(c.t, err)
	defer resp.Body.Close()
	check(c.t, json.NewDecoder(resp.Body).Decode(&answer))
	return resp.StatusCode, answer
}

// must sends a request of the administrator that has to succeed.
func (c *cluster) must(method, path string, body any) map[string]any {
	c.t.Helper()
	status, answer := c.ask(c.admin, method, path, body)
	if status >= 300 {
		c.t.Fatalf("%s %s: %d %v", method, path, status, answer)
	}
	return answer
}

// jobs returns all Jobs.
func (c *cluster) jobs() (jobs []map[string]any) {
	c.t.Helper()
	for _, item := range c.must("GET", jobsPath, nil)["items"].([]any) {
		jobs = append(jobs, item.(map[string]any))
	}
	return jobs
}

// install creates the service account and the roles of the chart, and returns the file with the token of the account.
func (c *cluster) install() (tokenFile string) {
	c.t.Helper()
	makefile, err := os.ReadFile("../Makefile")
	check(c.t, err)
	helm := "../.cache/bin/helm-" + string(regexp.MustCompile(`(?m)^HELM_VERSION := (\S+)`).FindSubmatch(makefile)[1])
	text, err := exec.Command(helm, "template", "x", "../deploy/helm/rewardwatch", "--namespace", "watch", "--kube-version", "1.37.0", "--set", "jobs.enabled=true,jobs.namespaces={ml}").Output()
	check(c.t, err)
	account := ""
	for _, doc := range strings.Split(string(text), "\n---\n") {
		asJSON, err := yaml.YAMLToJSON([]byte(doc))
		check(c.t, err)
		var o map[string]any
		check(c.t, json.Unmarshal(asJSON, &o))
		meta, _ := o["metadata"].(map[string]any)
		switch kind, _ := o["kind"].(string); kind {
		case "ServiceAccount":
			account = meta["name"].(string)
			c.must("POST", "/api/v1/namespaces/watch/serviceaccounts", o)
		case "Role", "RoleBinding":
			c.must("POST", fmt.Sprintf("/apis/rbac.authorization.k8s.io/v1/namespaces/%s/%ss", meta["namespace"], strings.ToLower(kind)), o)
		}
	}
	return c.tokenOf(account)
}

// tokenOf returns a file with a token of a service account.
func (c *cluster) tokenOf(account string) (file string) {
	c.t.Helper()
	answer := c.must("POST", "/api/v1/namespaces/watch/serviceaccounts/"+account+"/token", map[string]any{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": map[string]any{"expirationSeconds": 3600},
	})
	file = filepath.Join(c.t.TempDir(), "token")
	check(c.t, os.WriteFile(file, []byte(answer["status"].(map[string]any)["token"].(string)), 0o600))
	return file
}

// node registers a node whose kubelet serves logs of 10 MB, with the end that belongs to the pod.
func (c *cluster) node(end func(pod string) string) {
	c.t.Helper()
	kubelet := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		part := strings.Split(r.URL.Path, "/") // of /containerLogs/NAMESPACE/POD/CONTAINER
		if len(part) != 5 || part[1] != "containerLogs" || part[4] != "train" || r.URL.Query().Get("tailLines") != "1000" {
			http.Error(w, r.URL.String(), http.StatusBadRequest)
			return
		}
		for range 10 << 10 {
			_, _ = io.WriteString(w, strings.Repeat("0123456789abcde\n", 64)) // the API server may have read enough
		}
		_, _ = io.WriteString(w, end(part[3]))
	}))
	c.t.Cleanup(kubelet.Close)
	_, port, err := net.SplitHostPort(kubelet.Listener.Addr().String())
	check(c.t, err)
	number, err := strconv.Atoi(port)
	check(c.t, err)
	c.must("POST", "/api/v1/nodes", map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": "gpu"}})
	c.must("PATCH", "/api/v1/nodes/gpu/status", map[string]any{"status": map[string]any{
		"addresses":       []any{map[string]any{"type": "InternalIP", "address": "127.0.0.1"}},
		"daemonEndpoints": map[string]any{"kubeletEndpoint": map[string]any{"Port": number}},
	}})
}

const (
	jobsPath = "/apis/batch/v1/namespaces/ml/jobs"
	podsPath = "/api/v1/namespaces/ml/pods"
)

// fate is how a Job ends, and the resulting request.
type fate struct {
	reason  string // of the failed Job; "" if it is complete
	pod     map[string]any
	deletes bool // Kubernetes deletes the pod, or a person the Job

	state ledger.State
	why   string // POD stands for the name of the pod
}

// fates returns the fates of Jobs, by policy.
func fates() map[string]fate {
	return map[string]fate{
		"succeeds": {pod: exited("Succeeded", 0, `{"policy_version": "v7"}`), state: ledger.StateVerifying, why: "the job produced version v7"},
		"fails": {
			reason: "BackoffLimitExceeded", pod: exited("Failed", 3, ""), state: ledger.StateFailed,
			why: "the Job failed (BackoffLimitExceeded: by the test): container train of pod POD exited with code 3",
		},
		"evicted": {
			reason: "BackoffLimitExceeded", pod: map[string]any{"phase": "Failed", "reason": "Evicted", "message": "low on memory"}, state: ledger.StateFailed,
			why: "the Job failed (BackoffLimitExceeded: by the test): pod POD was evicted (Evicted: low on memory)",
		},
		"late":     {reason: "DeadlineExceeded", deletes: true, state: ledger.StateFailed, why: "the Job reached its time limit of 6h0m0s"},
		"deleted":  {deletes: true, state: ledger.StateFailed, why: "the Job was deleted before it ended"},
		"wordless": {pod: exited("Succeeded", 0, ""), state: ledger.StateFailed, why: `the Job succeeded with exit code 0, but did not write {"policy_version": "..."} to the file in REWARDWATCH_RESULT`},
	}
}

// controller acts as the controllers and the kubelet: each Job gets a pod that is ready, and ends after the second
// look.
type controller struct {
	*cluster
	seen map[string]int      // looks, by uid
	made map[string][]string // the uids of Jobs by policy
}

func (c *controller) look() {
	c.t.Helper()
	for _, job := range c.jobs() {
		meta := job["metadata"].(map[string]any)
		name, uid := meta["name"].(string), meta["uid"].(string)
		policy := meta["annotations"].(map[string]any)["rewardwatch/policy"].(string)
		if _, known := fates()[policy]; !known {
			continue
		}
		switch c.seen[uid]++; c.seen[uid] {
		case 1:
			c.made[policy] = append(c.made[policy], uid)
			c.run(name, job)
		case 2:
			c.end(name, fates()[policy])
		}
	}
}

// run creates the pod of a Job from its template, and lets it run.
func (c *controller) run(name string, job map[string]any) {
	c.t.Helper()
	template := job["spec"].(map[string]any)["template"].(map[string]any)
	template["spec"].(map[string]any)["nodeName"] = "gpu"
	template["metadata"].(map[string]any)["name"] = name
	c.must("POST", podsPath, map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": template["metadata"], "spec": template["spec"]})
	c.must("PATCH", podsPath+"/"+name+"/status", map[string]any{"status": map[string]any{"phase": "Running"}})
	c.must("PATCH", jobsPath+"/"+name+"/status", map[string]any{"status": map[string]any{"active": 1, "ready": 1, "startTime": now()}})
}

func now() string { return time.Now().UTC().Format(time.RFC3339) }

// end ends a Job according to its fate.
func (c *controller) end(name string, f fate) {
	c.t.Helper()
	if f.pod != nil {
		c.must("PATCH", podsPath+"/"+name+"/status", map[string]any{"status": f.pod})
	}
	if f.deletes {
		c.must("DELETE", podsPath+"/"+name+"?gracePeriodSeconds=0", nil)
	}
	status := map[string]any{"active": 0, "ready": 0}
	condition := func(kind string) map[string]any {
		return map[string]any{"type": kind, "status": "True", "reason": f.reason, "message": "by the test", "lastTransitionTime": now(), "lastProbeTime": now()}
	}
	switch {
	case f.reason != "":
		status["failed"], status["conditions"] = 1, []any{condition("FailureTarget"), condition("Failed")}
	case f.deletes:
		c.must("DELETE", jobsPath+"/"+name+"?propagationPolicy=Background", nil)
		return
	default:
		status["succeeded"], status["completionTime"] = 1, now()
		status["conditions"] = []any{condition("SuccessCriteriaMet"), condition("Complete")}
	}
	c.must("PATCH", jobsPath+"/"+name+"/status", map[string]any{"status": status})
}

// killedJobs is the variable that makes a process the one that is killed: url, certificate authority, token file,
// directory, and a number.
const killedJobs = "REWARDWATCH_TEST_KILLED_JOBS"

// orderedEach is the number of requests of each process that is killed.
const orderedEach = 3

// TestKubernetesJobs has desks train with a real API server, only with the role of the chart. Some desks are killed
// while they create Jobs.
func TestKubernetesJobs(t *testing.T) {
	if with := strings.Fields(os.Getenv(killedJobs)); len(with) > 0 {
		d, _ := runDesk(t, realJobs(t, with[0], with[1], with[2], with[3]))
		for i := range orderedEach {
			policy := fmt.Sprintf("killed-%s-%d", with[4], i)
			_, err := d.Consider(context.WithoutCancel(t.Context()), retraintest.Incident("of-"+policy, policy), time.Time{})
			check(t, err)
		}
		select {} // until it is killed
	}
	c := startCluster(t)
	token := c.install()
	c.node(func(pod string) string { return "epoch 9 of " + pod + " with " + readToken(t, token) + "\n" })
	t.Run("role", func(t *testing.T) { c.permits(t, readToken(t, token)) })
	t.Run("killed", func(t *testing.T) { killedWithJobs(t, c, token) })
	t.Run("followed", func(t *testing.T) { followedJobs(t, c, token) })
	t.Run("refused", func(t *testing.T) { refusedJobs(t, c, token) })
}

func readToken(t *testing.T, file string) string {
	t.Helper()
	token, err := ingest.ReadToken(file)
	check(t, err)
	return token
}

// realJobs is the configuration of a desk with the Jobs of a real API server.
func realJobs(t *testing.T, url, ca, token, directory string) Config {
	t.Helper()
	cfg := jobConfig(t, url, ledger.Config{SQLite: filepath.Join(directory, "ledger.db")})
	cfg.Targets[0].Kubernetes.TokenFile, cfg.Targets[0].TLS.CAFile = token, ca
	return cfg
}

// permits checks that the service account may do what it needs, and nothing else.
func (c *cluster) permits(t *testing.T, token string) {
	for what, want := range map[string]int{
		"GET " + jobsPath + "/none": 404, "GET " + podsPath: 200, "GET " + podsPath + "/none/log": 404,
		"GET " + jobsPath: 403, "GET " + podsPath + "/none": 403, "DELETE " + jobsPath + "/none": 403, "PATCH " + jobsPath + "/none": 403,
		"POST " + podsPath: 403, "GET /api/v1/namespaces/ml/secrets": 403, "GET /api/v1/namespaces/watch/pods": 403,
		"POST /apis/batch/v1/namespaces/watch/jobs": 403, "GET /api/v1/nodes": 403,
	} {
		method, path, _ := strings.Cut(what, " ")
		if got, answer := c.ask(token, method, path, map[string]any{}); got != want {
			t.Errorf("%s: %d, want %d: %v", what, got, want, answer["message"])
		}
	}
}

// killedWithJobs kills processes as soon as the API server has one of their Jobs: in every second round before they
// receive the response, so that the request is certain to be delivered again, and otherwise at a random moment.
func killedWithJobs(t *testing.T, c *cluster, token string) {
	const kills = 15
	directory := t.TempDir()
	proxy := c.withhold(t)
	held := map[string]bool{} // Jobs whose responses were withheld
	for round := range kills {
		before := len(c.jobs())
		api, ca, created := c.url, c.ca, func() bool { return len(c.jobs()) > before }
		if round%2 == 0 {
			api, ca, created = proxy.url, proxy.ca, func() bool { return len(proxy.created) > 0 }
		}
		process := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestKubernetesJobs$")
		process.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %s %s %d", killedJobs, api, ca, token, directory, round))
		check(t, process.Start())
		for end := time.Now().Add(time.Minute); !created() && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(rand.N(20 * time.Millisecond))
		check(t, process.Process.Kill())
		_ = process.Wait() // it was killed on purpose
		for len(proxy.created) > 0 {
			held[<-proxy.created] = true
		}
	}
	d, stop := runDesk(t, realJobs(t, c.url, c.ca, token, directory))
	defer stop()
	all, err := d.Requests(t.Context(), 2*orderedEach*kills)
	check(t, err)
	repeated, asked := 0, map[string]bool{}
	for _, q := range all {
		name := kubejob.Name(q.ID)
		asked[name] = true
		q = awaitState(t, d, q.ID, ledger.StateDelivered)
		if q.Attempts > 1 {
			repeated++
		} else if held[name] {
			t.Errorf("%s was delivered once, though the response to that was withheld", q.ID)
		}
	}
	jobs := c.jobs()
	for _, job := range jobs {
		if name := job["metadata"].(map[string]any)["name"].(string); !asked[name] {
			t.Errorf("the Job %s has no request", name)
		}
	}
	if len(jobs) != len(all) || len(all) < kills {
		t.Errorf("%d Jobs of %d requests", len(jobs), len(all))
	}
	if len(held) < kills/2 {
		t.Errorf("the responses to %d Jobs were withheld in %d rounds", len(held), kills)
	}
	t.Logf("%d kills; %d of %d requests were delivered more than once, at least %d of them with a Job from before", kills, repeated, len(all), len(held))
}

// withholding is a proxy of an API server that withholds the response for a created Job.
type withholding struct {
	url, ca string
	created chan string // names of the Jobs
}

func (c *cluster) withhold(t *testing.T) withholding {
	t.Helper()
	at, err := url.Parse(c.url)
	check(t, err)
	w := withholding{created: make(chan string, 1000)}
	proxy := httputil.NewSingleHostReverseProxy(at)
	proxy.Transport = c.client.Transport
	proxy.ErrorLog = log.New(io.Discard, "", 0) // the clients are killed
	proxy.ModifyResponse = func(r *http.Response) error {
		if r.StatusCode != http.StatusCreated {
			return nil
		}
		var job struct{ Metadata struct{ Name string } }
		if err := json.NewDecoder(r.Body).Decode(&job); err != nil {
			return err
		}
		w.created <- job.Metadata.Name
		<-r.Request.Context().Done()
		return r.Request.Context().Err()
	}
	server := httptest.NewTLSServer(proxy)
	t.Cleanup(server.Close)
	w.url, w.ca = server.URL, filepath.Join(t.TempDir(), "ca.crt")
	check(t, os.WriteFile(w.ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	return w
}

// followedJobs checks the requests of Jobs that end in every possible way.
func followedJobs(t *testing.T, c *cluster, token string) {
	played := &controller{c, map[string]int{}, map[string][]string{}}
	d, stop := runDesk(t, realJobs(t, c.url, c.ca, token, t.TempDir()))
	requests := map[string]string{}
	for policy := range fates() {
		decision, err := d.Consider(t.Context(), retraintest.Incident("of-"+policy, policy), time.Time{})
		check(t, err)
		requests[policy] = decision.Request
		awaitState(t, d, decision.Request, ledger.StateDelivered)
	}
	resent(t, c, d, requests["succeeds"])
	stop()
	played.look() // all run
	d, stop = runDesk(t, d.cfg)
	for _, request := range requests {
		awaitState(t, d, request, ledger.StateRunning)
	}
	job := c.must("GET", jobsPath+"/"+kubejob.Name(requests["succeeds"]), nil)
	if text, _ := json.Marshal(job); !strings.Contains(string(text), `"limits":{"nvidia.com/gpu":"1"}`) || !strings.Contains(string(text), requests["succeeds"]+`\",\"incident\":\"of-succeeds\"`) {
		t.Errorf("the Job requests no GPU, or has no order: %s", text)
	}
	played.look() // all end, while the desk looks
	for policy, request := range requests {
		f := fates()[policy]
		q := awaitState(t, d, request, f.state)
		if want := strings.ReplaceAll(f.why, "POD", kubejob.Name(request)); !strings.HasPrefix(q.Reason, want) {
			t.Errorf("%s: %q, want %q", policy, q.Reason, want)
		}
		if end := "9abcde\nepoch 9 of " + kubejob.Name(request) + " with [secret]\n"; !strings.HasSuffix(q.Log, end) || len(q.Log) > keptLog {
			t.Errorf("%s: the log of %d bytes ends with %.100q", policy, len(q.Log), q.Log[max(0, len(q.Log)-100):])
		}
		if len(played.made[policy]) != 1 {
			t.Errorf("%s: the Jobs %v were created", policy, played.made[policy])
		}
	}
	stop()
}

// resent delivers a request again, and checks that its Job stays the same.
func resent(t *testing.T, c *cluster, d *Desk, request string) {
	t.Helper()
	uid := func() any {
		return c.must("GET", jobsPath+"/"+kubejob.Name(request), nil)["metadata"].(map[string]any)["uid"]
	}
	before := uid()
	_, err := d.Resend(t.Context(), request, "ann", "")
	check(t, err)
	awaitState(t, d, request, ledger.StateDelivered)
	last, err := d.Deliveries(t.Context(), request, 1)
	check(t, err)
	if last[0].Status != http.StatusConflict || last[0].Result != target.ResultDelivered || uid() != before {
		t.Errorf("the attempt is %+v, and the Job %v instead of %v", last[0], uid(), before)
	}
}

// refusedJobs checks the request of a Job that the API server refuses.
func refusedJobs(t *testing.T, c *cluster, token string) {
	c.must("POST", "/api/v1/namespaces/watch/serviceaccounts", map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": "stranger"}})
	for name, test := range map[string]struct {
		token, manifest string
		status          int
		says            string
	}{
		"unknown field": {token, "restartPolicy: Never\n      gpus: 1", 400, `unknown field "spec.template.spec.gpus"`},
		"bad value":     {token, "restartPolicy: Never\n      dnsPolicy: Mine", 422, `Unsupported value: "Mine"`},
		"no role":       {c.tokenOf("stranger"), "restartPolicy: Never", 403, `cannot create resource "jobs" in API group "batch" in the namespace "ml"`},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := realJobs(t, c.url, c.ca, test.token, t.TempDir())
			file := cfg.Targets[0].Kubernetes.Manifest
			text, err := os.ReadFile(file)
			check(t, err)
			check(t, os.WriteFile(file, []byte(strings.Replace(string(text), "restartPolicy: Never", test.manifest, 1)), 0o600))
			d, stop := runDesk(t, cfg)
			defer stop()
			decision, err := d.Consider(t.Context(), retraintest.Incident("i1", "ranker"), time.Time{})
			check(t, err)
			for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
				tried, err := d.Deliveries(t.Context(), decision.Request, 1)
				check(t, err)
				if i := slices.IndexFunc(tried, func(a ledger.Delivery) bool { return a.Result == target.ResultRejected }); i >= 0 {
					if a := tried[i]; a.Status != test.status || !strings.Contains(a.Error, test.says) {
						t.Errorf("%d %s", a.Status, a.Error)
					}
					return
				}
				if time.Now().After(end) {
					t.Fatalf("the attempts are %+v", tried)
				}
			}
		})
	}
}
