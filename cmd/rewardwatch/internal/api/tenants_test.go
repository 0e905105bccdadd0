package api

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/access"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api/apitest"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/session"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/tenant"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/webconfig"
	"github.com/rewardwatch/rewardwatch/detectors/guard"
	"github.com/rewardwatch/rewardwatch/ingest/receive"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/recipe"
)

// tenantDeskOfTest has what routes need that apitest does not have.
type tenantDeskOfTest struct{ changingDesk }

func (tenantDeskOfTest) Usual(string) (recipe, target string) { return "ranker", "trainer" }

func (tenantDeskOfTest) Offers(string) (recipes, targets []string) {
	return []string{"ranker", "bidder"}, []string{"trainer", "mail"}
}

func (d tenantDeskOfTest) Request(ctx context.Context, id string) (ledger.Request, error) {
	return d.View.RetrainRequest(ctx, id)
}

func (d tenantDeskOfTest) Search(ctx context.Context, f ledger.Filter) ([]ledger.Request, bool, error) {
	return d.View.RetrainRequests(ctx, f)
}

func (d tenantDeskOfTest) Deliveries(ctx context.Context, request string, limit int) ([]ledger.Delivery, error) {
	return d.View.Deliveries(ctx, request, limit)
}

func (d tenantDeskOfTest) Decisions(context.Context, string, int) ([]ledger.Recorded, error) {
	return []ledger.Recorded{{Incident: "a1b2", Policy: "checkout-ranker", Reason: ledger.AlreadyRequested, Request: "rr_failed"}}, nil
}

func (tenantDeskOfTest) Delta(ledger.Request) (string, []recipe.Difference, error) {
	return "", nil, nil
}

// tenantToken returns the token of an identity of a test.
func tenantToken(name string) string {
	return strings.Repeat(name+"-", access.MinToken)[:access.MinToken+8]
}

// tenantsServer returns a server with the view of apitest, whose policy checkout-ranker belongs to the tenant shop, and
// nothing to the tenant games. Each role of each tenant has a token, and the platform has one.
func tenantsServer(t *testing.T) (*Server, *apitest.FixedOrders, tenantDeskOfTest) {
	t.Helper()
	cfg := Config{RequireToken: true, TokenFile: testkit.WriteFile(t, apitest.SomeToken)}
	for _, of := range []string{"shop", "games"} {
		for _, role := range access.Roles() {
			if name := of + "-" + string(role); role != access.Admin {
				cfg.Tokens = append(cfg.Tokens, Token{Name: name, Role: role, Tenant: of, TokenFile: testkit.WriteFile(t, tenantToken(name))})
			}
		}
	}
	var bad []string
	cfg.Listen = "127.0.0.1:0"
	if cfg.Check(func(path, msg string) { bad = append(bad, path+": "+msg) }); len(bad) > 0 {
		t.Fatal(bad)
	}
	desk := tenantDeskOfTest{changingDesk{apitest.Storied()}}
	desk.View.Guard(&guard.Summary{Policy: "checkout-ranker", Guards: []guard.Verdict{{Name: "offers", Tripped: true, Why: "too many"}}})
	s := quietServer(t, cfg, desk.View, func() error { return nil })
	orders := &apitest.FixedOrders{Samples: apitest.SomeSamples()}
	orders.Samples["beef"] = orders.Samples["0123456789abcdef"]
	s.Requests, s.Orders = desk, orders
	s.Tenants = tenant.List{{Name: "shop", Policies: []string{"checkout-*"}}, {Name: "games", Policies: []string{"pong-*"}}}
	return s, orders, desk
}

// onlyForPlatform lists the routes that no tenant may use, whatever its role.
var onlyForPlatform = []string{
	"GET /metrics", "GET /api/v1/sessions", "POST /-/reload", "POST /api/v1/sessions/{id}/end", "POST /api/v1/policies/{policy}/forget",
}

// Every route is either for tenants, or for everyone, or for no tenant: who adds one has to say so.
func TestEveryRouteSaysWhetherItIsForTenants(t *testing.T) {
	s, _, _ := tenantsServer(t)
	mux, _, _ := s.routes(s.access())
	if len(mux.patterns) < 45 {
		t.Fatalf("only %d routes", len(mux.patterns))
	}
	for _, pattern := range mux.patterns {
		n := 0
		for _, is := range []bool{ofTenants(pattern), ofEveryone(pattern), slices.Contains(onlyForPlatform, pattern)} {
			if is {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s is in %d of: ofTenants, ofEveryone (tenants.go), onlyForPlatform (here)", pattern, n)
		}
	}
}

// object is what the routes of a test name.
var object = map[string][2]string{ // of the tenant shop, and of no one
	"policy": {"checkout-ranker", "checkout-nothing"}, "version": {"v1", "v1"}, "guard": {"offers", "offers"}, "other": {"beef", "dead"},
}

// pathsOf returns the path of a route to an object of the tenant shop, and to one that does not exist.
func pathsOf(s *Server, pattern string) (method, there, nowhere string) {
	method, there, _ = strings.Cut(pattern, " ")
	there = strings.TrimSuffix(there, "{$}")
	nowhere = there
	id := [2]string{"rr_failed", "rr_nothing"}
	switch {
	case strings.Contains(there, "/incidents/"):
		id = [2]string{s.view.Incidents()[0].ID, "ffff"}
	case strings.Contains(there, "/baselines/"):
		id = [2]string{"beef", "dead"}
	}
	there, nowhere = strings.ReplaceAll(there, "{id}", id[0]), strings.ReplaceAll(nowhere, "{id}", id[1])
	for name, values := range object {
		there, nowhere = strings.ReplaceAll(there, "{"+name+"}", values[0]), strings.ReplaceAll(nowhere, "{"+name+"}", values[1])
	}
	if strings.HasSuffix(there, "/history") && strings.Contains(there, "/policies/") {
		there, nowhere = there+"?signal=return&label=env=prod-eu", nowhere+"?signal=return&label=env=prod-eu"
	}
	return method, there, nowhere
}

// visit sends a request with a token, or as a session with a cookie.
func visit(h http.Handler, method, path, body, token string, cookie *http.Cookie) *httptest.ResponseRecorder {
	r, w := httptest.NewRequest(method, path, strings.NewReader(body)), httptest.NewRecorder()
	if strings.HasPrefix(body, "by=") {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if cookie != nil {
		r.AddCookie(cookie)
	}
	h.ServeHTTP(w, r)
	return w
}

// A tenant sees nothing of another: not by a list, not by an id, not by a difference between what is not there and what is
// not theirs. Its own it sees, as the platform does.
func TestTenantsSeeTheirOwn(t *testing.T) {
	s, _, _ := tenantsServer(t)
	h := s.Handler()
	mux, _, _ := s.routes(s.access())
	secrets := []string{"checkout", "prod-eu", s.view.Incidents()[0].ID, "rr_", "beef", "bidder", "cartpole", "trainer"}
	cookies := map[string]*http.Cookie{}
	for _, of := range []string{"shop", "games"} {
		cookies[of] = logIn(t, h, "x", tenantToken(of+"-approver"))
	}
	for _, pattern := range mux.patterns {
		if !ofTenants(pattern) || !strings.HasPrefix(pattern, "GET ") || strings.HasSuffix(pattern, ".json") {
			continue // POST has a test of its own, and the schemas are the same for all
		}
		method, there, nowhere := pathsOf(s, pattern)
		for _, as := range []string{"token", "session"} {
			get := func(path, of string) (status int, body string) {
				w := visit(h, method, path, "", map[bool]string{true: tenantToken(of + "-approver")}[as == "token"], map[bool]*http.Cookie{true: cookies[of]}[as == "session"])
				return w.Code, w.Body.String()
			}
			if status, body := get(there, "shop"); status != http.StatusOK {
				t.Errorf("%s of its own by %s: %d %s", there, as, status, body)
			}
			status, body := get(there, "games")
			shown := body
			for _, part := range strings.FieldsFunc(there, func(r rune) bool { return strings.ContainsRune("/?&=", r) }) {
				shown = strings.ReplaceAll(shown, part, "") // a page may say what it was asked for
			}
			for _, secret := range secrets {
				if strings.Contains(shown, secret) {
					t.Errorf("%s of another tenant by %s shows %s: %s", there, as, secret, body)
				}
			}
			if there == nowhere {
				continue
			}
			other, nothing := get(nowhere, "games")
			for name, of := range object {
				body, nothing = strings.ReplaceAll(body, of[0], name), strings.ReplaceAll(nothing, of[1], name)
			}
			for _, ids := range [][2]string{{"rr_failed", "rr_nothing"}, {s.view.Incidents()[0].ID, "ffff"}, {"beef", "dead"}} {
				body, nothing = strings.ReplaceAll(body, ids[0], "id"), strings.ReplaceAll(nothing, ids[1], "id")
			}
			if status != other || body != nothing {
				t.Errorf("%s by %s: %d %s\nbut %s: %d %s", there, as, status, body, nowhere, other, nothing)
			}
		}
		if w := visit(h, method, there, "", apitest.SomeToken, nil); w.Code != http.StatusOK {
			t.Errorf("%s by the platform: %d %s", there, w.Code, w.Body)
		}
	}
}

// A ledger that fails is not one without requests.
func TestDeliveriesOfATenantFail(t *testing.T) {
	view := apitest.Storied().View
	v := tenantView{of: view, owns: func(string) bool { return true }}
	if found, err := v.Deliveries(t.Context(), "rr_nothing", 10); len(found) > 0 || err != nil {
		t.Errorf("of a request that is unknown: %v, %v", found, err)
	}
	view.Ledger = errors.New("no connection")
	for _, id := range []string{"rr_nothing", ""} {
		if _, err := v.Deliveries(t.Context(), id, 10); !errors.Is(err, view.Ledger) {
			t.Errorf("of %q: %v", id, err)
		}
	}
	if _, err := v.asked(t.Context(), ledger.Filter{Parent: "rr_nothing"}); !errors.Is(err, view.Ledger) {
		t.Errorf("of a parent: %v", err)
	}
}

// telemetryOf keeps the last batch.
type telemetryOf struct{ batch receive.Batch }

func (o *telemetryOf) Receive(_ context.Context, b receive.Batch) (receive.Result, error) {
	o.batch = b
	return receive.Result{Accepted: 1}, nil
}

// A tenant changes nothing of another, and gets the answer of what is not there. Nothing reaches who carries it out.
func TestTenantsChangeTheirOwn(t *testing.T) {
	s, orders, desk := tenantsServer(t)
	sent := &telemetryOf{}
	s.TelemetryOf = func(tenant string) TelemetryReceiver { return map[string]TelemetryReceiver{"games": sent}[tenant] }
	h, bodies := s.Handler(), attempts(s)
	mux, _, _ := s.routes(s.access())
	form := logIn(t, h, "x", tenantToken("games-approver"))
	for _, pattern := range mux.patterns {
		if !ofTenants(pattern) || !strings.HasPrefix(pattern, "POST ") || strings.HasSuffix(pattern, "/telemetry") {
			continue
		}
		route := strings.TrimPrefix(pattern, "POST ")
		a, known := bodies[route]
		if !known {
			t.Fatalf("add how %s succeeds to attempts", route)
		}
		path := strings.Replace(a.path, "/b1/", "/beef/", 1)
		role, cookie := "approver", form
		if a.as == "status token" {
			role = "jobs"
		}
		token := tenantToken("games-" + role)
		if a.as == "session" {
			token = ""
		} else {
			cookie = nil
		}
		before := len(orders.Asked) + len(desk.Asked)
		state := desk.View.Ordered[0].State
		w := visit(h, http.MethodPost, path, a.body, token, cookie)
		if w.Code != http.StatusNotFound && w.Code != http.StatusBadRequest || len(orders.Asked)+len(desk.Asked) != before || desk.View.Ordered[0].State != state {
			t.Errorf("%s by another tenant: %d %s; carried out: %q %q", path, w.Code, w.Body, orders.Asked, desk.Asked)
		}
		if a.as == "session" {
			continue // the doubles do not have what the page shows afterwards
		}
		if w := visit(h, http.MethodPost, path, a.body, tenantToken("shop-"+role), nil); w.Code != http.StatusOK {
			t.Errorf("%s by its own tenant: %d %s", path, w.Code, w.Body)
		}
	}
	s.Tenants[1].Policies = []string{"pong-*", "other"}
	nothing := `{"by":"a","why":"b","policy":"pong-v5","recipe":"ranker","target":"trainer"}`
	if w := visit(h, http.MethodPost, "/api/v1/retrain-requests", nothing, tenantToken("games-operator"), nil); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "is not judged") {
		t.Errorf("a tenant asks for a policy without telemetry: %d %s", w.Code, w.Body)
	}
	for _, recipe := range []string{"another", ""} {
		body := `{"by":"a","why":"b","policy":"checkout-ranker","recipe":"` + recipe + `","target":"trainer"}`
		if w := visit(h, http.MethodPost, "/api/v1/retrain-requests", body, tenantToken("shop-operator"), nil); w.Code != http.StatusBadRequest {
			t.Errorf("a tenant asks for recipe %q: %d %s", recipe, w.Code, w.Body)
		}
	}
	visit(h, http.MethodPost, "/api/v1/telemetry", "{}", tenantToken("games-agents"), nil)
	if sent.batch.Takes == nil || sent.batch.Takes("checkout-ranker") || !sent.batch.Takes("pong-v5") {
		t.Error("a tenant may send telemetry of another")
	}
	if w := visit(h, http.MethodPost, "/api/v1/telemetry", "{}", tenantToken("shop-agents"), nil); w.Code != http.StatusNotFound {
		t.Errorf("telemetry of a tenant without a topic: %d %s", w.Code, w.Body)
	}
}

// What is for the platform is not for a tenant, with any role, token or session.
func TestPlatformIsNotForTenants(t *testing.T) {
	s, orders, _ := tenantsServer(t)
	h := s.Handler()
	for _, pattern := range onlyForPlatform {
		method, there, _ := pathsOf(s, pattern)
		for _, role := range access.Roles() {
			if role == access.Admin {
				continue
			}
			token := tenantToken("shop-" + string(role))
			if w := visit(h, method, there, `{"by":"a","why":"b"}`, token, nil); w.Code != http.StatusForbidden {
				t.Errorf("%s by %s: %d %s", there, role, w.Code, w.Body)
			}
			if role == access.Agents || role == access.Jobs {
				continue
			}
			if w := visit(h, method, there, `{"by":"a","why":"b"}`, "", logIn(t, h, "x", token)); w.Code != http.StatusForbidden && w.Code != http.StatusUnauthorized {
				t.Errorf("%s by a session of %s: %d %s", there, role, w.Code, w.Body)
			}
		}
	}
	if len(orders.Asked) > 0 {
		t.Errorf("%q was carried out", orders.Asked)
	}
	starting := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.Header.Set("Authorization", "Bearer "+tenantToken("shop-viewer"))
	s.WaitsFor("the test")
	if s.starting().ServeHTTP(starting, r); starting.Code != http.StatusForbidden {
		t.Errorf("metrics while starting: %d", starting.Code)
	}
}

// A request that shows a token and a session is confined by either, and refused if they are of different tenants. One whose
// token cannot be read any more, or whose tenant is gone, is not one of the platform.
func TestWhoIsConfined(t *testing.T) {
	s, _, _ := tenantsServer(t)
	h := s.Handler()
	games, platform := logIn(t, h, "x", tenantToken("games-viewer")), logIn(t, h, "x", apitest.SomeToken)
	status := func(token string, cookie *http.Cookie) (int, bool) {
		w := visit(h, http.MethodGet, "/api/v1/incidents", "", token, cookie)
		return w.Code, strings.Contains(w.Body.String(), "checkout")
	}
	for _, tt := range []struct {
		token  string
		cookie *http.Cookie
		code   int
		sees   bool
	}{
		{apitest.SomeToken, nil, 200, true},
		{"", platform, 200, true},
		{apitest.SomeToken, games, 200, false},
		{tenantToken("games-viewer"), platform, 200, false},
		{tenantToken("shop-viewer"), platform, 200, true},
		{tenantToken("shop-viewer"), games, 403, false},
		{tenantToken("games-viewer"), games, 200, false},
		{"", nil, 401, false},
		{"wrong", platform, 401, false},
	} {
		if code, sees := status(tt.token, tt.cookie); code != tt.code || sees != tt.sees {
			t.Errorf("token %q, cookie %v: %d, sees %t", tt.token, tt.cookie, code, sees)
		}
	}
	var file string
	for _, token := range s.cfg.Tokens {
		if token.Name == "shop-viewer" {
			file = token.TokenFile
		}
	}
	people, r := s.access(), httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Authorization", "Bearer "+tenantToken("shop-viewer"))
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if of, err := s.tenantOf(r, people); err == nil {
		t.Errorf("with a token file that is gone: tenant %q", of)
	}
	s.Tenants = s.Tenants[1:]
	h = s.Handler()
	if code, sees := status(tenantToken("shop-operator"), nil); code != 403 || sees {
		t.Errorf("a token of a tenant that is gone: %d, sees %t", code, sees)
	}
	opened := s.sessions.Open(httptest.NewRequest(http.MethodGet, "/", nil), session.Person{Name: "eve", Known: true, Role: access.Approver, Tenant: "games"}, time.Hour)
	if code, sees := status("", &http.Cookie{Name: session.CookieName, Value: opened}); code != 200 || sees {
		t.Errorf("a session of a provider: %d, sees %t", code, sees)
	}
}

// A password that everyone shares, or that everyone has, does not make a person of a tenant one of the platform.
func TestPasswordAloneIsNotOfThePlatform(t *testing.T) {
	s, _, _ := tenantsServer(t)
	f := newWebFiles(t)
	var err error
	if s.web, err = webconfig.Open(f.write(t, "basic_auth_users: {ann: '"+hashed(t, "a password")+"'}"), zerolog.Nop()); err != nil {
		t.Fatal(err)
	}
	h := s.Handler()
	games, platform := s.sessions.Open(httptest.NewRequest(http.MethodGet, "/", nil), session.Person{Name: "eve", Known: true, Role: access.Approver, Tenant: "games"}, time.Hour),
		s.sessions.Open(httptest.NewRequest(http.MethodGet, "/", nil), session.Person{Name: "sue", Known: true, Role: access.Viewer}, time.Hour)
	for path, of := range map[string]map[string]int{
		"/api/v1/incidents": {"": http.StatusUnauthorized, games: http.StatusOK, platform: http.StatusOK},
		"/metrics":          {"": http.StatusUnauthorized, games: http.StatusForbidden, platform: http.StatusOK},
	} {
		for cookie, want := range of {
			r, w := httptest.NewRequest(http.MethodGet, path, nil), httptest.NewRecorder()
			r.SetBasicAuth("ann", "a password")
			r.AddCookie(&http.Cookie{Name: session.CookieName, Value: cookie})
			h.ServeHTTP(w, r)
			if sees := strings.Contains(w.Body.String(), "checkout"); w.Code != want || cookie == games && sees {
				t.Errorf("%s: %d, sees %t, want %d", path, w.Code, sees, want)
			}
		}
	}
	r, w := httptest.NewRequest(http.MethodGet, "/debug/pprof/cmdline", nil), httptest.NewRecorder()
	r.SetBasicAuth("ann", "a password")
	s.forPlatform(adminHandler(), s.access()).ServeHTTP(w, r)
	if w.Code != http.StatusForbidden {
		t.Errorf("a profile: %d", w.Code)
	}
}

// Tokens that are tried beside a session count as guesses.
func TestTokensBesideASessionAreGuesses(t *testing.T) {
	s, _, _ := tenantsServer(t)
	h := s.Handler()
	games := logIn(t, h, "x", tenantToken("games-viewer"))
	codes := map[int]int{}
	for range guessBurst + 20 {
		codes[visit(h, http.MethodGet, "/api/v1/incidents", "", "wrong", games).Code]++
	}
	wrong, late := codes[http.StatusUnauthorized], codes[http.StatusTooManyRequests]
	if wrong < guessBurst || late == 0 || wrong+late != guessBurst+20 {
		t.Errorf("answers %v", codes)
	}
	if n := testutil.ToFloat64(s.Guesses.Refused.WithLabelValues("wrong")); n != float64(wrong) {
		t.Errorf("%v wrong tokens are counted, want %d", n, wrong)
	}
}

// The audit log says to whom a change, or an attempt, was confined.
func TestAuditLogNamesTheTenant(t *testing.T) {
	s, entries := auditedServer(t)
	s.cfg.RequireToken = true
	s.holders = append(s.holders, access.Holder{Name: "eve", Role: access.Approver, Tenant: "games", File: testkit.WriteFile(t, tenantToken("eve"))})
	s.Tenants = tenant.List{{Name: "games", Policies: []string{"pong-*"}}}
	a, h := attempts(s)["/api/v1/incidents/{id}/mute"], s.Handler()
	for token, want := range map[string]string{tenantToken("eve"): "games", apitest.SomeToken: ""} {
		entries()
		visit(h, http.MethodPost, a.path, a.body, token, nil)
		if got := entries(); len(got) != 1 || got[0].Tenant != want {
			t.Errorf("want tenant %q: %+v", want, got)
		}
	}
}

func TestTenantsAreChecked(t *testing.T) {
	good := Config{Listen: "127.0.0.1:0", RequireToken: true, Tokens: []Token{{Name: "ann", TokenFile: "t", Role: access.Approver, Tenant: "shop"}}}
	for want, change := range map[string]func(*Config){
		"":                           func(*Config) {},
		"tokens[0].tenant: cannot":   func(c *Config) { c.Tokens[0].Role = access.Admin },
		"tokens[0].tenant: requires": func(c *Config) { c.RequireToken = false },
	} {
		c := good
		c.Tokens = slices.Clone(good.Tokens)
		change(&c)
		var found []string
		c.Check(func(path, msg string) { found = append(found, path+": "+msg) })
		if len(found) > 1 || want == "" && len(found) > 0 || want != "" && (len(found) == 0 || !strings.HasPrefix(found[0], want)) {
			t.Errorf("want %q, got %q", want, found)
		}
	}
}
