package alerts

import (
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/prometheus/common/model"
)

// maxTimeout bounds a push: a stop waits for one that is under way, and for one more.
const maxTimeout = model.Duration(time.Minute)

// AlertmanagerConfig says where incidents and telemetry faults are pushed to. Without URLs nothing is pushed.
type AlertmanagerConfig struct {
	URLs    []string       `yaml:"urls"`    // of every Alertmanager of the cluster, each without /api/v2
	Timeout model.Duration `yaml:"timeout"` // of one push
}

// DefaultAlertmanagerConfig pushes to nobody.
func DefaultAlertmanagerConfig() AlertmanagerConfig {
	return AlertmanagerConfig{Timeout: model.Duration(10 * time.Second)}
}

// Check reports every value that cannot be, with its path.
func (c AlertmanagerConfig) Check(report func(path, msg string)) {
	for i, raw := range c.URLs {
		path := fmt.Sprintf("urls[%d]", i)
		if msg := badURL(raw); msg != "" {
			report(path, msg)
		}
		if slices.Index(c.URLs, raw) < i {
			report(path, "stands here twice")
		}
	}
	if c.Timeout <= 0 || c.Timeout > maxTimeout {
		report("timeout", "must be above 0 and at most 1m")
	}
}

// badURL says what is wrong with the URL of an Alertmanager; "" where nothing is. It never repeats the URL, which may
// hold a password.
func badURL(raw string) string {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return "is not a URL"
	case u.Scheme != "http" && u.Scheme != "https":
		return "must begin with http:// or https://"
	case u.Host == "":
		return "has no host"
	case u.User != nil:
		return "must not hold a user or password"
	case u.RawQuery != "" || u.Fragment != "":
		return "must not have a query or fragment"
	default:
		return ""
	}
}
