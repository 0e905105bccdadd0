package target

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rewardwatch/rewardwatch/retrain/kubejob"
	"github.com/rewardwatch/rewardwatch/retrain/retraintest"
)

// kubernetesTarget returns a Job with its own manifest.
func kubernetesTarget(t testing.TB, token string) Target {
	t.Helper()
	manifest := filepath.Join(t.TempDir(), "train.yaml")
	check(t, os.WriteFile(manifest, []byte(`
apiVersion: batch/v1
kind: Job
spec: {template: {spec: {restartPolicy: Never, containers: [{name: train, image: trainer, resources: {limits: {nvidia.com/gpu: 1}}}]}}}
`), 0o600))
	return Target{
		Name: "trainer", Timeout: DefaultTimeout, CompletesWithin: DefaultCompletesWithin, AllowPrivate: true,
		Kubernetes: Kubernetes{Config: kubejob.Config{Manifest: manifest, Namespace: "ml", URL: "http://kubernetes.test", TokenFile: token, TimeLimit: kubejob.DefaultTimeLimit}},
	}
}

// kubernetesDouble creates Jobs with new names.
func kubernetesDouble(t testing.TB) *double {
	names := map[any]bool{}
	return &double{
		t: t, path: "/apis/batch/v1/namespaces/ml/jobs", contentType: "application/json", header: [2]string{"Authorization", "Bearer " + testToken},
		further: func(r request) string {
			if r.URL.RawQuery != "fieldValidation=Strict" {
				return "unknown fields are dropped"
			}
			for _, v := range variablesOf(t, r) {
				if text := v["value"].(string); strings.Contains(strings.ReplaceAll(text, "$$", ""), "$") || len(text) >= 128<<10 {
					return fmt.Sprintf("%s refers to another variable, or does not fit into an environment", v["name"])
				}
			}
			return ""
		},
		respond: func(w http.ResponseWriter, r request) {
			name := r.field(t, "metadata", "name")
			if names[name] {
				answerJSON(http.StatusConflict, `{"kind":"Status","reason":"AlreadyExists","message":"jobs.batch already exists"}`)(w, r)
				return
			}
			names[name] = true
			answerJSON(http.StatusCreated, string(r.body))(w, r)
		},
	}
}

func variablesOf(t testing.TB, r request) (out []map[string]any) {
	t.Helper()
	container := r.field(t, "spec", "template", "spec", "containers").([]any)[0].(map[string]any)
	for _, v := range container["env"].([]any) {
		out = append(out, v.(map[string]any))
	}
	return out
}

// orderOfJob returns the order in the environment of a Job.
func orderOfJob(t testing.TB, r request) string {
	t.Helper()
	for _, v := range variablesOf(t, r) {
		if v["name"] == "REWARDWATCH_ORDER" {
			return v["value"].(string)
		}
	}
	t.Fatal("the Job has no order")
	return ""
}

// An existing Job was created by an earlier attempt, unless its name was taken before.
func TestJobIsCreatedOnce(t *testing.T) {
	const exists = `{"kind":"Status","reason":"AlreadyExists","message":"jobs.batch \"a\" already exists"}`
	for name, c := range map[string]struct {
		code      int
		post, get string // answers to POST with the code and, unless empty, to GET with 200
		want      Result
		says      string
	}{
		"created":                {code: 201, post: "{}", want: ResultDelivered},
		"created before":         {code: 409, post: exists, get: `{"metadata":{"annotations":{"rewardwatch/request":"ID"}}}`, want: ResultDelivered},
		"of another":             {code: 409, post: exists, get: `{"metadata":{}}`, want: ResultRejected, says: "was not created for this request"},
		"exists and is gone":     {code: 409, post: exists, want: ResultRejected, says: "status 404"},
		"another conflict":       {code: 409, post: `{"kind":"Status","reason":"Conflict","message":"try again"}`, want: ResultRejected, says: "status 409: try again"},
		"forbidden":              {code: 403, post: `{"kind":"Status","reason":"Forbidden","message":"cannot create resource \"jobs\""}`, want: ResultRejected, says: `status 403: cannot create resource "jobs"`},
		"invalid":                {code: 422, post: `{"kind":"Status","reason":"Invalid","message":"spec.template: bad"}`, want: ResultRejected, says: "status 422: spec.template: bad"},
		"no namespace":           {code: 404, post: `{"kind":"Status","reason":"NotFound","message":"namespaces \"ml\" not found"}`, want: ResultRejected, says: `namespaces "ml" not found`},
		"away":                   {code: 503, post: "<html>", want: ResultRejected, says: "status 503: not a Kubernetes API response"},
		"repeats the token":      {code: 401, post: `{"kind":"Status","reason":"Unauthorized","message":"` + testToken + `"}`, want: ResultRejected, says: "status 401: [secret]"},
		"too many at once":       {code: 429, post: `{"kind":"Status","reason":"TooManyRequests","message":"later"}`, want: ResultThrottled, says: "status 429: later"},
		"exists, but says no id": {code: 409, post: exists, get: "<html>", want: ResultRejected, says: "invalid character"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := testMessage(t, "ranker", nil)
				a := adapterOf(t, kubernetesTarget(t, secretFile(t, testToken)), listening(func(w http.ResponseWriter, r *http.Request) {
					switch {
					case r.Method == http.MethodPost:
						answerJSON(c.code, c.post)(w, request{})
					case c.get == "" || r.URL.Path != "/apis/batch/v1/namespaces/ml/jobs/"+kubejob.Name(m.ID):
						http.NotFound(w, r)
					default:
						answerJSON(http.StatusOK, strings.Replace(c.get, "ID", m.ID, 1))(w, request{})
					}
				}))
				o := a.Send(t.Context(), m)
				if o.Result != c.want || o.Status != c.code || !strings.Contains(o.Err, c.says) || (c.says == "") != (o.Err == "") || holdsSecret(o) {
					t.Errorf("%+v, want %s", o, c.want)
				}
			})
		})
	}
	t.Run("no answer about the Job", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a := adapterOf(t, kubernetesTarget(t, secretFile(t, testToken)), listening(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					answerJSON(http.StatusConflict, exists)(w, request{})
					return
				}
				retraintest.Hang(w, r)
			}))
			if o := a.Send(t.Context(), testMessage(t, "ranker", nil)); o.Result != ResultTimeout {
				t.Errorf("%+v", o)
			}
		})
	})
}

func TestJobTargets(t *testing.T) {
	right := kubernetesTarget(t, secretFile(t, testToken))
	for want, change := range map[string]func(*Target){
		"":                                 func(*Target) {},
		"targets[0].kubernetes.url":        func(x *Target) { x.Kubernetes.URL = "kubernetes" },
		"targets[0].kubernetes.namespace":  func(x *Target) { x.Kubernetes.Namespace = "" },
		"targets[0].kubernetes.token_file": func(x *Target) { x.Kubernetes.TokenFile = "" },
		"targets[0].completes_within":      func(x *Target) { x.Kubernetes.TimeLimit = x.CompletesWithin },
		"targets[0].kubernetes":            func(x *Target) { x.Kafka.Topic = "orders" },
	} {
		x, got := right, ""
		change(&x)
		x.Check("targets[0]", func(path, _ string) { got += path })
		if got != want {
			t.Errorf("errors at %q, want %q", got, want)
		}
	}
	certified := right
	certified.Kubernetes.TokenFile, certified.TLS.CertFile, certified.TLS.KeyFile = "", "a.pem", "a.key"
	certified.Check("", func(path, msg string) { t.Errorf("with a certificate: %s %s", path, msg) })

	inside := right
	inside.Kubernetes.URL, inside.AllowPrivate = "", false
	if got := inside.inCluster(); !got.AllowPrivate || got.TLS.CAFile != kubejob.ServiceAccountCA {
		t.Errorf("in its own cluster, the target is %+v", got)
	}
	if got := right.inCluster(); got.TLS.CAFile != "" {
		t.Errorf("in another cluster, the target is %+v", got)
	}
	found := func(x Target) (mistakes int, path string) {
		return len(x.CheckManifest("a", func(at, _ string) { path = at })), path
	}
	none := right
	none.Kubernetes.Manifest += ".none"
	for _, x := range []Target{right, {}} {
		if n, at := found(x); n > 0 || at != "" {
			t.Errorf("%d mistakes, at %q", n, at)
		}
	}
	check(t, os.WriteFile(right.Kubernetes.Manifest, []byte("kind: Pod"), 0o600))
	if n, at := found(right); n == 0 || at != "" {
		t.Errorf("%d mistakes, at %q", n, at)
	}
	if n, at := found(none); n > 0 || at != "a.kubernetes.manifest" {
		t.Errorf("%d mistakes, at %q", n, at)
	}
	means := Means{Transport: NewTransport}
	for text, x := range map[string]Target{
		"target trainer: kubernetes.manifest: " + right.Kubernetes.Manifest + ":1:1: ": right,
		"target trainer: kubernetes.manifest: cannot be read: ":                        none,
	} {
		if _, err := newAdapter(x, means); err == nil || !strings.HasPrefix(err.Error(), text) {
			t.Errorf("%v, want %s", err, text)
		}
	}
	clients, err := Clusters([]Target{right, {Name: "other"}}, means)
	if err != nil || len(clients) != 1 || clients["trainer"] == nil {
		t.Errorf("clients %v, %v", clients, err)
	}
	if _, err := Clusters([]Target{inside}, means); err == nil {
		t.Error("outside of a cluster, there is no certificate authority")
	}
	if known := right.Kubernetes.Printable(nil); known.Clean("a "+testToken, 99) != "a [secret]" || inside.Kubernetes.Printable(nil) != nil || (Kubernetes{}).Printable(nil) != nil {
		t.Errorf("the secrets are %v", known)
	}
}
