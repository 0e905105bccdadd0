package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/access"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api/apitest"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/audit"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/session"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/signin"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/signin/signintest"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
)

// signInServer returns a server at which the people of an issuer log in.
func signInServer(t *testing.T, cfg Config) (*Server, *signintest.Issuer) {
	t.Helper()
	issuer := signintest.New(t, map[string]any{"preferred_username": "ann", "groups": []string{"ml"}})
	issuer.Now = func() time.Time { return apitest.QuietTime }
	cfg.ExternalURL, cfg.OIDC = "https://drift.example", signin.Default()
	cfg.OIDC.Issuer, cfg.OIDC.ClientID, cfg.OIDC.ClientSecretFile = issuer.URL, signintest.Client, testkit.WriteFile(t, signintest.Secret)
	cfg.OIDC.Roles = []signin.Mapping{{Value: "staff", Role: access.Viewer}, {Value: "ml", Role: access.Approver}, {Value: "ops", Role: access.Admin}}
	desk := changingDesk{apitest.Storied()}
	s := quietServer(t, cfg, desk.View, func() error { return nil })
	s.Orders = &apitest.FixedOrders{}
	t.Cleanup(s.provider.Close)
	return s, issuer
}

// browser is somebody's browser at https://drift.example.
type browser struct {
	t       *testing.T
	h       http.Handler
	cookies map[string]*http.Cookie
}

func newBrowser(t *testing.T, h http.Handler) *browser {
	t.Helper()
	return &browser{t: t, h: h, cookies: map[string]*http.Cookie{}}
}

func (b *browser) send(method, path, form string) *httptest.ResponseRecorder {
	r, w := httptest.NewRequest(method, "https://drift.example"+path, strings.NewReader(form)), httptest.NewRecorder()
	r.Header.Set("Accept", "text/html")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	for _, c := range b.cookies {
		r.AddCookie(c)
	}
	b.h.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		if b.cookies[c.Name] = c; c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		}
	}
	return w
}

// signIn logs the browser in at the issuer, and returns the last answer.
func (b *browser) signIn(issuer *signintest.Issuer, next string) *httptest.ResponseRecorder {
	b.t.Helper()
	w := b.send(http.MethodGet, "/login/oidc?next="+url.QueryEscape(next), "")
	if w.Code != http.StatusSeeOther {
		b.t.Fatalf("the sign-in begins with %d %s", w.Code, w.Body)
	}
	return b.send(http.MethodGet, "/login/oidc/callback?"+issuer.Authorize(w.Header().Get("Location")).Encode(), "")
}

// Decisions have the name that the provider confirms, whatever a form says, and so has the audit log.
func TestDecisionsHaveTheNameOfTheProvider(t *testing.T) {
	log := filepath.Join(t.TempDir(), "audit.log")
	s, issuer := signInServer(t, Config{AuditLog: log, RequireToken: true})
	orders := &apitest.FixedOrders{}
	s.Orders = orders
	b := newBrowser(t, s.Handler())
	form := "by=mallory&why=new+prices&decision=comment"
	incident := "/incidents/" + s.view.Incidents()[0].ID
	if w := b.send(http.MethodGet, incident, ""); w.Code != http.StatusSeeOther || !strings.Contains(w.Header().Get("Location"), "login") {
		t.Errorf("without a login: %d", w.Code)
	}
	if w := b.send(http.MethodGet, "/login", ""); !strings.Contains(w.Body.String(), `href="https://drift.example/login/oidc?next="`) || strings.Contains(w.Body.String(), `name="token"`) {
		t.Errorf("the login page is\n%s", w.Body)
	}
	if w := b.signIn(issuer, strings.TrimPrefix(incident, "/")); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `url=../..`+incident+`"`) {
		t.Fatalf("%d\n%s", w.Code, w.Body)
	}
	if w := b.send(http.MethodGet, incident, ""); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "Logged in as <b><bdi>ann</bdi>") {
		t.Errorf("with a login: %d", w.Code)
	}
	if w := b.send(http.MethodPost, incident, form); w.Code != http.StatusSeeOther || orders.Decision.By != "ann" {
		t.Errorf("a comment: %d, by %q", w.Code, orders.Decision.By)
	}
	issuer.Claims["preferred_username"], issuer.Claims["groups"] = "bea", "guests"
	if w := newBrowser(t, b.h).signIn(issuer, ""); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "does not have a role") {
		t.Errorf("without a role: %d", w.Code)
	}
	var got []string
	for _, e := range entriesOf(t, log) {
		got = append(got, e.Who+" "+e.As+" "+e.What+" "+e.Result)
	}
	want := []string{"ann login GET /login/oidc/callback done", "ann session POST /incidents/{id} done", "bea nothing GET /login/oidc/callback refused"}
	if !slices.Equal(got, want) {
		t.Errorf("the audit log has\n%s", strings.Join(got, "\n"))
	}
}

// Strangers write no long texts to the logs, and few lines to that of the service.
func TestFailedSignInsFillNoLog(t *testing.T) {
	log := filepath.Join(t.TempDir(), "audit.log")
	s, _ := signInServer(t, Config{AuditLog: log})
	var said bytes.Buffer
	s.signIns = sampled(zerolog.New(&said))
	b := newBrowser(t, s.Handler())
	begun, err := url.Parse(b.send(http.MethodGet, "/login/oidc", "").Header().Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	answer := url.Values{"state": {begun.Query().Get("state")}, "error": {strings.Repeat("x", 8000)}}
	if w := b.send(http.MethodGet, "/login/oidc/callback?"+answer.Encode(), ""); w.Code != http.StatusUnauthorized {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for range 200 {
		if w := b.send(http.MethodGet, "/login/oidc/callback", ""); w.Code != http.StatusBadRequest {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	if lines := strings.Count(said.String(), "sign-in failed"); lines == 0 || lines > 20 || said.Len() > 300*lines+1000 {
		t.Errorf("%d lines of %d bytes:\n%s", lines, said.Len(), &said)
	}
	if e := entriesOf(t, log); len(e) > 110 || !strings.Contains(e[0].Error, "xxx") || len(e[0].Error) > 600 {
		t.Errorf("%d entries, the first of which has %d bytes", len(e), len(e[0].Error))
	}
}

// A sign-in leads to pages of the console and nowhere else.
func TestSignInIsNoOpenRedirect(t *testing.T) {
	s, issuer := signInServer(t, Config{})
	h := s.Handler()
	for _, next := range []string{
		"https://evil.example", "//evil.example", `\\evil.example`, "/\\evil.example", "javascript:alert(1)", "incidents/../../evil", "incidents/%2e%2e/x",
		`incidents/"><script>`, "policies/a#b", "login/oidc",
	} {
		w := newBrowser(t, h).signIn(issuer, next)
		_, to, _ := strings.Cut(w.Body.String(), "url=")
		if to, _, _ = strings.Cut(to, `">`); w.Code != http.StatusOK || to != "../../" && to != "../../incidents/&#34;&gt;&lt;script&gt;" {
			t.Errorf("%s leads to %q", next, to)
		}
	}
}

func TestSessionsCanBeEnded(t *testing.T) {
	s, issuer := signInServer(t, Config{Tokens: []Token{{Name: "root", TokenFile: testkit.WriteFile(t, tokenOf(access.Admin)), Role: access.Admin}}})
	h := s.Handler()
	in := func(b *browser) bool {
		return strings.Contains(b.send(http.MethodGet, "/login", "").Body.String(), "You are logged in")
	}
	login := func(name, group string) *browser {
		issuer.Claims["preferred_username"], issuer.Claims["groups"] = name, group
		b := newBrowser(t, h)
		if b.signIn(issuer, ""); !in(b) {
			t.Fatalf("%s is not logged in", name)
		}
		return b
	}
	phone, laptop, bea, admin := login("ann", "ml"), login("ann", "ml"), login("bea", "ml"), login("cyd", "ops")
	root := newBrowser(t, h)
	root.send(http.MethodPost, "/login", "token="+tokenOf(access.Admin))
	idOf := func(b *browser) string {
		list := s.sessions.List(all, b.cookies["__Host-rewardwatch_session"].Value)
		return list[slices.IndexFunc(list, func(s session.Session) bool { return s.Own })].ID
	}
	if page := laptop.send(http.MethodGet, "/login", "").Body.String(); !strings.Contains(page, idOf(phone)) || strings.Contains(page, idOf(bea)) || strings.Contains(page, "<th></th>") {
		t.Errorf("ann is shown\n%s", page)
	}
	if w := bea.send(http.MethodPost, "/login/sessions/"+idOf(phone), ""); w.Code != http.StatusNotFound || !in(phone) {
		t.Errorf("bea ends the session of ann: %d", w.Code)
	}
	if w := newBrowser(t, h).send(http.MethodPost, "/login/sessions/"+idOf(phone), ""); w.Code != http.StatusUnauthorized || !in(phone) {
		t.Errorf("nobody ends the session of ann: %d", w.Code)
	}
	if w := laptop.send(http.MethodPost, "/login/sessions/"+idOf(phone), ""); w.Code != http.StatusSeeOther || in(phone) || !in(laptop) {
		t.Errorf("ann ends the session of her phone: %d", w.Code)
	}
	copied := *laptop.cookies["__Host-rewardwatch_session"]
	laptop.send(http.MethodPost, "/logout", "")
	laptop.cookies[copied.Name] = &copied
	if in(laptop) {
		t.Error("a cookie that was copied is valid after the logout")
	}
	if w := admin.send(http.MethodPost, "/login/sessions/"+idOf(root), ""); w.Code != http.StatusSeeOther || in(root) {
		t.Errorf("an admin ends the session of a token: %d", w.Code)
	}
	id := idOf(bea)
	api := func(method, path, token string) *httptest.ResponseRecorder {
		r, w := httptest.NewRequest(method, path, nil), httptest.NewRecorder()
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		h.ServeHTTP(w, r)
		return w
	}
	var listed struct{ Sessions []session.Session }
	w := api(http.MethodGet, "/api/v1/sessions", tokenOf(access.Admin))
	if err := json.Unmarshal(w.Body.Bytes(), &listed); err != nil || len(listed.Sessions) != 2 {
		t.Errorf("the list is %s", w.Body)
	}
	checkAgainstOpenAPI(t, "/api/v1/sessions", w.Body.Bytes())
	if strings.Contains(w.Body.String(), bea.cookies[copied.Name].Value) {
		t.Error("the list has the proof of a session")
	}
	for _, token := range []string{"", "wrong"} {
		if w := api(http.MethodGet, "/api/v1/sessions", token); w.Code != http.StatusUnauthorized {
			t.Errorf("the list with the token %q: %d", token, w.Code)
		}
	}
	w = api(http.MethodPost, "/api/v1/sessions/"+id+"/end", tokenOf(access.Admin))
	if w.Code != http.StatusOK || in(bea) {
		t.Errorf("a token of an admin ends the session of bea: %d", w.Code)
	}
	checkAnswer(t, "post", "/api/v1/sessions/{id}/end", w.Body.Bytes())
	if w := api(http.MethodPost, "/api/v1/sessions/"+id+"/end", tokenOf(access.Admin)); w.Code != http.StatusNotFound {
		t.Errorf("again: %d", w.Code)
	}
}

// A restart continues a session with its role, unless the configuration gives out roles differently.
func TestSessionsOfTheProviderSurviveARestart(t *testing.T) {
	kept := filepath.Join(t.TempDir(), "sessions.json")
	s, issuer := signInServer(t, Config{RequireToken: true})
	s.KeepSessions(kept)
	b := newBrowser(t, s.Handler())
	b.signIn(issuer, "")
	restart := func(change func(*Config)) *apitest.FixedOrders {
		cfg := s.cfg
		cfg.OIDC.Roles = slices.Clone(cfg.OIDC.Roles)
		change(&cfg)
		next := quietServer(t, cfg, changingDesk{apitest.Storied()}.View, nil)
		if next.provider != nil {
			t.Cleanup(next.provider.Close)
		}
		orders := &apitest.FixedOrders{}
		next.Orders = orders
		next.KeepSessions(kept)
		b.h = next.Handler()
		return orders
	}
	incident := "/incidents/" + s.view.Incidents()[0].ID
	orders := restart(func(c *Config) { c.OIDC.Title = "Keycloak" })
	if w := b.send(http.MethodPost, incident, "why=new+prices&decision=comment"); w.Code != http.StatusSeeOther || orders.Decision.By != "ann" {
		t.Errorf("after a restart: %d, by %q", w.Code, orders.Decision.By)
	}
	before, err := os.ReadFile(kept)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Config){
		"a lower role":    func(c *Config) { c.OIDC.Roles[1].Role = access.Viewer },
		"another claim":   func(c *Config) { c.OIDC.RolesClaim = "roles" },
		"other names":     func(c *Config) { c.OIDC.NameClaim = "email" },
		"another client":  func(c *Config) { c.OIDC.ClientID = "other" },
		"shorter logins":  func(c *Config) { c.OIDC.Session /= 2 },
		"another issuer":  func(c *Config) { c.OIDC.Issuer += "/realms/other" },
		"a tenant of one": func(c *Config) { c.OIDC.Roles[1].Tenant = "shop" },
		"no provider":     func(c *Config) { c.OIDC = signin.Default() },
	} {
		if err := os.WriteFile(kept, before, 0o600); err != nil {
			t.Fatal(err)
		}
		restart(func(*Config) {})
		if w := b.send(http.MethodGet, incident, ""); w.Code != http.StatusOK {
			t.Fatalf("%s: %d before", name, w.Code)
		}
		restart(change)
		if w := b.send(http.MethodGet, incident, ""); w.Code == http.StatusOK {
			t.Errorf("%s: %d", name, w.Code)
		}
		restart(func(*Config) {})
		if w := b.send(http.MethodGet, incident, ""); w.Code != http.StatusSeeOther || !strings.Contains(w.Header().Get("Location"), "login") {
			t.Errorf("%s, and back: %d", name, w.Code)
		}
	}
}

// Who ends a session is told if a restart may open it again.
func TestEndsThatCannotBeSavedAreReported(t *testing.T) {
	s, issuer := signInServer(t, Config{RequireToken: true, TokenFile: testkit.WriteFile(t, strings.Repeat("secret", 6))})
	s.KeepSessions(filepath.Join(t.TempDir(), "missing", "sessions.json"))
	b := newBrowser(t, s.Handler())
	open := func() string {
		b.signIn(issuer, "")
		return s.sessions.List(all)[0].ID
	}
	r, w := httptest.NewRequest(http.MethodPost, "https://drift.example/api/v1/sessions/"+open()+"/end", nil), httptest.NewRecorder()
	r.Header.Set("Authorization", "Bearer "+strings.Repeat("secret", 6))
	s.Handler().ServeHTTP(w, r)
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), session.ErrNotSaved.Error()) || len(s.sessions.List(all)) != 0 {
		t.Errorf("the API answers %d %s, and %+v are open", w.Code, w.Body, s.sessions.List(all))
	}
	if w := b.send(http.MethodPost, "/login/sessions/"+open(), ""); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "could not be saved") {
		t.Errorf("the login page answers %d %s", w.Code, w.Body)
	}
}

// Where people log in at a provider, a program of this machine changes nothing without a token.
func TestProviderEndsLocalChanges(t *testing.T) {
	s, _ := signInServer(t, Config{})
	r, w := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:9464/-/reload", nil), httptest.NewRecorder()
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9464})))
	r.RemoteAddr = "127.0.0.1:40000"
	r.Header.Set("Content-Type", "application/json")
	if !isLocal(r) {
		t.Fatal("the request is not local")
	}
	if s.Handler().ServeHTTP(w, r); w.Code != http.StatusUnauthorized {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// entriesOf returns the entries of an audit log.
func entriesOf(t *testing.T, file string) []audit.Entry {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []audit.Entry
	for line := range strings.Lines(string(text)) {
		var e audit.Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		out = append(out, e)
	}
	return out
}
