package api

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/access"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/signin"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
)

// Config configures the HTTP server for metrics, the API and the console.
type Config struct {
	Listen             string   `yaml:"listen"`               // `host:port`, where port 0 picks a free port
	TokenFile          string   `yaml:"token_file"`           // bearer token for requests that change state. Without a token, only programs on the same machine can change state
	StatusTokenFile    string   `yaml:"status_token_file"`    // bearer token that only permits jobs to report progress
	TelemetryTokenFile string   `yaml:"telemetry_token_file"` // bearer token that only permits agents to send telemetry
	ExternalURL        string   `yaml:"external_url"`         // public URL of the service, such as `https://rewardwatch.example` (required for links in alerts and for approvals)
	AdminListen        string   `yaml:"admin_listen"`         // `host:port` of the profiler (pprof), which requires the token or login of an admin. Without tokens, only programs on the same machine can use it
	WebConfigFile      string   `yaml:"web_config_file"`      // web configuration file, in the format of the Prometheus exporter-toolkit: TLS, client certificates and passwords
	AuditLog           string   `yaml:"audit_log"`            // file to which all changes are appended, including failed attempts
	AuditTopic         string   `yaml:"audit_topic"`          // existing topic on the brokers in `ingest.kafka` to which audit log entries are sent
	RequireToken       bool     `yaml:"require_token"`        // require a token or a login to read, except `/-/healthy` and `/-/ready`
	Tokens             []Token  `yaml:"tokens"`               // tokens of users and programs, each with a role
	TrustedProxies     []string `yaml:"trusted_proxies"`      // networks of proxies, such as `10.0.0.0/8`. For their requests, the client in `X-Forwarded-For` is throttled and recorded. A trusted proxy can have 384 open connections instead of 64

	OIDC signin.Config `yaml:"oidc"` // provider with which users log in to the console
}

// Token is the token of a user or program.
type Token struct {
	Name      string      `yaml:"name"`       // holder of the token, who is recorded with decisions and in the audit log
	TokenFile string      `yaml:"token_file"` // file with the token
	Role      access.Role `yaml:"role"`       // what the holder can do: `viewer`, `operator`, `approver`, `admin`, `agents` or `jobs`
	Tenant    string      `yaml:"tenant"`     // [tenant](tenants.md) that the holder is confined to, with any role except `admin` (requires `require_token`)
}

// holders returns the holders of all configured tokens.
func (c Config) holders() access.Holders {
	var out access.Holders
	for _, shared := range []access.Holder{
		{Role: access.Admin, File: c.TokenFile}, {Role: access.Jobs, File: c.StatusTokenFile}, {Role: access.Agents, File: c.TelemetryTokenFile},
	} {
		if shared.File != "" {
			out = append(out, shared)
		}
	}
	for _, t := range c.Tokens {
		out = append(out, access.Holder{Name: t.Name, Role: t.Role, Tenant: t.Tenant, File: t.TokenFile})
	}
	return out
}

// Check reports every value that is out of range, with its path.
func (c Config) Check(report func(path, msg string)) {
	if msg := badAddress(c.Listen); msg != "" {
		report("listen", msg)
	}
	if c.AdminListen != "" {
		if msg := badAddress(c.AdminListen); msg != "" {
			report("admin_listen", msg)
		}
	}
	if c.ExternalURL != "" {
		if msg := BadExternalURL(c.ExternalURL); msg != "" {
			report("external_url", msg)
		}
	}
	if c.AuditTopic != "" && c.AuditLog == "" {
		report("audit_topic", "requires audit_log, because the entries are sent from it")
	}
	if c.StatusTokenFile != "" && c.StatusTokenFile == c.TokenFile {
		report("status_token_file", "must not be the same file as token_file, or a job would have full access")
	}
	if f := c.TelemetryTokenFile; f != "" && (f == c.TokenFile || f == c.StatusTokenFile) {
		report("telemetry_token_file", "must not be the same file as token_file or status_token_file, or an agent could do more than send telemetry")
	}
	for i, text := range c.TrustedProxies {
		if _, valid := networkOf(text); !valid {
			report(fmt.Sprintf("trusted_proxies[%d]", i), "must be a network such as 10.0.0.0/8, or an address")
		}
	}
	c.checkTokens(report)
	if c.OIDC.Confines() && !c.RequireToken {
		report("oidc.roles", "requires require_token if a tenant is set; otherwise, everyone could read everything without a login")
	}
	c.OIDC.Check(c.ExternalURL, func(path, msg string) { report("oidc."+path, msg) })
	if c.RequireToken && !c.holders().Anyone(access.Read) && !c.OIDC.Enabled() {
		report("require_token", "requires token_file, tokens or oidc; otherwise, no one could read anything")
	}
}

func (c Config) checkTokens(report func(path, msg string)) {
	names, files := map[string]bool{}, map[string]bool{c.TokenFile: true, c.StatusTokenFile: true, c.TelemetryTokenFile: true}
	for i, t := range c.Tokens {
		at := fmt.Sprintf("tokens[%d].", i)
		if err := words.CheckText("name", t.Name, words.MaxBy); err != nil {
			report(at+"name", err.Error())
		} else if names[t.Name] {
			report(at+"name", "another token has this name")
		}
		switch {
		case t.TokenFile == "":
			report(at+"token_file", "is required")
		case files[t.TokenFile]:
			report(at+"token_file", "another token has this file")
		}
		if !slices.Contains(access.Roles(), t.Role) {
			report(at+"role", "must be viewer, operator, approver, admin, agents or jobs")
		}
		switch {
		case t.Tenant != "" && t.Role == access.Admin:
			report(at+"tenant", "cannot be combined with the role admin, which applies to the whole service")
		case t.Tenant != "" && !c.RequireToken:
			report(at+"tenant", "requires require_token; otherwise, everyone could read everything without a token")
		}
		names[t.Name], files[t.TokenFile] = true, true
	}
}

// BadExternalURL returns the problem with an address from which links are built, or "" if it is valid.
func BadExternalURL(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return "must be a URL such as https://rewardwatch.example"
	case u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
		return "must consist of https:// or http://, a host and an optional path"
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "must not have a user, query or fragment, because links are built from it"
	}
	return ""
}

func badAddress(address string) string {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Sprintf("%q is not host:port", address)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Sprintf("%q is not a port between 0 and 65535", port)
	}
	return ""
}
