package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
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
	pages "github.com/rewardwatch/rewardwatch/cmd/rewardwatch/console"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain"
)

// fixedView shows what a test has put into it.
type fixedView struct {
	summaries  []*bank.Summary
	incidents  []alerts.Incident
	faults     []alerts.Fault
	requests   []retrain.Request
	deliveries []retrain.Delivery
	notReady   error
	ledger     error
	filter     retrain.Filter // of the last search
}

func (v *fixedView) Summaries() []*bank.Summary   { return v.summaries }
func (v *fixedView) Incidents() []alerts.Incident { return v.incidents }
func (v *fixedView) Faults() []alerts.Fault       { return v.faults }
func (v *fixedView) Ready() error                 { return v.notReady }

func (v *fixedView) Course(ingest.Group) pages.Course { return pages.Course{} }

func (v *fixedView) Alarms() []alerts.Alarm {
	var out []alerts.Alarm
	for _, i := range v.incidents {
		out = append(out, i.Alarms...)
	}
	return out
}

func (v *fixedView) RetrainRequests(_ context.Context, f retrain.Filter) ([]retrain.Request, bool, error) {
	v.filter = f
	chosen := slices.DeleteFunc(slices.Clone(v.requests), func(q retrain.Request) bool {
		return f.State != "" && q.State != f.State || f.Policy != "" && q.Policy != f.Policy
	})
	return chosen[:min(f.Limit, len(chosen))], len(chosen) > f.Limit, v.ledger
}

func (v *fixedView) RetrainRecords(_ context.Context, f retrain.Filter, each func(retrain.Record) error) error {
	v.filter = f
	for _, q := range v.requests {
		if err := each(retrain.Record{Request: q, History: []retrain.StateChange{}}); err != nil {
			return err
		}
	}
	return v.ledger
}

func (v *fixedView) RetrainRequest(_ context.Context, id string) (retrain.Request, error) {
	for _, r := range v.requests {
		if r.ID == id {
			return r, v.ledger
		}
	}
	return retrain.Request{}, cmp.Or(v.ledger, retrain.ErrUnknownRequest)
}

func (v *fixedView) Deliveries(_ context.Context, request string, _ int) ([]retrain.Delivery, error) {
	var out []retrain.Delivery
	for _, d := range v.deliveries {
		if request == "" || d.Request == request {
			out = append(out, d)
		}
	}
	return out, v.ledger
}

// someView shows one of everything: a drifting stream, a faulty one, and a group that warms up without a clock.
func someView() *fixedView {
	alarm := someAlarm()
	drifting := bank.GroupSummary{
		Group: alarm.Group, Units: 1240, Versions: alarm.After, LastUnitTS: 1_795_168_800_250_000_000,
		Baseline: alarm.Baseline, FrozenTS: 1_795_000_000_000_000_000, FrozenAt: time.Date(2026, 11, 18, 7, 0, 0, 0, time.UTC),
		Promise: bank.Promise{N: 20000}, Incident: true, Positive: 10, Negative: 4, Rewards: 100,
		Streams: []bank.StreamSummary{
			{
				Signal: "action", State: bank.TelemetryFault, Fault: "constant", Factor: 1, Quantity: "action",
				Baseline: bank.Distribution{Units: 500, Mean: .5, SD: .1, Q10: .4, Q50: .5, Q90: .6},
			},
			{
				Signal: "return", State: bank.Drift, Armed: []string{bank.DetectorLocation, bank.DetectorSpread}, Factor: 1.2,
				Quantity: "return", Effect: -1.25,
				Baseline: bank.Distribution{
					Units: 500, Mean: 10, SD: 2, Q10: 7.5, Q50: 10, Q90: 12.5,
					HistogramRatio: [10]float64{.1, .1, .1, .1, .1, .1, .1, .1, .1, .1},
				},
				Current: bank.Distribution{Units: 200, Mean: 7.5, SD: 2.5, Q10: 5, Q50: 7.5, Q90: 10, HistogramRatio: [10]float64{.5, .5}},
				Detectors: []bank.DetectorSummary{
					{Detector: bank.DetectorLocation, Score: 1.5, Statistic: 18, Threshold: 12, Branch: "mean location -0.8"},
					{Detector: bank.DetectorKS, Statistic: .4},
					{Detector: bank.DetectorADWIN, Statistic: -1, Branch: "return", Gauge: &bank.GaugeSummary{Drifts: 2, ARL0: 10000, MoreThan: true}},
				},
			},
		},
	}
	warming := bank.GroupSummary{
		Group: ingest.NewGroup("cartpole"), Units: 12,
		Streams: []bank.StreamSummary{{Signal: "return", State: bank.WarmingUp, Missing: "12 of 100 units", Quantity: "return"}},
	}
	return &fixedView{
		summaries: []*bank.Summary{
			{Policy: "cartpole", Groups: []bank.GroupSummary{warming}},
			{Policy: "checkout-ranker", Groups: []bank.GroupSummary{drifting}},
		},
		incidents: []alerts.Incident{{
			ID: alarm.ID, Group: alarm.Group, Severity: alerts.Critical, Cause: alarm.Cause, Evidence: alarm.Evidence,
			Alarms: []alerts.Alarm{alarm}, Opened: alarm.At,
		}},
		faults: []alerts.Fault{{Group: alarm.Group, Streams: map[string]string{"action": "constant"}, Since: alarm.At}},
		requests: []retrain.Request{{
			ID: "rr_1", Kind: retrain.KindRetrain, OriginKind: retrain.OriginIncident, Origin: alarm.ID, Policy: "checkout-ranker", Trigger: "incident(*) -> trainer", Recipe: "ranker", Target: "trainer",
			State: retrain.StateOpen, Attempts: 1, OpenedAt: time.Date(2026, 11, 20, 10, 0, 1, 0, time.UTC),
			DueAt: time.Date(2026, 11, 21, 10, 0, 1, 0, time.UTC), NextAttempt: time.Date(2026, 11, 20, 10, 0, 9, 0, time.UTC),
			Order: json.RawMessage(`{"id":"rr_1"}`),
		}},
		deliveries: []retrain.Delivery{{
			Request: "rr_1", Attempt: 1, Target: "trainer", StartedAt: time.Date(2026, 11, 20, 10, 0, 1, 0, time.UTC),
			FinishedAt: time.Date(2026, 11, 20, 10, 0, 2, 0, time.UTC), Result: "failed", Status: 500,
		}},
	}
}

// quietTime is the time of a quietServer.
var quietTime = time.Date(2026, 11, 20, 10, 0, 5, 0, time.UTC)

// quietServer makes a server that is not listening, with a clock that stands.
func quietServer(t *testing.T, cfg HTTPConfig, v view, reload func() error) *server {
	t.Helper()
	reg := prometheus.NewRegistry()
	events := prometheus.NewCounter(prometheus.CounterOpts{Name: "rewardwatch_test_total", Help: "For the test."})
	events.Add(3)
	reg.MustRegister(events)
	s, err := newServer(cfg, v, &fixedOrders{}, reg, reload, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	s.now = func() time.Time { return quietTime }
	return s
}

func ask(s *server, method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.handler().ServeHTTP(w, r)
	return w
}

func TestAPIAnswers(t *testing.T) {
	s := quietServer(t, HTTPConfig{}, someView(), nil)
	empty := quietServer(t, HTTPConfig{}, &fixedView{}, nil)
	for _, name := range []string{"streams", "baselines", "alarms", "incidents", "retrain-requests", "deliveries"} {
		t.Run(name, func(t *testing.T) {
			path := "/api/v1/" + name
			for suffix, s := range map[string]*server{"": s, ".empty": empty} {
				w := ask(s, http.MethodGet, path)
				if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" {
					t.Fatalf("%s gives %d %s: %s", path, w.Code, w.Header().Get("Content-Type"), w.Body)
				}
				sameAsFile(t, filepath.Join("testdata", "api", name+suffix+".json"), indented(t, w.Body.Bytes()))
				checkAgainstOpenAPI(t, path, w.Body.Bytes())
			}
		})
	}
}

func indented(t *testing.T, body []byte) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, body, "", "  "); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// checkAgainstOpenAPI holds the answer of GET path against the schema that the published document gives it.
func checkAgainstOpenAPI(t *testing.T, path string, body []byte) {
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
	schema, err := c.Compile("openapi.json#/paths/" + pointer + "/get/responses/200/content/application~1json/schema")
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
	s := quietServer(t, HTTPConfig{}, someView(), nil)
	w := ask(s, http.MethodGet, "/api/v1/openapi.json")
	var document struct {
		OpenAPI string
		Paths   map[string]map[string]any
	}
	if err := json.Unmarshal(w.Body.Bytes(), &document); err != nil {
		t.Fatal(err)
	}
	if document.OpenAPI != "3.1.0" || len(document.Paths) != 28 {
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

func TestDeliveriesOfOneRequest(t *testing.T) {
	s := quietServer(t, HTTPConfig{}, someView(), nil)
	if got := ask(s, http.MethodGet, "/api/v1/deliveries?request=rr_other").Body.String(); got != "{\"deliveries\":[]}\n" {
		t.Errorf("got %s", got)
	}
}

func TestLedgerErrorsAreNotShown(t *testing.T) {
	s := quietServer(t, HTTPConfig{}, &fixedView{ledger: errors.New("/secret/path: disk full")}, nil)
	for _, path := range []string{"/api/v1/retrain-requests", "/api/v1/retrain-requests/rr_1", "/api/v1/deliveries"} {
		w := ask(s, http.MethodGet, path)
		if want := "{\"error\":\"the ledger cannot be read\"}\n"; w.Code != http.StatusServiceUnavailable || w.Body.String() != want {
			t.Errorf("%s gives %d %s", path, w.Code, w.Body)
		}
	}
}

func TestProbes(t *testing.T) {
	ready := quietServer(t, HTTPConfig{}, &fixedView{}, nil)
	waiting := quietServer(t, HTTPConfig{}, &fixedView{notReady: errors.New("the group has not been joined")}, nil)
	tests := []struct {
		server *server
		method string
		path   string
		code   int
		body   string
	}{
		{ready, http.MethodGet, "/-/healthy", http.StatusOK, "healthy\n"},
		{ready, http.MethodGet, "/-/ready", http.StatusOK, "ready\n"},
		{waiting, http.MethodGet, "/-/healthy", http.StatusOK, "healthy\n"},
		{waiting, http.MethodGet, "/-/ready", http.StatusServiceUnavailable, "not ready: the group has not been joined\n"},
		{ready, http.MethodGet, "/nowhere", http.StatusNotFound, "404 page not found\n"},
		{ready, http.MethodPost, "/api/v1/streams", http.StatusMethodNotAllowed, "Method Not Allowed\n"},
		{ready, http.MethodGet, "/-/reload", http.StatusMethodNotAllowed, "Method Not Allowed\n"},
		{ready, http.MethodGet, "/debug/pprof/", http.StatusNotFound, "404 page not found\n"},
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
	s := quietServer(t, HTTPConfig{}, &fixedView{}, nil)
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
	if err := os.WriteFile(file, []byte("correct horse\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	with, without := HTTPConfig{TokenFile: file}, HTTPConfig{}
	tests := map[string]struct {
		cfg           HTTPConfig
		authorization string
		reload        error
		code          int
		body          string
		called        bool
	}{
		"no token configured": {without, "Bearer ", nil, 403, `{"error":"` + errNotLocal.Error() + `"}`, false},
		"none given":          {with, "", nil, 401, `{"error":"a valid bearer token is needed"}`, false},
		"wrong":               {with, "Bearer wrong horse", nil, 401, `{"error":"a valid bearer token is needed"}`, false},
		"prefix":              {with, "Bearer correct", nil, 401, `{"error":"a valid bearer token is needed"}`, false},
		"empty":               {with, "Bearer ", nil, 401, `{"error":"a valid bearer token is needed"}`, false},
		"other scheme":        {with, "Basic correct horse", nil, 401, `{"error":"a valid bearer token is needed"}`, false},
		"right":               {with, "Bearer correct horse", nil, 200, `{"reloaded":true}`, true},
		"bad configuration":   {with, "Bearer correct horse", errors.New("f.yml:1:1: bad"), 422, `{"error":"f.yml:1:1: bad"}`, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			called := false
			s := quietServer(t, tt.cfg, &fixedView{}, func() error { called = true; return tt.reload })
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
	if _, err := newServer(HTTPConfig{TokenFile: file}, &fixedView{}, &fixedOrders{}, prometheus.NewRegistry(), nil, zerolog.Nop()); !errors.Is(err, errTokenFile) {
		t.Errorf("a missing token file gives %v", err)
	}
	put := func(token string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(" \n")
	if _, err := newServer(HTTPConfig{TokenFile: file}, &fixedView{}, &fixedOrders{}, prometheus.NewRegistry(), nil, zerolog.Nop()); !errors.Is(err, errTokenFile) {
		t.Errorf("an empty token file gives %v", err)
	}
	put("old")
	s := quietServer(t, HTTPConfig{TokenFile: file}, &fixedView{}, func() error { return nil })
	put("new")
	if w := ask(s, http.MethodPost, "/-/reload", "Authorization", "Bearer new"); w.Code != http.StatusOK {
		t.Errorf("the new token gives %d", w.Code)
	}
	if w := ask(s, http.MethodPost, "/-/reload", "Authorization", "Bearer old"); w.Code != http.StatusUnauthorized {
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
	s := quietServer(t, HTTPConfig{}, someView(), nil)
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
	v := someView()
	alarm := &v.incidents[0].Alarms[0]
	alarm.Signal, alarm.Evidence, alarm.Effect.Quantity = hostile, []string{hostile}, hostile
	alarm.Group = ingest.NewGroup(hostile, ingest.Label{Name: "env", Value: hostile})
	alarm.Onset.Agent, alarm.Onset.Episode = hostile, hostile
	v.incidents[0].Decisions = []alerts.Decision{{Kind: alerts.Muted, By: hostile, Why: hostile}}
	v.incidents[0].Group, v.incidents[0].Evidence = alarm.Group, alarm.Evidence
	v.faults[0].Streams = map[string]string{hostile: hostile}
	g := &v.summaries[1].Groups[0]
	g.Group, g.Versions = alarm.Group, ingest.Versions{Policy: hostile, Env: hostile, Reward: hostile}
	g.Streams[0].Signal, g.Streams[0].Missing, g.Streams[0].Fault = hostile, hostile, hostile
	v.notReady = errors.New(hostile)
	s := quietServer(t, HTTPConfig{}, v, nil)
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
	s, err := newServer(HTTPConfig{Listen: "127.0.0.1:0", AdminListen: "127.0.0.1:0"}, &fixedView{}, &fixedOrders{}, prometheus.NewRegistry(), nil, zerolog.Nop())
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
	for name, cfg := range map[string]HTTPConfig{
		"listen":       {Listen: taken.Addr().String()},
		"admin_listen": {Listen: "127.0.0.1:0", AdminListen: taken.Addr().String()},
	} {
		s, err := newServer(cfg, &fixedView{}, &fixedOrders{}, prometheus.NewRegistry(), nil, zerolog.Nop())
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
	s, err := newServer(HTTPConfig{Listen: "127.0.0.1:0"}, &slowView{entered: entered, leave: leave}, &fixedOrders{}, prometheus.NewRegistry(), nil, zerolog.Nop())
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
	fixedView
	entered, leave chan struct{}
}

func (v *slowView) Ready() error {
	close(v.entered)
	<-v.leave
	return nil
}
