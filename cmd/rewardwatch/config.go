package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/common/model"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// Config is the whole configuration. Every key has a default: the empty file watches every policy on every signal.
type Config struct {
	Ingest     IngestConfig     `yaml:"ingest"`
	Checkpoint CheckpointConfig `yaml:"checkpoint"`
	Cluster    ClusterConfig    `yaml:"cluster"`
	Policies   []PolicyConfig   `yaml:"policies"`
	Fleet      FleetConfig      `yaml:"fleet"`
	Alerts     AlertsConfig     `yaml:"alerts"`
	Retrain    retrain.Config   `yaml:"retrain"`
	Limits     LimitsConfig     `yaml:"limits"`
	HTTP       HTTPConfig       `yaml:"http"`

	recipes retrain.Recipes // of the directory that Retrain names; read by LoadServiceConfig alone
}

// IngestConfig says where telemetry comes from and where refused records go.
type IngestConfig struct {
	Kafka       ingest.KafkaConfig      `yaml:"kafka"`
	DeadLetters ingest.DeadLetterConfig `yaml:"dead_letters"`
}

// CheckpointConfig says where state is kept over a restart.
type CheckpointConfig struct {
	Directory string         `yaml:"directory"` // of the checkpoints; it is made where it does not exist; not used in a cluster
	Every     model.Duration `yaml:"every"`     // between two checkpoints; after a crash at most this much is read again
}

// ClusterConfig lets several instances of one consumer group share the work, over two topics of their own on the brokers of
// ingest.kafka, which are made where they do not exist. Without it one instance works alone.
type ClusterConfig struct {
	UnitsTopic       string `yaml:"units_topic"`       // in which units go from those who read the telemetry to those who judge a policy
	CheckpointsTopic string `yaml:"checkpoints_topic"` // in which state is kept, in place of checkpoint.directory; compacted
}

// enabled reports whether there may be other instances.
func (c ClusterConfig) enabled() bool { return c != ClusterConfig{} }

// PolicyConfig says how policies are watched. The first entry that matches a policy's name holds for it, and a policy
// that none matches is not watched. Where no entry is given, every policy is watched with the defaults of an entry.
type PolicyConfig struct {
	Match       string `yaml:"match"` // glob over the policy's name, in which * stands for any characters, a slash too
	bank.Config `yaml:",inline"`
}

// FleetConfig is a budget of false alarms over all policies together, for who is paged for all of them. Each policy then
// keeps to the stricter of its own budget and an even share of this one.
type FleetConfig struct {
	Budget   float64  `yaml:"budget"`   // false alarms of all policies that can be borne, on average, in the stretch per; 0 for no such budget
	Per      bank.Per `yaml:"per"`      // as in policies[].false_alarms
	Policies int      `yaml:"policies"` // among how many policies the budget is shared out; more of them exceed it, which is logged
}

// AlertsConfig says who is told of incidents.
type AlertsConfig struct {
	Alertmanager alerts.AlertmanagerConfig `yaml:"alertmanager"`
}

// LimitsConfig bounds what is held in memory. Reaching a limit is counted, never fatal.
type LimitsConfig struct {
	Streams      int `yaml:"streams"`       // streams followed; later ones are not watched
	OpenEpisodes int `yaml:"open_episodes"` // unfinished episodes of a partition; beyond it the oldest is dropped
	Series       int `yaml:"series"`        // series exported; healthy streams lose theirs first

	// memory that the process takes: above it the groups that were not used for longest are kept in the checkpoint alone until they are used again
	Memory ingest.ByteSize `yaml:"memory"`
}

// HTTPConfig says where metrics, API and console are served.
type HTTPConfig struct {
	Listen          string `yaml:"listen"`            // host:port; port 0 takes a free one
	TokenFile       string `yaml:"token_file"`        // holds the bearer token for what changes state; without one, programs on the same machine need none, and nobody else can change anything
	StatusTokenFile string `yaml:"status_token_file"` // holds a bearer token with which a job can tell how it goes on, and nothing else
	ExternalURL     string `yaml:"external_url"`      // under which people reach the service, as in https://rewardwatch.example; without one there are no links to approve a retraining by
	AdminListen     string `yaml:"admin_listen"`      // host:port of the profiler (pprof); "" for none
}

// DefaultConfig gives what holds where the file says nothing. It delivers nothing anywhere.
func DefaultConfig() Config {
	return Config{
		Ingest: IngestConfig{
			Kafka:       ingest.DefaultKafkaConfig(),
			DeadLetters: ingest.DefaultDeadLetterConfig(),
		},
		Checkpoint: CheckpointConfig{
			Directory: "/var/lib/rewardwatch/checkpoints",
			Every:     model.Duration(10 * time.Second),
		},
		Fleet:   FleetConfig{Per: bank.DefaultConfig().FalseAlarms.Per, Policies: 10},
		Alerts:  AlertsConfig{Alertmanager: alerts.DefaultAlertmanagerConfig()},
		Retrain: retrain.DefaultConfig(),
		Limits:  LimitsConfig{Streams: 20000, OpenEpisodes: 100000, Series: 50000, Memory: 2 * ingest.GiB},
		HTTP:    HTTPConfig{Listen: "127.0.0.1:9464"},
	}
}

// UnmarshalYAML reads a policy entry over its defaults.
func (p *PolicyConfig) UnmarshalYAML(unmarshal func(any) error) error {
	type plain PolicyConfig
	*p = PolicyConfig{Config: bank.DefaultConfig()}
	return unmarshal((*plain)(p))
}

// policy gives how the policy of that name is watched, and false where it is not.
func (c *Config) policy(name string) (cfg bank.Config, watched bool) {
	if len(c.Policies) == 0 {
		cfg, watched = bank.DefaultConfig(), true
	}
	if i := c.entry(name); i >= 0 {
		cfg, watched = c.Policies[i].Config, true
	}
	if c.Fleet.Budget > 0 {
		cfg.Fleet = bank.Budget{Budget: c.Fleet.Budget / float64(c.Fleet.Policies), Per: c.Fleet.Per}
	}
	return cfg, watched
}

// check reports every value that is out of its range, with its path.
func (f FleetConfig) check(report func(path, msg string)) {
	if !(f.Budget >= 0) {
		report("fleet.budget", "must not be negative")
	}
	if !(f.Per.Amount > 0) {
		report("fleet.per", "must be greater than 0")
	}
	if f.Policies < 1 {
		report("fleet.policies", "must be at least 1")
	}
}

// entry gives the place of the entry that a policy is watched by, -1 where none is given.
func (c *Config) entry(name string) int {
	return slices.IndexFunc(c.Policies, func(p PolicyConfig) bool { return bank.Match(p.Match, name) })
}

// groupLabels lists the labels by which any policy is grouped, as metrics spell them.
func (c *Config) groupLabels() []string {
	policies := c.Policies
	if len(policies) == 0 {
		policies = []PolicyConfig{{Config: bank.DefaultConfig()}}
	}
	var out []string
	for _, p := range policies {
		for _, key := range p.GroupBy {
			if label := bank.GroupLabel(key); !slices.Contains(out, label) {
				out = append(out, label)
			}
		}
	}
	return out
}

// LoadConfig reads a configuration file strictly. What is wrong with its text is a *yamlfile.Error that lists everything;
// a file that cannot be read is another error. The path "" gives the defaults.
func LoadConfig(path string) (*Config, error) { return loadConfig(path, (*Config).checkAlone) }

// LoadServiceConfig reads a configuration file and the recipes that it names: what is wrong with them is in the same list.
func LoadServiceConfig(path string) (*Config, error) {
	return loadConfig(path, (*Config).checkWithRecipes)
}

// configCheck reports what is wrong with a configuration by its paths, and gives what is wrong with other files.
type configCheck func(c *Config, report func(path, msg string)) []yamlfile.Problem

func loadConfig(path string, check configCheck) (*Config, error) {
	if path == "" {
		return new(DefaultConfig()), nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	return parseConfig(path, text, check)
}

func parseConfig(file string, text []byte, check configCheck) (*Config, error) {
	c := DefaultConfig()
	r := yamlfile.Read(file, text, &c)
	others := check(&c, r.Report)
	if err := yamlfile.ErrorOf(append(r.Problems(), others...)); err != nil {
		return nil, err
	}
	return &c, nil
}

func (c *Config) checkAlone(report func(path, msg string)) []yamlfile.Problem {
	c.Check(report)
	return nil
}

// checkWithRecipes reads the recipes as well, and holds the triggers against them.
func (c *Config) checkWithRecipes(report func(path, msg string)) []yamlfile.Problem {
	c.Check(report)
	recipes, err := retrain.LoadRecipes(c.Retrain.Recipes, c.groupLabels())
	if bad, ok := errors.AsType[*yamlfile.Error](err); ok {
		return bad.Problems
	}
	if err != nil {
		report("retrain.recipes", err.Error())
		return nil
	}
	c.recipes = recipes
	if c.Retrain.Recipes != "" {
		recipes.Check(c.Retrain, func(path, msg string) { report(yamlfile.Join("retrain", path), msg) })
	}
	return nil
}

// Check reports every value that is out of its range, with its path.
func (c *Config) Check(report func(path, msg string)) {
	within := func(section string) func(path, msg string) {
		return func(path, msg string) { report(yamlfile.Join(section, path), msg) }
	}
	c.Ingest.Kafka.Check(within("ingest.kafka"))
	c.Ingest.DeadLetters.Check(within("ingest.dead_letters"))
	if letters := c.Ingest.DeadLetters.Topic; letters != "" && letters == c.Ingest.Kafka.Topic {
		report("ingest.dead_letters.topic", "must not be the topic of the telemetry: refused records would be read, and refused, again")
	}
	c.Checkpoint.check(within("checkpoint"))
	c.checkCluster(within("cluster"))
	for i, p := range c.Policies {
		p.check(within(fmt.Sprintf("policies[%d]", i)))
	}
	c.Fleet.check(report)
	c.Alerts.Alertmanager.Check(within("alerts.alertmanager"))
	c.Retrain.Check(within("retrain"))
	c.Limits.check(within("limits"))
	c.HTTP.check(within("http"))
}

// checkCluster reports what is wrong with the topics of a cluster, or with what several instances share.
func (c *Config) checkCluster(report func(path, msg string)) {
	if !c.Cluster.enabled() {
		return
	}
	taken := map[string]string{
		c.Ingest.Kafka.Topic: "the topic of the telemetry", c.Ingest.DeadLetters.Topic: "the topic of refused records",
	}
	for _, t := range []struct{ key, topic string }{
		{"units_topic", c.Cluster.UnitsTopic}, {"checkpoints_topic", c.Cluster.CheckpointsTopic},
	} {
		switch {
		case t.topic == "":
			report(t.key, "must be given too: several instances need both topics, one that is alone neither")
		case !ingest.ValidTopic(t.topic):
			report(t.key, "must be 1 to 249 letters, digits, dots, underscores and hyphens")
		case taken[t.topic] != "":
			report(t.key, "must not be "+taken[t.topic])
		}
		taken[t.topic] = "the other topic of the cluster"
	}
	if len(c.Retrain.Triggers)+len(c.Retrain.Targets) > 0 && !c.Retrain.Ledger.OnPostgreSQL() {
		report("units_topic", "needs retrain.ledger on PostgreSQL (postgres_url_file or postgres_url_env), or each instance would order "+
			"retrainings of its own")
	}
}

func (c CheckpointConfig) check(report func(path, msg string)) {
	if c.Directory == "" {
		report("directory", "must not be empty")
	}
	if c.Every < model.Duration(time.Second) || c.Every > model.Duration(time.Hour) {
		report("every", "must be between 1s and 1h")
	}
}

func (p PolicyConfig) check(report func(path, msg string)) {
	if p.Match == "" {
		report("match", `must be the name of a policy or a pattern; "*" is all of them`)
	} else if !bank.ValidGlob(p.Match) {
		report("match", fmt.Sprintf("%q is not a valid pattern", p.Match))
	}
	p.Check(report)
}

// leastMemory is what the process takes without any group, and as much again for what it reads.
const leastMemory = 128 * ingest.MiB

func (l LimitsConfig) check(report func(path, msg string)) {
	atLeast := func(key string, value, least int) {
		if value < least {
			report(key, fmt.Sprintf("must be at least %d", least))
		}
	}
	atLeast("streams", l.Streams, 1)
	atLeast("open_episodes", l.OpenEpisodes, 1)
	atLeast("series", l.Series, 100)
	if l.Memory < leastMemory {
		report("memory", fmt.Sprintf("must be at least %s", leastMemory))
	}
}

func (c HTTPConfig) check(report func(path, msg string)) {
	if msg := badAddress(c.Listen); msg != "" {
		report("listen", msg)
	}
	if c.AdminListen != "" {
		if msg := badAddress(c.AdminListen); msg != "" {
			report("admin_listen", msg)
		}
	}
	if c.ExternalURL != "" {
		if msg := badExternalURL(c.ExternalURL); msg != "" {
			report("external_url", msg)
		}
	}
	if c.StatusTokenFile != "" && c.StatusTokenFile == c.TokenFile {
		report("status_token_file", "must be another file than token_file, or a job could do everything")
	}
}

func badExternalURL(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return "is not a URL"
	case u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
		return "must be https:// or http://, a host and perhaps a path"
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "must end with its path, and hold no user: links are made of it"
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
