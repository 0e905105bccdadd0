package alerts

import (
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/prometheus/common/model"
)

// maxTimeout bounds the timeout of a push: a stop waits for the push under way and for one more.
const maxTimeout = model.Duration(time.Minute)

// AlertmanagerConfig configures the Alertmanagers that receive incidents and telemetry faults.
type AlertmanagerConfig struct {
	URLs    []string       `yaml:"urls"`    // every Alertmanager of the cluster, without /api/v2; none: nothing is pushed
	Timeout model.Duration `yaml:"timeout"` // time limit for one push
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
	if c.Timeout <= 0 || c.Timeout > maxTimeout {
		report("timeout", "must be greater than 0 and at most 1m")
	}
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
