package api

import (
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api/apitest"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// A person logs in and decides in the console, over a real ledger and a real connection.
func TestDecidingInTheConsole(t *testing.T) {
	r := newDeskRig(t)
	id := r.request(ledger.StateAwaitingApproval)
	served := httptest.NewServer(r.Handler())
	defer served.Close()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	submit := func(path string, form url.Values) (int, string) {
		t.Helper()
		answer, err := browser.PostForm(served.URL+path, form)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(body)
	}
	form := url.Values{"decision": {"approve"}, "seen": {"1"}, "by": {"ann"}, "why": {"the new prices are known"}}
	if code, body := submit("/retrain/"+id, form); code != http.StatusUnauthorized || !strings.Contains(body, "Log in") {
		t.Errorf("without a login it gives %d %s", code, body)
	}
	if code, body := submit("/login", url.Values{"token": {apitest.SomeToken}, "next": {"retrain/" + id}}); code != http.StatusOK || !strings.Contains(body, `value="approve"`) {
		t.Fatalf("the login leads to %d %s", code, body)
	}
	if code, body := submit("/retrain/"+id, form); code != http.StatusOK || !strings.Contains(body, "by <b><bdi>ann</bdi></b>") {
		t.Errorf("approving leads to %d %s", code, body)
	}
	if q, change := r.last(id); q.State != ledger.StateOpen || change.By != "ann" || change.Reason != "the new prices are known" {
		t.Errorf("request %+v with last change %+v", q, change)
	}
	// The cookie opens the forms of the console and nothing of the API.
	for _, path := range []string{"/api/v1/retrain-requests/" + id + "/reject", "/-/reload"} {
		if code, _ := submit(path, nil); code != http.StatusUnauthorized {
			t.Errorf("%s gives %d", path, code)
		}
	}
	if code, body := submit("/retrain/"+id, url.Values{"decision": {"reject"}, "seen": {"1"}, "by": {"bob"}, "why": {"no"}}); code != http.StatusConflict {
		t.Errorf("what is decided is rejected: %d %s", code, body)
	}
}

// Without a token, a browser on the machine decides; a page that has pointed its own name here does not, and no one does through a proxy.
func TestConsoleWithoutATokenIsForThisMachine(t *testing.T) {
	r := newDeskRig(t)
	r.cfg.TokenFile = ""
	r.holders = r.cfg.holders()
	served := httptest.NewServer(r.Handler())
	defer served.Close()
	_, port, err := net.SplitHostPort(served.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	id := r.request(ledger.StateAwaitingApproval)
	form := url.Values{"decision": {"reject"}, "seen": {"1"}, "by": {"ann"}, "why": {"no"}}.Encode()
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	for _, tt := range []struct {
		name, host string
		headers    map[string]string
		code       int
	}{
		{"a rebound name", "evil.example:" + port, map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": "http://evil.example:" + port}, 403},
		{"another site", "", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		{"another port of this machine", "", map[string]string{"Sec-Fetch-Site": "same-site"}, 403},
		{"another origin", "", map[string]string{"Origin": "https://evil.example"}, 403},
		{"a proxy", "", map[string]string{"X-Forwarded-For": "203.0.113.9"}, 403},
		{"the page itself", "localhost:" + port, map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": "http://localhost:" + port}, 303},
	} {
		q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, served.URL+"/retrain/"+id, strings.NewReader(form))
		if err != nil {
			t.Fatal(err)
		}
		q.Host = tt.host
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for key, value := range tt.headers {
			q.Header.Set(key, value)
		}
		w, err := client.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		_ = w.Body.Close()
		q2, _ := r.last(id)
		if w.StatusCode != tt.code || (q2.State == ledger.StateRejected) != (tt.code == 303) {
			t.Errorf("%s: %d, and the request is %s", tt.name, w.StatusCode, q2.State)
		}
	}
}
