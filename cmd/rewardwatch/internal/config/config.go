// Package config reads the configuration file.
//
// For a new key, add the field, its comment, default and check to the config struct of its package; a new section also
// to Config, Default and Check in this file. Add a pair of *.good.yml and *.bad.yml to testdata, and run the tests with
// -update.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/access"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/announce"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/cluster"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/secrets"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/signin"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/tenant"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/names"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/deadletter"
	"github.com/rewardwatch/rewardwatch/ingest/format"
	"github.com/rewardwatch/rewardwatch/retrain"
	"github.com/rewardwatch/rewardwatch/retrain/recipe"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// Config is the whole configuration. Every key has a default: an empty file watches every policy and every signal.
type Config struct {
	Ingest     IngestConfig            `yaml:"ingest"`
	Checkpoint engine.CheckpointConfig `yaml:"checkpoint"`
	Cluster    cluster.Config          `yaml:"cluster"`
	Policies   []engine.PolicyConfig   `yaml:"policies"`
	Fleet      engine.FleetConfig      `yaml:"fleet"`
	Alerts     AlertsConfig            `yaml:"alerts"`
	Retrain    retrain.Config          `yaml:"retrain"`
	Guards     announce.Config         `yaml:"guards"`
	Limits     engine.LimitsConfig     `yaml:"limits"`
	Tenants    tenant.List             `yaml:"tenants"`
	HTTP       api.Config              `yaml:"http"`
	Secrets    []secrets.Secret        `yaml:"secrets"`

	Recipes recipe.Recipes `yaml:"-"` // from the directory that Retrain names; read only by LoadForService
}

// IngestConfig configures the source of telemetry and the destination of rejected records.
type IngestConfig struct {
	Kafka       KafkaConfig       `yaml:"kafka"`
	Log         LogConfig         `yaml:"log"`
	DeadLetters deadletter.Config `yaml:"dead_letters"`
}

// AlertsConfig configures notifications.
type AlertsConfig struct {
	GrafanaURL    string                    `yaml:"grafana_url"`    // URL of the Grafana instance with the dashboards, such as `https://grafana.example`, for links in alerts
	ApprovalLinks bool                      `yaml:"approval_links"` // add to alerts the signed link of a retraining that is waiting for approval. Anyone who can read the alert can then decide
	Alertmanager  alerts.AlertmanagerConfig `yaml:"alertmanager"`
}

// Default returns the settings of an empty file. It configures no receivers.
func Default() Config {
	judging := engine.DefaultSettings()
	return Config{
		Ingest: IngestConfig{
			Kafka:       KafkaConfig{KafkaConfig: ingest.DefaultKafkaConfig()},
			Log:         defaultLogConfig(),
			DeadLetters: deadletter.DefaultConfig(),
		},
		Checkpoint: judging.Checkpoint,
		Fleet:      judging.Fleet,
		Alerts:     AlertsConfig{Alertmanager: alerts.DefaultAlertmanagerConfig()},
		Retrain:    retrain.DefaultConfig(),
		Limits:     judging.Limits,
		HTTP:       api.Config{Listen: names.LocalAddress, OIDC: signin.Default()},
	}
}

// Settings returns the part of the configuration that determines what is judged and how.
func (c *Config) Settings() *engine.Settings {
	return &engine.Settings{Checkpoint: c.Checkpoint, Policies: c.Policies, Fleet: c.Fleet, Limits: c.Limits, Tenants: c.Tenants}
}

// Load reads a configuration file strictly. Problems in its text are returned as one *yamlfile.Error that lists all of
// them; a file that cannot be read is a different error. If path is "", Load returns the defaults.
func Load(path string) (*Config, error) { return loadConfig(path, (*Config).CheckAlone) }

// LoadForService reads a configuration file and the files that it names: recipes and formats. It reports all problems
// in one list.
func LoadForService(path string) (*Config, error) {
	return loadConfig(path, (*Config).checkWithRecipes)
}

// configCheck reports the problems of a configuration by path, and returns the problems of other files.
type configCheck func(c *Config, report func(path, msg string)) []yamlfile.Problem

func loadConfig(path string, check configCheck) (*Config, error) {
	if path == "" {
		return new(Default()), nil
	}
	text, err := yamlfile.Load(path)
	var named *fs.PathError
	if errors.As(err, &named) {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("read the configuration %s: %w", path, err)
	}
	return ParseConfig(path, text, check)
}

// ParseConfig parses the text of a configuration file.
func ParseConfig(file string, text []byte, check configCheck) (*Config, error) {
	c := Default()
	r := yamlfile.Read(file, text, &c)
	if len(c.Ingest.Kafka.Topics) > 0 && r.Given("ingest.kafka.topic") {
		r.Report("ingest.kafka.topic", "cannot be combined with topics, which lists all topics")
	}
	if c.Ingest.IsLocal() && r.Given("ingest.kafka") {
		r.Report("ingest.kafka", "cannot be combined with ingest.log: the telemetry is either in Kafka or in a local log")
	}
	c.Ingest.Kafka.tenants = c.Tenants
	others := check(&c, r.Report)
	if err := yamlfile.ErrorOf(append(r.Problems(), others...)); err != nil {
		return nil, err
	}
	return &c, nil
}

// CheckAlone checks everything that requires no other file.
func (c *Config) CheckAlone(report func(path, msg string)) []yamlfile.Problem {
	c.Check(report)
	return nil
}

// checkWithRecipes also opens the formats of the telemetry, reads the recipes and the manifests of Jobs, and checks the
// triggers against the recipes.
func (c *Config) checkWithRecipes(report func(path, msg string)) []yamlfile.Problem {
	problems := c.readRecipes(report)
	return append(problems, c.Retrain.CheckManifests(func(path, msg string) { report(yamlfile.Join("retrain", path), msg) })...)
}

func (c *Config) readRecipes(report func(path, msg string)) []yamlfile.Problem {
	c.Check(report)
	c.Ingest.Kafka.checkFormats(func(path, msg string) { report(yamlfile.Join("ingest.kafka", path), msg) })
	recipes, err := recipe.Load(c.Retrain.Recipes, c.Settings().GroupLabels())
	if bad, ok := errors.AsType[*yamlfile.Error](err); ok {
		return bad.Problems
	}
	if err != nil {
		report("retrain.recipes", err.Error())
		return nil
	}
	c.Recipes = recipes
	if c.Retrain.Recipes != "" {
		c.Retrain.CheckRecipes(recipes, func(path, msg string) { report(yamlfile.Join("retrain", path), msg) })
	}
	return nil
}

// Check reports every value that is out of its range, with its path.
func (c *Config) Check(report func(path, msg string)) {
	within := func(section string) func(path, msg string) {
		return func(path, msg string) { report(yamlfile.Join(section, path), msg) }
	}
	c.Ingest.Kafka.check(within("ingest.kafka"))
	c.Ingest.Log.check(within("ingest.log"))
	c.checkLocal(report)
	c.Ingest.DeadLetters.Check(within("ingest.dead_letters"))
	if letters := c.Ingest.DeadLetters.Topic; letters != "" && c.Ingest.Reads(letters) {
		report("ingest.dead_letters.topic", "must not be a telemetry topic: rejected records would be read and rejected again")
	}
	c.Settings().Check(report)
	c.checkTenants(report)
	c.checkRepartition(within("ingest.kafka"))
	c.checkPinned(report)
	c.checkCluster(within("cluster"))
	c.Alerts.check(within("alerts"), c.HTTP.ExternalURL)
	c.Retrain.Check(within("retrain"))
	c.Guards.Check(within("guards"))
	c.checkGuardTopics(within("guards"))
	c.checkAuditTopic(within("http"))
	c.HTTP.Check(within("http"))
	secrets.Check(c.Secrets, report)
}

// checkTenants reports tenants' topics that are not read, and people of unknown tenants.
func (c *Config) checkTenants(report func(path, msg string)) {
	for i, t := range c.Tenants {
		for k, topic := range t.Topics {
			if !c.Ingest.Reads(topic) {
				report(fmt.Sprintf("tenants[%d].topics[%d]", i, k), "must be a telemetry topic")
			}
		}
	}
	c.checkInboxes(report)
	for i, t := range c.HTTP.Tokens {
		if t.Tenant != "" && !c.Tenants.Has(t.Tenant) {
			report(fmt.Sprintf("http.tokens[%d].tenant", i), "must be the name of a tenant")
		}
	}
	for i, m := range c.HTTP.OIDC.Roles {
		if m.Tenant != "" && !c.Tenants.Has(m.Tenant) {
			report(fmt.Sprintf("http.oidc.roles[%d].tenant", i), "must be the name of a tenant")
		}
	}
}

// Inbox returns the topic for telemetry that a tenant sends over HTTP, or the platform if tenant is "", and whether
// there is one.
func (c *Config) Inbox(tenant string) (format.Topic, bool) {
	topics, names := c.inboxes()
	if i := c.Tenants.Inbox(tenant, names); i >= 0 {
		return topics[i], true
	}
	return format.Topic{}, false
}

// inboxes returns the topics that accept telemetry over HTTP, which are those in JSON, and their names.
func (c *Config) inboxes() (topics []format.Topic, names []string) {
	for _, t := range c.Ingest.Telemetry() {
		if t.IsJSON() {
			topics, names = append(topics, t), append(names, t.Topic)
		}
	}
	return topics, names
}

// checkInboxes reports tokens for telemetry that no topic accepts, although there are topics for other tenants.
func (c *Config) checkInboxes(report func(path, msg string)) {
	if topics, _ := c.inboxes(); len(topics) == 0 {
		return
	}
	const why = "telemetry sent with this token could not be written: at least one JSON topic must not belong to a tenant"
	if _, takes := c.Inbox(""); c.HTTP.TelemetryTokenFile != "" && !takes {
		report("http.telemetry_token_file", why)
	}
	for i, t := range c.HTTP.Tokens {
		if _, takes := c.Inbox(t.Tenant); t.Role == access.Agents && !takes {
			report(fmt.Sprintf("http.tokens[%d].tenant", i), why)
		}
	}
}

// checkRepartition reports a repartition topic that has no effect, or that is also used for something else.
func (c *Config) checkRepartition(report func(path, msg string)) {
	switch topic := c.Ingest.Kafka.RepartitionTopic; {
	case topic == "":
	case !c.Settings().Joins():
		report("repartition_topic", "requires policies[].feedback: only delayed feedback has a key to partition by")
	case topic == c.Ingest.DeadLetters.Topic:
		report("repartition_topic", "must not be the dead letter topic")
	}
}

// ownTopics returns the topics that the service itself reads or writes. Topics that are not configured are "".
func (c *Config) ownTopics() []string {
	own := []string{c.Ingest.DeadLetters.Topic, c.Ingest.Kafka.RepartitionTopic, c.Cluster.UnitsTopic, c.Cluster.CheckpointsTopic}
	for _, t := range c.Ingest.Telemetry() {
		own = append(own, t.Topic)
	}
	return own
}

// checkAuditTopic reports an audit log topic that is also used for something else, or that has no brokers.
func (c *Config) checkAuditTopic(report func(path, msg string)) {
	switch topic := c.HTTP.AuditTopic; {
	case topic == "":
	case c.Ingest.IsLocal():
		report("audit_topic", "cannot be combined with ingest.log, which works without Kafka")
	case slices.Contains(c.ownTopics(), topic):
		report("audit_topic", "must differ from the service's other topics")
	}
}

// checkGuardTopics reports guard topics that the service itself reads or writes.
func (c *Config) checkGuardTopics(report func(path, msg string)) {
	own := append(c.ownTopics(), c.HTTP.AuditTopic)
	for i, t := range c.Guards.Targets {
		if t.Kafka.Topic != "" && slices.Contains(own, t.Kafka.Topic) {
			report(fmt.Sprintf("targets[%d].kafka.topic", i), "must differ from the service's other topics")
		}
	}
}

// checkPinned reports pinned offsets whose topic is not read, or is missing although there are several topics.
func (c *Config) checkPinned(report func(path, msg string)) {
	judged := c.Ingest.topics().judged()
	for i, p := range c.Policies {
		for n, of := range p.Baseline.Offsets {
			at := fmt.Sprintf("policies[%d].baseline.offsets[%d]", i, n)
			switch {
			case of.Topic == "" && len(judged.Topics) > 1:
				report(at, "must name one of the topics in ingest.kafka.topics")
			case of.Topic != "" && c.Ingest.Kafka.RepartitionTopic != "" && of.Topic != judged.Topic:
				report(yamlfile.Join(at, "topic"), "must be ingest.kafka.repartition_topic because all telemetry passes through it")
			case of.Topic != "" && !judged.Reads(of.Topic):
				report(yamlfile.Join(at, "topic"), "must be a telemetry topic")
			}
		}
	}
}

// checkCluster reports problems with the topics of a cluster, and with everything that its instances share.
func (c *Config) checkCluster(report func(path, msg string)) {
	if !c.Cluster.Enabled() {
		return
	}
	taken := map[string]string{
		c.Ingest.DeadLetters.Topic: "the dead letter topic", c.Ingest.Kafka.RepartitionTopic: "ingest.kafka.repartition_topic",
	}
	for _, t := range c.Ingest.Telemetry() {
		taken[t.Topic] = "a telemetry topic"
	}
	for _, t := range []struct{ key, topic string }{
		{"units_topic", c.Cluster.UnitsTopic}, {"checkpoints_topic", c.Cluster.CheckpointsTopic},
	} {
		switch {
		case t.topic == "":
			report(t.key, "must also be set: a cluster requires both topics, a single instance requires neither")
		case !ingest.ValidTopic(t.topic):
			report(t.key, "must be 1 to 249 letters, digits, dots, underscores and hyphens")
		case taken[t.topic] != "":
			report(t.key, "must not be "+taken[t.topic])
		}
		taken[t.topic] = "the other topic of the cluster"
	}
	if len(c.Retrain.Triggers)+len(c.Retrain.Targets) > 0 && !c.Retrain.Ledger.OnPostgreSQL() {
		report("units_topic", "requires retrain.ledger on PostgreSQL (postgres_url_file or postgres_url_env); otherwise, each instance would request its own retrainings")
	}
}

func (c AlertsConfig) check(report func(path, msg string), externalURL string) {
	if c.ApprovalLinks && externalURL == "" {
		report("approval_links", "requires http.external_url, which the links are based on")
	}
	if c.GrafanaURL != "" {
		if msg := api.BadExternalURL(c.GrafanaURL); msg != "" {
			report("grafana_url", msg)
		}
	}
	c.Alertmanager.Check(func(path, msg string) { report(yamlfile.Join("alertmanager", path), msg) })
}

// Links returns the addresses that alerts link to.
func (c *Config) Links() alerts.Links {
	return alerts.Links{Grafana: c.Alerts.GrafanaURL, Console: c.HTTP.ExternalURL, Tenant: c.Tenants.Name}
}
