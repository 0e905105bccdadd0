package alerts

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/httpclient"
)

// maxTimeout bounds the timeout of a push: shutdown waits for the push in progress and one more.
const maxTimeout = model.Duration(time.Minute)

// AlertmanagerConfig configures the Alertmanagers that receive incidents and telemetry faults.
type AlertmanagerConfig struct {
	URLs         []string            `yaml:"urls"`          // addresses of all Alertmanagers in the cluster, without `/api/v2`. If empty, nothing is pushed
	Timeout      model.Duration      `yaml:"timeout"`       // time limit for each push
	TLS          ingest.Certificates `yaml:"tls"`           // for Alertmanagers over HTTPS; files that change are read again
	TokenFile    string              `yaml:"token_file"`    // bearer token
	Username     string              `yaml:"username"`      // user name for basic authentication
	PasswordFile string              `yaml:"password_file"` // password for that user
}

// DefaultAlertmanagerConfig returns a configuration that pushes nothing.
func DefaultAlertmanagerConfig() AlertmanagerConfig {
	return AlertmanagerConfig{Timeout: model.Duration(10 * time.Second)}
}

// Check reports every invalid value, with its path.
func (c AlertmanagerConfig) Check(report func(path, msg string)) {
	for i, raw := range c.URLs {
		path := fmt.Sprintf("urls[%d]", i)
		if msg := badURL(raw); msg != "" {
			report(path, msg)
		}
		if slices.Index(c.URLs, raw) < i {
			report(path, "is listed twice")
		}
	}
	c.TLS.Check(func(key, msg string) { report("tls."+key, msg) })
	c.auth().Check(report)
	if c.Timeout <= 0 || c.Timeout > maxTimeout {
		report("timeout", "must be greater than 0 and at most 1m")
	}
}

func (c AlertmanagerConfig) auth() httpclient.Auth {
	return httpclient.Auth{TokenFile: c.TokenFile, Username: c.Username, PasswordFile: c.PasswordFile}
}

// transport returns the transport for requests to the Alertmanagers. It fails if a secret or a certificate cannot be
// used.
func (c AlertmanagerConfig) transport() (http.RoundTripper, error) {
	encrypted, err := httpclient.Encrypted(c.TLS, func(cfg *tls.Config) http.RoundTripper {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.TLSClientConfig = cfg
		return t
	})
	if err != nil {
		return nil, err
	}
	return c.auth().Wrap(encrypted)
}

// badURL returns what is wrong with the URL of an Alertmanager, or "". It never repeats the URL, which may contain a
// password.
func badURL(raw string) string {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return "must be a URL such as http://alertmanager:9093"
	case u.Scheme != "http" && u.Scheme != "https":
		return "must begin with http:// or https://"
	case u.Host == "":
		return "must name a host"
	case u.User != nil:
		return "must not contain a user or password"
	case u.RawQuery != "" || u.Fragment != "":
		return "must not have a query or fragment"
	default:
		return ""
	}
}
