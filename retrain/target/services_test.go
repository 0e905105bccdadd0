package target

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rewardwatch/rewardwatch/retrain/recipe"
	"github.com/rewardwatch/rewardwatch/retrain/retraintest"
)

// Receivers that answer like the services, and refuse what their public descriptions do not allow.

const (
	testToken    = "s3cr3t-token"
	testPassword = "s3cr3t-password"
	testJWT      = "eyJ.s3cr3t.jwt"
)

// serve answers the requests of a bubble, whatever their host.
func serve(t *testing.T, handler http.Handler) http.RoundTripper {
	t.Helper()
	network := retraintest.NewNetwork()
	server := &http.Server{Handler: handler}
	served := make(chan error, 1)
	go func() { served <- server.Serve(network) }()
	t.Cleanup(func() {
		check(t, server.Close())
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("receiver: %v", err)
		}
	})
	return transportBy(network.Dial, nil, nil)
}

// description compiles the part of a service's public description in testdata/apis.
func description(t testing.TB, name string) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	c.AssertContent()
	s, err := c.Compile(filepath.Join("testdata", "apis", name+".schema.json"))
	check(t, err)
	return s
}

// published compiles the schema of the webhook's body, for services that accept any JSON and have no description of
// it.
func published(t testing.TB) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(recipe.Schema()))
	check(t, err)
	check(t, c.AddResource(recipe.SchemaFile, document))
	s, err := c.Compile(recipe.SchemaFile)
	check(t, err)
	return s
}

// request is a request that a service received.
type request struct {
	*http.Request
	body []byte
}

// field returns a part of a JSON body.
func (r request) field(t testing.TB, keys ...string) any {
	t.Helper()
	var at any
	check(t, json.Unmarshal(r.body, &at))
	for _, key := range keys {
		at = at.(map[string]any)[key]
	}
	return at
}

// double simulates a service: it accepts requests to one path that match the description and carry the token.
type double struct {
	t           testing.TB
	path        string
	description *jsonschema.Schema // nil if any JSON is accepted
	contentType string
	header      [2]string            // header that authenticates the client
	further     func(request) string // returns what else is wrong, "" for nothing; may be nil
	respond     func(http.ResponseWriter, request)
	taken       []request
}

func (d *double) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	q := request{r, body}
	if code, why := d.refuse(q); code != 0 {
		d.t.Logf("refused with %d: %s", code, why)
		http.Error(w, why, code)
		return
	}
	d.taken = append(d.taken, q)
	d.respond(w, q)
}

func (d *double) refuse(r request) (code int, why string) {
	if got := r.URL.EscapedPath(); r.Method != http.MethodPost || got != d.path {
		return http.StatusNotFound, fmt.Sprintf("%s %s, not POST %s", r.Method, got, d.path)
	}
	if got := r.Header.Get(d.header[0]); got != d.header[1] {
		return http.StatusUnauthorized, fmt.Sprintf("%s is %q", d.header[0], got)
	}
	if got := r.Header.Get("Content-Type"); got != d.contentType {
		return http.StatusUnsupportedMediaType, got
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(r.body))
	if err == nil && d.description != nil {
		err = d.description.Validate(value)
	}
	if err != nil {
		return http.StatusUnprocessableEntity, err.Error()
	}
	if d.further != nil {
		if why := d.further(r); why != "" {
			return http.StatusUnprocessableEntity, why
		}
	}
	return 0, ""
}

func answerJSON(code int, text string) func(http.ResponseWriter, request) {
	return func(w http.ResponseWriter, _ request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, text)
	}
}

func githubDouble(t testing.TB) *double {
	return &double{
		t: t, path: "/repos/acme/trainer/dispatches", description: description(t, "github_dispatch"),
		contentType: "application/json", header: [2]string{"Authorization", "Bearer " + testToken},
		further: func(r request) string {
			payload, err := json.Marshal(r.field(t, "client_payload"))
			switch {
			case err != nil:
				return err.Error()
			case len(payload) >= 64<<10 || utf8.RuneCount(payload) >= 65535:
				return "client_payload is too large"
			case r.Header.Get("X-GitHub-Api-Version") != "2022-11-28" || r.Header.Get("Accept") != "application/vnd.github+json" || r.UserAgent() == "":
				return fmt.Sprintf("headers %v", r.Header)
			}
			return ""
		},
		respond: func(w http.ResponseWriter, _ request) { w.WriteHeader(http.StatusNoContent) },
	}
}

// gitlabDouble expands dollar references where GitLab would, so that they become visible.
func gitlabDouble(t testing.TB) *double {
	return &double{
		t: t, path: "/api/v4/projects/ml%2Ftrainer/trigger/pipeline", description: description(t, "gitlab_trigger"),
		contentType: "application/json",
		further: func(r request) string {
			for name, value := range r.field(t, "variables").(map[string]any) {
				if strings.Contains(strings.ReplaceAll(value.(string), "$$", ""), "$") {
					return name + " refers to another variable"
				}
				if len(name)+1+len(value.(string)) >= 128<<10 {
					return name + " does not fit into an environment"
				}
			}
			if r.field(t, "token") != testToken {
				return "404 Not Found"
			}
			return ""
		},
		respond: answerJSON(http.StatusCreated, `{"id":257,"iid":118,"ref":"main","status":"pending","source":"trigger"}`),
	}
}

// airflowDouble creates a run once.
func airflowDouble(t testing.TB, version int, authorization string) *double {
	runs := map[any]bool{}
	return &double{
		t: t, path: fmt.Sprintf("/api/v%d/dags/retrain.ranker/dagRuns", version-1),
		description: description(t, fmt.Sprintf("airflow%d_dag_run", version)),
		contentType: "application/json", header: [2]string{"Authorization", authorization},
		respond: func(w http.ResponseWriter, r request) {
			id := r.field(t, "dag_run_id")
			if runs[id] {
				answerJSON(http.StatusConflict, `{"detail":"DAGRun with DAG ID: 'retrain.ranker' and DAGRun ID already exists","status":409}`)(w, r)
				return
			}
			runs[id] = true
			answerJSON(http.StatusOK, fmt.Sprintf(`{"dag_run_id":%q,"state":"queued","conf":%s}`, id, r.body))(w, r)
		},
	}
}

// loginDouble is Airflow 3 with the endpoint that issues tokens.
func loginDouble(t testing.TB, runs http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/auth/token", &double{
		t: t, path: "/auth/token", description: description(t, "airflow3_login"), contentType: "application/json",
		further: func(r request) string {
			if r.field(t, "username") != "rewardwatch" || r.field(t, "password") != testPassword {
				return "Invalid credentials"
			}
			return ""
		},
		respond: answerJSON(http.StatusCreated, fmt.Sprintf(`{"access_token":%q}`, testJWT)),
	})
	mux.Handle("/", runs)
	return mux
}

// argoDouble accepts what an event source of the type webhook accepts: any JSON, up to 1 MiB
// (https://github.com/argoproj/argo-events/blob/14fa7ce11121/pkg/eventsources/sources/webhook/start.go).
func argoDouble(t testing.TB) *double {
	return &double{
		t: t, path: "/retrain", description: published(t), contentType: "application/json", header: [2]string{"Authorization", "Bearer " + testToken},
		further: func(r request) string {
			if len(r.body) > 1<<20 {
				return "request too large"
			}
			return ""
		},
		respond: func(w http.ResponseWriter, _ request) { _, _ = io.WriteString(w, "success") },
	}
}

// eventOfArgo returns what such a source puts on the event bus, where sensors find the body under body.
func eventOfArgo(t testing.TB, r request) request {
	t.Helper()
	data, err := json.Marshal(map[string]any{"header": r.Header, "body": json.RawMessage(r.body)})
	check(t, err)
	return request{r.Request, data}
}

// jenkinsVariables are the variables of a job, by their JSONPath.
var jenkinsVariables = map[string][]string{"request": {"data", "id"}, "event": {"type"}, "policy": {"data", "policy"}, "config": {"data", "config"}}

// jenkinsDouble starts a job with the variables that it finds in the body, and returns them all
// (https://github.com/jenkinsci/generic-webhook-trigger-plugin/blob/0438a89cd70f/README.md).
func jenkinsDouble(t testing.TB) *double {
	return &double{
		t: t, path: "/generic-webhook-trigger/invoke", description: published(t), contentType: "application/json", header: [2]string{"Token", testToken},
		respond: func(w http.ResponseWriter, r request) {
			resolved := map[string]string{}
			for name, path := range jenkinsVariables {
				flatten(name, r.field(t, path...), resolved)
			}
			said, err := json.Marshal(resolved)
			check(t, err)
			answerJSON(http.StatusOK, `{"jobs":{"retrain":{"regexpFilterExpression":"","triggered":true,"resolvedVariables":`+string(said)+`,"regexpFilterText":"","id":5,"url":"queue/item/5/"},`+
				`"other":{"regexpFilterExpression":"x","triggered":false,"resolvedVariables":{},"regexpFilterText":"","id":0,"url":""}},"message":"Triggered jobs."}`)(w, r)
		},
	}
}

// flatten creates a separate variable for every leaf of what a JSONPath has found.
func flatten(name string, value any, into map[string]string) {
	switch v := value.(type) {
	case []any:
		for i, item := range v {
			flatten(fmt.Sprintf("%s_%d", name, i), item, into)
		}
	case map[string]any:
		for key, item := range v {
			flatten(name+"_"+key, item, into)
		}
	case nil:
	default:
		into[name] = fmt.Sprint(v)
	}
}

func cloudEventsDouble(t testing.TB, authorization string) *double {
	return &double{
		t: t, path: "/events", description: description(t, "cloudevents"),
		contentType: "application/cloudevents+json; charset=utf-8", header: [2]string{"Authorization", authorization},
		respond: func(w http.ResponseWriter, _ request) { w.WriteHeader(http.StatusAccepted) },
	}
}

// listening reads a request to its end before it answers, which it must do to notice that the client disconnects.
func listening(answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		answer(w, r)
	}
}

// told is a target of each kind that uses HTTP, with the service that it leads to.
type told struct {
	name   string
	target Target
	double func(testing.TB) http.Handler
	order  func(testing.TB, request) any // finds the order in what the service has accepted
}

func secretFile(t testing.TB, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	check(t, os.WriteFile(file, []byte(text+"\n"), 0o600))
	return file
}

func services(t testing.TB) []told {
	token, password := secretFile(t, testToken), secretFile(t, testPassword)
	data := func(keys ...string) func(testing.TB, request) any {
		return func(t testing.TB, r request) any { return r.field(t, keys...) }
	}
	handler := func(make func(testing.TB) *double) func(testing.TB) http.Handler {
		return func(t testing.TB) http.Handler { return make(t) }
	}
	all := []told{
		{"github", Target{GitHub: GitHub{Repository: "acme/trainer", TokenFile: token, URL: "http://github.test/"}}, handler(githubDouble), data("client_payload", "data")},
		{"gitlab", Target{GitLab: GitLab{Project: "ml/trainer", Ref: "main", TokenFile: token, URL: "http://gitlab.test"}}, handler(gitlabDouble), func(t testing.TB, r request) any {
			var order map[string]any
			check(t, json.Unmarshal([]byte(r.field(t, "variables", "REWARDWATCH_ORDER").(string)), &order))
			return order["data"]
		}},
		{
			"airflow 2 with a password",
			Target{Airflow: Airflow{DAG: "retrain.ranker", URL: "http://airflow.test/", Version: 2, User: "rewardwatch", PasswordFile: password}},
			func(t testing.TB) http.Handler {
				return airflowDouble(t, 2, "Basic cmV3YXJkd2F0Y2g6czNjcjN0LXBhc3N3b3Jk") // of rewardwatch:s3cr3t-password
			}, data("conf", "data"),
		},
		{
			"airflow 2 with a token",
			Target{Airflow: Airflow{DAG: "retrain.ranker", URL: "http://airflow.test", Version: 2, TokenFile: token}},
			func(t testing.TB) http.Handler { return airflowDouble(t, 2, "Bearer "+testToken) }, data("conf", "data"),
		},
		{
			"airflow 3 with a password",
			Target{Airflow: Airflow{DAG: "retrain.ranker", URL: "http://airflow.test", Version: 3, User: "rewardwatch", PasswordFile: password}},
			func(t testing.TB) http.Handler { return loginDouble(t, airflowDouble(t, 3, "Bearer "+testJWT)) }, data("conf", "data"),
		},
		{
			"airflow 3 with a token",
			Target{Airflow: Airflow{DAG: "retrain.ranker", URL: "http://airflow.test", Version: 3, TokenFile: token}},
			func(t testing.TB) http.Handler { return airflowDouble(t, 3, "Bearer "+testToken) }, data("conf", "data"),
		},
		{
			"argo_events",
			Target{ArgoEvents: ArgoEvents{URL: "http://argo.test/retrain", TokenFile: token}},
			handler(argoDouble),
			func(t testing.TB, r request) any { return eventOfArgo(t, r).field(t, "body", "data") },
		},
		{"jenkins", Target{Jenkins: Jenkins{URL: "http://jenkins.test/generic-webhook-trigger/invoke", TokenFile: token}}, handler(jenkinsDouble), data("data")},
		{
			"cloudevents",
			Target{CloudEvents: CloudEvents{URL: "http://events.test/events", TokenFile: token}},
			func(t testing.TB) http.Handler { return cloudEventsDouble(t, "Bearer "+testToken) }, data("data"),
		},
		{
			"cloudevents without a token",
			Target{CloudEvents: CloudEvents{URL: "http://events.test/events"}},
			func(t testing.TB) http.Handler { return cloudEventsDouble(t, "") }, data("data"),
		},
		{"kubernetes", kubernetesTarget(t, token), handler(kubernetesDouble), func(t testing.TB, r request) any {
			var order map[string]any
			check(t, json.Unmarshal([]byte(orderOfJob(t, r)), &order))
			return order["data"]
		}},
		{"webhook", Target{Webhook: "http://trainer.test/", SecretFile: secretFile(t, retraintest.Secret)}, func(t testing.TB) http.Handler {
			return &double{t: t, path: "/", description: published(t), contentType: "application/json", respond: func(w http.ResponseWriter, _ request) { w.WriteHeader(http.StatusNoContent) }}
		}, data("data")},
	}
	for i := range all {
		all[i].target.Name, all[i].target.Timeout, all[i].target.CompletesWithin = "trainer", DefaultTimeout, DefaultCompletesWithin
	}
	return all
}

// takenBy returns what a service has accepted.
func takenBy(handler http.Handler) []request {
	if mux, ok := handler.(*http.ServeMux); ok {
		handler, _ = mux.Handler(&http.Request{Method: http.MethodPost, Host: "x", URL: &url.URL{Path: "/"}})
	}
	return handler.(*double).taken
}

// adapterOf creates the adapter of a target in a bubble whose network leads only to the handler.
func adapterOf(t *testing.T, target Target, handler http.Handler) Adapter {
	t.Helper()
	published, err := recipe.NewValidator()
	check(t, err)
	transport := serve(t, handler)
	a, err := newAdapter(target, Means{Check: published.Check, Transport: func(Target) (http.RoundTripper, error) { return transport, nil }})
	check(t, err)
	return a
}

// testMessage returns a request of the policy; the given parts of its order are lengthened by the given number of
// bytes.
func testMessage(t testing.TB, policy string, longer map[string]int) Message {
	t.Helper()
	inc := retraintest.Incident("i1", policy)
	recipes, err := recipe.Load("../recipe/testdata/recipes", []string{"env"})
	check(t, err)
	id, opened := recipe.RequestID("i1", "x"), time.Date(2026, 11, 22, 8, 0, 0, 123e6, time.UTC)
	body, err := recipes["ranker"].Order(recipe.Occasion{ID: id, Policy: policy, Incident: &inc, Alarms: inc.Alarms, At: opened})
	check(t, err)
	for _, key := range slices.Sorted(keysOf(longer)) {
		body = lengthen(t, body, key, longer[key])
	}
	return Message{ID: id, Policy: policy, Event: recipe.EventRequested, Body: body, Opened: opened, Expires: opened.Add(24 * time.Hour)}
}

func keysOf(m map[string]int) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// lengthen adds n bytes to a part of an order, in a way that the schema allows.
func lengthen(t testing.TB, body []byte, key string, n int) []byte {
	t.Helper()
	var whole map[string]any
	check(t, json.Unmarshal(body, &whole))
	data := whole["data"].(map[string]any)
	more := strings.Repeat("x", n)
	switch part := data[key].(type) {
	case []any:
		data[key] = append(part, more)
	case map[string]any:
		switch key {
		case "contract":
			part["hypothesis"] = more
		case "config_from":
			part[more] = "base.yaml:1"
		default:
			part[more] = "long"
		}
	default:
		t.Fatalf("%s cannot be lengthened", key)
	}
	text, err := json.Marshal(whole)
	check(t, err)
	return text
}

// withSecret returns a target whose token, password or secret is in a file.
func withSecret(t Target, file string) Target {
	for _, f := range []*string{
		&t.SecretFile, &t.GitHub.TokenFile, &t.GitLab.TokenFile, &t.Airflow.TokenFile, &t.Airflow.PasswordFile,
		&t.ArgoEvents.TokenFile, &t.Jenkins.TokenFile, &t.CloudEvents.TokenFile, &t.Kubernetes.TokenFile,
	} {
		if *f != "" {
			*f = file
		}
	}
	return t
}

func overwrite(t testing.TB, file, text string) {
	t.Helper()
	check(t, os.WriteFile(file, []byte(text), 0o600))
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
