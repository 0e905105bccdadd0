package retrain

import (
	"fmt"
	"slices"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/recipe"
	"github.com/rewardwatch/rewardwatch/retrain/target"
)

const (
	defaultRuns = "data/runs"
)

// Config configures how retrainings are requested.
type Config struct {
	Ledger   ledger.Config   `yaml:"ledger"`
	Recipes  string          `yaml:"recipes"`        // directory with the recipes (`*.yaml`, `*.yml`)
	Runs     string          `yaml:"runs_directory"` // directory for the runs of training commands, which is created if missing
	Targets  []target.Target `yaml:"targets"`
	Triggers []Trigger       `yaml:"triggers"`
	Breaker  BreakerConfig   `yaml:"breaker"`
	OnMet    string          `yaml:"on_met"`   // effect on the baseline when a retraining meets its contract: `promote` collects a new one, `keep` leaves it unchanged
	Rollback string          `yaml:"rollback"` // target that receives a rollback if a new version is worse than the previous one
}

// The values of Config.OnMet.
const (
	OnMetPromote = "promote" // the units of the new version become the baseline
	OnMetKeep    = "keep"    // the baseline stays as it is
)

// DefaultConfig returns the default configuration: it has no triggers, so nothing is requested.
func DefaultConfig() Config {
	return Config{Ledger: ledger.Config{SQLite: ledger.DefaultSQLite}, Runs: defaultRuns, Breaker: defaultBreaker(), OnMet: OnMetPromote}
}

// Check reports every error of the configuration with its YAML path. It opens no files: Open reads secrets, and
// LoadRecipes recipes.
func (c Config) Check(report func(path, msg string)) {
	c.Ledger.Check(func(key, msg string) { report("ledger."+key, msg) })
	if c.Recipes == "" && len(c.Triggers) > 0 {
		report("recipes", "must be the directory that contains the recipes of the triggers")
	}
	if c.Runs == "" && c.runsCommands() {
		report("runs_directory", "must be a directory for command runs")
	}
	if c.OnMet != OnMetPromote && c.OnMet != OnMetKeep {
		report("on_met", fmt.Sprintf("must be %q or %q, not %q", OnMetPromote, OnMetKeep, c.OnMet))
	}
	if _, ok := c.target(c.Rollback); c.Rollback != "" && !ok {
		report("rollback", fmt.Sprintf("unknown target %q", c.Rollback))
	}
	for i := range c.Targets {
		c.checkTarget(i, report)
	}
	for i := range c.Triggers {
		c.checkTrigger(i, report)
	}
	c.Breaker.check(report)
}

func (c Config) checkTarget(i int, report func(path, msg string)) {
	t, at := c.Targets[i], fmt.Sprintf("targets[%d]", i)
	if t.Name == "" {
		report(at+".name", "must not be empty")
	} else if slices.ContainsFunc(c.Targets[:i], func(o target.Target) bool { return o.Name == t.Name }) {
		report(at+".name", fmt.Sprintf("duplicate target name %q", t.Name))
	}
	t.Check(at, report)
}

// CheckRecipes reports every trigger whose recipe is not among the given ones or has an incomplete contract, or whose
// target would start a training for a different order, with its path in the configuration.
func (c Config) CheckRecipes(recipes recipe.Recipes, report func(path, msg string)) {
	for i, t := range c.Triggers {
		if msg := recipes.Fault(t.Recipe); t.Recipe != "" && msg != "" {
			report(fmt.Sprintf("triggers[%d].recipe", i), msg)
		} else if msg := c.mixes(recipes, t.Recipe, t.Target); msg != "" {
			report(fmt.Sprintf("triggers[%d].target", i), msg)
		}
	}
}

// mixes returns why a recipe that does not request a retraining cannot be sent to a target, or "" if it can: a
// pipeline that trains whenever it is started would train, or, like generated DAGs, skip all stages and look as if
// it had succeeded.
func (c Config) mixes(recipes recipe.Recipes, name, to string) string {
	how := recipes[name]
	if t, _ := c.target(to); how == nil || how.Kind == recipe.Retrain || !t.StartsOne() {
		return ""
	}
	for _, t := range c.Triggers {
		if other := recipes[t.Recipe]; t.Target == to && other != nil && other.Kind == recipe.Retrain {
			return fmt.Sprintf("target %q starts the same pipeline for every request, and recipe %q uses it to retrain, so a request to %[4]s would start a retraining or be skipped. Use a different target for recipe %[3]q", to, t.Recipe, name, how.Kind)
		}
	}
	return ""
}

// OnBrokersOf returns a configuration in which Kafka targets without brokers use those of the telemetry. Open requires
// that.
func (c Config) OnBrokersOf(telemetry ingest.KafkaConfig) Config {
	targets := make([]target.Target, len(c.Targets))
	for i, t := range c.Targets {
		targets[i] = t.OnBrokersOf(telemetry)
	}
	c.Targets = targets
	return c
}

func (c Config) target(name string) (target.Target, bool) {
	i := slices.IndexFunc(c.Targets, func(t target.Target) bool { return t.Name == name })
	if i < 0 {
		return target.Target{}, false
	}
	return c.Targets[i], true
}
