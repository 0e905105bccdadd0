package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/crypto/bcrypt"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api/apitest"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/webconfig"
	"github.com/rewardwatch/rewardwatch/ingest/certtest"
)

// webFiles is a directory with a web configuration file and what it names.
type webFiles struct {
	*certtest.Authority
	dir string
}

func newWebFiles(t *testing.T) webFiles {
	t.Helper()
	f := webFiles{certtest.NewAuthority(t), t.TempDir()}
	f.Issue(t, f.at("cert.pem"), f.at("key.pem"))
	return f
}

func (f webFiles) at(name string) string { return filepath.Join(f.dir, name) }

// write writes the file, with the path of the authority for @CA@.
func (f webFiles) write(t *testing.T, text string) string {
	t.Helper()
	if err := os.WriteFile(f.at("web.yml"), []byte(strings.ReplaceAll(text, "@CA@", f.File)), 0o600); err != nil {
		t.Fatal(err)
	}
	return f.at("web.yml")
}

// hashed returns the cheapest hash of a password.
func hashed(t *testing.T, password string) string {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	return string(hash)
}

// encrypted is the part of a file that turns on TLS. The paths are relative to the file.
const encrypted = "tls_server_config: {cert_file: cert.pem, key_file: key.pem}\n"

// listening starts a server for the duration of a test.
func listening(t *testing.T, cfg Config) *Server {
	t.Helper()
	cfg.Listen = "127.0.0.1:0"
	s := quietServer(t, cfg, apitest.SomeView(), nil)
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// browser returns a client that trusts the authority of the files.
func (f webFiles) browser(t *testing.T, certificates ...tls.Certificate) *http.Client {
	t.Helper()
	over := &http.Transport{
		ForceAttemptHTTP2: true, DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: f.Pool, Certificates: certificates},
	}
	t.Cleanup(over.CloseIdleConnections)
	return &http.Client{Transport: over, Timeout: time.Minute}
}

// page is an answer that was read.
type page struct {
	status, major int // of HTTP
	tls           *tls.ConnectionState
	body          string
}

func get(c *http.Client, url string) (page, error) {
	w, err := c.Get(url)
	if err != nil {
		return page{}, err
	}
	defer func() { _ = w.Body.Close() }() // it is read
	body, err := io.ReadAll(w.Body)
	return page{w.StatusCode, w.ProtoMajor, w.TLS, string(body)}, err
}

func TestServesOverTLSAsTheWebConfigurationFileSays(t *testing.T) {
	f := newWebFiles(t)
	s := listening(t, Config{WebConfigFile: f.write(t, encrypted), AdminListen: "127.0.0.1:0"})
	if s.URL() != "https://"+s.Addr() {
		t.Errorf("the address is %s", s.URL())
	}
	for _, url := range []string{s.URL() + "/metrics", s.URL() + "/", "https://" + s.AdminAddr() + "/debug/pprof/cmdline"} {
		w, err := get(f.browser(t), url)
		if err != nil {
			t.Fatal(err)
		}
		if w.status != http.StatusOK || w.major != 2 || w.tls.Version != tls.VersionTLS13 {
			t.Errorf("%s: %d over HTTP/%d", url, w.status, w.major)
		}
	}
	w, err := get(http.DefaultClient, "http://"+s.Addr()+"/metrics")
	if err != nil || w.status != http.StatusBadRequest || !strings.Contains(w.body, "HTTP request to an HTTPS server") {
		t.Errorf("http: %v, %v", w, err)
	}
	if _, err := get(http.DefaultClient, s.URL()+"/metrics"); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a client that does not know the authority: %v", err)
	}
}

func TestWithoutHTTP2InTheFileThereIsNone(t *testing.T) {
	f := newWebFiles(t)
	s := listening(t, Config{WebConfigFile: f.write(t, encrypted+"http_server_config: {http2: false}")})
	w, err := get(f.browser(t), s.URL()+"/metrics")
	if err != nil || w.major != 1 {
		t.Errorf("%v, %v", w, err)
	}
}

func TestBrowsersKeepToTLS(t *testing.T) {
	f := newWebFiles(t)
	hsts := func(s *Server, target string, encrypted bool) string {
		r := httptest.NewRequest(http.MethodGet, target, nil)
		if !encrypted {
			r.TLS = nil
		}
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		return w.Header().Get("Strict-Transport-Security")
	}
	plain := quietServer(t, Config{}, apitest.SomeView(), nil)
	short := quietServer(t, Config{WebConfigFile: f.write(t, encrypted+`http_server_config: {headers: {Strict-Transport-Security: "max-age=60"}}`)}, apitest.SomeView(), nil)
	for _, tt := range []struct {
		server    *Server
		target    string
		encrypted bool
		want      string
	}{
		{plain, "https://drift.example/", true, "max-age=31536000"},
		{plain, "http://drift.example/", false, ""},
		{plain, "https://localhost:9464/", true, ""}, // it would hold for every other program on the machine
		{plain, "https://127.0.0.1:9464/", true, ""},
		{short, "https://drift.example/", true, "max-age=60"},
	} {
		if got := hsts(tt.server, tt.target, tt.encrypted); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.target, got, tt.want)
		}
	}
}

func TestHeadersOfTheFileReplaceThoseOfTheService(t *testing.T) {
	f := newWebFiles(t)
	s := quietServer(t, Config{WebConfigFile: f.write(t, `http_server_config: {headers: {X-Frame-Options: sameorigin, Content-Security-Policy: "frame-ancestors 'self'"}}`)}, apitest.SomeView(), nil)
	for _, path := range []string{"/", "/metrics", "/api/v1/none", "/static/console.css"} {
		h := ask(s, http.MethodGet, path).Header()
		if h.Get("X-Frame-Options") != "sameorigin" || h.Get("Content-Security-Policy") != "frame-ancestors 'self'" || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, h)
		}
	}
}

// serial returns the serial number of the certificate that a new connection gets.
func serial(t *testing.T, f webFiles, s *Server) int64 {
	t.Helper()
	w, err := get(f.browser(t), s.URL()+"/-/healthy")
	if err != nil {
		t.Fatal(err)
	}
	return w.tls.PeerCertificates[0].SerialNumber.Int64()
}

func TestNewCertificatesAreServedWithoutARestart(t *testing.T) {
	f := newWebFiles(t)
	s := listening(t, Config{WebConfigFile: f.write(t, encrypted)})
	if got := serial(t, f, s); got != 2 {
		t.Fatalf("the first certificate has the number %d", got)
	}
	f.Issue(t, f.at("cert.pem"), f.at("key.next")) // the key is not yet in its place
	if got := serial(t, f, s); got != 2 {
		t.Errorf("with half of the next certificate: %d", got)
	}
	if err := os.Rename(f.at("key.next"), f.at("key.pem")); err != nil {
		t.Fatal(err)
	}
	if got := serial(t, f, s); got != 3 {
		t.Errorf("with the next certificate: %d", got)
	}
	f.Issue(t, f.at("other.pem"), f.at("other.key"))
	f.write(t, "tls_server_config: {cert_file: other.pem, key_file: other.key}")
	if got := serial(t, f, s); got != 4 {
		t.Errorf("with other names of the files: %d", got)
	}
	for _, bad := range []string{"tls_server_config: {cert_file: none, key_file: none}", "tls_server_confg: {}", ""} {
		f.write(t, bad)
		if got := serial(t, f, s); got != 4 {
			t.Errorf("with %q: %d", bad, got)
		}
	}
}

func TestClientsNeedCertificatesWhereTheFileSaysSo(t *testing.T) {
	f, others := newWebFiles(t), newWebFiles(t)
	client := func(of webFiles, name string) tls.Certificate {
		of.Issue(t, of.at("client.pem"), of.at("client.key"), name)
		pair, err := tls.LoadX509KeyPair(of.at("client.pem"), of.at("client.key"))
		if err != nil {
			t.Fatal(err)
		}
		return pair
	}
	trainer, eve, stranger := client(f, "trainer.example"), client(f, "eve.example"), client(others, "trainer.example")
	demanding := strings.Replace(encrypted, "}", ", client_auth_type: RequireAndVerifyClientCert, client_ca_file: '@CA@', client_allowed_sans: [trainer.example]}", 1)
	s := listening(t, Config{WebConfigFile: f.write(t, demanding)})
	admits := func(certificates ...tls.Certificate) bool {
		w, err := get(f.browser(t, certificates...), s.URL()+"/metrics")
		return err == nil && w.status == http.StatusOK
	}
	if admits() || admits(eve) || admits(stranger) || !admits(trainer) {
		t.Errorf("without one %v, of another name %v, of another authority %v, the right one %v", admits(), admits(eve), admits(stranger), admits(trainer))
	}
	f.write(t, strings.ReplaceAll(demanding, "@CA@", others.File)) // the authority of the clients changes
	if admits(trainer) || !admits(stranger) {
		t.Error("the next authority is not asked")
	}
}

// The file may name other clients since a session began, and a resumed session would not be checked against them.
func TestClientsCannotResumeASessionOfTheRulesBefore(t *testing.T) {
	f := newWebFiles(t)
	f.Issue(t, f.at("client.pem"), f.at("client.key"), "trainer.example")
	pair, err := tls.LoadX509KeyPair(f.at("client.pem"), f.at("client.key"))
	if err != nil {
		t.Fatal(err)
	}
	allowing := func(name string) string {
		return strings.Replace(encrypted, "}", ", client_auth_type: RequireAndVerifyClientCert, client_ca_file: '@CA@', client_allowed_sans: ["+name+"]}", 1)
	}
	s := listening(t, Config{WebConfigFile: f.write(t, allowing("trainer.example"))})
	c := f.browser(t, pair)
	c.Transport.(*http.Transport).TLSClientConfig.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	if w, err := get(c, s.URL()+"/metrics"); err != nil || w.status != http.StatusOK {
		t.Fatalf("%v, %v", w, err)
	}
	f.write(t, allowing("other.example"))
	if w, err := get(c, s.URL()+"/metrics"); err == nil {
		t.Errorf("a client whose name is allowed no more: %d, resumed %v", w.status, w.tls.DidResume)
	}
}

func TestPasswordOrTokenIsNeededWhereTheFileHasUsers(t *testing.T) {
	f := newWebFiles(t)
	token, job, agent := testkit.WriteFile(t, apitest.SomeToken+"\n"), testkit.WriteFile(t, strings.Repeat("j", 32)), testkit.WriteFile(t, strings.Repeat("a", 32))
	s := quietServer(t, Config{
		WebConfigFile: f.write(t, "basic_auth_users: {ann: '"+hashed(t, "a password")+"', bob: '"+hashed(t, "")+"'}"),
		TokenFile:     token, StatusTokenFile: job, TelemetryTokenFile: agent,
	}, apitest.SomeView(), nil)
	basic := func(user, password string) string {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.SetBasicAuth(user, password)
		return r.Header.Get("Authorization")
	}
	h := s.Handler()
	send := func(method, path, authorization string) *httptest.ResponseRecorder {
		r, w := httptest.NewRequest(method, path, nil), httptest.NewRecorder()
		r.Header.Set("Authorization", authorization)
		h.ServeHTTP(w, r)
		return w
	}
	paths := []string{"/metrics", "/", "/-/healthy", "/-/ready", "/api/v1/streams", "/static/console.css", "/login", "/none", "/api/v1/none"}
	for _, tt := range []struct {
		name, authorization string
		admitted            bool
	}{
		{"nothing", "", false},
		{"password", basic("ann", "a password"), true},
		{"an empty one", basic("bob", ""), true},
		{"wrong password", basic("ann", "b password"), false},
		{"of another user", basic("bob", "a password"), false},
		{"unknown user", basic("eve", "fakepassword"), false}, // which takes as long as a usual hash
		{"token", "Bearer " + apitest.SomeToken, true},
		{"token of jobs", "Bearer " + strings.Repeat("j", 32), false},
		{"token of agents", "Bearer " + strings.Repeat("a", 32), false},
		{"an empty token", "Bearer ", false},
		{"something else", "Digest " + apitest.SomeToken, false},
	} {
		reads := paths
		if tt.name == "unknown user" {
			reads = paths[:1]
		}
		for _, path := range reads {
			s.Guesses = newGuesses(time.Now, zerolog.Nop())
			w := send(http.MethodGet, path, tt.authorization)
			if strings.HasPrefix(tt.name, "token of ") {
				if w.Code != http.StatusForbidden {
					t.Errorf("%s for %s: %d", tt.name, path, w.Code)
				}
				continue
			}
			if (w.Code == http.StatusUnauthorized || w.Code == http.StatusForbidden) == tt.admitted || !tt.admitted && !strings.HasPrefix(w.Header().Get("WWW-Authenticate"), "Basic ") {
				t.Errorf("%s for %s: %d, %v", tt.name, path, w.Code, w.Header())
			}
		}
	}
	for _, tt := range []struct{ path, reads, refused string }{
		{"/api/v1/guards/none", "a", "j"}, // agents read what they must obey
		{"/api/v1/gates/none/v1", "j", "a"},
		{"/api/v1/retrain-requests/none", "j", "a"},
	} {
		reads, refused := send(http.MethodGet, tt.path, "Bearer "+strings.Repeat(tt.reads, 32)), send(http.MethodGet, tt.path, "Bearer "+strings.Repeat(tt.refused, 32))
		if reads.Code != http.StatusNotFound || refused.Code != http.StatusForbidden {
			t.Errorf("%s: %d and %d", tt.path, reads.Code, refused.Code)
		}
	}
	for _, tt := range []struct {
		path, authorization string
		want                int
	}{
		{"/api/v1/retrain-requests/rr_1/status", "Bearer " + strings.Repeat("j", 32), http.StatusBadRequest}, // as it has no body
		{"/api/v1/retrain-requests/rr_1/approve", "Bearer " + strings.Repeat("j", 32), http.StatusForbidden},
		{"/api/v1/telemetry", "Bearer " + strings.Repeat("a", 32), http.StatusNotFound}, // as no topic takes any
		{"/api/v1/telemetry", basic("ann", "a password"), http.StatusUnauthorized},      // a password only reads
		{"/-/reload", basic("ann", "a password"), http.StatusUnauthorized},
		{"/-/reload", "", http.StatusUnauthorized},
	} {
		s.Guesses = newGuesses(time.Now, zerolog.Nop())
		if w := send(http.MethodPost, tt.path, tt.authorization); w.Code != tt.want {
			t.Errorf("%s: %d %s", tt.path, w.Code, w.Body)
		}
	}
}

func TestStartingServiceAndProfilerAskForPasswordsToo(t *testing.T) {
	f := newWebFiles(t)
	s := quietServer(t, Config{WebConfigFile: f.write(t, "basic_auth_users: {ann: '"+hashed(t, "a password")+"'}"), AdminListen: "127.0.0.1:0", Listen: "127.0.0.1:0"}, apitest.SomeView(), nil)
	s.WaitsFor("the test")
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	for _, at := range []string{s.Addr() + "/metrics", s.Addr() + "/-/healthy", s.AdminAddr() + "/debug/pprof/cmdline"} {
		for credentials, want := range map[string]int{"": http.StatusUnauthorized, "ann:a%20password@": http.StatusOK} {
			w, err := get(http.DefaultClient, "http://"+credentials+at)
			if err != nil || w.status != want {
				t.Errorf("%s%s: %v, %v", credentials, at, w, err)
			}
		}
	}
}

// Agents and jobs whose service starts are told to wait, and are not taken for guessers.
func TestTokensOfAgentsAreNoGuessesWhileTheServiceStarts(t *testing.T) {
	f := newWebFiles(t)
	agent := strings.Repeat("a", 32)
	s := quietServer(t, Config{
		WebConfigFile: f.write(t, "basic_auth_users: {ann: '"+hashed(t, "a password")+"'}"), TelemetryTokenFile: testkit.WriteFile(t, agent),
	}, apitest.SomeView(), nil)
	s.WaitsFor("the test")
	h := s.starting()
	for _, tt := range []struct {
		method, path, token string
		want                int
	}{
		{http.MethodPost, "/api/v1/telemetry", agent, http.StatusServiceUnavailable},
		{http.MethodGet, "/metrics", agent, http.StatusForbidden},
		{http.MethodPost, "/api/v1/telemetry", "wrong", http.StatusUnauthorized},
	} {
		r, w := httptest.NewRequest(tt.method, tt.path, nil), httptest.NewRecorder()
		r.Header.Set("Authorization", "Bearer "+tt.token)
		if h.ServeHTTP(w, r); w.Code != tt.want {
			t.Errorf("%s with %q: %d %s", tt.path, tt.token, w.Code, w.Body)
		}
	}
}

func TestUsersOfTheFileChangeAtOnce(t *testing.T) {
	f := newWebFiles(t)
	s := quietServer(t, Config{WebConfigFile: f.write(t, "basic_auth_users: {ann: '"+hashed(t, "old")+"'}")}, apitest.SomeView(), nil)
	h := s.Handler()
	status := func(password string) int {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.SetBasicAuth("ann", password)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	if status("old") != http.StatusOK || status("new") != http.StatusUnauthorized {
		t.Error("the first password")
	}
	f.write(t, "basic_auth_users: {ann: '"+hashed(t, "new")+"'}")
	if status("old") != http.StatusUnauthorized || status("new") != http.StatusOK {
		t.Error("the second password")
	}
	for _, bad := range []string{"basic_auth_users: {ann: plain}", "basic_auth_user: {}", "\t"} {
		f.write(t, bad)
		if status("old") != http.StatusUnauthorized || status("new") != http.StatusOK || ask(s, http.MethodGet, "/metrics").Code != http.StatusUnauthorized {
			t.Errorf("with %q", bad)
		}
	}
	if err := os.Remove(f.at("web.yml")); err != nil {
		t.Fatal(err)
	}
	if status("old") != http.StatusUnauthorized || status("new") != http.StatusOK {
		t.Error("without the file")
	}
}

// A file that is being written is empty for a moment. Passwords and TLS end only with a reload.
func TestAFileThatIsBeingWrittenOpensNothing(t *testing.T) {
	f := newWebFiles(t)
	users := "basic_auth_users: {ann: '" + hashed(t, "a password") + "'}\n"
	for _, before := range []string{users, encrypted + users} {
		for _, now := range []string{"", "basic_auth_users:\n", encrypted, "{}"} {
			s := quietServer(t, Config{WebConfigFile: f.write(t, before)}, apitest.SomeView(), nil)
			f.write(t, now)
			if got := ask(s, http.MethodGet, "/metrics").Code; got != http.StatusUnauthorized {
				t.Errorf("%q instead of %q: %d", now, before, got)
			}
		}
	}
	s := quietServer(t, Config{WebConfigFile: f.write(t, "")}, apitest.SomeView(), nil) // as a reload opens it
	if got := ask(s, http.MethodGet, "/metrics").Code; got != http.StatusOK {
		t.Errorf("without users from the start: %d", got)
	}
}

// If a hash served as a password, a leaked file would open the service. So no user name and password may pass for other
// ones that were correct.
func TestHashesAreNoPasswords(t *testing.T) {
	f := newWebFiles(t)
	hash, other := hashed(t, "a password"), hashed(t, "of bob")
	s := quietServer(t, Config{WebConfigFile: f.write(t, "basic_auth_users: {ann: '"+hash+"', \"ann\\0"+hash+"\": '"+other+"'}")}, apitest.SomeView(), nil)
	h := s.Handler()
	status := func(user, password string) int {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.SetBasicAuth(user, password)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	const ofNoUser = "$2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi" // of fakepassword
	for _, first := range []struct {
		user, hash, password string
		want                 int
	}{
		{"ann\x00" + hash, other, "of bob", http.StatusOK},
		{"ann\x00" + hash + "\x00eve", ofNoUser, "fakepassword", http.StatusUnauthorized},
	} {
		if got := status(first.user, first.password); got != first.want {
			t.Fatalf("%q: %d", first.user, got)
		}
		password := strings.TrimPrefix(first.user+"\x00"+first.hash+"\x00"+first.password, "ann\x00"+hash+"\x00")
		if got := status("ann", password); got != http.StatusUnauthorized {
			t.Errorf("ann with %q: %d", password, got)
		}
	}
}

// A guesser is slowed down, and a scraper with the right password behind the same address is not.
func TestWrongPasswordsAreSlowedDown(t *testing.T) {
	f := newWebFiles(t)
	s := quietServer(t, Config{WebConfigFile: f.write(t, "basic_auth_users: {ann: '"+hashed(t, "a password")+"'}")}, apitest.SomeView(), nil)
	now := apitest.QuietTime
	s.Guesses.now = func() time.Time { return now }
	var got []int
	h := s.Handler()
	send := func(password string) int {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.SetBasicAuth("ann", password)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	if send("a password") != http.StatusOK {
		t.Fatal("the password is not taken")
	}
	for i := range guessBurst + 2 {
		got = append(got, send(fmt.Sprint(i)))
	}
	want := append(slices.Repeat([]int{http.StatusUnauthorized}, guessBurst), http.StatusTooManyRequests, http.StatusTooManyRequests)
	if !slices.Equal(got, want) {
		t.Errorf("guesses give %v", got)
	}
	if send("a password") != http.StatusOK {
		t.Error("the password was refused behind them")
	}
}

func TestRateOfTheFileIsKept(t *testing.T) {
	f := newWebFiles(t)
	s := quietServer(t, Config{WebConfigFile: f.write(t, "rate_limit: {interval: 1h, burst: 2}")}, apitest.SomeView(), nil)
	var got []int
	for range 3 {
		got = append(got, ask(s, http.MethodGet, "/-/healthy").Code)
	}
	if !slices.Equal(got, []int{200, 200, 429}) {
		t.Errorf("got %v", got)
	}
}

func TestBadWebConfigurationFilesAreRefused(t *testing.T) {
	f := newWebFiles(t)
	for _, bad := range []string{
		"basic_auth_users: {ann: plain}", "tls_server_config: {cert_file: cert.pem}", "tls_server_config: {cert_file: none, key_file: key.pem}",
		"tls_server_confg: {}", "http_server_config: {headers: {X-Other: a}}", "tls_server_config: {cert_file: cert.pem, key_file: key.pem, min_version: TLS9}",
	} {
		_, err := New(Config{WebConfigFile: f.write(t, bad)}, &apitest.FixedView{}, nil, nil, nil, zerolog.Nop())
		if !errors.Is(err, webconfig.ErrBad) || !strings.Contains(err.Error(), f.at("web.yml")) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// An address that others reach is warned of as far as the file does not protect it.
func TestWarningsOfOpenAddresses(t *testing.T) {
	f := newWebFiles(t)
	users := "basic_auth_users: {ann: '" + hashed(t, "a password") + "'}\n"
	for name, tt := range map[string]struct {
		text         string // of the file, "-" for none
		read, listen bool   // the data, the tokens and passwords
	}{
		"no file":       {"-", true, true},
		"TLS":           {encrypted, true, false},
		"passwords":     {users, false, true},
		"both":          {encrypted + users, false, false},
		"certificates":  {strings.Replace(encrypted, "}", ", client_auth_type: RequireAndVerifyClientCert, client_ca_file: '@CA@'}", 1), false, false},
		"if they come":  {strings.Replace(encrypted, "}", ", client_auth_type: VerifyClientCertIfGiven, client_ca_file: '@CA@'}", 1), true, false},
		"an empty file": {"", true, true},
	} {
		var log strings.Builder
		cfg := Config{TokenFile: testkit.WriteFile(t, apitest.SomeToken)}
		if tt.text != "-" {
			cfg.WebConfigFile = f.write(t, tt.text)
		}
		s, err := New(cfg, &apitest.FixedView{}, nil, nil, nil, zerolog.New(&log))
		if err != nil {
			t.Fatal(err)
		}
		s.warnOfOthers("http", &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 9464})
		if strings.Contains(log.String(), "can read the data") != tt.read || strings.Contains(log.String(), "without TLS") != tt.listen {
			t.Errorf("%s: %s", name, log.String())
		}
	}
}
