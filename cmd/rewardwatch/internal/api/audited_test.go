package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/access"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api/apitest"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/audit"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/session"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/guard"
	"github.com/rewardwatch/rewardwatch/retrain"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// changingDesk changes the state of the request that it is asked about.
type changingDesk struct {
	*apitest.FixedDesk
}

func (d changingDesk) settle(state ledger.State) (ledger.Request, error) {
	d.View.Ordered[0].State = state
	return d.View.Ordered[0], nil
}

func (d changingDesk) Approve(context.Context, string, string, string) (ledger.Request, error) {
	return d.settle(ledger.StateOpen)
}

func (d changingDesk) DoSeen(context.Context, string, int, retrain.Verb, string, string) (ledger.Request, error) {
	return d.settle(ledger.StateRejected)
}

func (d changingDesk) Ask(context.Context, retrain.Ask) (ledger.Request, error) {
	return d.View.Ordered[0], nil
}

func (d changingDesk) LinkedRequest(context.Context, string, string) (ledger.Request, error) {
	return d.View.Ordered[0], nil
}

func (d changingDesk) ApproveByLink(context.Context, string, string, string, string) (ledger.Request, error) {
	return d.settle(ledger.StateOpen)
}

// changingOrders mutes the incident of the view.
type changingOrders struct {
	apitest.FixedOrders
	view *apitest.FixedView
}

func (o *changingOrders) Mute(_ context.Context, _ string, d alerts.Decision) (alerts.Incident, error) {
	o.view.Opened[0].MutedUntil = d.Until
	return o.view.Opened[0], nil
}

func (o *changingOrders) Release(_ context.Context, policy, name string, _ alerts.Decision) (*guard.Summary, error) {
	o.view.Guard(&guard.Summary{Policy: policy, Guards: []guard.Verdict{{Name: name}}})
	return o.view.AllGuards()[0], nil
}

func (o *changingOrders) Promote(context.Context, string, alerts.Decision) (*finding.GroupSummary, error) {
	g := &o.view.Policies[0].Groups[0]
	g.Baseline.ID = "promoted"
	return g, nil
}

// auditedServer returns a server whose changes are recorded, and what reads the entries since the last reading.
func auditedServer(t *testing.T) (s *Server, entries func() []audit.Entry) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "audit.log")
	desk := changingDesk{apitest.Storied()}
	s = quietServer(t, Config{
		TokenFile: testkit.WriteFile(t, apitest.SomeToken), StatusTokenFile: testkit.WriteFile(t, strings.Repeat("j", 32)), AuditLog: file,
	}, desk.View, func() error { return nil })
	desk.View.Guard(&guard.Summary{Policy: "checkout-ranker", Guards: []guard.Verdict{{Name: "offers", Tripped: true, Why: "too many"}}})
	s.Guesses.now = func() time.Time { return s.Now() }
	s.Requests, s.Orders = desk, &changingOrders{view: desk.View}
	read := 0
	return s, func() []audit.Entry {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var out []audit.Entry
		lines := bufio.NewScanner(bytes.NewReader(text[read:]))
		for lines.Scan() {
			var e audit.Entry
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
				t.Fatalf("%s: %v", lines.Text(), err)
			}
			out = append(out, e)
		}
		read = len(text)
		return out
	}
}

// changingRoutes returns the routes that may change something, as the source registers them.
func changingRoutes(t *testing.T) []string {
	t.Helper()
	var routes []string
	for file, expression := range map[string]string{"server.go": `\{"(/[^"]+)", s\.`, "../console/console.go": `"POST (/[^"]+)"`} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(expression).FindAllStringSubmatch(string(text), -1) {
			routes = append(routes, found[1])
		}
	}
	slices.Sort(routes)
	return routes
}

// attempt is a request with everything that it needs to succeed.
type attempt struct {
	path, body string
	as         string
	who        string
}

func attempts(s *Server) map[string]attempt {
	const order, form = `{"by":"alice","why":"new prices"}`, "by=alice&why=new+prices&decision="
	incident := s.view.Incidents()[0].ID
	at := "/api/v1/retrain-requests/rr_failed"
	opened := func() string { // the id of a session
		cookie := s.sessions.Open(httptest.NewRequest(http.MethodGet, "/", nil), session.Person{Name: "bea", Known: true, Role: access.Viewer}, time.Hour)
		list := s.sessions.List(all, cookie)
		return list[slices.IndexFunc(list, func(s session.Session) bool { return s.Own })].ID
	}
	return map[string]attempt{
		"/-/reload":                               {"/-/reload", "", "token", ""},
		"/api/v1/telemetry":                       {"/api/v1/telemetry", "", "token", ""},
		"/api/v1/baselines/{id}/promote":          {"/api/v1/baselines/b1/promote", order, "token", "alice"},
		"/api/v1/baselines/reset":                 {"/api/v1/baselines/reset", `{"by":"alice","why":"new prices","policy":"checkout-ranker","group":{}}`, "token", "alice"},
		"/api/v1/policies/{policy}/forget":        {"/api/v1/policies/checkout-ranker/forget", order, "token", "alice"},
		"/api/v1/guards/{policy}/{guard}/release": {"/api/v1/guards/checkout-ranker/offers/release", order, "token", "alice"},
		"/api/v1/incidents/{id}/accept":           {"/api/v1/incidents/" + incident + "/accept", order, "token", "alice"},
		"/api/v1/incidents/{id}/mute":             {"/api/v1/incidents/" + incident + "/mute", `{"by":"alice","why":"new prices","for":"4h"}`, "token", "alice"},
		"/api/v1/incidents/{id}/comment":          {"/api/v1/incidents/" + incident + "/comment", order, "token", "alice"},
		"/api/v1/retrain-requests":                {"/api/v1/retrain-requests", `{"by":"alice","why":"new prices","policy":"checkout-ranker","recipe":"ranker","target":"trainer"}`, "token", "alice"},
		"/api/v1/retrain-requests/{id}/approve":   {at + "/approve", order, "token", "alice"},
		"/api/v1/retrain-requests/{id}/reject":    {at + "/reject", order, "token", "alice"},
		"/api/v1/retrain-requests/{id}/withdraw":  {at + "/withdraw", order, "token", "alice"},
		"/api/v1/retrain-requests/{id}/resend":    {at + "/resend", order, "token", "alice"},
		"/api/v1/retrain-requests/{id}/status":    {at + "/status", `{"state":"failed","log":"password: hunter2"}`, "status token", ""},
		"/api/v1/sessions/{id}/end":               {"/api/v1/sessions/" + opened() + "/end", "", "token", ""},
		"/login/sessions/{id}":                    {"/login/sessions/" + opened(), "", "session", "ann"},
		"/login":                                  {"/login", "name=alice&token=" + strings.ReplaceAll(apitest.SomeToken, " ", "+"), "login", "alice"},
		"/logout":                                 {"/logout", "", "session", "ann"},
		"/incidents/{id}":                         {"/incidents/" + incident, form + "comment", "session", "ann"},
		"/retrain/{id}":                           {"/retrain/rr_failed", form + "reject&seen=3", "session", "ann"},
		"/retrain/{id}/decide":                    {"/retrain/rr_failed/decide", form + "approve&token=t", "link", "alice"},
	}
}

// send sends an attempt with what permits it, or without.
func (a attempt) send(t *testing.T, h http.Handler, cookie *http.Cookie, permitted bool) int {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, a.path, strings.NewReader(a.body))
	if !strings.HasPrefix(a.path, "/api/") {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	switch {
	case !permitted && a.as == "login":
		r.Body = http.NoBody
	case !permitted:
		r.Header.Set("Authorization", "Bearer wrong")
		r.Header.Set("Sec-Fetch-Site", "cross-site") // which forms are refused for
	case a.as == "token":
		r.Header.Set("Authorization", "Bearer "+apitest.SomeToken)
	case a.as == "status token":
		r.Header.Set("Authorization", "Bearer "+strings.Repeat("j", 32))
	case a.as == "session":
		r.AddCookie(cookie)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

func TestEachChangeAndEachFailureHasAnEntry(t *testing.T) {
	s, entries := auditedServer(t)
	all := attempts(s)
	h := s.Handler()
	for _, route := range changingRoutes(t) {
		cookie := loggedIn(t, h) // some routes end it
		entries()
		a, known := all[route]
		if !known {
			t.Fatalf("add how %s succeeds to the test", route)
		}
		later(s)
		code := a.send(t, h, cookie, true)
		got := entries()
		if route == "/api/v1/telemetry" { // events are counted, and their refusals too
			if len(got) != 0 {
				t.Errorf("telemetry has an entry: %+v", got)
			}
		} else if len(got) != 1 || code >= 400 || got[0].Result != "done" || got[0].Status != code || got[0].As != a.as || got[0].Who != a.who || got[0].What != "POST "+route {
			t.Errorf("%s: %d, %+v", route, code, got)
		}
		code = a.send(t, h, cookie, false)
		got = entries()
		refused := code == http.StatusUnauthorized || code == http.StatusForbidden
		if route == "/retrain/{id}/decide" || route == "/logout" || route == "/login" {
			refused = code != http.StatusInternalServerError
		}
		if len(got) != 1 || !refused || got[0].From != "192.0.2.1:1234" || code >= 400 && (got[0].Result != "refused" || got[0].As != "nothing" || got[0].Error == "") {
			t.Errorf("%s, not permitted: %d, %+v", route, code, got)
		}
	}
}

// later lets a minute pass, in which wrong tokens are forgotten.
func later(s *Server) {
	now := s.Now()
	s.Now = func() time.Time { return now.Add(time.Minute) }
}

// loggedIn returns the session of ann.
func loggedIn(t *testing.T, h http.Handler) *http.Cookie {
	t.Helper()
	return logIn(t, h, "ann", apitest.SomeToken)
}

// logIn returns the cookie of a login.
func logIn(t *testing.T, h http.Handler, name, token string) *http.Cookie {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/login", strings.NewReader(url.Values{"name": {name}, "token": {token}}.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	cookies := w.Result().Cookies()
	if len(cookies) != 1 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return cookies[0]
}

func TestEntriesSayWhatChanged(t *testing.T) {
	s, entries := auditedServer(t)
	h, all := s.Handler(), attempts(s)
	for _, tt := range []struct{ route, before, after, asked string }{
		{"/api/v1/incidents/{id}/mute", `"muted_until":"0001-01-01T00:00:00Z"`, `"muted_until":"2026-11-20T14:00:05Z"`, `"for":"4h"`},
		{"/api/v1/retrain-requests/{id}/approve", `"state":"failed"`, `"state":"open"`, `"why":"new prices"`},
		{"/api/v1/guards/{policy}/{guard}/release", `"tripped":true,"why":"too many"`, `"tripped":false`, `"by":"alice"`},
		{"/api/v1/baselines/{id}/promote", `{}`, `":"promoted"}`, `"why":"new prices"`},
		{"/api/v1/retrain-requests/{id}/status", `"state":"open"`, `"state":"open"`, `{"state":"failed"}`},
	} {
		if code := all[tt.route].send(t, h, nil, true); code != http.StatusOK {
			t.Fatalf("%s: %d", tt.route, code)
		}
		e := entries()[0]
		for text, value := range map[string]any{tt.before: e.Before, tt.after: e.After, tt.asked: e.Asked} {
			got, err := json.Marshal(value)
			if err != nil || !strings.Contains(string(got), text) {
				t.Errorf("%s: %s has no %s", tt.route, got, text)
			}
		}
	}
}

// Which version a job claims to have trained is in the log.
func TestEntriesOfReportsNameTheVersion(t *testing.T) {
	s, entries := auditedServer(t)
	if w := post(s, "/api/v1/retrain-requests/rr_failed/status", `{"state":"succeeded","version":"v3","log":"l"}`, strings.Repeat("j", 32)); w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if got, err := json.Marshal(entries()[0].Asked); err != nil || string(got) != `{"state":"succeeded","version":"v3"}` {
		t.Errorf("%s, %v", got, err)
	}
}

// No body is carried out of which the log shows something else.
func TestBodiesThatTheLogWouldMisread(t *testing.T) {
	s, entries := auditedServer(t)
	const order = `{"by":"alice","why":"new prices","for":"4h"}`
	for _, body := range []string{
		order + `x`, order + order, strings.Replace(order, "by", "BY", 1), strings.Replace(order, "{", `{"BY":"mallory",`, 1),
		strings.Replace(order, "why", "Why", 1), strings.Replace(order, "{", `{"ſo":1,`, 1), `[` + order + `]`, `"` + "x" + `"`,
		`null`, strings.Replace(order, "{", `{"by":"mallory",`, 1), strings.Replace(order, "}", `,"policy":"a","b\u0079":"bob"}`, 1),
	} {
		if w := post(s, "/api/v1/incidents/"+s.view.Incidents()[0].ID+"/mute", body, apitest.SomeToken); w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
		if e := entries(); len(e) != 1 || e[0].Result != "refused" {
			t.Errorf("%s: %+v", body, e)
		}
	}
	if w := post(s, "/api/v1/incidents/"+s.view.Incidents()[0].ID+"/mute", " "+order+"\n", apitest.SomeToken); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// The log holds no secret, whatever is sent.
func TestEntriesHaveNoSecrets(t *testing.T) {
	s, _ := auditedServer(t)
	h := s.Handler()
	for _, a := range attempts(s) {
		later(s)
		a.send(t, h, loggedIn(t, h), true)
		a.send(t, h, nil, false)
	}
	text, err := os.ReadFile(s.cfg.AuditLog)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{apitest.SomeToken, "battery", "hunter2", "jjjj", `"t"`, "rewardwatch_session"} {
		if strings.Contains(string(text), secret) {
			t.Errorf("the log has %q", secret)
		}
	}
	if info, err := os.Stat(s.cfg.AuditLog); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestWhatCannotBeRecordedIsNotDone(t *testing.T) {
	s, _ := auditedServer(t)
	called := 0
	s.reload = func() error { called++; return nil }
	directory := filepath.Dir(s.cfg.AuditLog)
	if err := os.RemoveAll(directory); err != nil {
		t.Fatal(err)
	}
	if w := post(s, "/-/reload", "", apitest.SomeToken); w.Code != http.StatusServiceUnavailable || called != 0 {
		t.Errorf("%d %s, called %d times", w.Code, w.Body, called)
	}
	if w := post(s, "/api/v1/telemetry", "", apitest.SomeToken); w.Code != http.StatusNotFound {
		t.Errorf("telemetry, which is not recorded: %d %s", w.Code, w.Body)
	}
	if err := os.Mkdir(directory, 0o700); err != nil {
		t.Fatal(err)
	}
	if w := post(s, "/-/reload", "", apitest.SomeToken); w.Code != http.StatusOK || called != 1 {
		t.Errorf("%d %s, called %d times", w.Code, w.Body, called)
	}
}

// Guesses from many addresses cannot fill the disk, and hide no change.
func TestEntriesOfGuessesAreBounded(t *testing.T) {
	s, entries := auditedServer(t)
	h := s.Handler()
	for i := range 300 {
		r := httptest.NewRequest(http.MethodPost, "/-/reload", nil)
		r.RemoteAddr = fmt.Sprintf("10.0.%d.%d:99", i/200, i%200)
		r.Header.Set("Authorization", "Bearer wrong")
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	if got := entries(); len(got) != 100 {
		t.Errorf("%d entries of 300 guesses", len(got))
	}
	if w := post(s, "/-/reload", "", apitest.SomeToken); w.Code != http.StatusOK {
		t.Fatal(w.Body)
	}
	if got := entries(); len(got) != 1 || got[0].Omitted != 200 || got[0].As != "token" {
		t.Errorf("behind them: %+v", got)
	}
}

// Nor can requests that are refused before it is known who sends them, or that strangers may send.
func TestEntriesOfStrangersAreBounded(t *testing.T) {
	long := strings.Repeat("a", 4000)
	for path, body := range map[string]string{
		"/login":                   "token=x&name=" + long,
		"/logout":                  "",
		"/retrain/unknown/decide":  "%zz",
		"/incidents/unknown":       "by=a&why=" + long,
		"/login/sessions/unknown":  "",
		"/-/reload":                long,
		"/api/v1/retrain-requests": `{"by":"a","why":"` + long + `"}`,
	} {
		s, entries := auditedServer(t)
		h := s.Handler()
		for range 150 {
			r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			h.ServeHTTP(httptest.NewRecorder(), r)
		}
		if got := entries(); len(got) != 100 {
			t.Errorf("%s: %d entries of 150 requests, the last %+v", path, len(got), got[len(got)-1])
		}
	}
}

// The console takes sessions, and no tokens: a token beside a form does not say who sends it.
func TestEntriesOfFormsNameTheSession(t *testing.T) {
	s, entries := auditedServer(t)
	h, a := s.Handler(), attempts(s)["/incidents/{id}"]
	r := httptest.NewRequest(http.MethodPost, a.path, strings.NewReader(a.body))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.AddCookie(sessionOf(t, h, apitest.SomeToken))
	r.Header.Set("Authorization", "Bearer "+strings.Repeat("j", 32))
	entries()
	h.ServeHTTP(httptest.NewRecorder(), r)
	if got := entries(); len(got) != 1 || got[0].As != "session" || got[0].Who != "mallory" {
		t.Errorf("%+v", got)
	}
}
