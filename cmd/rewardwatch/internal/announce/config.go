package announce

import (
	"fmt"
	"slices"

	"github.com/prometheus/common/model"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain/target"
)

// Config configures where guard states of all policies are sent, for agents that do not read them over HTTP.
type Config struct {
	Targets []Target `yaml:"targets"`
}

// Target is a receiver of guard states: a webhook, or a Kafka topic, which is created with compaction if it does not
// exist.
type Target struct {
	Name         string              `yaml:"name"`          // name in logs and metrics
	Webhook      string              `yaml:"webhook"`       // URL of a Standard Webhooks receiver
	SecretFile   string              `yaml:"secret_file"`   // file with the `whsec_` secrets of the webhook, one per line, newest first
	Timeout      model.Duration      `yaml:"timeout"`       // time limit for each attempt
	AllowPrivate bool                `yaml:"allow_private"` // permit private, loopback and link-local addresses
	TLS          ingest.Certificates `yaml:"tls"`           // for webhooks over HTTPS; files that change are read again
	Kafka        target.Kafka        `yaml:"kafka"`
}

// UnmarshalYAML reads a target over its defaults.
func (t *Target) UnmarshalYAML(unmarshal func(any) error) error {
	type plain Target
	*t = Target{Timeout: target.DefaultTimeout}
	return unmarshal((*plain)(t))
}

// asTarget returns the receiver in the form of a retraining target.
func (t Target) asTarget() target.Target {
	return target.Target{
		Name: t.Name, Webhook: t.Webhook, SecretFile: t.SecretFile, Timeout: t.Timeout, AllowPrivate: t.AllowPrivate, TLS: t.TLS, Kafka: t.Kafka,
		CompletesWithin: target.DefaultCompletesWithin,
	}
}

// Check reports every error of the configuration with its YAML path. It opens no files: New reads secrets.
func (c Config) Check(report func(path, msg string)) {
	for i, t := range c.Targets {
		at := fmt.Sprintf("targets[%d]", i)
		switch {
		case t.Name == "":
			report(at+".name", "must not be empty")
		case slices.ContainsFunc(c.Targets[:i], func(o Target) bool { return o.Name == t.Name }):
			report(at+".name", fmt.Sprintf("duplicate target name %q", t.Name))
		}
		if t.Address() == "" {
			report(at, "must have exactly one of webhook and kafka")
			continue
		}
		t.asTarget().Check(at, report)
	}
}

// Address returns the address to which the state is sent, "" if the target has no receiver.
func (t Target) Address() string { return t.asTarget().Address() }

// OnBrokersOf returns a configuration in which Kafka targets without brokers use those of the telemetry. New requires
// that.
func (c Config) OnBrokersOf(telemetry ingest.KafkaConfig) Config {
	targets := make([]Target, len(c.Targets))
	for i, t := range c.Targets {
		t.Kafka = t.asTarget().OnBrokersOf(telemetry).Kafka
		targets[i] = t
	}
	return Config{Targets: targets}
}
