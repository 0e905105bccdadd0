package api

import (
	"context"
	"database/sql"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api/apitest"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/retrain"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// deskRig is a desk on SQLite that delivers nothing, behind a server.
type deskRig struct {
	*Server
	t    *testing.T
	desk *retrain.Desk
	db   *sql.DB
}

// deskView shows the requests of a desk.
type deskView struct {
	*apitest.FixedView
	desk *retrain.Desk
}

func (v deskView) RetrainRequests(ctx context.Context, f ledger.Filter) ([]ledger.Request, bool, error) {
	return v.desk.Search(ctx, f)
}

func (v deskView) RetrainRecords(ctx context.Context, f ledger.Filter, each func(ledger.Record) error) error {
	return v.desk.Records(ctx, f, each)
}

func (v deskView) RetrainRequest(ctx context.Context, id string) (ledger.Request, error) {
	return v.desk.Request(ctx, id)
}

func newDeskRig(t *testing.T) *deskRig {
	t.Helper()
	desk, ledger := apitest.OpenLedger(t, retrain.Trigger{On: retrain.OnIncident, Recipe: "ranker", Target: "trainer"})
	desk.ServeUnder("https://rewardwatch.example/drift/")
	db, err := sql.Open("sqlite", ledger)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	s := quietServer(t, Config{TokenFile: testkit.WriteFile(t, apitest.SomeToken+"\n")}, deskView{apitest.SomeView(), desk}, nil)
	s.Requests = desk
	return &deskRig{Server: s, t: t, desk: desk, db: db}
}

// request opens a request, the only one, in a state.
func (r *deskRig) request(state ledger.State) string {
	r.t.Helper()
	incident := apitest.SomeView().Opened[0]
	d, err := r.desk.Consider(r.t.Context(), incident, time.Time{})
	if err != nil || d.Request == "" {
		r.t.Fatalf("%+v, %v", d, err)
	}
	var closed any
	if state.Final() {
		closed = 1
	}
	if _, err := r.db.Exec(`UPDATE requests SET state = $1, closed_at = $2`, state, closed); err != nil {
		r.t.Fatal(err)
	}
	return d.Request
}

func (r *deskRig) last(id string) (ledger.Request, ledger.StateChange) {
	r.t.Helper()
	q, err := r.desk.Request(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	history, err := r.desk.History(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return q, history[len(history)-1]
}

func TestPeopleAndJobsChangeRequests(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	const who = `{"by":"alice","why":"new prices"}`
	long := strings.Repeat("x", words.MaxBy+1)
	tests := map[string]struct {
		state      ledger.State
		path, body string
		code       int
		says       string       // part of the answer
		becomes    ledger.State // "" where nothing may change
		by, why    string
	}{
		"approve":            {ledger.StateAwaitingApproval, "approve", who, 200, `"state":"open"`, ledger.StateOpen, "alice", "new prices"},
		"approve too late":   {ledger.StateExpired, "approve", who, 409, `is expired, so it cannot be approved or delivered again","state":"expired"}`, "", "", ""},
		"reject":             {ledger.StateAwaitingApproval, "reject", who, 200, `"reason":"new prices"`, ledger.StateRejected, "alice", "new prices"},
		"reject what runs":   {ledger.StateRunning, "reject", who, 200, `"reason":"new prices"`, ledger.StateRejected, "alice", "new prices"},
		"reject too late":    {ledger.StateMet, "reject", who, 409, `"state":"met"}`, "", "", ""},
		"resend":             {ledger.StateDeadLetter, "resend", who, 200, `"state":"open"`, ledger.StateOpen, "alice", "new prices"},
		"resend what runs":   {ledger.StateRunning, "resend", who, 409, `"state":"running"}`, "", "", ""},
		"nobody":             {ledger.StateAwaitingApproval, "approve", `{"by":" ","why":"x"}`, 400, "by must be 1 to 200 characters long", "", "", ""},
		"no reason":          {ledger.StateAwaitingApproval, "reject", `{"by":"alice"}`, 400, "why must be 1 to 1000 characters long", "", "", ""},
		"unknown field":      {ledger.StateAwaitingApproval, "approve", `{"by":"alice","why":"x","state":"met"}`, 400, "unknown field", "", "", ""},
		"field of another":   {ledger.StateAwaitingApproval, "approve", `{"by":"alice","why":"x","for":"4h"}`, 400, "unexpected keys: until and for", "", "", ""},
		"no JSON":            {ledger.StateAwaitingApproval, "approve", `by=alice`, 400, "the body is not a valid JSON object", "", "", ""},
		"large":              {ledger.StateAwaitingApproval, "approve", `{"by":"` + strings.Repeat("x", maxOrder) + `"}`, 413, "too large", "", "", ""},
		"started":            {ledger.StateDelivered, "status", `{"state":"started","by":"trainer-7"}`, 200, `"state":"running"`, ledger.StateRunning, "trainer-7", ""},
		"started again":      {ledger.StateRunning, "status", `{"state":"started"}`, 200, `"state":"running"`, "", "", ""},
		"succeeded":          {ledger.StateRunning, "status", `{"state":"succeeded","version":"v3","log":"done\n"}`, 200, `"new_version":"v3","log":"done\n"`, ledger.StateVerifying, "job", "the job produced version v3"},
		"failed":             {ledger.StateRunning, "status", `{"state":"failed","error":" out of memory\n"}`, 200, `"reason":"out of memory"`, ledger.StateFailed, "job", "out of memory"},
		"failed at length":   {ledger.StateRunning, "status", `{"state":"failed","error":"` + strings.Repeat("é", 2000) + `"}`, 200, `"state":"failed"`, ledger.StateFailed, "job", strings.Repeat("é", words.MaxWhy-1) + "…"},
		"no version":         {ledger.StateRunning, "status", `{"state":"succeeded"}`, 400, "version must be the policy_version that the job produced", "", "", ""},
		"unknown state":      {ledger.StateRunning, "status", `{"state":"met"}`, 400, `not \"met\"`, "", "", ""},
		"long version":       {ledger.StateRunning, "status", `{"state":"succeeded","version":"` + long + `"}`, 400, "version must have at most 200", "", "", ""},
		"long name":          {ledger.StateRunning, "status", `{"state":"started","by":"` + long + `"}`, 400, "by must have at most 200", "", "", ""},
		"report too late":    {ledger.StateFailed, "status", `{"state":"succeeded","version":"v3"}`, 409, `"state":"failed"}`, "", "", ""},
		"report of no state": {ledger.StateRunning, "status", `{"version":"v3","why":"x"}`, 400, "unknown field", "", "", ""},
		"large report":       {ledger.StateRunning, "status", `{"state":"failed","log":"` + strings.Repeat("x", maxReport) + `"}`, 413, "too large", "", "", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := newDeskRig(t)
			id := r.request(tt.state)
			w := post(r.Server, "/api/v1/retrain-requests/"+id+"/"+tt.path, tt.body, apitest.SomeToken)
			if w.Code != tt.code || !strings.Contains(w.Body.String(), tt.says) {
				t.Errorf("gives %d %s, want %d with %s", w.Code, w.Body, tt.code, tt.says)
			}
			if tt.code == 200 {
				checkAgainstOpenAPI(t, "/api/v1/retrain-requests/{id}", w.Body.Bytes())
			}
			q, change := r.last(id)
			if tt.becomes == "" {
				if q.State != tt.state || change.State != ledger.StateOpen {
					t.Errorf("request %+v with last change %+v, want it unchanged", q, change)
				}
			} else if q.State != tt.becomes || change.State != tt.becomes || change.By != tt.by || change.Reason != tt.why {
				t.Errorf("request %+v with last change %+v, want %s by %s: %s", q, change, tt.becomes, tt.by, tt.why)
			}
		})
	}
	r := newDeskRig(t)
	for _, path := range []string{"approve", "reject", "resend"} {
		if w := post(r.Server, "/api/v1/retrain-requests/rr_none/"+path, who, apitest.SomeToken); w.Code != 404 || !strings.Contains(w.Body.String(), "request not found") {
			t.Errorf("%s of what is unknown gives %d %s", path, w.Code, w.Body)
		}
	}
	for what, s := range map[string]*Server{"unknown": r.Server, "no desk": orderServer(t, &apitest.FixedOrders{})} {
		if w := post(s, "/api/v1/retrain-requests/rr_none/status", `{"state":"started"}`, apitest.SomeToken); w.Code != 404 {
			t.Errorf("a report, %s: %d %s", what, w.Code, w.Body)
		}
	}
}

// What a person rejected after its target had received it is untracked, as the published document says.
func TestUntrackedRequest(t *testing.T) {
	r := newDeskRig(t)
	id := r.request(ledger.StateOpen)
	at := "/api/v1/retrain-requests/" + id
	if w := post(r.Server, at+"/status", `{"state":"started"}`, apitest.SomeToken); w.Code != 200 || strings.Contains(w.Body.String(), "untracked") {
		t.Fatalf("gives %d %s", w.Code, w.Body)
	}
	if w := post(r.Server, at+"/reject", `{"by":"alice","why":"new prices"}`, apitest.SomeToken); w.Code != 200 {
		t.Fatalf("gives %d %s", w.Code, w.Body)
	}
	for path, document := range map[string]string{at: "/api/v1/retrain-requests/{id}", "/api/v1/retrain-requests": "/api/v1/retrain-requests"} {
		w := ask(r.Server, http.MethodGet, path)
		if w.Code != 200 || !strings.Contains(w.Body.String(), `"state":"rejected","untracked":true`) {
			t.Errorf("%s gives %d %s, want it untracked", path, w.Code, w.Body)
		}
		checkAgainstOpenAPI(t, document, w.Body.Bytes())
	}
	w := post(r.Server, at+"/approve", `{"by":"bob","why":"go on"}`, apitest.SomeToken)
	if w.Code != 409 || !strings.Contains(w.Body.String(), `is no longer tracked, so it cannot be approved or delivered again","state":"rejected"}`) {
		t.Errorf("approving it gives %d %s", w.Code, w.Body)
	}
}

func TestRequestsOfADisabledTarget(t *testing.T) {
	r := newDeskRig(t)
	id := r.request(ledger.StateAwaitingApproval)
	if _, err := r.db.Exec(`INSERT INTO disabled_targets (target, url, at, request) VALUES ('trainer', 'http://127.0.0.1:1/', 1, '')`); err != nil {
		t.Fatal(err)
	}
	w := post(r.Server, "/api/v1/retrain-requests/"+id+"/approve", `{"by":"alice","why":"x"}`, apitest.SomeToken)
	if w.Code != 409 || !strings.Contains(w.Body.String(), "410 Gone") || !strings.Contains(w.Body.String(), `"state":"awaiting_approval"`) {
		t.Errorf("gives %d %s", w.Code, w.Body)
	}
}

func TestLedgerErrorsOfChangesAreNotShown(t *testing.T) {
	r := newDeskRig(t)
	id := r.request(ledger.StateAwaitingApproval)
	if _, err := r.db.Exec(`ALTER TABLE history RENAME TO secret_history`); err != nil {
		t.Fatal(err)
	}
	w := post(r.Server, "/api/v1/retrain-requests/"+id+"/approve", `{"by":"alice","why":"x"}`, apitest.SomeToken)
	if w.Code != 503 || strings.Contains(w.Body.String(), "history") {
		t.Errorf("gives %d %s", w.Code, w.Body)
	}
	if w := ask(r.Server, http.MethodGet, "/api/v1/retrain-requests/"+id+"/history"); w.Code != 503 || strings.Contains(w.Body.String(), "no such table") {
		t.Errorf("the history gives %d %s", w.Code, w.Body)
	}
}

func TestHistoryOfARequest(t *testing.T) {
	r := newDeskRig(t)
	id := r.request(ledger.StateAwaitingApproval)
	post(r.Server, "/api/v1/retrain-requests/"+id+"/approve", `{"by":"alice","why":"new prices"}`, apitest.SomeToken)
	w := ask(r.Server, http.MethodGet, "/api/v1/retrain-requests/"+id+"/history")
	if w.Code != 200 || !strings.Contains(w.Body.String(), `"state":"open","by":"alice","reason":"new prices"}]`) {
		t.Errorf("gives %d %s", w.Code, w.Body)
	}
	checkAgainstOpenAPI(t, "/api/v1/retrain-requests/{id}/history", w.Body.Bytes())
	if w := ask(r.Server, http.MethodGet, "/api/v1/retrain-requests/rr_none/history"); w.Code != 404 {
		t.Errorf("of an unknown request: %d %s", w.Code, w.Body)
	}
}

// A job's token tells how the job goes on, and opens nothing else.
func TestStatusToken(t *testing.T) {
	r := newDeskRig(t)
	const jobToken = "staple of the jobs, which has 32 or more"
	r.cfg.StatusTokenFile = filepath.Join(t.TempDir(), "status_token")
	if err := os.WriteFile(r.cfg.StatusTokenFile, []byte(jobToken), 0o600); err != nil {
		t.Fatal(err)
	}
	r.holders = r.cfg.holders()
	id := r.request(ledger.StateDelivered)
	at := "/api/v1/retrain-requests/" + id
	for _, path := range []string{at + "/approve", at + "/reject", at + "/resend", "/-/reload", "/api/v1/baselines/reset"} {
		if w := post(r.Server, path, `{"by":"job","why":"x"}`, jobToken); w.Code != 403 {
			t.Errorf("%s gives %d %s", path, w.Code, w.Body)
		}
	}
	for _, token := range []string{"", "wrong", "stapl"} {
		if w := post(r.Server, at+"/status", `{"state":"started"}`, token); w.Code != 401 {
			t.Errorf("the token %q gives %d %s", token, w.Code, w.Body)
		}
	}
	for _, token := range []string{jobToken, apitest.SomeToken} {
		if w := post(r.Server, at+"/status", `{"state":"started"}`, token); w.Code != 200 {
			t.Errorf("the token %q gives %d %s", token, w.Code, w.Body)
		}
	}
	log := `{"state":"failed","error":"curl -H 'Authorization: Bearer ` + jobToken + `'","log":"+ echo ` + apitest.SomeToken + `"}`
	if w := post(r.Server, at+"/status", log, jobToken); w.Code != 200 || strings.Contains(w.Body.String(), "staple") || !strings.Contains(w.Body.String(), "[secret]") {
		t.Errorf("a log with tokens is kept: %d %s", w.Code, w.Body)
	}
	r.cfg.TokenFile = "" // then a report still needs the token of jobs
	r.holders = r.cfg.holders()
	if w := post(r.Server, at+"/status", `{"state":"started"}`, ""); w.Code != 401 {
		t.Errorf("without the other token: %d %s", w.Code, w.Body)
	}
}

// The token that a target receives with a request is for that request, with or without other tokens.
func TestTokenOfOneRequest(t *testing.T) {
	for name, cfg := range map[string]func(*Config){
		"other tokens":    func(*Config) {},
		"no other token":  func(c *Config) { c.TokenFile = "" },
		"tokens required": func(c *Config) { c.RequireToken = true },
	} {
		r := newDeskRig(t)
		cfg(&r.cfg)
		r.holders = r.cfg.holders()
		id, other := r.request(ledger.StateDelivered), "rr_other"
		token, err := r.desk.ReportToken(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		const at = "/api/v1/retrain-requests/"
		for _, tt := range []struct {
			path, body string
			refused    bool
		}{
			{at + id + "/status", `{"state":"started"}`, false},
			{at + other + "/status", `{"state":"started"}`, true},
			{at + id + "/approve", `{"by":"job","why":"x"}`, true},
			{at + id + "/withdraw", `{"by":"job","why":"x"}`, true},
			{at[:len(at)-1], `{"by":"job","why":"x","policy":"ranker"}`, true},
			{"/-/reload", `{}`, true},
		} {
			if w := post(r.Server, tt.path, tt.body, token); (w.Code == 401 || w.Code == 403) != tt.refused || !tt.refused && w.Code != 200 {
				t.Errorf("%s: %s gives %d %s", name, tt.path, w.Code, w.Body)
			}
		}
		log := `{"state":"failed","error":"oom","log":"+ curl ` + token + `"}`
		if w := post(r.Server, at+id+"/status", log, token); w.Code != 200 || strings.Contains(w.Body.String(), token) {
			t.Errorf("%s: a log with the token is kept: %d %s", name, w.Code, w.Body)
		}
		if r.cfg.RequireToken {
			for path, want := range map[string]int{at + id: 200, at + other: 401, at + id + "/history": 401, "/api/v1/incidents": 401} {
				if w := ask(r.Server, http.MethodGet, path, "Authorization", "Bearer "+token); w.Code != want {
					t.Errorf("%s gives %d %s", path, w.Code, w.Body)
				}
			}
		}
	}
}

// While the ledger cannot be read, a job is to try again.
func TestTokenOfOneRequestWithoutALedger(t *testing.T) {
	s := quietServer(t, Config{TokenFile: testkit.WriteFile(t, apitest.SomeToken)}, apitest.SomeView(), nil)
	s.Requests = &apitest.FixedDesk{View: apitest.SomeView(), Err: ledger.ErrSuspended}
	report := func() int {
		return post(s, "/api/v1/retrain-requests/rr_1/status", `{"state":"started"}`, strings.Repeat("x", 43)).Code
	}
	if code := report(); code != 503 {
		t.Errorf("gives %d", code)
	}
	for n := 0; report() != 429; n++ {
		if n == 100 {
			t.Fatal("tokens can be guessed without an end")
		}
	}
}

// Without a token, what changes state is for programs on the machine alone.
func TestWithoutATokenOnlyLocalProgramsChangeState(t *testing.T) {
	called := 0
	s := quietServer(t, Config{}, apitest.SomeView(), func() error { called++; return nil })
	served := httptest.NewServer(s.Handler())
	defer served.Close()
	_, port, err := net.SplitHostPort(served.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for name, tt := range map[string]struct {
		host    string
		headers map[string]string
		code    int
	}{
		"program":                             {"", nil, 200},
		"localhost":                           {"localhost:" + port, nil, 200},
		"IPv6":                                {"[::1]:" + port, nil, 200},
		"JSON with a charset":                 {"", map[string]string{"Content-Type": "application/json; charset=utf-8"}, 200},
		"NDJSON":                              {"", map[string]string{"Content-Type": "application/x-ndjson"}, 200},
		"form":                                {"", map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, 403},
		"text":                                {"", map[string]string{"Content-Type": "text/plain"}, 403},
		"beacon":                              {"", map[string]string{"Content-Type": "text/plain;application/json"}, 403},
		"no type":                             {"", map[string]string{"Content-Type": ""}, 403},
		"the form was sent from another site": {"", map[string]string{"Origin": "https://evil.example"}, 403},
		"page without origin":                 {"", map[string]string{"Origin": "null"}, 403},
		"own page":                            {"", map[string]string{"Origin": "http://127.0.0.1:" + port, "Sec-Fetch-Site": "same-origin"}, 403},
		"navigation":                          {"", map[string]string{"Sec-Fetch-Site": "none"}, 403},
		"rebound name":                        {"evil.example:" + port, nil, 403},
		"name like it":                        {"localhost.evil.example", nil, 403},
		"proxy":                               {"", map[string]string{"X-Forwarded-For": "203.0.113.9"}, 403},
		"a client that a proxy names":         {"", map[string]string{"True-Client-Ip": "203.0.113.9"}, 403},
		"a proxy of Cloudflare":               {"", map[string]string{"Cf-Connecting-Ip": "203.0.113.9"}, 403},
		"a proxy of Envoy":                    {"", map[string]string{"X-Envoy-External-Address": "203.0.113.9"}, 403},
		"any other header":                    {"", map[string]string{"X-Some-Proxy": "1"}, 403},
		"proxy by the book":                   {"", map[string]string{"Forwarded": "for=203.0.113.9"}, 403},
		"proxy of old":                        {"", map[string]string{"Via": "1.1 proxy"}, 403},
	} {
		r, err := http.NewRequest(http.MethodPost, served.URL+"/-/reload", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = tt.host
		r.Header.Set("Content-Type", "application/json")
		for key, value := range tt.headers {
			r.Header.Set(key, value)
		}
		before := called
		w, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = w.Body.Close()
		if w.StatusCode != tt.code || (called > before) != (tt.code == 200) {
			t.Errorf("%s: %d, called %v; want %d", name, w.StatusCode, called > before, tt.code)
		}
	}
	for name, tt := range map[string]struct {
		to, from string
		code     int
	}{
		"loopback":                {"127.0.0.1:9464", "127.0.0.1:5555", 200},
		"IPv6":                    {"[::1]:9464", "[::1]:5555", 200},
		"IPv4 in IPv6":            {"[::ffff:127.0.0.1]:9464", "[::ffff:127.0.0.1]:5555", 200},
		"another machine":         {"192.0.2.1:9464", "192.0.2.2:5555", 403},
		"this one by its address": {"192.0.2.1:9464", "192.0.2.1:5555", 403},
		"made up":                 {"127.0.0.1:9464", "192.0.2.2:5555", 403},
		"sidecar":                 {"192.0.2.1:9464", "127.0.0.6:5555", 403},
	} {
		at, err := net.ResolveTCPAddr("tcp", tt.to)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:9464/-/reload", nil)
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(at)))
		r.RemoteAddr = tt.from
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		if w.Code != tt.code {
			t.Errorf("%s: %d %s, want %d", name, w.Code, w.Body, tt.code)
		}
	}
}

func TestStartSaysThatThereIsNoToken(t *testing.T) {
	for _, file := range []string{"", filepath.Join(t.TempDir(), "token")} {
		if file != "" {
			if err := os.WriteFile(file, []byte(apitest.SomeToken), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var log strings.Builder
		s, err := New(Config{Listen: "127.0.0.1:0", TokenFile: file}, &apitest.FixedView{}, &apitest.FixedOrders{}, prometheus.NewRegistry(), nil, zerolog.New(&log))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if says := strings.Contains(log.String(), "http.token_file is not set: any program on this machine can change state over HTTP, but other machines cannot"); says != (file == "") {
			t.Errorf("with the token file %q the log is %s", file, log.String())
		}
	}
}

// link returns the path of a request's link, as who has the token is told it.
func (r *deskRig) link(id string) string {
	r.t.Helper()
	w := ask(r.Server, http.MethodGet, "/api/v1/retrain-requests/"+id, "Authorization", "Bearer "+apitest.SomeToken)
	checkAgainstOpenAPI(r.t, "/api/v1/retrain-requests/{id}", w.Body.Bytes())
	var got wire.RetrainRequest
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Links == nil {
		r.t.Fatalf("no link in %s: %v", w.Body, err)
	}
	path, ok := strings.CutPrefix(got.Links.Decide, "https://rewardwatch.example/drift")
	if !ok {
		r.t.Fatalf("the link is %s", got.Links.Decide)
	}
	return path
}

// submit sends the form of a link's page.
func (r *deskRig) submit(path string, form url.Values) *httptest.ResponseRecorder {
	q := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
	q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	r.Handler().ServeHTTP(w, q)
	return w
}

func TestLinksAreForWhoHasTheToken(t *testing.T) {
	r := newDeskRig(t)
	id := r.request(ledger.StateAwaitingApproval)
	path := "/api/v1/retrain-requests/" + id
	for _, authorization := range []string{"", "Bearer wrong"} {
		if w := ask(r.Server, http.MethodGet, path, "Authorization", authorization); w.Code != 200 || strings.Contains(w.Body.String(), "links") {
			t.Errorf("%q is given %d %s", authorization, w.Code, w.Body)
		}
	}
	for _, path := range []string{"/", "/api/v1/retrain-requests"} {
		w := ask(r.Server, http.MethodGet, path, "Authorization", "Bearer "+apitest.SomeToken)
		if strings.Contains(w.Body.String(), "decide?token") || !strings.Contains(w.Body.String(), id) {
			t.Errorf("%s shows %s", path, w.Body)
		}
	}
	r.link(id)
	if _, err := r.db.Exec(`UPDATE requests SET state = 'open'`); err != nil {
		t.Fatal(err)
	}
	if w := ask(r.Server, http.MethodGet, path, "Authorization", "Bearer "+apitest.SomeToken); strings.Contains(w.Body.String(), "links") {
		t.Errorf("one that waits for nobody has a link: %s", w.Body)
	}
}

var shownTimes = regexp.MustCompile(`opened at <time [^>]+>20[^<]+ UTC</time>, expires at <time [^>]+>20[^<]+ UTC</time></p>`)

func TestDecidePage(t *testing.T) {
	r := newDeskRig(t)
	id := r.request(ledger.StateAwaitingApproval)
	link := r.link(id)
	at, query, _ := strings.Cut(link, "?token=")
	for range 2 { // chats fetch links, and people look twice
		w := ask(r.Server, http.MethodGet, link)
		if w.Code != 200 || !strings.Contains(w.Header().Get("Content-Security-Policy"), "form-action 'self';") || strings.Contains(w.Body.String(), "<script") {
			t.Fatalf("the page gives %d %v", w.Code, w.Header())
		}
		if w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("Referrer-Policy") != "no-referrer" || w.Header().Get("X-Frame-Options") != "DENY" {
			t.Errorf("the page may be kept, embedded, or told of: %v", w.Header())
		}
		body := strings.ReplaceAll(strings.ReplaceAll(w.Body.String(), query, "TOKEN"), id, "rr_1")
		body = shownTimes.ReplaceAllString(assetHash.ReplaceAllString(body, ""), "opened at OPENED, expires at DUE</p>")
		testkit.SameAsFile(t, filepath.Join("testdata", "api", "decide.html"), body)
	}
	if q, change := r.last(id); q.State != ledger.StateAwaitingApproval || change.State != ledger.StateOpen {
		t.Fatalf("looking has changed it: %+v %+v", q, change)
	}
	form := func(decision string) url.Values {
		return url.Values{"token": {query}, "decision": {decision}, "by": {"ann"}, "why": {"the new prices are known"}}
	}
	for name, tt := range map[string]struct {
		change map[string]string
		code   int
		says   string
	}{
		"nobody":        {map[string]string{"by": " "}, 400, "your name must be 1 to 200 characters long"},
		"no reason":     {map[string]string{"why": ""}, 400, "the reason must be 1 to 1000 characters long"},
		"no decision":   {map[string]string{"decision": ""}, 400, "one of approve, reject"},
		"other":         {map[string]string{"decision": "resend"}, 400, "one of approve, reject"},
		"no token":      {map[string]string{"token": ""}, 403, "Invalid link: it was not created by this service."},
		"forged":        {map[string]string{"token": query[:len(query)-2] + "AA"}, 403, "Invalid link: it was not created by this service."},
		"bad and wrong": {map[string]string{"token": "x", "by": ""}, 403, "Invalid link: it was not created by this service."},
		"large":         {map[string]string{"why": strings.Repeat("x", 16<<10)}, 400, "cannot be read"},
	} {
		f := form("approve")
		for key, value := range tt.change {
			f.Set(key, value)
		}
		w := r.submit(at, f)
		if w.Code != tt.code || !strings.Contains(w.Body.String(), tt.says) || tt.code == 403 && strings.Contains(w.Body.String(), "<form") {
			t.Errorf("%s gives %d, want %d with %s:\n%s", name, w.Code, tt.code, tt.says, w.Body)
		}
	}
	// A token in the address is none in the form: a page elsewhere cannot have it sent.
	if w := r.submit(link, url.Values{"decision": {"approve"}, "by": {"mallory"}, "why": {"x"}}); w.Code != 403 {
		t.Errorf("a form without the token gives %d", w.Code)
	}
	if q, change := r.last(id); q.State != ledger.StateAwaitingApproval || change.State != ledger.StateOpen {
		t.Fatalf("a form that is not complete has changed it: %+v %+v", q, change)
	}
	if w := r.submit(at, form("approve")); w.Code != 200 || !strings.Contains(w.Body.String(), "ann has approved the retraining of checkout-ranker.") {
		t.Errorf("approving gives %d %s", w.Code, w.Body)
	}
	q, change := r.last(id)
	if q.State != ledger.StateOpen || change.By != "ann (by signed link)" || change.Reason != "the new prices are known" {
		t.Errorf("request %+v with last change %+v", q, change)
	}
	for _, decision := range []string{"approve", "reject"} {
		if w := r.submit(at, form(decision)); w.Code != 410 || !strings.Contains(w.Body.String(), "has already been used: the request is open.") {
			t.Errorf("%s by a link that was used gives %d %s", decision, w.Code, w.Body)
		}
	}
	if w := ask(r.Server, http.MethodGet, link); w.Code != 410 || strings.Contains(w.Body.String(), "<form") {
		t.Errorf("its page gives %d %s", w.Code, w.Body)
	}
	if q, _ := r.last(id); q.State != ledger.StateOpen {
		t.Errorf("a link that was used has changed it: %+v", q)
	}
}

func TestRejectByThePage(t *testing.T) {
	r := newDeskRig(t)
	id := r.request(ledger.StateAwaitingApproval)
	at, token, _ := strings.Cut(r.link(id), "?token=")
	w := r.submit(at, url.Values{"token": {token}, "decision": {"reject"}, "by": {`<b>ann`}, "why": {"no"}})
	if q, change := r.last(id); w.Code != 200 || strings.Contains(w.Body.String(), "<b>ann") || q.State != ledger.StateRejected || change.By != "<b>ann (by signed link)" {
		t.Errorf("%d, request %+v with last change %+v\n%s", w.Code, q, change, w.Body)
	}
	for _, path := range []string{"/retrain/rr_none/decide?token=" + token, "/retrain/" + id + "/decide"} {
		if w := ask(r.Server, http.MethodGet, path); w.Code != 403 {
			t.Errorf("%s gives %d", path, w.Code)
		}
	}
	if w := ask(quietServer(t, Config{}, &apitest.FixedView{}, nil), http.MethodGet, "/retrain/rr_1/decide?token=x"); w.Code != 403 {
		t.Errorf("without a desk it gives %d", w.Code)
	}
}
