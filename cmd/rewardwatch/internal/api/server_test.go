package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/access"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api/apitest"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// quietServer makes a server that is not listening, with a clock that stands.
func quietServer(t *testing.T, cfg Config, v View, reload func() error) *Server {
	t.Helper()
	reg := prometheus.NewRegistry()
	events := prometheus.NewCounter(prometheus.CounterOpts{Name: "rewardwatch_test_total", Help: "For the test."})
	events.Add(3)
	reg.MustRegister(events)
	s, err := New(cfg, v, &apitest.FixedOrders{}, reg, reload, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	s.Now = func() time.Time { return apitest.QuietTime }
	return s
}

func ask(s *Server, method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w
}

func TestAPIAnswers(t *testing.T) {
	s := quietServer(t, Config{}, apitest.SomeView(), nil)
	empty := quietServer(t, Config{}, &apitest.FixedView{}, nil)
	for _, name := range []string{"streams", "baselines", "alarms", "incidents", "retrain-requests", "deliveries"} {
		t.Run(name, func(t *testing.T) {
			path := "/api/v1/" + name
			for suffix, s := range map[string]*Server{"": s, ".empty": empty} {
				w := ask(s, http.MethodGet, path)
				if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" {
					t.Fatalf("%s gives %d %s: %s", path, w.Code, w.Header().Get("Content-Type"), w.Body)
				}
				testkit.SameAsFile(t, filepath.Join("testdata", "api", name+suffix+".json"), testkit.Indented(t, w.Body.Bytes()))
				checkAgainstOpenAPI(t, path, w.Body.Bytes())
			}
		})
	}
}

// checkAgainstOpenAPI holds the answer of GET path against the schema that the published document gives it.
func checkAgainstOpenAPI(t *testing.T, path string, body []byte) {
	t.Helper()
	checkAnswer(t, "get", path, body)
}

// checkAnswer checks the answer to a method of a path.
func checkAnswer(t *testing.T, method, path string, body []byte) {
	t.Helper()
	text, err := web.ReadFile("web/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("openapi.json", document); err != nil {
		t.Fatal(err)
	}
	pointer := strings.ReplaceAll(path, "/", "~1")
	schema, err := c.Compile("openapi.json#/paths/" + pointer + "/" + method + "/responses/200/content/application~1json/schema")
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(value); err != nil {
		t.Errorf("%s differs from openapi.json: %v", path, err)
	}
}

func TestOpenAPIPathsAreServed(t *testing.T) {
	s := quietServer(t, Config{}, apitest.SomeView(), nil)
	w := ask(s, http.MethodGet, "/api/v1/openapi.json")
	var document struct {
		OpenAPI string
		Paths   map[string]map[string]any
	}
	if err := json.Unmarshal(w.Body.Bytes(), &document); err != nil {
		t.Fatal(err)
	}
	if document.OpenAPI != "3.1.0" || len(document.Paths) != 39 {
		t.Errorf("version %q with %d paths", document.OpenAPI, len(document.Paths))
	}
	for path, methods := range document.Paths {
		for method := range methods {
			w := ask(s, strings.ToUpper(method), path)
			unserved := w.Code == http.StatusNotFound && !strings.Contains(w.Body.String(), `"error"`)
			if unserved || w.Code == http.StatusMethodNotAllowed {
				t.Errorf("%s %s gives %d", method, path, w.Code)
			}
		}
	}
}

// Every route of the API that the source registers is in the published document.
func TestServedPathsAreInOpenAPI(t *testing.T) {
	var document struct{ Paths map[string]map[string]any }
	text, err := web.ReadFile("web/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("server.go")
	if err != nil {
		t.Fatal(err)
	}
	routes := slices.Collect(maps.Keys(quietServer(t, Config{}, apitest.SomeView(), nil).changes(&routes{ServeMux: http.NewServeMux()})))
	for _, found := range regexp.MustCompile(`"(GET /(?:api/v1|-)/[^"]*[^/"])"`).FindAllStringSubmatch(string(source), -1) {
		routes = append(routes, found[1])
	}
	if len(routes) < 35 {
		t.Fatalf("only %d routes were found", len(routes))
	}
	for _, route := range routes {
		method, path, _ := strings.Cut(route, " ")
		if document.Paths[path][strings.ToLower(method)] == nil {
			t.Errorf("openapi.json lacks %s", route)
		}
	}
}

func TestDeliveriesOfOneRequest(t *testing.T) {
	s := quietServer(t, Config{}, apitest.SomeView(), nil)
	if got := ask(s, http.MethodGet, "/api/v1/deliveries?request=rr_other").Body.String(); got != "{\"deliveries\":[]}\n" {
		t.Errorf("got %s", got)
	}
}

func TestLedgerErrorsAreNotShown(t *testing.T) {
	s := quietServer(t, Config{}, &apitest.FixedView{Ledger: errors.New("/secret/path: disk full")}, nil)
	for _, path := range []string{"/api/v1/retrain-requests", "/api/v1/retrain-requests/rr_1", "/api/v1/deliveries"} {
		w := ask(s, http.MethodGet, path)
		if want := "{\"error\":\"the ledger cannot be read\"}\n"; w.Code != http.StatusServiceUnavailable || w.Body.String() != want {
			t.Errorf("%s gives %d %s", path, w.Code, w.Body)
		}
	}
}

var suspendedLedger = &ledger.SuspendedError{Since: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC), Why: "its file is damaged"}

// While the ledger is out of use, clients are told so, and why.
func TestSuspendedLedgerIsTold(t *testing.T) {
	s := quietServer(t, Config{}, &apitest.FixedView{Ledger: fmt.Errorf("list: %w", suspendedLedger)}, nil)
	for _, path := range []string{"/api/v1/retrain-requests", "/api/v1/retrain-requests/rr_1", "/api/v1/deliveries"} {
		w := ask(s, http.MethodGet, path)
		want := "{\"error\":\"the ledger of retrain requests has been unavailable since 2026-11-23 12:00:00 UTC: its file is damaged\"}\n"
		if w.Code != http.StatusServiceUnavailable || w.Body.String() != want {
			t.Errorf("%s gives %d %s", path, w.Code, w.Body)
		}
	}
	if status, reason := changeRefusal(suspendedLedger); status != http.StatusServiceUnavailable || !strings.Contains(reason, "damaged; try again") {
		t.Errorf("a change gives %d %s", status, reason)
	}
}

func TestProbes(t *testing.T) {
	ready := quietServer(t, Config{}, &apitest.FixedView{}, nil)
	degraded := quietServer(t, Config{}, &apitest.FixedView{Broken: suspendedLedger}, nil)
	waiting := quietServer(t, Config{}, &apitest.FixedView{NotReady: errors.New("the group has not been joined")}, nil)
	tests := []struct {
		server *Server
		method string
		path   string
		code   int
		body   string
	}{
		{ready, http.MethodGet, "/-/healthy", http.StatusOK, "healthy\n"},
		{ready, http.MethodGet, "/-/ready", http.StatusOK, "ready\n"},
		{waiting, http.MethodGet, "/-/healthy", http.StatusOK, "healthy\n"},
		{degraded, http.MethodGet, "/-/ready", http.StatusOK, "ready, but the ledger of retrain requests has been unavailable since 2026-11-23 12:00:00 UTC: its file is damaged\n"},
		{waiting, http.MethodGet, "/-/ready", http.StatusServiceUnavailable, "not ready: the group has not been joined\n"},
		{ready, http.MethodGet, "/-/nowhere", http.StatusNotFound, `{"error":"unknown path: see GET /api/v1/openapi.json for all API paths"}` + "\n"},
		{ready, http.MethodPost, "/api/v1/streams", http.StatusMethodNotAllowed, `{"error":"/api/v1/streams does not accept POST: use GET, HEAD"}` + "\n"},
		{ready, http.MethodGet, "/-/reload", http.StatusMethodNotAllowed, `{"error":"/-/reload does not accept GET: use POST"}` + "\n"},
	}
	for _, tt := range tests {
		w := ask(tt.server, tt.method, tt.path)
		if w.Code != tt.code || w.Body.String() != tt.body {
			t.Errorf("%s %s gives %d %q, want %d %q", tt.method, tt.path, w.Code, w.Body, tt.code, tt.body)
		}
		if w.Header().Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(w.Header().Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s %s is answered without the security headers: %v", tt.method, tt.path, w.Header())
		}
	}
}

func TestMetricsInBothFormats(t *testing.T) {
	s := quietServer(t, Config{}, &apitest.FixedView{}, nil)
	w := ask(s, http.MethodGet, "/metrics")
	want := "# HELP rewardwatch_test_total For the test.\n# TYPE rewardwatch_test_total counter\nrewardwatch_test_total 3\n"
	if w.Body.String() != want {
		t.Errorf("got %q", w.Body)
	}
	w = ask(s, http.MethodGet, "/metrics", "Accept", "application/openmetrics-text; version=1.0.0")
	want = "# HELP rewardwatch_test For the test.\n# TYPE rewardwatch_test counter\nrewardwatch_test_total 3.0\n# EOF\n"
	if w.Body.String() != want {
		t.Errorf("got %q", w.Body)
	}
}

func TestReloadNeedsTheToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(apitest.SomeToken+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	with, without := Config{TokenFile: file}, Config{}
	tests := map[string]struct {
		cfg           Config
		authorization string
		reload        error
		code          int
		body          string
		called        bool
	}{
		"no token configured": {without, "Bearer ", nil, 403, `{"error":"` + errNotLocal.Error() + `"}`, false},
		"none given":          {with, "", nil, 401, `{"error":"a valid bearer token is required"}`, false},
		"wrong":               {with, "Bearer wrong horse", nil, 401, `{"error":"a valid bearer token is required"}`, false},
		"prefix":              {with, "Bearer correct", nil, 401, `{"error":"a valid bearer token is required"}`, false},
		"empty":               {with, "Bearer ", nil, 401, `{"error":"a valid bearer token is required"}`, false},
		"other scheme":        {with, "Basic " + apitest.SomeToken, nil, 401, `{"error":"a valid bearer token is required"}`, false},
		"right":               {with, "Bearer " + apitest.SomeToken, nil, 200, `{"reloaded":true}`, true},
		"bad configuration":   {with, "Bearer " + apitest.SomeToken, errors.New("f.yml:1:1: bad"), 422, `{"error":"f.yml:1:1: bad"}`, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			called := false
			s := quietServer(t, tt.cfg, &apitest.FixedView{}, func() error { called = true; return tt.reload })
			w := ask(s, http.MethodPost, "/-/reload", "Authorization", tt.authorization)
			if w.Code != tt.code || strings.TrimSpace(w.Body.String()) != tt.body || called != tt.called {
				t.Errorf("gives %d %s, called %v; want %d %s, %v", w.Code, w.Body, called, tt.code, tt.body, tt.called)
			}
			if challenge := w.Header().Get("WWW-Authenticate"); (challenge != "") != (tt.code == 401) {
				t.Errorf("challenge %q with %d", challenge, w.Code)
			}
		})
	}
}

func TestTokenCanBeReplacedAndMustBeReadable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if _, err := New(Config{TokenFile: file}, &apitest.FixedView{}, &apitest.FixedOrders{}, prometheus.NewRegistry(), nil, zerolog.Nop()); !errors.Is(err, access.ErrFile) {
		t.Errorf("a missing token file gives %v", err)
	}
	put := func(token string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(" \n")
	if _, err := New(Config{TokenFile: file}, &apitest.FixedView{}, &apitest.FixedOrders{}, prometheus.NewRegistry(), nil, zerolog.Nop()); !errors.Is(err, access.ErrFile) {
		t.Errorf("an empty token file gives %v", err)
	}
	const older, newer = "old, but of 32 characters or more", "new, and of 32 characters or more"
	put(older[:access.MinToken-1])
	if _, err := New(Config{StatusTokenFile: file}, &apitest.FixedView{}, &apitest.FixedOrders{}, prometheus.NewRegistry(), nil, zerolog.Nop()); !errors.Is(err, access.ErrFile) ||
		strings.Contains(err.Error(), "but of") || !strings.Contains(err.Error(), "rewardwatch secret FILE") {
		t.Errorf("a short token gives %v", err)
	}
	put(older)
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Config{TokenFile: file}, &apitest.FixedView{}, &apitest.FixedOrders{}, prometheus.NewRegistry(), nil, zerolog.Nop()); !errors.Is(err, access.ErrFile) ||
		!strings.Contains(err.Error(), "chmod 600 "+file) {
		t.Errorf("a token that all can read gives %v", err)
	}
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	s := quietServer(t, Config{TokenFile: file}, &apitest.FixedView{}, func() error { return nil })
	put(newer)
	if w := ask(s, http.MethodPost, "/-/reload", "Authorization", "Bearer "+newer); w.Code != http.StatusOK {
		t.Errorf("the new token gives %d", w.Code)
	}
	if w := ask(s, http.MethodPost, "/-/reload", "Authorization", "Bearer "+older); w.Code != http.StatusUnauthorized {
		t.Errorf("the old token gives %d", w.Code)
	}
	put("")
	if w := ask(s, http.MethodPost, "/-/reload", "Authorization", "Bearer "); w.Code != http.StatusInternalServerError {
		t.Errorf("an emptied token file gives %d", w.Code)
	}
}

// assetHash is of a style or a script; it changes with each of their changes.
var assetHash = regexp.MustCompile(`\?v=[0-9a-f]+`)

func TestConsoleIsServed(t *testing.T) {
	s := quietServer(t, Config{}, apitest.SomeView(), nil)
	for _, path := range []string{"/", "/policies/checkout-ranker"} {
		w := ask(s, http.MethodGet, path)
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "text/html; charset=utf-8" || !strings.Contains(w.Body.String(), "checkout-ranker") {
			t.Errorf("%s gives %d %v\n%s", path, w.Code, w.Header(), w.Body)
		}
		if w.Header().Get("Cache-Control") != "no-store" || !strings.Contains(w.Header().Get("Content-Security-Policy"), "script-src 'self'") {
			t.Errorf("%s is answered with %v", path, w.Header())
		}
	}
}

func TestHostileNamesStayText(t *testing.T) {
	const hostile = `"><script>alert(1)</script><img src=x onerror=alert(1)>`
	v := apitest.SomeView()
	alarm := &v.Opened[0].Alarms[0]
	alarm.Signal, alarm.Evidence, alarm.Effect.Quantity = hostile, []string{hostile}, hostile
	alarm.Group = ingest.NewGroup(hostile, ingest.Label{Name: "env", Value: hostile})
	alarm.Onset.Agent, alarm.Onset.Episode = hostile, hostile
	v.Opened[0].Decisions = []alerts.Decision{{Kind: alerts.Muted, By: hostile, Why: hostile}}
	v.Opened[0].Group, v.Opened[0].Evidence = alarm.Group, alarm.Evidence
	v.Faulty[0].Streams = map[string]string{hostile: hostile}
	g := &v.Policies[1].Groups[0]
	g.Group, g.Versions = alarm.Group, ingest.Versions{Policy: hostile, Env: hostile, Reward: hostile}
	g.Streams[0].Signal, g.Streams[0].Missing, g.Streams[0].Fault = hostile, hostile, hostile
	v.NotReady = errors.New(hostile)
	s := quietServer(t, Config{}, v, nil)
	for _, path := range []string{"/", "/api/v1/streams", "/api/v1/alarms", "/api/v1/incidents"} {
		body := ask(s, http.MethodGet, path).Body.String()
		if strings.Contains(body, "<script>") || strings.Contains(body, "<img src=x") {
			t.Errorf("%s gives markup that came from telemetry", path)
		}
		if !strings.Contains(body, "alert(1)") {
			t.Errorf("%s does not show the name at all", path)
		}
	}
}

func TestServerListensAndStops(t *testing.T) {
	s, err := New(Config{Listen: "127.0.0.1:0", AdminListen: "127.0.0.1:0"}, &apitest.FixedView{}, &apitest.FixedOrders{}, prometheus.NewRegistry(), nil, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, url := range []string{"http://" + s.Addr() + "/-/healthy", "http://" + s.AdminAddr() + "/debug/pprof/cmdline"} {
		w, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, w.Body); err != nil || w.StatusCode != http.StatusOK {
			t.Errorf("%s gives %d, %v", url, w.StatusCode, err)
		}
		if err := w.Body.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", s.Addr()); err == nil {
		t.Error("the address is still served")
	}
	select {
	case err := <-s.Failed():
		t.Errorf("stopping is reported as a failure: %v", err)
	default:
	}
}

func TestTakenAddressIsNamed(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	for name, cfg := range map[string]Config{
		"listen":       {Listen: taken.Addr().String()},
		"admin_listen": {Listen: "127.0.0.1:0", AdminListen: taken.Addr().String()},
	} {
		s, err := New(cfg, &apitest.FixedView{}, &apitest.FixedOrders{}, prometheus.NewRegistry(), nil, zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Start(); !errors.Is(err, errHTTPListen) || !strings.Contains(err.Error(), taken.Addr().String()) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestStopCutsOffWhoDoesNotFinish(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	s, err := New(Config{Listen: "127.0.0.1:0"}, &slowView{entered: entered, leave: leave}, &apitest.FixedOrders{}, prometheus.NewRegistry(), nil, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		w, err := client.Get("http://" + s.Addr() + "/-/ready")
		if err == nil {
			err = w.Body.Close()
		}
		answered <- err
	}()
	<-entered
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Stop(ended); !errors.Is(err, errHTTPStop) {
		t.Errorf("Stop gives %v", err)
	}
	if err := <-answered; err == nil {
		t.Error("the request was not cut off")
	}
	close(leave)
}

// slowView answers whether it is ready only when it is told to.
type slowView struct {
	apitest.FixedView
	entered, leave chan struct{}
}

func (v *slowView) Ready() error {
	close(v.entered)
	<-v.leave
	return nil
}

// Anyone who asks while the service starts is answered, and told what it waits for.
func TestServerAnswersWhileTheServiceStarts(t *testing.T) {
	s, err := New(Config{Listen: "127.0.0.1:0"}, &apitest.FixedView{}, &apitest.FixedOrders{}, prometheus.NewRegistry(), nil, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	s.WaitsFor("restoring the state of 3 policies")
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	check := func(path string, status int, text string) {
		t.Helper()
		answer, err := http.Get("http://" + s.Addr() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != status || !strings.Contains(string(body), text) {
			t.Errorf("%s answers %d %q, %v", path, answer.StatusCode, body, err)
		}
	}
	check("/-/healthy", http.StatusOK, "healthy")
	check("/metrics", http.StatusOK, "")
	check("/-/ready", http.StatusServiceUnavailable, "not ready: restoring the state of 3 policies")
	check("/api/v1/alarms", http.StatusServiceUnavailable, `{"error":"the service is starting: restoring the state of 3 policies"}`)
	check("/", http.StatusServiceUnavailable, "restoring the state of 3 policies")
	s.Open()
	check("/-/ready", http.StatusOK, "ready")
	check("/api/v1/alarms", http.StatusOK, `[]`)
}

// The console of a service that listens on all addresses is linked to by a name that other machines can open.
func TestURLOfAServiceThatListensOnAllAddresses(t *testing.T) {
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for listen, want := range map[string]string{":0": name, "[::]:0": name, "0.0.0.0:0": name, "127.0.0.1:0": "127.0.0.1"} {
		s, err := New(Config{Listen: listen}, &apitest.FixedView{}, &apitest.FixedOrders{}, prometheus.NewRegistry(), nil, zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		_, port, err := net.SplitHostPort(s.Addr())
		if got := s.URL(); err != nil || got != "http://"+net.JoinHostPort(want, port) {
			t.Errorf("%s: %s, want the host %s and the port %s", listen, got, want, port)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// What no route matches is a page with a way back for people, and JSON for programs.
func TestUnmatchedPaths(t *testing.T) {
	h := newDeskRig(t).Handler()
	for _, tt := range []struct {
		method, path string
		status       int
		body         string
		allow        string
	}{
		{"GET", "/polices", 404, "<h1>Page not found</h1>", ""},
		{"GET", "/incidents/a/b", 404, `<a href="./../../">Back to the fleet</a>`, ""},
		{"GET", "/debug/pprof/", 404, "<h1>Page not found</h1>", ""}, // on its own address alone
		{"GET", "/policies/nope", 404, "<h2>Unknown policy</h2>", ""},
		{"POST", "/incidents", 405, "This address does not accept POST requests.", "GET, HEAD"},
		{"GET", "/api/v1/alarm", 404, `{"error":"unknown path: see GET /api/v1/openapi.json for all API paths"}`, ""},
		{"GET", "/api/v1/baselines/reset/x", 404, "unknown path", ""},
		{"DELETE", "/api/v1/alarms", 405, `{"error":"/api/v1/alarms does not accept DELETE: use GET, HEAD"}`, "GET, HEAD"},
		{"GET", "/-/reload", 405, "use POST", "POST"},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(tt.method, tt.path, nil))
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.body) || w.Header().Get("Allow") != tt.allow {
			t.Errorf("%s %s: %d, allow %q, %s; want %d, allow %q, %s", tt.method, tt.path, w.Code, w.Header().Get("Allow"), w.Body, tt.status, tt.allow, tt.body)
		}
	}
}

// A stranger who connects in vain, as often as possible, must not fill the disk with the log.
func TestErrorsOfConnectionsAreSampled(t *testing.T) {
	var out bytes.Buffer
	log := connectionLog(zerolog.New(&out))
	for range 1000 {
		log.Print("http: TLS handshake error from 192.0.2.1:5: EOF")
	}
	if n := strings.Count(out.String(), "handshake"); n == 0 || n > 50 {
		t.Errorf("1000 errors have %d lines", n)
	}
	for range 1000 { // as if these were panics
		log.Print(`http: TLS handshake error from 192.0.2.1:5: tls: client requested unsupported application protocols (["http: panic serving me"])`)
	}
	if n := strings.Count(out.String(), "unsupported"); n > 50 {
		t.Errorf("1000 errors with a text of the client have %d lines", n)
	}
	for _, panicked := range []string{"http: panic serving 192.0.2.1:5: oops\ngoroutine 1", "http2: panic serving 192.0.2.1:5: ouch\ngoroutine 1"} {
		log.Print(panicked)
	}
	if !strings.Contains(out.String(), "oops") || !strings.Contains(out.String(), "ouch") {
		t.Error("a panic is not logged")
	}
}
