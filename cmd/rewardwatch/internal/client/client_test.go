package client

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/ingest/certtest"
)

// answering serves over TLS, to clients with a certificate of the authority, how they have identified themselves.
func answering(t *testing.T, a *certtest.Authority, ask tls.ClientAuthType) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(`{"said":"` + r.Header.Get("Authorization") + `"}`)) // the client fails if it does not arrive
	}))
	dir := t.TempDir()
	a.Issue(t, filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientCAs: a.Pool, ClientAuth: ask}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// said sends a request to a service with the given flags, and returns how it was identified.
func said(t *testing.T, flags ...string) (string, error) {
	t.Helper()
	var c Client
	cmd := &cobra.Command{}
	c.Flags(cmd)
	if err := cmd.ParseFlags(flags); err != nil {
		t.Fatal(err)
	}
	var answer struct{ Said string }
	err := c.Get(t.Context(), &answer, "streams")
	return answer.Said, err
}

func TestServicesOverTLS(t *testing.T) {
	a := certtest.NewAuthority(t)
	cert, key := filepath.Join(t.TempDir(), "client.pem"), filepath.Join(t.TempDir(), "client.key")
	a.Issue(t, cert, key)
	open, demanding := answering(t, a, tls.NoClientCert), answering(t, a, tls.RequireAndVerifyClientCert)
	plain := strings.Replace(open.URL, "https://", "http://", 1)
	secret := testkit.WriteFile(t, "a password\n")
	for _, tt := range []struct {
		flags     []string
		said, why string // empty for no error
	}{
		{[]string{"--server", open.URL, "--ca-file", a.File}, "", ""},
		{[]string{"--server", open.URL, "--ca-file", a.File, "--token-file", secret}, "Bearer a password", ""},
		{[]string{"--server", open.URL, "--ca-file", a.File, "--user", "ann", "--password-file", secret}, "Basic YW5uOmEgcGFzc3dvcmQ=", ""},
		{[]string{"--server", demanding.URL, "--ca-file", a.File, "--cert-file", cert, "--key-file", key}, "", ""},
		{[]string{"--server", demanding.URL, "--ca-file", a.File}, "", "certificate required"},
		{[]string{"--server", open.URL}, "", "--ca-file"},
		{[]string{"--server", plain}, "", "begin --server with https://"},
		{[]string{"--server", open.URL, "--ca-file", secret}, "", "contains no PEM certificate"},
		{[]string{"--server", open.URL, "--ca-file", a.File, "--cert-file", cert}, "", "--key-file"},
		{[]string{"--server", open.URL, "--ca-file", a.File, "--user", "ann"}, "", "--user requires --password-file"},
	} {
		got, err := said(t, tt.flags...)
		if (err == nil) != (tt.why == "") || err != nil && !strings.Contains(err.Error(), tt.why) || got != tt.said {
			t.Errorf("%q: %q, %v", tt.flags, got, err)
		}
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	a := certtest.NewAuthority(t)
	to := answering(t, a, tls.NoClientCert)
	from := httptest.NewServer(http.RedirectHandler(to.URL+"/api/v1/streams", http.StatusTemporaryRedirect))
	defer from.Close()
	want := "the service redirects to " + to.URL + "/api/v1/streams: set --server to its address"
	if got, err := said(t, "--server", from.URL, "--ca-file", a.File); err == nil || err.Error() != want {
		t.Errorf("%q, %v, want %s", got, err, want)
	}
}

// Anyone can name policies. In an address, the names "." and ".." would lead to another resource.
func TestNamesThatLeadElsewhere(t *testing.T) {
	asked := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.EscapedPath()
		_, _ = w.Write([]byte("{}")) // the client fails if it does not arrive
	}))
	defer s.Close()
	var c Client
	cmd := &cobra.Command{}
	c.Flags(cmd)
	if err := cmd.ParseFlags([]string{"--server", s.URL}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a/b": "/api/v1/policies/a%2Fb/history", "...": "/api/v1/policies/.../history", ".": "", "..": ""} {
		asked = ""
		err := c.Get(t.Context(), &struct{}{}, "policies", name, "history")
		if asked != want || (err != nil) != (want == "") {
			t.Errorf("%q: asked %q, %v, want %q", name, asked, err, want)
		}
	}
}
