package signin

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"go.uber.org/goleak"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/access"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/session"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/signin/signintest"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const external = "https://drift.example/watch"

// rig is a service with a browser and a provider.
type rig struct {
	t        *testing.T
	issuer   *signintest.Issuer
	handlers Handlers
	cookies  map[string]*http.Cookie
	now      time.Time
	wrong    int   // number of counted guesses
	throttle bool  // whether the address has made too many guesses
	why      error // of the last refusal
}

func newRig(t *testing.T, change func(*Config)) *rig {
	t.Helper()
	r := &rig{t: t, now: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC), cookies: map[string]*http.Cookie{}}
	r.issuer = signintest.New(t, map[string]any{"preferred_username": "ann", "groups": []string{"staff", "ml"}})
	now := func() time.Time { return r.now }
	r.issuer.Now = now
	cfg := Default()
	cfg.Issuer, cfg.ClientID, cfg.ClientSecretFile = r.issuer.URL, signintest.Client, testkit.WriteFile(t, signintest.Secret+"\n")
	cfg.Roles = []Mapping{{Value: "staff", Role: access.Viewer}, {Value: "ml", Role: access.Approver}, {Value: "ops", Role: access.Admin}}
	if change != nil {
		change(&cfg)
	}
	p, err := New(cfg, external, now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	r.handlers = Handlers{
		Provider: p, PageOf: func(page string) string { return strings.ReplaceAll(page, "https:", "") },
		Access: session.Access{
			ExternalURL: external, Store: session.NewStore(now), Tokens: func(context.Context) ([]access.Token, error) { return nil, nil },
			Allowed: func(*http.Request) bool { return !r.throttle }, Failed: func(*http.Request) { r.wrong++ },
		},
		Problem: func(w http.ResponseWriter, _ *http.Request, status int, why string) { http.Error(w, why, status) },
		Ended:   func(_ *http.Request, _ session.Person, _ int, why error) { r.why = why },
	}
	return r
}

// send sends a request like the browser, and keeps its cookies.
func (r *rig) send(handler http.HandlerFunc, path string) *httptest.ResponseRecorder {
	q, w := httptest.NewRequest(http.MethodGet, path, nil), httptest.NewRecorder()
	for _, c := range r.cookies {
		q.AddCookie(c)
	}
	handler(w, q)
	for _, c := range w.Result().Cookies() {
		if r.cookies[c.Name] = c; c.MaxAge < 0 {
			delete(r.cookies, c.Name)
		}
	}
	return w
}

// begin returns the response of the provider to a sign-in.
func (r *rig) begin(next string) url.Values {
	r.t.Helper()
	w := r.send(r.handlers.Begin, "/login/oidc?next="+url.QueryEscape(next))
	if w.Code != http.StatusSeeOther {
		r.t.Fatalf("the sign-in begins with %d %s", w.Code, w.Body)
	}
	return r.issuer.Authorize(w.Header().Get("Location"))
}

func (r *rig) finish(answer url.Values) *httptest.ResponseRecorder {
	return r.send(r.handlers.Finish, "/login/oidc/callback?"+answer.Encode())
}

// who returns who is logged in.
func (r *rig) who() (session.Person, bool) {
	q := httptest.NewRequest(http.MethodGet, "/", nil)
	for _, c := range r.cookies {
		q.AddCookie(c)
	}
	return r.handlers.Access.Holder(q, r.now)
}

func TestSignIn(t *testing.T) {
	r := newRig(t, nil)
	w := r.finish(r.begin("incidents/i1"))
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `url=../../incidents/i1"`) {
		t.Fatalf("%d %s %v", w.Code, w.Body, r.why)
	}
	want := session.Person{Name: "ann", Known: true, By: session.ByProvider, Role: access.Approver}
	if who, in := r.who(); !in || who != want {
		t.Errorf("%+v is logged in, %v", who, in)
	}
	if names := slices.Sorted(maps.Keys(r.cookies)); !slices.Equal(names, []string{"__Host-rewardwatch_session"}) {
		t.Errorf("the browser has the cookies %q", names)
	}
	c := r.cookies["__Host-rewardwatch_session"]
	if !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || c.MaxAge != 12*60*60 {
		t.Errorf("the session is %s", c)
	}
	r.now = r.now.Add(12*time.Hour - time.Second)
	if _, in := r.who(); !in {
		t.Error("the session ends too early")
	}
	r.now = r.now.Add(time.Second)
	if _, in := r.who(); in {
		t.Error("the session does not end")
	}
}

// The administrator who configures roles learns what the provider says, but the person who tries to log in does not.
func TestWhyThereIsNoRole(t *testing.T) {
	for want, groups := range map[string]any{
		`the provider sent no claim "groups" with roles`:                                   nil,
		`none of the values of the claim "groups" is in http.oidc.roles: ["STAFF" "a\nb"]`: []string{"STAFF", "a\nb"},
	} {
		r := newRig(t, nil)
		r.issuer.Change = func(c map[string]any) { c["groups"] = groups }
		w := r.finish(r.begin(""))
		if r.why == nil || r.why.Error() != ErrNoRole.Error()+": "+want {
			t.Errorf("%v, want %s", r.why, want)
		}
		if body := w.Body.String(); strings.Contains(body, "groups") || strings.Contains(body, "STAFF") {
			t.Errorf("the page says %s", body)
		}
	}
	r := newRig(t, nil)
	r.issuer.Change = func(c map[string]any) { c["groups"] = slices.Repeat([]string{"group"}, 10_000) }
	if r.finish(r.begin("")); len(r.why.Error()) > 500 {
		t.Errorf("the reason has %d bytes", len(r.why.Error()))
	}
}

// Anything that an attacker can send, or that a provider can do wrong, ends without a session.
func TestAttacksOnSignIn(t *testing.T) {
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	claim := func(name string, value any) func(*rig) {
		return func(r *rig) { r.issuer.Change = func(c map[string]any) { c[name] = value } }
	}
	for name, tt := range map[string]struct {
		before func(*rig)             // the sign-in begins
		answer func(*rig, url.Values) // changes what the browser sends
		want   error
	}{
		"wrong nonce":          {claim("nonce", "of another sign-in"), nil, ErrRefused},
		"no nonce":             {func(r *rig) { r.issuer.Change = func(c map[string]any) { delete(c, "nonce") } }, nil, ErrRefused},
		"wrong audience":       {claim("aud", "grafana"), nil, ErrRefused},
		"several audiences":    {claim("aud", []string{"grafana", signintest.Client}), nil, ErrRefused},
		"another party":        {claim("azp", "grafana"), nil, ErrRefused},
		"wrong issuer":         {claim("iss", "https://evil.example"), nil, ErrRefused},
		"expired":              {claim("exp", time.Date(2026, 11, 20, 9, 59, 0, 0, time.UTC).Unix()), nil, ErrRefused},
		"not yet valid":        {claim("nbf", time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC).Unix()), nil, ErrRefused},
		"no subject":           {claim("sub", ""), nil, ErrRefused},
		"no name":              {claim("preferred_username", ""), nil, ErrRefused},
		"a name too long":      {claim("preferred_username", strings.Repeat("a", 201)), nil, ErrRefused},
		"a name that is a map": {claim("preferred_username", map[string]any{"a": "ann"}), nil, ErrRefused},
		"a name of spaces":     {claim("preferred_username", "   "), nil, ErrRefused},
		"a name beside it":     {claim("preferred_username", "ann "), nil, ErrRefused},
		"a name that looks so": {claim("preferred_username", "a\u200bnn"), nil, ErrRefused},
		"a name with lines":    {claim("preferred_username", "ann\r\nSet-Cookie: a=b"), nil, ErrRefused},
		"no group":             {claim("groups", nil), nil, ErrNoRole},
		"other groups":         {claim("groups", []any{"STAFF", "staff ", 7, nil, map[string]any{"staff": true}}), nil, ErrNoRole},
		"alg none": {func(r *rig) {
			r.issuer.Sign = func(c map[string]any) string { return signintest.Unsigned(r.t, `{"alg":"none"}`, c) + "." }
		}, nil, ErrRefused},
		"HMAC with the public key": {func(r *rig) { r.issuer.Sign = r.issuer.SharedSecret }, nil, ErrRefused},
		"another key": {func(r *rig) {
			r.issuer.Sign = func(c map[string]any) string { return r.issuer.SignedBy(other, c) }
		}, nil, ErrRefused},
		"no token":           {func(r *rig) { r.issuer.Sign = func(map[string]any) string { return "" } }, nil, ErrRefused},
		"state mismatch":     {nil, func(_ *rig, a url.Values) { a.Set("state", "guessed") }, ErrStale},
		"no state":           {nil, func(_ *rig, a url.Values) { a.Del("state") }, ErrStale},
		"another browser":    {nil, func(r *rig, _ url.Values) { clear(r.cookies) }, ErrStale},
		"too late":           {nil, func(r *rig, _ url.Values) { r.now = r.now.Add(attemptLength) }, ErrStale},
		"a forged attempt":   {nil, func(r *rig, _ url.Values) { r.cookies[attemptCookieOfHost].Value = "e30" }, ErrStale},
		"a changed attempt":  {nil, func(r *rig, _ url.Values) { r.cookies[attemptCookieOfHost].Value += "AAAA" }, ErrStale},
		"a code of a victim": {nil, func(r *rig, a url.Values) { a.Set("code", "stolen") }, ErrRefused},
		"the code of another": {nil, func(r *rig, a url.Values) { // planted into the sign-in of a victim, which only PKCE reveals
			mine := r.cookies[attemptCookieOfHost]
			a.Set("code", r.begin("").Get("code"))
			r.cookies[attemptCookieOfHost] = mine
			r.issuer.Change = func(c map[string]any) { c["nonce"] = "whatever" }
		}, ErrRefused},
		"a long code":          {nil, func(_ *rig, a url.Values) { a.Set("code", strings.Repeat("a", maxParam+1)) }, ErrRefused},
		"no code":              {nil, func(_ *rig, a url.Values) { a.Del("code") }, ErrRefused},
		"refused there":        {nil, func(_ *rig, a url.Values) { a.Set("error", "access_denied") }, ErrRefused},
		"from another issuer":  {nil, func(_ *rig, a url.Values) { a.Set("iss", "https://evil.example") }, ErrRefused},
		"the provider is down": {nil, func(r *rig, _ url.Values) { r.issuer.Down = true }, ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			if tt.before != nil {
				tt.before(r)
			}
			answer := r.begin("")
			if tt.answer != nil {
				tt.answer(r, answer)
			}
			w := r.finish(answer)
			if _, in := r.who(); in || w.Code < 400 || !errors.Is(r.why, tt.want) {
				t.Errorf("%d, logged in %v, %v", w.Code, in, r.why)
			}
			if guess := errors.Is(tt.want, ErrRefused); (r.wrong == 1) != guess {
				t.Errorf("%d guesses are counted", r.wrong)
			}
			if strings.Contains(w.Body.String(), signintest.Secret) || strings.Contains(fmt.Sprint(r.why), signintest.Secret) {
				t.Error("the secret is told")
			}
			if len(w.Result().Cookies()) != 1 || len(r.cookies) != 0 {
				t.Errorf("the browser keeps %v", r.cookies)
			}
		})
	}
}

// A code is used once, even if the provider would accept it again and the browser still has what it kept.
func TestReplayedCode(t *testing.T) {
	r := newRig(t, nil)
	r.issuer.Twice = true
	answer := r.begin("")
	kept := *r.cookies[attemptCookieOfHost]
	if w := r.finish(answer); w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	for _, browser := range []map[string]*http.Cookie{{}, {kept.Name: &kept}} {
		r.cookies = browser
		if w := r.finish(answer); w.Code != http.StatusBadRequest || !errors.Is(r.why, ErrStale) {
			t.Errorf("again: %d %v", w.Code, r.why)
		}
		if _, in := r.who(); in || r.issuer.Exchanges != 1 {
			t.Errorf("again: logged in %v, %d exchanges", in, r.issuer.Exchanges)
		}
	}
}

// After too many guesses from an address, the provider is no longer asked.
func TestGuessesOfCodesAreThrottled(t *testing.T) {
	r := newRig(t, nil)
	answer := r.begin("")
	r.throttle = true
	if w := r.finish(answer); w.Code != http.StatusTooManyRequests || r.issuer.Exchanges != 0 {
		t.Errorf("%d, %d exchanges", w.Code, r.issuer.Exchanges)
	}
}

// When a browser logs in as another person, the previous person's session ends.
func TestASecondSignInEndsTheFirst(t *testing.T) {
	r := newRig(t, nil)
	r.finish(r.begin(""))
	first := *r.cookies["__Host-rewardwatch_session"]
	r.issuer.Claims["preferred_username"] = "bea"
	r.finish(r.begin(""))
	if who, in := r.who(); !in || who.Name != "bea" {
		t.Errorf("%+v is logged in", who)
	}
	r.cookies = map[string]*http.Cookie{first.Name: &first}
	if who, in := r.who(); in {
		t.Errorf("%+v is still logged in", who)
	}
}

func TestClaimsOfRoles(t *testing.T) {
	for name, tt := range map[string]struct {
		claim  string
		claims map[string]any
		info   map[string]any
		want   access.Role
	}{
		"a list":             {"groups", map[string]any{"groups": []any{"staff"}}, nil, access.Viewer},
		"the most":           {"groups", map[string]any{"groups": []any{"ops", "staff", "ml"}}, nil, access.Admin},
		"a text":             {"role", map[string]any{"role": "ops"}, nil, access.Admin},
		"an object":          {"realm_access.roles", map[string]any{"realm_access": map[string]any{"roles": []any{"ml"}}}, nil, access.Approver},
		"a URL":              {"https://drift.example/roles", map[string]any{"https://drift.example/roles": []any{"ml"}}, nil, access.Approver},
		"told when asked":    {"groups", nil, map[string]any{"sub": "7f3", "groups": []any{"ml"}}, access.Approver},
		"not overruled":      {"groups", map[string]any{"groups": []any{"staff"}}, map[string]any{"sub": "7f3", "groups": []any{"ops"}}, access.Viewer},
		"told of another":    {"groups", nil, map[string]any{"sub": "666", "groups": []any{"ops"}}, ""},
		"nothing there":      {"a.b.c", map[string]any{"a": "staff"}, nil, ""},
		"a part of the text": {"groups", map[string]any{"groups": "staff ml"}, nil, ""},
	} {
		r := newRig(t, func(c *Config) { c.RolesClaim = tt.claim })
		r.issuer.Claims = map[string]any{"preferred_username": "ann"}
		maps.Copy(r.issuer.Claims, tt.claims)
		r.issuer.Info = tt.info
		r.finish(r.begin(""))
		if who, in := r.who(); in != (tt.want != "") || who.Role != tt.want {
			t.Errorf("%s: %+v, %v, %v", name, who, in, r.why)
		}
	}
}

// A person is confined to the tenant of the role that applies.
func TestPeopleOfTenants(t *testing.T) {
	for name, tt := range map[string]struct {
		groups []any
		want   string
		role   access.Role
	}{
		"of a tenant":          {[]any{"shop"}, "shop", access.Approver},
		"and of none":          {[]any{"staff", "shop"}, "shop", access.Approver},
		"and of more for none": {[]any{"ops", "shop"}, "", access.Admin},
		"of two":               {[]any{"games", "shop"}, "shop", access.Approver},
		"of none":              {[]any{"staff"}, "", access.Viewer},
	} {
		r := newRig(t, func(c *Config) {
			c.Roles = append(c.Roles, Mapping{Value: "shop", Role: access.Approver, Tenant: "shop"}, Mapping{Value: "games", Role: access.Approver, Tenant: "games"})
		})
		r.issuer.Claims = map[string]any{"preferred_username": "ann", "groups": tt.groups}
		r.finish(r.begin(""))
		if who, in := r.who(); !in || who.Role != tt.role || who.Tenant != tt.want {
			t.Errorf("%s: %+v, %v", name, who, in)
		}
	}
}

// People who can enter an address at the provider are not taken for the person with that address.
func TestAddressesThatNobodyHasVerified(t *testing.T) {
	byName := func(c *Config) { c.NameClaim = "email" }
	byRole := func(c *Config) {
		c.RolesClaim, c.Roles = "email", []Mapping{{Value: "ann@example.com", Role: access.Admin}}
	}
	const ann = `{"sub":"7f3","email":"ann@example.com"}`
	with := func(verified string) string { return strings.Replace(ann, "}", `,"email_verified":`+verified+"}", 1) }
	for name, tt := range map[string]struct {
		change      func(*Config)
		token, info string // what the provider says in both; empty for no response
		want        error
	}{
		"name":                       {byName, with("true"), "", nil},
		"name, not verified":         {byName, with("false"), "", ErrUnverified},
		"role":                       {byRole, with("true"), "", nil},
		"role, not verified":         {byRole, with("false"), "", ErrUnverified},
		"role, told when asked":      {byRole, `{}`, with("false"), ErrUnverified},
		"a text":                     {byRole, with(`"true"`), "", nil},
		"a text, not verified":       {byRole, with(`"false"`), "", ErrUnverified},
		"a number":                   {byRole, with("1"), "", ErrUnverified},
		"the provider says none":     {byRole, ann, "", nil},
		"neither says":               {byRole, ann, ann, nil},
		"verified when asked":        {byRole, ann, with("true"), nil},
		"role, not when asked":       {byRole, ann, with("false"), ErrUnverified},
		"name, not when asked":       {byName, ann, with("false"), ErrUnverified},
		"another address":            {byRole, ann, `{"sub":"7f3","email":"bob@example.com","email_verified":true}`, ErrRefused},
		"not verified, not which":    {byRole, ann, `{"sub":"7f3","email_verified":false}`, ErrUnverified},
		"the same in capitals":       {byRole, ann, `{"sub":"7f3","email":"Ann@example.com","email_verified":true}`, nil},
		"no address":                 {byRole, `{"email_verified":false}`, "", ErrNoRole},
		"decides nothing, so may":    {nil, with("false"), "", nil},
		"decides nothing, elsewhere": {nil, ann, with("false"), nil},
	} {
		r := newRig(t, tt.change)
		if err := json.Unmarshal([]byte(tt.token), &r.issuer.Claims); err != nil {
			t.Fatal(err)
		}
		if tt.info != "" {
			if err := json.Unmarshal([]byte(tt.info), &r.issuer.Info); err != nil {
				t.Fatal(err)
			}
		}
		w := r.finish(r.begin(""))
		if _, in := r.who(); in != (tt.want == nil) || !errors.Is(r.why, tt.want) || strings.Contains(fmt.Sprint(r.why), "%!") || !in && w.Code != http.StatusForbidden && w.Code != http.StatusUnauthorized {
			t.Errorf("%s: %d, logged in %v, %v", name, w.Code, in, r.why)
		}
	}
}

// The secret, codes and keys are never sent over the network in clear text, even if the provider says so.
func TestProviderInClearText(t *testing.T) {
	for _, endpoint := range []string{"authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint"} {
		for _, address := range []string{"http://keycloak.example/x", "ftp://127.0.0.1/x", "javascript:alert(1)", "//keycloak.example/x", "http://localhost.example/"} {
			r := newRig(t, nil)
			r.issuer.Describe = func(said map[string]any) { said[endpoint] = address }
			if w := r.send(r.handlers.Begin, "/login/oidc"); w.Code != http.StatusServiceUnavailable || !errors.Is(r.why, ErrUnavailable) || !strings.Contains(fmt.Sprint(r.why), endpoint) {
				t.Errorf("%s %s: %d %v", endpoint, address, w.Code, r.why)
			}
		}
	}
}

// A provider elsewhere cannot direct the secret to a program on the service's machine.
func TestProviderElsewhereThatNamesLoopback(t *testing.T) {
	for _, tt := range []struct {
		issuer, address string
		want            bool
	}{
		{"http://127.0.0.1:8081", "http://127.0.0.1:8082/token", true},
		{"https://localhost", "http://[::1]:8082/token", true},
		{"https://keycloak.example", "http://127.0.0.1:8082/token", false},
		{"https://keycloak.example", "http://localhost/token", false},
		{"https://keycloak.example", "https://other.example/token", true},
		{"http://127.0.0.1:8081", "http://other.example/token", false},
		{"https://keycloak.example", "https:///token", false},
	} {
		if got := mayName(tt.issuer, tt.address); got != tt.want {
			t.Errorf("%s names %s: %v", tt.issuer, tt.address, got)
		}
	}
}

// A provider that sends too much, or redirects elsewhere, gets neither a secret nor a session.
func TestHostileProvider(t *testing.T) {
	elsewhere := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	defer other.Close()
	for name, answer := range map[string]http.HandlerFunc{
		"leads elsewhere": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		},
		"leads back": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
		},
		"says too much": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"keys":[` + strings.Repeat(`{"kty":"oct"},`, maxAnswer/10) + `{}],"id_token":"x","access_token":"x","token_type":"bearer"}`))
		},
		"says nothing": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) },
	} {
		hostile := httptest.NewServer(answer)
		for _, endpoint := range []string{"issuer", "token_endpoint", "jwks_uri"} {
			r := newRig(t, func(c *Config) {
				if endpoint == "issuer" {
					c.Issuer = hostile.URL
				}
			})
			if endpoint == "issuer" {
				if w := r.send(r.handlers.Begin, "/login/oidc"); w.Code != http.StatusServiceUnavailable {
					t.Errorf("%s at the issuer: %d", name, w.Code)
				}
				continue
			}
			r.issuer.Describe = func(said map[string]any) { said[endpoint] = hostile.URL + "/x" }
			w := r.finish(r.begin(""))
			if _, in := r.who(); in || w.Code < 400 || r.why == nil || len(r.why.Error()) > 4096 {
				t.Errorf("%s at the %s: %d, logged in %v, %.300v", name, endpoint, w.Code, in, r.why)
			}
		}
		hostile.Close()
	}
	if elsewhere != 0 {
		t.Errorf("%d requests went elsewhere", elsewhere)
	}
}

// A new key of the provider is used immediately, and a withdrawn one only until the known keys expire.
func TestKeysOfTheProviderChange(t *testing.T) {
	r := newRig(t, nil)
	if w := r.finish(r.begin("")); w.Code != http.StatusOK {
		t.Fatalf("%d %v", w.Code, r.why)
	}
	old := r.issuer.Rotate()
	if w := r.finish(r.begin("")); w.Code != http.StatusOK {
		t.Errorf("with the new key: %d %v", w.Code, r.why)
	}
	r.issuer.Sign = old
	r.now = r.now.Add(maxAge)
	if w := r.finish(r.begin("")); w.Code != http.StatusUnauthorized || !errors.Is(r.why, ErrRefused) {
		t.Errorf("with the old key: %d %v", w.Code, r.why)
	}
}

// Keys that cannot be fetched are a failure of the provider, and not a guess by the person who logs in.
func TestKeysThatCannotBeFetched(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	broken := httptest.NewServer(http.NotFoundHandler())
	defer broken.Close()
	for name, address := range map[string]string{"no server": gone.URL, "404": broken.URL} {
		r := newRig(t, nil)
		r.issuer.Describe = func(said map[string]any) { said["jwks_uri"] = address }
		if w := r.finish(r.begin("")); w.Code != http.StatusServiceUnavailable || !errors.Is(r.why, ErrUnavailable) {
			t.Errorf("%s: %d %v", name, w.Code, r.why)
		}
	}
}

func TestPublicClientAndNewSecret(t *testing.T) {
	r := newRig(t, func(c *Config) { c.ClientSecretFile = "" })
	r.issuer.Public = true
	if w := r.finish(r.begin("")); w.Code != http.StatusOK {
		t.Errorf("a public client: %d %v", w.Code, r.why)
	}
	r = newRig(t, func(c *Config) { c.ClientSecretFile = testkit.WriteFile(t, "the one before") })
	if w := r.finish(r.begin("")); w.Code != http.StatusUnauthorized {
		t.Errorf("a wrong secret: %d %v", w.Code, r.why)
	}
	r.handlers.Provider.cfg.ClientSecretFile = testkit.WriteFile(t, signintest.Secret)
	if w := r.finish(r.begin("")); w.Code != http.StatusOK {
		t.Errorf("a new secret: %d %v", w.Code, r.why)
	}
}

// The service starts while the provider is down, and asks it again a little later.
func TestProviderComesBack(t *testing.T) {
	r := newRig(t, nil)
	r.issuer.Down = true
	if w := r.send(r.handlers.Begin, "/login/oidc"); w.Code != http.StatusServiceUnavailable || !errors.Is(r.why, ErrUnavailable) {
		t.Errorf("while it is down: %d %v", w.Code, r.why)
	}
	r.issuer.Down, r.now = false, r.now.Add(pause)
	if w := r.finish(r.begin("")); w.Code != http.StatusOK {
		t.Errorf("once it is back: %d %v", w.Code, r.why)
	}
}

func TestCheckOfConfig(t *testing.T) {
	good := Default()
	good.Issuer, good.ClientID, good.Roles = "https://keycloak.example/realms/ops", "rewardwatch", []Mapping{{Value: "ops", Role: access.Admin}}
	for name, tt := range map[string]struct {
		change   func(*Config)
		external string
		want     string
	}{
		"good":                 {func(*Config) {}, external, ""},
		"none":                 {func(c *Config) { *c = Default() }, "", ""},
		"loopback":             {func(c *Config) { c.Issuer = "http://127.0.0.1:8081/realms/ops" }, "http://localhost:9464", ""},
		"clear text":           {func(c *Config) { c.Issuer = "http://keycloak.example" }, external, "issuer"},
		"clear text back":      {func(*Config) {}, "http://drift.example", "issuer"},
		"no external address":  {func(*Config) {}, "", "issuer"},
		"no issuer":            {func(c *Config) { c.Issuer = "" }, external, "issuer"},
		"no client":            {func(c *Config) { c.ClientID = "" }, external, "client_id"},
		"no name":              {func(c *Config) { c.NameClaim = " " }, external, "name_claim"},
		"no roles":             {func(c *Config) { c.Roles = nil }, external, "roles"},
		"a role of programs":   {func(c *Config) { c.Roles = []Mapping{{Value: "ops", Role: access.Agents}} }, external, "roles[0].role"},
		"an admin of a tenant": {func(c *Config) { c.Roles = []Mapping{{Value: "ops", Role: access.Admin, Tenant: "shop"}} }, external, "roles[0].tenant"},
		"everybody":            {func(c *Config) { c.Roles = []Mapping{{Value: "", Role: access.Viewer}} }, external, "roles[0].value"},
		"for ever":             {func(c *Config) { c.Session = model.Duration(8 * 24 * time.Hour) }, external, "session"},
	} {
		cfg, got := good, []string{}
		tt.change(&cfg)
		cfg.Check(tt.external, func(path, _ string) { got = append(got, path) })
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// A provider that does not respond is asked occasionally, and not by each sign-in in turn.
func TestSilentProviderHoldsUpFewSignIns(t *testing.T) {
	asked := 0
	silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.WriteHeader(http.StatusBadGateway)
	}))
	defer silent.Close()
	r := newRig(t, func(c *Config) { c.Issuer = silent.URL })
	for range 10 {
		if w := r.send(r.handlers.Begin, "/login/oidc"); w.Code != http.StatusServiceUnavailable {
			t.Fatalf("%d", w.Code)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times at once", asked)
	}
	r.now = r.now.Add(pause)
	if r.send(r.handlers.Begin, "/login/oidc"); asked != 2 {
		t.Errorf("asked %d times, a pause later", asked)
	}
}
