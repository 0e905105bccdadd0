package httpclient_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/certtest"
	"github.com/rewardwatch/rewardwatch/ingest/httpclient"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server answers with the Authorization header and the serial number of the client's certificate. It requires a
// certificate of the authority.
func server(t *testing.T, of *certtest.Authority) string {
	t.Helper()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "server.pem"), filepath.Join(dir, "server.key")
	of.Issue(t, cert, key)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("Authorization")+" "+r.TLS.PeerCertificates[0].SerialNumber.String())
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: of.Pool, ClientAuth: tls.RequireAndVerifyClientCert}
	s.Config.ErrorLog = nil
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}

func transport(cfg *tls.Config) http.RoundTripper {
	return &http.Transport{TLSClientConfig: cfg, DisableKeepAlives: true}
}

// get returns the response to a request.
func get(t *testing.T, by http.RoundTripper, address string) (string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := by.RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	text, err := io.ReadAll(answer.Body)
	return string(text), err
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A client with the private authority and a certificate is accepted. Replaced files apply from the next request on. An
// unreadable file makes requests fail.
func TestClientFollowsItsFiles(t *testing.T) {
	first, second, dir := certtest.NewAuthority(t), certtest.NewAuthority(t), t.TempDir()
	at, other := server(t, first), server(t, second)
	with := ingest.Certificates{CAFile: filepath.Join(dir, "ca.pem"), CertFile: filepath.Join(dir, "client.pem"), KeyFile: filepath.Join(dir, "client.key")}
	use := func(a *certtest.Authority) {
		text, err := os.ReadFile(a.File)
		if err != nil {
			t.Fatal(err)
		}
		write(t, with.CAFile, string(text))
		a.Issue(t, with.CertFile, with.KeyFile)
	}
	use(first)
	secret := filepath.Join(dir, "token")
	write(t, secret, "first\n")
	by, err := httpclient.Encrypted(with, transport)
	if err != nil {
		t.Fatal(err)
	}
	if by, err = (httpclient.Auth{TokenFile: secret}).Wrap(by); err != nil {
		t.Fatal(err)
	}
	if got, err := get(t, by, at); got != "Bearer first 3" {
		t.Errorf("the answer is %q, %v", got, err)
	}
	if got, err := get(t, by, other); err == nil {
		t.Errorf("a server of another authority answers %q", got)
	}
	use(second)
	write(t, secret, "second")
	if got, err := get(t, by, other); got != "Bearer second 3" {
		t.Errorf("after the files were replaced, the answer is %q, %v", got, err)
	}
	if got, err := get(t, by, at); err == nil {
		t.Errorf("a server of the authority before answers %q", got)
	}
	write(t, secret, "two\nlines")
	if got, err := get(t, by, other); err == nil || strings.Contains(err.Error(), "two") {
		t.Errorf("with a damaged token, the answer is %q, %v", got, err)
	}
}

func TestClientWithoutTrust(t *testing.T) {
	authority, dir := certtest.NewAuthority(t), t.TempDir()
	at := server(t, authority)
	cert, key := filepath.Join(dir, "client.pem"), filepath.Join(dir, "client.key")
	authority.Issue(t, cert, key)
	password := filepath.Join(dir, "password")
	write(t, password, "p w\n")
	for name, tt := range map[string]struct {
		tls  ingest.Certificates
		auth httpclient.Auth
		want string // "" if the request fails
	}{
		"no authority":              {ingest.Certificates{CertFile: cert, KeyFile: key}, httpclient.Auth{}, ""},
		"no certificate":            {ingest.Certificates{CAFile: authority.File}, httpclient.Auth{}, ""},
		"another name":              {ingest.Certificates{CAFile: authority.File, CertFile: cert, KeyFile: key, ServerName: "other.example"}, httpclient.Auth{}, ""},
		"a name of the server":      {ingest.Certificates{CAFile: authority.File, CertFile: cert, KeyFile: key, ServerName: "localhost"}, httpclient.Auth{}, " 3"},
		"without verification":      {ingest.Certificates{InsecureSkipVerify: true, CertFile: cert, KeyFile: key}, httpclient.Auth{}, " 3"},
		"a user and their password": {ingest.Certificates{CAFile: authority.File, CertFile: cert, KeyFile: key}, httpclient.Auth{Username: "ann", PasswordFile: password}, "Basic YW5uOnAgdw== 3"},
	} {
		by, err := httpclient.Encrypted(tt.tls, transport)
		if err != nil {
			t.Fatal(err)
		}
		if by, err = tt.auth.Wrap(by); err != nil {
			t.Fatal(err)
		}
		if got, err := get(t, by, at); got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestUnusableFilesAreRefused(t *testing.T) {
	authority, dir := certtest.NewAuthority(t), t.TempDir()
	cert, key := filepath.Join(dir, "client.pem"), filepath.Join(dir, "client.key")
	authority.Issue(t, cert, key)
	none, empty, shared := filepath.Join(dir, "none"), filepath.Join(dir, "empty"), filepath.Join(dir, "shared")
	write(t, empty, "")
	authority.Issue(t, cert, shared)
	if err := os.Chmod(shared, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, with := range map[string]ingest.Certificates{
		"no such authority":  {CAFile: none},
		"no authority":       {CAFile: empty},
		"no such key":        {CertFile: cert, KeyFile: none},
		"the key of another": {CertFile: cert, KeyFile: key},
		"a key for all":      {CertFile: cert, KeyFile: shared},
	} {
		if by, err := httpclient.Encrypted(with, transport); err == nil {
			t.Errorf("%s: %v", name, by)
		}
	}
	for name, with := range map[string]httpclient.Auth{
		"no such token": {TokenFile: none}, "an empty token": {TokenFile: empty},
		"a token for all": {TokenFile: shared}, "an empty password": {Username: "ann", PasswordFile: empty},
	} {
		if _, err := with.Wrap(transport(nil)); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestChecks(t *testing.T) {
	for want, check := range map[string]func(func(key, msg string)){
		"cert_file":            ingest.Certificates{CertFile: "a"}.Check,
		"insecure_skip_verify": ingest.Certificates{CAFile: "a", InsecureSkipVerify: true}.Check,
		"password_file":        httpclient.Auth{Username: "ann"}.Check,
		"token_file":           httpclient.Auth{TokenFile: "a", Username: "ann", PasswordFile: "b"}.Check,
		"":                     ingest.Certificates{CAFile: "a", CertFile: "b", KeyFile: "c"}.Check,
	} {
		got := ""
		check(func(key, _ string) { got += key })
		if got != want {
			t.Errorf("%q is reported, want %q", got, want)
		}
	}
}
