//go:build e2e

package api

import (
	"context"
	"encoding/json"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/access"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api/apitest"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/signin"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
)

// keycloak starts a Keycloak with a realm in which the service is a client, and returns the address of the realm.
func keycloak(t *testing.T, service string) string {
	t.Helper()
	dir, at := t.TempDir(), freeAddress(t)
	_, port, _ := net.SplitHostPort(at)
	run := func(verb string) {
		cmd := exec.Command("../../../../deploy/local/keycloak/keycloak.sh", verb)
		cmd.Env = append(os.Environ(), "KEYCLOAK_DIR="+dir, "KEYCLOAK_PORT="+port)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("keycloak.sh %s: %v\n%s", verb, err, out)
		}
	}
	t.Cleanup(func() { run("stop") })
	run("start")
	person := func(name string, roles ...string) map[string]any {
		return map[string]any{
			"username": name, "enabled": true, "firstName": name, "lastName": "A", "email": name + "@example.org", "emailVerified": true,
			"credentials": []any{map[string]any{"type": "password", "value": "password of " + name}}, "realmRoles": roles,
		}
	}
	realm := map[string]any{
		"realm": "ops", "enabled": true, "sslRequired": "none",
		"roles": map[string]any{"realm": []any{map[string]any{"name": "ml"}, map[string]any{"name": "sre"}}},
		"users": []any{person("ann", "ml"), person("bea"), person("cyd", "sre")},
		"clients": []any{map[string]any{
			"clientId": "rewardwatch", "secret": "a secret of the client", "standardFlowEnabled": true, "publicClient": false,
			"redirectUris": []string{service + "/login/oidc/callback"}, "attributes": map[string]string{"pkce.code.challenge.method": "S256"},
			"protocolMappers": []any{map[string]any{
				"name": "roles", "protocol": "openid-connect", "protocolMapper": "oidc-usermodel-realm-role-mapper",
				"config": map[string]string{"claim.name": "realm_access.roles", "multivalued": "true", "id.token.claim": "true", "jsonType.label": "String"},
			}},
		}},
	}
	address := "http://" + at
	status, said := sent(t, http.DefaultClient, address+"/realms/master/protocol/openid-connect/token", url.Values{
		"grant_type": {"password"}, "client_id": {"admin-cli"}, "username": {"admin"}, "password": {"admin"},
	})
	var token struct {
		Text string `json:"access_token"`
	}
	if err := json.Unmarshal([]byte(said), &token); err != nil || token.Text == "" {
		t.Fatalf("the administrator gets %d, %v", status, err)
	}
	body, err := json.Marshal(realm)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequest(http.MethodPost, address+"/admin/realms", strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token.Text)
	r.Header.Set("Content-Type", "application/json")
	if status, said := done(t, http.DefaultClient, r); status != http.StatusCreated {
		t.Fatalf("the realm: %d %s", status, said)
	}
	return address + "/realms/ops"
}

// done sends a request, and returns status and body of the answer.
func done(t *testing.T, c *http.Client, r *http.Request) (int, string) {
	t.Helper()
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// sent sends a form, and returns status and body of the answer.
func sent(t *testing.T, c *http.Client, address string, form url.Values) (int, string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return done(t, c, r)
}

// freeAddress returns a loopback address that was free a moment ago.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }() // it served nothing
	return l.Addr().String()
}

// visitor is a browser with cookies, which follows redirects.
type visitor struct {
	*http.Client
	t       *testing.T
	service string
	last    *url.URL // of the service, with a code
}

func newVisitor(t *testing.T, service string) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	v := &visitor{t: t, service: service, Client: &http.Client{Jar: jar, Timeout: time.Minute}}
	v.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if r.URL.Query().Has("code") {
			v.last = r.URL
		}
		return nil
	}
	t.Cleanup(v.CloseIdleConnections)
	return v
}

func (v *visitor) get(path string) (int, string) {
	v.t.Helper()
	r, err := http.NewRequest(http.MethodGet, v.service+path, http.NoBody)
	if err != nil {
		v.t.Fatal(err)
	}
	return done(v.t, v.Client, r)
}

// form is where the login page of Keycloak sends what people enter.
var form = regexp.MustCompile(`<form[^>]* action="([^"]+)"`)

// logIn enters name and password at Keycloak, and returns what comes of it.
func (v *visitor) logIn(name, password string) (int, string) {
	v.t.Helper()
	status, page := v.get("/login/oidc?next=incidents")
	to := form.FindStringSubmatch(page)
	if to == nil {
		v.t.Fatalf("the login page of Keycloak is %d\n%s", status, page)
	}
	return sent(v.t, v.Client, html.UnescapeString(to[1]), url.Values{"username": {name}, "password": {password}, "credentialId": {""}})
}

// People of a real Keycloak log in with their password there, have the role of their realm role, and decide under their name.
func TestE2EPeopleOfKeycloak(t *testing.T) {
	at := freeAddress(t)
	service := "http://" + at
	cfg := Config{
		Listen: at, ExternalURL: service, RequireToken: true, AuditLog: filepath.Join(t.TempDir(), "audit.log"), OIDC: signin.Default(),
		Tokens: []Token{{Name: "root", TokenFile: testkit.WriteFile(t, tokenOf(access.Admin)), Role: access.Admin}},
	}
	cfg.OIDC.Issuer, cfg.OIDC.ClientID, cfg.OIDC.ClientSecretFile = keycloak(t, service), "rewardwatch", testkit.WriteFile(t, "a secret of the client")
	cfg.OIDC.RolesClaim, cfg.OIDC.Roles = "realm_access.roles", []signin.Mapping{{Value: "ml", Role: access.Approver}, {Value: "sre", Role: access.Admin}}
	desk := changingDesk{apitest.Storied()}
	s := quietServer(t, cfg, desk.View, func() error { return nil })
	s.Now = time.Now // as Keycloak's tokens are of now
	orders := &apitest.FixedOrders{}
	s.Orders = orders
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.provider.Close()
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})

	ann := newVisitor(t, service)
	if _, page := ann.logIn("ann", "a guess"); !strings.Contains(page, "Invalid username or password") {
		t.Errorf("a wrong password:\n%s", page)
	}
	if status, page := ann.logIn("ann", "password of ann"); status != http.StatusOK || !strings.Contains(page, "url=../../incidents") {
		t.Fatalf("ann: %d\n%s", status, page)
	}
	if _, page := ann.get("/incidents"); !strings.Contains(page, "Logged in as <b><bdi>ann</bdi>") {
		t.Errorf("ann sees\n%s", page)
	}
	sent(t, ann.Client, service+"/incidents/"+s.view.Incidents()[0].ID, url.Values{"by": {"mallory"}, "why": {"new prices"}, "decision": {"comment"}})
	if orders.Decision.By != "ann" {
		t.Errorf("a comment of ann is by %q", orders.Decision.By)
	}
	if status, _ := ann.get("/login/oidc/callback?" + ann.last.RawQuery); status != http.StatusBadRequest {
		t.Errorf("the code again: %d", status)
	}
	bea := newVisitor(t, service)
	if status, page := bea.logIn("bea", "password of bea"); status != http.StatusForbidden || !strings.Contains(page, "does not have a role") {
		t.Errorf("bea, who has no role: %d", status)
	}
	cyd := newVisitor(t, service)
	cyd.logIn("cyd", "password of cyd")
	_, page := cyd.get("/login")
	ends := regexp.MustCompile(`login/sessions/\w+`).FindAllString(page, -1)
	if len(ends) != 1 {
		t.Fatalf("cyd, an admin, can end %q:\n%s", ends, page)
	}
	sent(t, cyd.Client, service+"/"+ends[0], nil)
	if _, page := ann.get("/incidents"); strings.Contains(page, "Logged in as") {
		t.Error("the session of ann is not ended")
	}
	var log strings.Builder
	for _, e := range entriesOf(t, cfg.AuditLog) {
		log.WriteString(e.Who + " " + e.As + " " + e.What + " " + strconv.Itoa(e.Status) + "\n")
	}
	for _, want := range []string{
		"ann login GET /login/oidc/callback 200\n", "ann session POST /incidents/{id} 303\n", "bea nothing GET /login/oidc/callback 403\n", "cyd session POST /login/sessions/{id} 303\n",
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the audit log has no %q:\n%s", want, log.String())
		}
	}
}
