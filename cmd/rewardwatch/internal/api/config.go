package api

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
)

// Config configures the server of metrics, API and console.
type Config struct {
	Listen             string `yaml:"listen"`               // host:port; port 0 picks a free one
	TokenFile          string `yaml:"token_file"`           // bearer token for requests that change state; without one, only programs on the same machine can change state
	StatusTokenFile    string `yaml:"status_token_file"`    // bearer token that only permits jobs to report progress
	TelemetryTokenFile string `yaml:"telemetry_token_file"` // bearer token that only permits agents to send telemetry
	ExternalURL        string `yaml:"external_url"`         // public URL of the service, such as https://rewardwatch.example; required for links in alerts and for approvals
	AdminListen        string `yaml:"admin_listen"`         // host:port of the profiler (pprof)
	WebConfigFile      string `yaml:"web_config_file"`      // web configuration file of Prometheus' exporter-toolkit: TLS, client certificates and passwords
	AuditLog           string `yaml:"audit_log"`            // file to which every change by a person or program is appended, and every failed attempt
}

// Check reports every value that is out of its range, with its path.
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
	if c.StatusTokenFile != "" && c.StatusTokenFile == c.TokenFile {
		report("status_token_file", "must be a different file than token_file, or a job would have full access")
	}
	if f := c.TelemetryTokenFile; f != "" && (f == c.TokenFile || f == c.StatusTokenFile) {
		report("telemetry_token_file", "must be a different file than token_file and status_token_file, or an agent could do more than send telemetry")
	}
}

// BadExternalURL returns what is wrong with an address that links are built from, or "" if it is valid.
func BadExternalURL(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return "must be a URL such as https://rewardwatch.example"
	case u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
		return "must consist of https:// or http://, a host and an optional path"
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "must not have a user, query or fragment: links are made from it"
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
