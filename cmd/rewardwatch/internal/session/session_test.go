package session

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/access"
)

func TestSessionsHoldForATokenAndATime(t *testing.T) {
	ann, until := Person{Name: "Änn, O'Neil"}, someTime.Add(Length)
	session := New("correct horse", ann, until)
	parts := strings.Split(session, ".")
	end, name, salt, mac := parts[0], parts[1], parts[2], parts[2]+"."+parts[3]
	for name, tt := range map[string]struct {
		session, token string
		at             time.Time
		want           bool
	}{
		"at once":            {session, "correct horse", someTime, true},
		"just before":        {session, "correct horse", until.Add(-time.Second), true},
		"over":               {session, "correct horse", until, false},
		"another token":      {session, "correct", someTime, false},
		"no token":           {session, "", someTime, false},
		"none":               {"", "correct horse", someTime, false},
		"a dot":              {".", "correct horse", someTime, false},
		"the end alone":      {end, "correct horse", someTime, false},
		"the end and a dot":  {end + ".", "correct horse", someTime, false},
		"no name":            {end + ".." + mac, "correct horse", someTime, false},
		"another name":       {end + "." + name + "AA." + mac, "correct horse", someTime, false},
		"of no names":        {end + "." + mac, "correct horse", someTime, false}, // as made by older builds
		"another salt":       {end + "." + name + "." + salt[1:] + mac[len(salt):], "correct horse", someTime, false},
		"no salt":            {end + "." + name + mac[len(salt):], "correct horse", someTime, false},
		"no end":             {"." + name + "." + mac, "correct horse", someTime, false},
		"a later end":        {"z" + end + "." + name + "." + mac, "correct horse", someTime, false},
		"written otherwise":  {strings.ToUpper(end) + "." + name + "." + mac, "correct horse", someTime, false},
		"a sign":             {"+" + session, "correct horse", someTime, false},
		"more":               {session + "A", "correct horse", someTime, false},
		"the token":          {"correct horse", "correct horse", someTime, false},
		"far ahead":          {New("correct horse", ann, until.Add(365*24*time.Hour)), "correct horse", someTime, false},
		"end beyond numbers": {strings.Repeat("z", 40) + "." + name + "." + mac, "correct horse", someTime, false},
	} {
		who, end, got := holder(tt.session, tt.token, tt.at)
		if got != tt.want || got != (who == ann) || got != end.Equal(until) && got {
			t.Errorf("%s: %v, %+v", name, got, who)
		}
	}
	if strings.Contains(session, "correct") || session == New("correct horse", ann, until) {
		t.Errorf("the session is %s", session)
	}
}

// tokenIs returns access by a token, which a test can change.
func tokenIs(token *string) Access {
	return Access{Tokens: func(context.Context) ([]access.Token, error) {
		if *token == "" {
			return nil, errors.New("cannot read /secret/path")
		}
		return []access.Token{{Holder: access.Holder{Role: access.Admin}, Text: *token}}, nil
	}}
}

func TestCookieIsForTheBrowserAlone(t *testing.T) {
	token := "correct horse"
	for name, tt := range map[string]struct {
		external string
		change   func(*http.Request)
		secure   bool
	}{
		"http":              {"", func(*http.Request) {}, false},
		"TLS":               {"", func(r *http.Request) { r.TLS = &tls.ConnectionState{} }, true},
		"proxy says so":     {"", func(r *http.Request) { r.Header.Set("X-Forwarded-Proto", "https") }, true},
		"proxy says http":   {"", func(r *http.Request) { r.Header.Set("X-Forwarded-Proto", "http") }, false},
		"its own address":   {"https://drift.example/x", func(r *http.Request) { r.Host = "drift.example" }, true},
		"another way to it": {"https://drift.example/x", func(r *http.Request) { r.Host = "127.0.0.1:9464" }, false},
		"a Host of a proxy": {"https://drift.example/x", func(r *http.Request) { r.Host = "10.0.0.7:9464"; r.Header.Set("Origin", "https://drift.example") }, true},
		"another origin":    {"https://drift.example/x", func(r *http.Request) { r.Header.Set("Origin", "http://drift.example") }, false},
		"http outside":      {"http://drift.example", func(r *http.Request) { r.Host = "drift.example" }, false},
	} {
		a := tokenIs(&token)
		a.ExternalURL = tt.external
		r := httptest.NewRequest(http.MethodPost, "/login", nil)
		tt.change(r)
		c, err := a.Login(r, " correct horse\n", Person{}, someTime)
		if err != nil {
			t.Fatal(err)
		}
		if prefixed := strings.HasPrefix(c.Name, "__Host-"); prefixed != tt.secure || c.Domain != "" {
			t.Errorf("%s: the cookie is %s", name, c)
		}
		if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.MaxAge != 12*60*60 || c.Secure != tt.secure {
			t.Errorf("%s: %s", name, c)
		}
	}
}

func TestSessionOverHTTPSHasThePrefixOfItsHost(t *testing.T) {
	token := "correct horse"
	a := tokenIs(&token)
	session := New(token, Person{Name: "ann"}, someTime.Add(time.Hour))
	for _, tt := range []struct {
		name             string
		encrypted, valid bool
	}{
		{"rewardwatch_session", false, true},
		{"rewardwatch_session", true, false},
		{"__Host-rewardwatch_session", true, true},
		{"__Host-rewardwatch_session", false, true}, // a proxy may not report that it is encrypted
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if tt.encrypted {
			r.TLS = &tls.ConnectionState{}
		}
		r.AddCookie(&http.Cookie{Name: tt.name, Value: session})
		if _, err := a.Admit(r, someTime); (err == nil) != tt.valid {
			t.Errorf("%s, encrypted %v: %v", tt.name, tt.encrypted, err)
		}
	}
}

func TestAccess(t *testing.T) {
	token, local, ann := "correct horse", false, Person{Name: "ann", Role: access.Admin}
	with := tokenIs(&token)
	without := Access{Local: func(*http.Request) bool { return local }}
	admit := func(a Access, cookies ...string) error {
		r := httptest.NewRequest(http.MethodPost, "/retrain/rr_1", nil)
		for _, c := range cookies {
			r.AddCookie(&http.Cookie{Name: CookieName, Value: c})
		}
		who, err := a.Admit(r, someTime)
		if len(cookies) > 0 && err == nil && who != ann {
			t.Errorf("%q is of %+v", cookies, who)
		}
		return err
	}
	session := New(token, ann, someTime.Add(time.Hour))
	if err := errors.Join(admit(with, session), admit(with, "planted", session)); err != nil {
		t.Errorf("a session gives %v", err)
	}
	for _, cookies := range [][]string{nil, {"planted"}, {New(token, ann, someTime)}} {
		if err := admit(with, cookies...); !errors.Is(err, ErrLoginNeeded) {
			t.Errorf("%q gives %v", cookies, err)
		}
	}
	token = "battery staple"
	if err := admit(with, session); !errors.Is(err, ErrLoginNeeded) {
		t.Errorf("a session of the token before gives %v", err)
	}
	token = ""
	if err := admit(with, session); err == nil || errors.Is(err, ErrLoginNeeded) {
		t.Errorf("a token that cannot be read gives %v", err)
	}
	if err := admit(without, session); !errors.Is(err, ErrNotLocal) {
		t.Errorf("from elsewhere without a token: %v", err)
	}
	local = true
	if err := admit(without); err != nil {
		t.Errorf("from this machine without a token: %v", err)
	}
	for _, given := range []string{"", "correct", "correct horse staple", session} {
		token = "correct horse"
		if c, err := with.Login(httptest.NewRequest(http.MethodPost, "/login", nil), given, ann, someTime); !errors.Is(err, ErrWrongToken) || c != nil {
			t.Errorf("%q gives %v %v", given, c, err)
		}
	}
}

// The holder of any token can create sessions from it. Those of programs give no access and use no room of the store.
func TestProgramsHaveNoSessions(t *testing.T) {
	for _, role := range access.Roles() {
		store, _, r := storeRig()
		a := Access{Store: store, Tokens: func(context.Context) ([]access.Token, error) {
			return []access.Token{{Holder: access.Holder{Role: role}, Text: "correct horse"}}, nil
		}}
		r.AddCookie(&http.Cookie{Name: CookieName, Value: New("correct horse", Person{}, someTime.Add(Length))})
		_, err := a.Admit(r, someTime)
		program := role == access.Agents || role == access.Jobs
		if errors.Is(err, ErrLoginNeeded) != program || (len(store.List(everyone)) == 0) != program {
			t.Errorf("%s: %v, %d sessions", role, err, len(store.List(everyone)))
		}
	}
}

// A login is refused if its session would not be admitted.
func TestTooManyLogins(t *testing.T) {
	token := "correct horse"
	store, _, r := storeRig()
	a := tokenIs(&token)
	a.Store = store
	for i := range store.most.ofToken {
		if _, err := a.Login(r, token, Person{}, someTime); err != nil {
			t.Fatalf("login %d: %v", i, err)
		}
	}
	if _, err := a.Login(r, token, Person{}, someTime); !errors.Is(err, ErrTooManySessions) {
		t.Errorf("one more: %v", err)
	}
}

// someTime is the time of the tests.
var someTime = time.Date(2026, 11, 20, 10, 0, 5, 0, time.UTC)
