package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/access"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api/apitest"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

func TestClientOfAProxy(t *testing.T) {
	s := &Server{cfg: Config{TrustedProxies: []string{"10.0.0.0/8", "192.168.7.7", "fd00::/8"}}}
	for _, tt := range []struct{ from, header, want string }{
		{"10.1.2.3:4000", "203.0.113.9", "203.0.113.9:0"},
		{"10.1.2.3:4000", "203.0.113.9, 10.9.9.9", "203.0.113.9:0"},
		{"10.1.2.3:4000", "127.0.0.1, 203.0.113.9, 192.168.7.7", "203.0.113.9:0"}, // the first is made up
		{"10.1.2.3:4000", "203.0.113.9:51000", "203.0.113.9:0"},
		{"10.1.2.3:4000", "[2001:db8::1]:51000", "[2001:db8::1]:0"},
		{"10.1.2.3:4000", "2001:db8::1", "[2001:db8::1]:0"},
		{"[fd00::7]:4000", "2001:db8::1", "[2001:db8::1]:0"},
		{"10.1.2.3:4000", "10.9.9.9", "10.9.9.9:0"},             // a client in the networks of the proxies
		{"10.1.2.3:4000", "203.0.113.9, junk", "10.1.2.3:4000"}, // what is left of junk may be made up
		{"10.1.2.3:4000", "", "10.1.2.3:4000"},
		{"203.0.113.1:4000", "198.51.100.1", "203.0.113.1:4000"}, // no proxy of ours
		{"192.168.7.8:4000", "198.51.100.1", "192.168.7.8:4000"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = tt.from
		if tt.header != "" {
			r.Header.Set("X-Forwarded-For", tt.header)
		}
		var got string
		s.forwarded(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.RemoteAddr })).ServeHTTP(httptest.NewRecorder(), r)
		if got != tt.want {
			t.Errorf("%q over %s is %s, want %s", tt.header, tt.from, got, tt.want)
		}
	}
}

// Wrong tokens of one client do not lock out the others behind the same proxy, and a client cannot pass for others.
func TestGuessesBehindAProxy(t *testing.T) {
	s := rolesServer(t, Config{TrustedProxies: []string{"192.0.2.1"}})
	s.Guesses.now = func() time.Time { return s.Now() }
	h := s.Handler()
	send := func(client, token string) int {
		r, w := httptest.NewRequest(http.MethodGet, "/api/v1/retrain-requests/rr_failed", nil), httptest.NewRecorder()
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("X-Forwarded-For", client)
		h.ServeHTTP(w, r)
		return w.Code
	}
	for i := range guessBurst {
		if code := send("198.51.100."+strings.Repeat("1", i%3+1)+", 203.0.113.9", "wrong"); code != http.StatusOK {
			t.Fatalf("guess %d: %d", i, code)
		}
	}
	if code := send("203.0.113.9", tokenOf(access.Approver)); code != http.StatusTooManyRequests {
		t.Errorf("who guessed: %d", code)
	}
	if code := send("203.0.113.10", tokenOf(access.Approver)); code != http.StatusOK {
		t.Errorf("another client: %d", code)
	}
}

// linkingDesk has a link for each request.
type linkingDesk struct{ changingDesk }

func (linkingDesk) Link(context.Context, ledger.Request) (string, error) {
	return "https://drift.example/retrain/rr_failed/decide?token=t", nil
}

// A wrong token is a guess also where everyone may read, and shows no link.
func TestWrongTokensAtARequestAreGuesses(t *testing.T) {
	s := rolesServer(t, Config{})
	s.Requests = linkingDesk{changingDesk{apitest.Storied()}}
	s.Guesses.now = func() time.Time { return s.Now() }
	h := s.Handler()
	send := func(token string) *httptest.ResponseRecorder {
		r, w := httptest.NewRequest(http.MethodGet, "/api/v1/retrain-requests/rr_failed", nil), httptest.NewRecorder()
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		h.ServeHTTP(w, r)
		return w
	}
	for token, link := range map[string]bool{"": false, tokenOf(access.Viewer): false, tokenOf(access.Approver): true} {
		if w := send(token); w.Code != http.StatusOK || strings.Contains(w.Body.String(), "decide?token=") != link {
			t.Errorf("with %q: %d %s", token, w.Code, w.Body)
		}
	}
	for range guessBurst {
		if w := send("wrong"); w.Code != http.StatusOK || strings.Contains(w.Body.String(), "decide?token=") {
			t.Fatalf("a wrong token: %d %s", w.Code, w.Body)
		}
	}
	if w := send("wrong"); w.Code != http.StatusTooManyRequests {
		t.Errorf("after many wrong tokens: %d", w.Code)
	}
	if w := send(""); w.Code != http.StatusOK {
		t.Errorf("without a token: %d", w.Code)
	}
}

// Only the page of a link is recorded as a link, and only a name with a checked password.
func TestLinksAndNamesInTheAuditLog(t *testing.T) {
	s, entries := auditedServer(t)
	h := s.Handler()
	for _, tt := range []struct{ path, as, who string }{
		{"/incidents/decide", nothing, ""},
		{"/retrain/rr_failed/decide", "link", "alice"},
	} {
		later(s)
		r := httptest.NewRequest(http.MethodPost, tt.path, strings.NewReader("decision=approve&by=alice&why=new+prices&token=t"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.SetBasicAuth("mallory", "unchecked")
		h.ServeHTTP(httptest.NewRecorder(), r)
		if got := entries(); len(got) != 1 || got[0].As != tt.as || got[0].Who != tt.who {
			t.Errorf("%s: %+v", tt.path, got)
		}
	}
}
