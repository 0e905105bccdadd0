package api

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/access"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api/apitest"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
)

// tokenOf returns the token of the holder of a role.
func tokenOf(role access.Role) string {
	return strings.Repeat(string(role[:2]), access.MinToken/2)
}

// rolesServer returns a server for whose every role somebody of the same name has a token.
func rolesServer(t *testing.T, cfg Config) *Server {
	t.Helper()
	for _, role := range access.Roles() {
		cfg.Tokens = append(cfg.Tokens, Token{Name: string(role), TokenFile: testkit.WriteFile(t, tokenOf(role)), Role: role})
	}
	desk := changingDesk{apitest.Storied()}
	s := quietServer(t, cfg, desk.View, func() error { return nil })
	s.Orders = &changingOrders{view: desk.View}
	return s
}

// Each change is permitted to the roles that docs/operating.md names, and to no other.
func TestRolesPermitChanges(t *testing.T) {
	people := func(least access.Role) []access.Role {
		all := []access.Role{access.Operator, access.Approver, access.Admin}
		return all[slices.Index(all, least):]
	}
	permitted := map[string][]access.Role{
		"/api/v1/telemetry":                     {access.Agents, access.Admin},
		"/api/v1/retrain-requests/{id}/status":  {access.Jobs, access.Admin},
		"/-/reload":                             people(access.Admin),
		"/api/v1/sessions/{id}/end":             people(access.Admin),
		"/api/v1/policies/{policy}/forget":      people(access.Admin),
		"/api/v1/incidents/{id}/mute":           people(access.Operator),
		"/api/v1/incidents/{id}/comment":        people(access.Operator),
		"/api/v1/retrain-requests":              people(access.Operator),
		"/incidents/{id}":                       people(access.Operator), // a comment
		"/api/v1/retrain-requests/{id}/approve": people(access.Approver),
	}
	s := rolesServer(t, Config{})
	pages := s.Handler() // they show what the double of the desk does not have
	s.Requests = changingDesk{apitest.Storied()}
	api, all := s.Handler(), attempts(s)
	for _, route := range changingRoutes(t) {
		if route == "/login" || route == "/logout" || route == "/retrain/{id}/decide" || route == "/retrain/{id}" || route == "/login/sessions/{id}" {
			continue // for everyone; other tests have the last two
		}
		roles, listed := permitted[route]
		if !listed {
			roles = people(access.Approver)
		}
		for _, role := range access.Roles() {
			a, h := all[route], api
			r := httptest.NewRequest(http.MethodPost, a.path, strings.NewReader(a.body))
			r.Header.Set("Authorization", "Bearer "+tokenOf(role))
			if a.as == "session" {
				if role == access.Agents || role == access.Jobs {
					continue // programs do not log in
				}
				r.Header.Del("Authorization")
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				r.AddCookie(sessionOf(t, pages, tokenOf(role)))
				h = pages
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if refused := w.Code == http.StatusForbidden; refused == slices.Contains(roles, role) || w.Code == http.StatusUnauthorized {
				t.Errorf("%s by %s: %d %s", route, role, w.Code, w.Body)
			}
		}
	}
}

// sessionOf returns the cookie of a login as "mallory".
func sessionOf(t *testing.T, h http.Handler, token string) *http.Cookie {
	t.Helper()
	return logIn(t, h, "mallory", token)
}

func TestProgramsDoNotLogIn(t *testing.T) {
	h := rolesServer(t, Config{}).Handler()
	for _, role := range []access.Role{access.Agents, access.Jobs} {
		r, w := httptest.NewRequest(http.MethodPost, "/login", strings.NewReader("token="+tokenOf(role))), httptest.NewRecorder()
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if h.ServeHTTP(w, r); w.Code != http.StatusUnauthorized || len(w.Result().Cookies()) != 0 {
			t.Errorf("%s: %d", role, w.Code)
		}
	}
}

// No one decides under the name of somebody else with a token of their own.
func TestDecisionsHaveTheNameOfTheToken(t *testing.T) {
	s := rolesServer(t, Config{})
	h, all := s.Handler(), attempts(s)
	for _, a := range []attempt{all["/api/v1/incidents/{id}/mute"], all["/incidents/{id}"]} {
		orders := &apitest.FixedOrders{}
		s.Orders = orders
		r := httptest.NewRequest(http.MethodPost, a.path, strings.NewReader(a.body))
		if a.as == "session" {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.AddCookie(sessionOf(t, h, tokenOf(access.Approver)))
		} else {
			r.Header.Set("Authorization", "Bearer "+tokenOf(access.Approver))
		}
		h.ServeHTTP(httptest.NewRecorder(), r)
		if got := orders.Decision.By; got != "approver" {
			t.Errorf("%s is by %q", a.path, got)
		}
	}
}

func TestReadingNeedsATokenWhereTheConfigurationSaysSo(t *testing.T) {
	s := rolesServer(t, Config{RequireToken: true})
	h := s.Handler()
	get := func(path string, change func(*http.Request)) *httptest.ResponseRecorder {
		r, w := httptest.NewRequest(http.MethodGet, path, nil), httptest.NewRecorder()
		if change != nil {
			change(r)
		}
		h.ServeHTTP(w, r)
		return w
	}
	for _, path := range []string{"/-/healthy", "/-/ready", "/login", "/static/console.css", "/retrain/rr_failed/decide?token=t"} {
		if w := get(path, nil); w.Code == http.StatusUnauthorized || w.Code == http.StatusSeeOther {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	cookie := sessionOf(t, h, tokenOf(access.Viewer))
	for _, path := range []string{"/metrics", "/", "/incidents", "/policies/checkout-ranker", "/api/v1/streams", "/api/v1/openapi.json", "/none"} {
		without := get(path, nil)
		browser := get(path, func(r *http.Request) { r.Header.Set("Accept", "text/html,*/*") })
		wrong := get(path, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+strings.Repeat("w", access.MinToken)) })
		agent := get(path, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+tokenOf(access.Agents)) })
		viewer := get(path, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+tokenOf(access.Viewer)) })
		person := get(path, func(r *http.Request) { r.AddCookie(cookie) })
		if without.Code != http.StatusUnauthorized || without.Header().Get("WWW-Authenticate") != `Bearer realm="rewardwatch"` || wrong.Code != http.StatusUnauthorized {
			t.Errorf("%s without a token: %d, with a wrong one %d", path, without.Code, wrong.Code)
		}
		if browser.Code != http.StatusSeeOther || !strings.Contains(browser.Header().Get("Location"), "login") {
			t.Errorf("%s in a browser: %d to %q", path, browser.Code, browser.Header().Get("Location"))
		}
		if agent.Code != http.StatusForbidden {
			t.Errorf("%s with the token of an agent: %d", path, agent.Code)
		}
		if want := map[bool]int{true: http.StatusNotFound, false: http.StatusOK}[path == "/none"]; viewer.Code != want || person.Code != want {
			t.Errorf("%s by a viewer: %d by token, %d by session", path, viewer.Code, person.Code)
		}
	}
}

// A session opens the profiler to an admin only, though browsers send cookies to every port of a host.
func TestProfilerIsForAdmins(t *testing.T) {
	s := rolesServer(t, Config{RequireToken: true})
	h, profiler := s.Handler(), s.profiler()
	for _, role := range []access.Role{access.Viewer, access.Operator, access.Approver, access.Admin} {
		want := map[bool]int{true: http.StatusOK, false: http.StatusForbidden}[role == access.Admin]
		r, w := httptest.NewRequest(http.MethodGet, "/debug/pprof/cmdline", nil), httptest.NewRecorder()
		r.Header.Set("Authorization", "Bearer "+tokenOf(role))
		if profiler.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%s: %d", role, w.Code)
		}
		r, w = httptest.NewRequest(http.MethodGet, "/debug/pprof/cmdline", nil), httptest.NewRecorder()
		r.AddCookie(sessionOf(t, h, tokenOf(role)))
		if profiler.ServeHTTP(w, r); (w.Code == http.StatusOK) != (role == access.Admin) {
			t.Errorf("%s by session: %d", role, w.Code)
		}
	}
}

// Reading may need no token, or only a password, but profiles show what is in memory.
func TestProfilesNeedMoreThanTheRightToRead(t *testing.T) {
	f := newWebFiles(t)
	passwords := f.write(t, "basic_auth_users: {ann: '"+hashed(t, "a password")+"'}")
	here, elsewhere := "127.0.0.1:5000", "192.0.2.1:5000"
	for name, tt := range map[string]struct {
		s    *Server
		from string
		want int // with a password
	}{
		"open reading, from here":              {rolesServer(t, Config{}), here, http.StatusUnauthorized},
		"passwords, from here":                 {rolesServer(t, Config{WebConfigFile: passwords}), here, http.StatusUnauthorized},
		"no admin":                             {withToken(t, Config{WebConfigFile: passwords}, access.Approver), here, http.StatusUnauthorized},
		"passwords, no tokens":                 {quietServer(t, Config{WebConfigFile: passwords}, apitest.SomeView(), nil), here, http.StatusOK},
		"passwords, no tokens, from elsewhere": {quietServer(t, Config{WebConfigFile: passwords}, apitest.SomeView(), nil), elsewhere, http.StatusForbidden},
		"no tokens, from here":                 {quietServer(t, Config{}, apitest.SomeView(), nil), here, http.StatusOK},
		"no tokens, from elsewhere":            {quietServer(t, Config{}, apitest.SomeView(), nil), elsewhere, http.StatusForbidden},
	} {
		to := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9465}
		r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:9465/debug/pprof/cmdline", nil)
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(to)))
		r.RemoteAddr = tt.from
		r.SetBasicAuth("ann", "a password")
		w := httptest.NewRecorder()
		if tt.s.profiler().ServeHTTP(w, r); w.Code != tt.want {
			t.Errorf("%s: %d %s, want %d", name, w.Code, w.Body, tt.want)
		}
	}
}

// withToken returns a server for whose one role somebody of the same name has a token.
func withToken(t *testing.T, cfg Config, role access.Role) *Server {
	t.Helper()
	cfg.Tokens = []Token{{Name: string(role), TokenFile: testkit.WriteFile(t, tokenOf(role)), Role: role}}
	return quietServer(t, cfg, apitest.SomeView(), func() error { return nil })
}

// Browsers that are sent to the login page while the service starts are not sent there again.
func TestLoginPageAnswersWhileTheServiceStarts(t *testing.T) {
	s := withToken(t, Config{RequireToken: true}, access.Viewer)
	s.WaitsFor("the test")
	h := s.starting()
	for path, want := range map[string]int{
		"/": http.StatusSeeOther, "/login": http.StatusServiceUnavailable, "/login?next=retrain": http.StatusServiceUnavailable, "/static/console.css": http.StatusOK,
	} {
		r, w := httptest.NewRequest(http.MethodGet, path, nil), httptest.NewRecorder()
		r.Header.Set("Accept", "text/html")
		if h.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%s: %d to %q", path, w.Code, w.Header().Get("Location"))
		}
	}
}

func TestViewersLogInWhereNoOneElseHasAToken(t *testing.T) {
	h := withToken(t, Config{RequireToken: true}, access.Viewer).Handler()
	r, w := httptest.NewRequest(http.MethodGet, "/incidents", nil), httptest.NewRecorder()
	r.AddCookie(sessionOf(t, h, tokenOf(access.Viewer)))
	if h.ServeHTTP(w, r); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// An operator on the machine of the service can do no more by leaving the token out.
func TestNoTokenPermitsNoMoreThanAToken(t *testing.T) {
	s := withToken(t, Config{Listen: "127.0.0.1:0"}, access.Operator)
	s.Orders = &apitest.FixedOrders{}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	for authorization, want := range map[string]int{"": http.StatusUnauthorized, "Bearer " + tokenOf(access.Operator): http.StatusForbidden} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.Addr()+"/-/reload", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", authorization)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := answer.Body.Close(); err != nil || answer.StatusCode != want {
			t.Errorf("with %q: %d, %v", authorization, answer.StatusCode, err)
		}
	}
}
