// Package kubejob runs trainings as Kubernetes Jobs: it creates one Job per request from a manifest, and reports how
// the Job ended, even across restarts and crashes of the service.
//
// The name of a Job follows from its request, so a Job cannot be created twice, and no state is kept besides the
// ledger and the cluster. The client implements only the four calls that this needs: create and get a Job, list its
// pods, and read the log of one. Kubernetes' own client would add 23 MB to the binary.
package kubejob

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// DefaultTimeLimit is the time limit of a Job for which the configuration sets none.
const DefaultTimeLimit = model.Duration(6 * time.Hour)

const (
	minTimeLimit = model.Duration(time.Second)
	maxTimeLimit = model.Duration(30 * 24 * time.Hour)
)

// The API server as pods reach it, and where they find their service account.
const (
	inCluster      = "https://kubernetes.default.svc"
	serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"
	// ServiceAccountCA holds the certificate authority of the API server in pods.
	ServiceAccountCA = serviceAccount + "/ca.crt"
	// serviceAccountToken is replaced by Kubernetes before it expires.
	serviceAccountToken = serviceAccount + "/token"
)

// Config is a Job of Kubernetes.
type Config struct {
	Manifest  string         `yaml:"manifest"`   // YAML file with a `batch/v1` Job
	Namespace string         `yaml:"namespace"`  // namespace of the Jobs
	URL       string         `yaml:"url"`        // API server (default: that of the service's own cluster, with its service account token)
	TokenFile string         `yaml:"token_file"` // bearer token for `url`
	TimeLimit model.Duration `yaml:"time_limit"` // time after which Kubernetes ends the Job, which then counts as failed
}

// Given reports whether any of it is configured.
func (c Config) Given() bool {
	return c.Manifest != "" || c.Namespace != "" || c.URL != "" || c.TokenFile != ""
}

// InCluster reports whether the Jobs run in the cluster of the service.
func (c Config) InCluster() bool { return c.URL == "" }

// dnsLabel matches the names of namespaces.
var dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// Check reports every error of the configuration except those of url, by key. It opens no files.
func (c Config) Check(report func(key, msg string)) {
	if c.Manifest == "" {
		report("manifest", "must name a file with a batch/v1 Job")
	}
	if !dnsLabel.MatchString(c.Namespace) {
		report("namespace", "must be the name of a namespace")
	}
	if c.URL == "" && c.TokenFile != "" {
		report("token_file", "requires url: in its own cluster, the service uses its service account token")
	}
	if c.TimeLimit < minTimeLimit || c.TimeLimit > maxTimeLimit {
		report("time_limit", fmt.Sprintf("must be between %s and %s", minTimeLimit, maxTimeLimit))
	}
}

// Jobs returns the URL at which Jobs are created. Unknown keys of a manifest are an error there.
func (c Config) Jobs() string { return c.jobs() + "?fieldValidation=Strict" }

func (c Config) jobs() string { return c.base() + "/apis/batch/v1/namespaces/" + c.Namespace + "/jobs" }
func (c Config) pods() string { return c.base() + "/api/v1/namespaces/" + c.Namespace + "/pods" }

func (c Config) base() string {
	if c.InCluster() {
		return inCluster
	}
	return strings.TrimRight(c.URL, "/")
}

// Name returns the name of the Job of a request. It is unique, because the id of the request is.
func Name(request string) string {
	return "rewardwatch-" + strings.ReplaceAll(strings.ToLower(request), "_", "-")
}
