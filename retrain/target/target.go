// Package target delivers requests to the configured services, each in its own protocol.
//
// For a new target, write its section, checks and adapter as in airflow.go. Add it to Target and kinds, a double of the
// receiver to services_test.go, and its mistakes to testdata/targets.bad.yml of cmd/rewardwatch/internal/config, whose
// tests have the flag -update.
package target

import (
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain/command"
)

const (
	// DefaultTimeout is the default of Target.Timeout.
	DefaultTimeout = model.Duration(15 * time.Second)
	minTimeout     = model.Duration(100 * time.Millisecond)
	// MaxTimeout bounds Target.Timeout.
	MaxTimeout = model.Duration(time.Minute)

	// DefaultCompletesWithin is the default of Target.CompletesWithin.
	DefaultCompletesWithin = model.Duration(24 * time.Hour)
	minCompletesWithin     = model.Duration(time.Minute)

	// jobMargin is how long the pods of a Job may take to end after its time limit.
	jobMargin = model.Duration(5 * time.Minute)
)

// Target is a receiver of requests: a webhook, or one of the services below.
type Target struct {
	Name            string              `yaml:"name"`             // name by which triggers refer to the target
	Webhook         string              `yaml:"webhook"`          // URL of a Standard Webhooks receiver
	SecretFile      string              `yaml:"secret_file"`      // file with the `whsec_` secrets of the webhook, one per line, newest first
	Timeout         model.Duration      `yaml:"timeout"`          // time limit for each attempt
	CompletesWithin model.Duration      `yaml:"completes_within"` // time after which a request ends if its job sends no reports
	AllowPrivate    bool                `yaml:"allow_private"`    // permit private, loopback and link-local addresses
	TLS             ingest.Certificates `yaml:"tls"`              // for targets over HTTPS; files that change are read again

	GitHub      GitHub      `yaml:"github"`
	GitLab      GitLab      `yaml:"gitlab"`
	Airflow     Airflow     `yaml:"airflow"`
	ArgoEvents  ArgoEvents  `yaml:"argo_events"`
	Jenkins     Jenkins     `yaml:"jenkins"`
	CloudEvents CloudEvents `yaml:"cloudevents"`
	Kafka       Kafka       `yaml:"kafka"`
	Command     Command     `yaml:"command"`
	Kubernetes  Kubernetes  `yaml:"kubernetes"`
}

// UnmarshalYAML reads a target over its defaults.
func (t *Target) UnmarshalYAML(unmarshal func(any) error) error {
	type plain Target
	*t = Target{Timeout: DefaultTimeout, CompletesWithin: DefaultCompletesWithin, Command: defaultCommand(), Kubernetes: defaultKubernetes()}
	return unmarshal((*plain)(t))
}

// Check reports what is wrong with a target except its name. at is its path.
func (t Target) Check(at string, report func(path, msg string)) {
	t.checkKind(at, report)
	t.TLS.Check(func(key, msg string) { report(at+".tls."+key, msg) })
	if t.TLS != (ingest.Certificates{}) && (t.Kafka.given() || t.Command.given()) {
		report(at+".tls", "has no effect on this target: it applies only to targets over HTTPS")
	}
	if t.Timeout < minTimeout || t.Timeout > MaxTimeout {
		report(at+".timeout", fmt.Sprintf("must be between %s and %s", minTimeout, MaxTimeout))
	}
	t.checkTime(at+".completes_within", report)
	if k := t.Kubernetes; k.URL != "" && k.TokenFile == "" && t.TLS.CertFile == "" {
		report(at+".kubernetes.token_file", "must name a file with a token, unless tls has a client certificate")
	}
}

func (t Target) checkTime(at string, report func(path, msg string)) {
	switch {
	case t.CompletesWithin < minCompletesWithin:
		report(at, fmt.Sprintf("must be at least %s", minCompletesWithin))
	case t.Command.given() && t.CompletesWithin < t.Command.TimeLimit+model.Duration(command.Grace):
		report(at, fmt.Sprintf("must be at least %s longer than command.time_limit, so the command has time to end", command.Grace))
	case t.Kubernetes.given() && t.CompletesWithin < t.Kubernetes.TimeLimit+jobMargin:
		report(at, fmt.Sprintf("must be at least %s longer than kubernetes.time_limit, so the Job's pods have time to end", jobMargin))
	}
}

// OnBrokersOf returns the target with the brokers of the telemetry if it is a Kafka topic without brokers.
func (t Target) OnBrokersOf(telemetry ingest.KafkaConfig) Target {
	if k := &t.Kafka; k.given() && len(k.Brokers) == 0 {
		k.Brokers, k.TLS, k.SASL, k.telemetry = telemetry.Brokers, telemetry.TLS, telemetry.SASL, true
	}
	return t
}

// service is the configuration of one service in a target.
type service interface {
	given() bool                        // whether any of it is configured
	check(report func(key, msg string)) // reports what is wrong with the values of its keys
	address() string                    // where requests go: a target that answered 410 is used again when it changes
	adapter(line line) (Adapter, error) // the configuration must be valid
}

// kind is one of the services that a target may name.
type kind struct {
	key string
	service
}

// kinds returns all services that a target may name, of which it names one.
func (t Target) kinds() []kind {
	return []kind{
		{"webhook", webhookTarget{url: t.Webhook, secretFile: t.SecretFile}},
		{"github", t.GitHub},
		{"gitlab", t.GitLab},
		{"airflow", t.Airflow},
		{"argo_events", t.ArgoEvents},
		{"jenkins", t.Jenkins},
		{"cloudevents", t.CloudEvents},
		{"kafka", t.Kafka},
		{"command", t.Command},
		{"kubernetes", t.Kubernetes},
	}
}

// StartsOne reports whether the target starts the same pipeline or program whatever is ordered. A receiver of webhooks,
// of events, or of the types of repository_dispatch chooses by the type.
func (t Target) StartsOne() bool {
	return t.GitLab.given() || t.Airflow.given() || t.ArgoEvents.given() || t.Jenkins.given() || t.Command.given() ||
		t.Kubernetes.given() || t.GitHub.given() && t.GitHub.EventType != ""
}

// ShowsSecret reports whether requests contain a token or a password. Webhooks are only signed.
func (t Target) ShowsSecret() bool {
	return t.GitHub.given() || t.GitLab.given() || t.Airflow.given() || t.ArgoEvents.given() || t.Jenkins.given() || t.Kubernetes.given() || t.CloudEvents.TokenFile != ""
}

// Address returns where requests go.
func (t Target) Address() string {
	for _, k := range t.kinds() {
		if k.given() {
			return k.address()
		}
	}
	return ""
}

// checkKind reports what is wrong with the service of a target. at is its path.
func (t Target) checkKind(at string, report func(path, msg string)) {
	var keys []string
	first := ""
	for _, k := range t.kinds() {
		keys = append(keys, k.key)
		switch {
		case !k.given():
		case first != "":
			report(at+"."+k.key, "cannot be combined with "+first+": a target has one receiver")
		default:
			first = k.key
			k.check(func(key, msg string) { report(at+"."+key, msg) })
		}
	}
	if first == "" {
		report(at, "must have one of "+strings.Join(keys, ", "))
	}
}
