package signin

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/access"
)

// Config is the OpenID Connect provider with which users log in to the console. Rewardwatch uses the authorization code
// flow with PKCE. Register the service with the provider as a client with the redirect URI
// `EXTERNAL_URL/login/oidc/callback`. The secret is read for each login, and the service can start while the provider is
// down. All endpoints of the provider must use HTTPS, unless they and the issuer have loopback addresses. Claims are read
// from the ID token, or from the userinfo endpoint if the token lacks them. If a claim is `email`, users whose address is
// not verified (`email_verified: false`) cannot log in. The role is assigned at login. Each instance has its own
// sessions. Sessions survive a restart, unless a key other than `title`, `client_secret_file` and `ca_file` has changed.
// In a cluster, sessions end when their instance stops.
type Config struct {
	Issuer           string         `yaml:"issuer"`             // URL of the provider, such as `https://keycloak.example/realms/ops`. Requires HTTPS, except for a loopback address
	Title            string         `yaml:"title"`              // name of the provider on the login page
	ClientID         string         `yaml:"client_id"`          // client ID registered with the provider
	ClientSecretFile string         `yaml:"client_secret_file"` // file with the client secret (not set for a public client)
	CAFile           string         `yaml:"ca_file"`            // PEM file with CA certificates (default: the system's CAs)
	Scopes           []string       `yaml:"scopes"`             // scopes to request in addition to `openid`
	NameClaim        string         `yaml:"name_claim"`         // claim with the name that is recorded with decisions and in the audit log. Choose a claim that users cannot change themselves
	RolesClaim       string         `yaml:"roles_claim"`        // claim with the groups or roles of a user. Dots separate nested keys, as in `realm_access.roles`
	Roles            []Mapping      `yaml:"roles"`              // roles of those who have a value; the one that permits most counts, and no one else can log in
	Session          model.Duration `yaml:"session"`            // how long a login lasts, at most `7d`
}

// Mapping assigns a role to everyone with a given value in the roles claim.
type Mapping struct {
	Value string      `yaml:"value"` // value in the roles claim, such as the name of a group
	Role  access.Role `yaml:"role"`  // `viewer`, `operator`, `approver` or `admin`

	Tenant string `yaml:"tenant"` // [tenant](tenants.md) that they are confined to, with any role except `admin` (requires `http.require_token`)
}

// Default returns the defaults for a provider. No provider is configured.
func Default() Config {
	return Config{
		Title: "single sign-on", Scopes: []string{"profile", "email"}, NameClaim: "preferred_username", RolesClaim: "groups",
		Session: model.Duration(12 * time.Hour),
	}
}

// Enabled reports whether a provider is configured.
func (c Config) Enabled() bool { return c.Issuer != "" }

// Terms identifies the settings that decide who may log in, with which name and role, and for how long. It does not
// reveal them.
func (c Config) Terms() string {
	text, err := json.Marshal([]any{c.Issuer, c.ClientID, c.Scopes, c.NameClaim, c.RolesClaim, c.Roles, c.Session})
	if err != nil {
		panic(err) // it consists of texts, lists of texts, and a number
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

// Confines reports whether some people are confined to a tenant.
func (c Config) Confines() bool {
	return slices.ContainsFunc(c.Roles, func(m Mapping) bool { return m.Tenant != "" })
}

// rising lists the roles of people in ascending order of rights.
var rising = []access.Role{access.Viewer, access.Operator, access.Approver, access.Admin}

// Check reports every value that is out of its range, with its path. external is the address of the service.
func (c Config) Check(external string, report func(path, msg string)) {
	if !c.Enabled() {
		if c.ClientID != "" || c.ClientSecretFile != "" || len(c.Roles) > 0 {
			report("issuer", "is required")
		}
		return
	}
	if msg := badIssuer(c.Issuer); msg != "" {
		report("issuer", msg)
	}
	if msg := badIssuer(external); msg != "" {
		report("issuer", "requires http.external_url, to which the provider redirects the browser: "+msg)
	}
	for key, value := range map[string]string{"client_id": c.ClientID, "name_claim": c.NameClaim, "roles_claim": c.RolesClaim, "title": c.Title} {
		if strings.TrimSpace(value) == "" {
			report(key, "is required")
		}
	}
	if d := time.Duration(c.Session); d < time.Minute || d > 7*24*time.Hour {
		report("session", "must be between 1m and 7d")
	}
	if len(c.Roles) == 0 {
		report("roles", "must be set; otherwise, no one could log in")
	}
	for i, m := range c.Roles {
		if m.Value == "" {
			report(fmt.Sprintf("roles[%d].value", i), "is required")
		}
		if !slices.Contains(rising, m.Role) {
			report(fmt.Sprintf("roles[%d].role", i), "must be viewer, operator, approver or admin")
		}
		if m.Tenant != "" && m.Role == access.Admin {
			report(fmt.Sprintf("roles[%d].tenant", i), "cannot be combined with the role admin, which applies to the whole service")
		}
	}
}

// badIssuer returns the problem with an address that receives codes and tokens, or "".
func badIssuer(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "must be a URL such as https://keycloak.example/realms/ops"
	}
	if !encrypted(u) {
		return "must use https, except for a loopback address"
	}
	return ""
}

// encrypted reports whether data that is sent to an address cannot be read on the network.
func encrypted(u *url.URL) bool {
	return u.Hostname() != "" && (u.Scheme == "https" || u.Scheme == "http" && loopback(u))
}

func loopback(u *url.URL) bool {
	at, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && at.IsLoopback()
}
