package cli

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/signin/signintest"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/deploy/deploytest"
)

// A person who has logged in at the provider remains logged in when the service is killed, until they log out.
func TestSignInSurvivesAKill(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	t.Parallel()
	issuer := signintest.New(t, map[string]any{"preferred_username": "ann", "groups": []string{"ml"}})
	cfgFile, _ := localConfig(t)
	at := "127.0.0.1:" + deploytest.FreePorts(t, 1)[0]
	section := fmt.Sprintf(`
http:
  listen: %q
  external_url: "http://%s"
  require_token: true
  oidc: {issuer: %q, client_id: %s, client_secret_file: %q, roles: [{value: ml, role: approver}]}
`, at, at, issuer.URL, signintest.Client, testkit.WriteFile(t, signintest.Secret))
	text, _, _ := strings.Cut(testkit.Read(t, cfgFile), "\nhttp:")
	if err := os.WriteFile(cfgFile, []byte(text+section), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startService(t, cfgFile)
	b := visitor{t: t, at: "http://" + at, cookies: map[string]string{}}
	testkit.Eventually(t, "the way to the provider", func() bool { status, _ := b.send(http.MethodGet, "/login/oidc"); return status == http.StatusSeeOther })
	_, provider := b.send(http.MethodGet, "/login/oidc")
	b.send(http.MethodGet, "/login/oidc/callback?"+issuer.Authorize(provider).Encode())
	if status := b.read(); status != http.StatusOK {
		t.Fatalf("after the login: %d", status)
	}
	p.kill()
	p = startService(t, cfgFile)
	if status := b.read(); status != http.StatusOK {
		t.Errorf("after the kill: %d", status)
	}
	copied := b.cookies["rewardwatch_session"]
	b.send(http.MethodPost, "/logout")
	p.kill()
	p = startService(t, cfgFile)
	b.cookies["rewardwatch_session"] = copied
	if status := b.read(); status != http.StatusUnauthorized {
		t.Errorf("after the logout and a kill: %d", status)
	}
	p.interrupt(t)
}

// visitor is a browser that does not follow redirects.
type visitor struct {
	t       *testing.T
	at      string
	cookies map[string]string
}

// read requests a page that needs a login, once the service responds, and returns the status.
func (v visitor) read() (status int) {
	v.t.Helper()
	testkit.Eventually(v.t, "the service", func() bool {
		status, _ = v.send(http.MethodGet, "/api/v1/incidents")
		return status != http.StatusServiceUnavailable
	})
	return status
}

// send returns the status and the location of the response.
func (v visitor) send(method, path string) (status int, location string) {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), method, v.at+path, http.NoBody)
	if err != nil {
		v.t.Fatal(err)
	}
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for name, value := range v.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		v.t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil {
		v.t.Error(err)
	}
	for _, c := range answer.Cookies() {
		if v.cookies[c.Name] = c.Value; c.MaxAge < 0 {
			delete(v.cookies, c.Name)
		}
	}
	return answer.StatusCode, answer.Header.Get("Location")
}
