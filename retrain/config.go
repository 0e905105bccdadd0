package retrain

import (
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"github.com/rewardwatch/rewardwatch/retrain/command"
)

const (
	defaultSQLite          = "/var/lib/rewardwatch/ledger.db"
	defaultRuns            = "/var/lib/rewardwatch/runs"
	defaultTimeout         = model.Duration(15 * time.Second)
	defaultCompletesWithin = model.Duration(24 * time.Hour)
	minCompletesWithin     = model.Duration(time.Minute)
	minTimeout             = model.Duration(100 * time.Millisecond)
	maxTimeout             = model.Duration(time.Minute)
)

// Config says where requests are kept, who receives them, what opens one, and how to retrain.
type Config struct {
	Ledger   LedgerConfig  `yaml:"ledger"`
	Recipes  string        `yaml:"recipes"`        // directory of the recipes, each a file *.yaml or *.yml of it; "" for none
	Runs     string        `yaml:"runs_directory"` // in which each run of a target that is a command has a directory; it is made where it does not exist
	Targets  []Target      `yaml:"targets"`
	Triggers []Trigger     `yaml:"triggers"`
	Breaker  BreakerConfig `yaml:"breaker"`
	OnMet    string        `yaml:"on_met"`   // what becomes of the baseline when a new version has shown what was expected: "promote" (its units become the next one) or "keep"
	Rollback string        `yaml:"rollback"` // name of the target that is told to go back where a new version is worse than the one before; "" for none
}

// The values of Config.OnMet.
const (
	OnMetPromote = "promote" // the units of the new version become the baseline
	OnMetKeep    = "keep"    // it stays as it is
)

// LedgerConfig says where the ledger lies: in a SQLite file, or on PostgreSQL where a URL for that is given. The URL holds a password, so it stands in a file or in an environment variable, never in the configuration.
type LedgerConfig struct {
	SQLite          string `yaml:"sqlite"`            // path of the database file; its directory is made
	PostgresURLFile string `yaml:"postgres_url_file"` // holds postgres://user:password@host:port/database?sslmode=verify-full
	PostgresURLEnv  string `yaml:"postgres_url_env"`  // name of the environment variable that holds such a URL
}

// OnPostgreSQL reports whether several instances can share the ledger.
func (c LedgerConfig) OnPostgreSQL() bool { return c.PostgresURLFile != "" || c.PostgresURLEnv != "" }

// Target is who is told of requests: the receiver of signed webhooks, or one of the services below.
type Target struct {
	Name            string         `yaml:"name"`             // by which triggers refer to it
	Webhook         string         `yaml:"webhook"`          // http or https URL of a receiver of Standard Webhooks
	SecretFile      string         `yaml:"secret_file"`      // of webhook: holds whsec_ secrets, one a line, the newest first
	Timeout         model.Duration `yaml:"timeout"`          // of one attempt, from dialling to the answer's last byte
	CompletesWithin model.Duration `yaml:"completes_within"` // how long a job may take: a request that nothing is heard of is closed after it
	AllowPrivate    bool           `yaml:"allow_private"`    // whether the host may have a private, loopback or link-local address

	GitHub      GitHubTarget      `yaml:"github"`
	GitLab      GitLabTarget      `yaml:"gitlab"`
	Airflow     AirflowTarget     `yaml:"airflow"`
	ArgoEvents  ArgoEventsTarget  `yaml:"argo_events"`
	Jenkins     JenkinsTarget     `yaml:"jenkins"`
	CloudEvents CloudEventsTarget `yaml:"cloudevents"`
	Kafka       KafkaTarget       `yaml:"kafka"`
	Command     CommandTarget     `yaml:"command"`
}

// DefaultConfig gives the configuration that holds where the file says nothing: no trigger, so nothing is ordered.
func DefaultConfig() Config {
	return Config{Ledger: LedgerConfig{SQLite: defaultSQLite}, Runs: defaultRuns, Breaker: defaultBreaker(), OnMet: OnMetPromote}
}

// UnmarshalYAML reads a target over its defaults.
func (t *Target) UnmarshalYAML(unmarshal func(any) error) error {
	type plain Target
	*t = Target{Timeout: defaultTimeout, CompletesWithin: defaultCompletesWithin, Command: defaultCommand()}
	return unmarshal((*plain)(t))
}

// Check reports every error of the configuration with its YAML path. It opens no file: secrets are read by Open, recipes by
// LoadRecipes.
func (c Config) Check(report func(path, msg string)) {
	c.Ledger.check(report)
	if c.Recipes == "" && len(c.Triggers) > 0 {
		report("recipes", "must name the directory of the recipes of the triggers")
	}
	if c.Runs == "" && c.runsCommands() {
		report("runs_directory", "must name a directory for the runs of commands")
	}
	if c.OnMet != OnMetPromote && c.OnMet != OnMetKeep {
		report("on_met", fmt.Sprintf("must be %q or %q, not %q", OnMetPromote, OnMetKeep, c.OnMet))
	}
	if _, ok := c.target(c.Rollback); c.Rollback != "" && !ok {
		report("rollback", fmt.Sprintf("no target is named %q", c.Rollback))
	}
	for i := range c.Targets {
		c.checkTarget(i, report)
	}
	for i := range c.Triggers {
		c.checkTrigger(i, report)
	}
	c.Breaker.check(report)
}

// check takes the default for a SQLite file that was not named.
func (c LedgerConfig) check(report func(path, msg string)) {
	switch {
	case !c.OnPostgreSQL() && c.SQLite == "":
		report("ledger.sqlite", "must name a file")
	case c.OnPostgreSQL() && c.SQLite != "" && c.SQLite != defaultSQLite:
		report("ledger.sqlite", "must be left out where the ledger lies on PostgreSQL")
	}
	if c.PostgresURLFile != "" && c.PostgresURLEnv != "" {
		report("ledger.postgres_url_file", "must be left out, or else postgres_url_env")
	}
}

func (c Config) checkTarget(i int, report func(path, msg string)) {
	t, at := c.Targets[i], fmt.Sprintf("targets[%d]", i)
	if t.Name == "" {
		report(at+".name", "must not be empty")
	} else if slices.ContainsFunc(c.Targets[:i], func(o Target) bool { return o.Name == t.Name }) {
		report(at+".name", fmt.Sprintf("%q names another target already", t.Name))
	}
	t.checkKind(at, report)
	if t.Timeout < minTimeout || t.Timeout > maxTimeout {
		report(at+".timeout", fmt.Sprintf("must be between %s and %s", minTimeout, maxTimeout))
	}
	if t.CompletesWithin < minCompletesWithin {
		report(at+".completes_within", fmt.Sprintf("must be at least %s", minCompletesWithin))
	} else if t.Command.given() && t.CompletesWithin < t.Command.TimeLimit+model.Duration(command.Grace) {
		report(at+".completes_within", fmt.Sprintf("must be longer than command.time_limit by %s at least, in which the command may end", command.Grace))
	}
}

func (c Config) target(name string) (Target, bool) {
	i := slices.IndexFunc(c.Targets, func(t Target) bool { return t.Name == name })
	if i < 0 {
		return Target{}, false
	}
	return c.Targets[i], true
}
