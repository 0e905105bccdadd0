package retrain

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/prometheus/common/model"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/retrain/command"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/recipe"
	"github.com/rewardwatch/rewardwatch/retrain/target"
)

const goodConfig = `
ledger: {sqlite: /var/lib/ledger.db}
recipes: /etc/recipes
targets: [{name: trainer, webhook: "https://trainer.example/retrain", secret_file: /etc/trainer.secret}]
triggers:
  - {on: incident, signals: [return, "outcome.*"], recipe: ranker, target: trainer}
`

func parse(text string) (Config, error) {
	cfg := DefaultConfig()
	err := yaml.UnmarshalWithOptions([]byte(text), &cfg, yaml.Strict())
	return cfg, err
}

func TestConfigDefaults(t *testing.T) {
	cfg, err := parse(goodConfig)
	check(t, err)
	if cfg.Targets[0].Timeout != seconds(15) || cfg.Triggers[0].Cooldown != model.Duration(24*time.Hour) {
		t.Errorf("defaults: %+v", cfg)
	}
	cfg.Check(func(path, msg string) { t.Errorf("%s: %s", path, msg) })
	DefaultConfig().Check(func(path, msg string) { t.Errorf("default config: %s: %s", path, msg) })

	cfg, err = parse("ledger: {postgres_url_file: /etc/ledger.url}")
	check(t, err)
	cfg.Check(func(path, msg string) { t.Errorf("a ledger on PostgreSQL alone: %s: %s", path, msg) })

	cfg, err = parse(goodConfig + `
  - {on: incident, policies: ["bid*"], causes: [environment], severity: critical, lasting: 30m, approval: true, recipe: ranker, target: trainer}
  - {on: schedule, cron: "CRON_TZ=Europe/Berlin 0 3 * * 1", policies: [ranker, bidder], recipe: ranker, target: trainer}
breaker: {after: 0}
`)
	check(t, err)
	cfg.Check(func(path, msg string) { t.Errorf("all kinds of triggers: %s: %s", path, msg) })

	cfg, err = parse("triggers: [{on: incident, target: trainer, cooldown: 0s}]")
	check(t, err)
	if cfg.Triggers[0].Cooldown != 0 {
		t.Errorf("cooldown: 0s became %s", cfg.Triggers[0].Cooldown)
	}
}

func TestConfigIsStrict(t *testing.T) {
	for _, text := range []string{
		"targets: [{name: trainer, secret: abc}]",
		"triggers: [{on: incident, budget: 3}]",
		"ledger: {postgres_url: x}",
	} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), "unknown field") {
			t.Errorf("%s: %v, want an unknown field", text, err)
		}
	}
}

func TestConfigCheck(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Config)
		path   string
	}{
		{"no ledger", func(c *Config) { c.Ledger.SQLite = "" }, "ledger.sqlite"},
		{"two ledgers", func(c *Config) { c.Ledger.PostgresURLEnv = "LEDGER_URL" }, "ledger.sqlite"},
		{"two URLs", func(c *Config) { c.Ledger = ledger.Config{PostgresURLFile: "/etc/url", PostgresURLEnv: "LEDGER_URL"} }, "ledger.postgres_url_file"},
		{"nameless target", func(c *Config) { c.Targets = append(c.Targets, c.Targets[0]); c.Targets[1].Name = "" }, "targets[1].name"},
		{"duplicate target", func(c *Config) { c.Targets = append(c.Targets, c.Targets[0]) }, "targets[1].name"},
		{"no URL", func(c *Config) { c.Targets[0].Webhook = "" }, "targets[0].webhook"},
		{"no URL at all", func(c *Config) { c.Targets[0].Webhook = "http://[::1" }, "targets[0].webhook"},
		{"no scheme", func(c *Config) { c.Targets[0].Webhook = "trainer.example/x" }, "targets[0].webhook"},
		{"other scheme", func(c *Config) { c.Targets[0].Webhook = "ftp://trainer.example" }, "targets[0].webhook"},
		{"no host", func(c *Config) { c.Targets[0].Webhook = "https://:443/x" }, "targets[0].webhook"},
		{"password in the URL", func(c *Config) { c.Targets[0].Webhook = "https://me:pw@trainer.example" }, "targets[0].webhook"},
		{"no secret", func(c *Config) { c.Targets[0].SecretFile = "" }, "targets[0].secret_file"},
		{"no time", func(c *Config) { c.Targets[0].Timeout = 0 }, "targets[0].timeout"},
		{"too much time", func(c *Config) { c.Targets[0].Timeout = seconds(61) }, "targets[0].timeout"},
		{"unknown on", func(c *Config) { c.Triggers[0].On = "full_moon" }, "triggers[0].on"},
		{"no on", func(c *Config) { c.Triggers[0].On = "" }, "triggers[0].on"},
		{"bad glob", func(c *Config) { c.Triggers[0].Signals = []string{"return", "[a"} }, "triggers[0].signals[1]"},
		{"empty signal", func(c *Config) { c.Triggers[0].Signals = []string{""} }, "triggers[0].signals[0]"},
		{"no recipes", func(c *Config) { c.Recipes = "" }, "recipes"},
		{"no recipe", func(c *Config) { c.Triggers[0].Recipe = "" }, "triggers[0].recipe"},
		{"unknown target", func(c *Config) { c.Triggers[0].Target = "nobody" }, "triggers[0].target"},
		{"bad policy", func(c *Config) { c.Triggers[0].Policies = []string{"[a"} }, "triggers[0].policies[0]"},
		{"cause that needs a person", func(c *Config) { c.Triggers[0].Causes = []alerts.Cause{"unknown", "reward_function"} }, "triggers[0].causes[1]"},
		{"no cause", func(c *Config) { c.Triggers[0].Causes = []alerts.Cause{"weather"} }, "triggers[0].causes[0]"},
		{"severity that orders nothing", func(c *Config) { c.Triggers[0].Severity = alerts.Info }, "triggers[0].severity"},
		{"negative time", func(c *Config) { c.Triggers[0].Lasting = -1 }, "triggers[0].lasting"},
		{"schedule on an incident", func(c *Config) { c.Triggers[0].Cron = "0 3 * * *" }, "triggers[0].cron"},
		{"schedule that never comes", func(c *Config) { c.Triggers = []Trigger{nightly("0 0 30 2 *", "ranker")} }, "triggers[0].cron"},
		{"no schedule", func(c *Config) { c.Triggers = []Trigger{nightly("", "ranker")} }, "triggers[0].cron"},
		{"schedule of nobody", func(c *Config) { c.Triggers = []Trigger{nightly("0 3 * * *")} }, "triggers[0].policies"},
		{"schedule of an empty name", func(c *Config) { c.Triggers = []Trigger{nightly("0 3 * * *", "a", "")} }, "triggers[0].policies[1]"},
		{"policy twice", func(c *Config) { c.Triggers = []Trigger{nightly("0 3 * * *", "a", "a")} }, "triggers[0].policies[1]"},
		{"schedule with signals", func(c *Config) {
			c.Triggers = []Trigger{nightly("0 3 * * *", "a")}
			c.Triggers[0].Signals = []string{"return"}
		}, "triggers[0].signals"},
		{"schedule with a cooldown", func(c *Config) {
			c.Triggers = []Trigger{nightly("0 3 * * *", "a")}
			c.Triggers[0].Cooldown = seconds(1)
		}, "triggers[0].cooldown"},
		{"policy in two schedules", func(c *Config) {
			c.Triggers = []Trigger{nightly("0 3 * * *", "a", "b"), nightly("0 3 * * *", "c"), nightly("0 3 * * *", "d", "b")}
		}, "triggers[2]"},
		{"negative breaker", func(c *Config) { c.Breaker.After = -1 }, "breaker.after"},
		{"breaker without a pause", func(c *Config) { c.Breaker.Pause = 0 }, "breaker.pause"},
		{"negative cooldown", func(c *Config) { c.Triggers[0].Cooldown = -1 }, "triggers[0].cooldown"},
		{"duplicate trigger", func(c *Config) {
			again := c.Triggers[0]
			again.Signals = slices.Clone(again.Signals)
			slices.Reverse(again.Signals)
			c.Triggers = append(c.Triggers, again)
		}, "triggers[1]"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			cfg, err := parse(goodConfig)
			check(t, err)
			tc.change(&cfg)
			var paths []string
			cfg.Check(func(path, msg string) {
				paths = append(paths, path)
				if strings.Contains(msg, "pw") {
					t.Errorf("the password stands in %q", msg)
				}
			})
			if !slices.Equal(paths, []string{tc.path}) {
				t.Errorf("errors at %v, want %s", paths, tc.path)
			}
		})
	}
}

func nightly(cron string, policies ...string) Trigger {
	return Trigger{On: OnSchedule, Cron: cron, Policies: policies, Recipe: "ranker", Target: "trainer"}
}

func TestTriggersNeedAWholeContract(t *testing.T) {
	recipes, err := recipe.Load("recipe/testdata/good_recipes/chain", []string{"env"})
	check(t, err)
	c := Config{Triggers: []Trigger{{Recipe: "root"}, {Recipe: "middle"}, {Recipe: "nobody"}, {Recipe: "leaf"}, {}}}
	var got []string
	c.CheckRecipes(recipes, func(path, msg string) { got = append(got, path+": "+msg) })
	want := []string{
		`triggers[1].recipe: recipe "middle" has no contract.hypothesis: every request needs a contract`,
		`triggers[2].recipe: unknown recipe "nobody"`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A pipeline that trains when it is started must not receive an order to freeze.
func TestOrdersThatWouldTrain(t *testing.T) {
	recipes, err := recipe.Load("recipe/testdata/recipes", []string{"env"})
	check(t, err)
	stop := *recipes["ranker"]
	stop.Name, stop.Kind = "stop", recipe.Freeze
	recipes["stop"] = &stop
	shared := []Trigger{{Recipe: "ranker", Target: "t"}, {Recipe: "stop", Target: "t"}}
	apart := []Trigger{{Recipe: "ranker", Target: "other"}, {Recipe: "stop", Target: "t"}}
	for name, tt := range map[string]struct {
		to       target.Target
		triggers []Trigger
		refused  bool
	}{
		"airflow":                    {target.Target{Airflow: target.Airflow{DAG: "train"}}, shared, true},
		"argo events":                {target.Target{ArgoEvents: target.ArgoEvents{URL: "u"}}, shared, true},
		"command":                    {target.Target{Command: target.Command{Config: command.Config{Run: []string{"train"}}}}, shared, true},
		"gitlab":                     {target.Target{GitLab: target.GitLab{Project: "p"}}, shared, true},
		"github with an event type":  {target.Target{GitHub: target.GitHub{Repository: "r", EventType: "train"}}, shared, true},
		"jenkins":                    {target.Target{Jenkins: target.Jenkins{URL: "u"}}, shared, true},
		"jenkins for this order":     {target.Target{Jenkins: target.Jenkins{URL: "u"}}, apart, false},
		"github tells them apart":    {target.Target{GitHub: target.GitHub{Repository: "r"}}, shared, false},
		"a webhook tells them apart": {target.Target{Webhook: "u"}, shared, false},
		"a topic tells them apart":   {target.Target{Kafka: target.Kafka{Topic: "u"}}, shared, false},
	} {
		tt.to.Name = "t"
		c := Config{Targets: []target.Target{tt.to, {Name: "other"}}, Triggers: tt.triggers}
		want := []string(nil)
		if tt.refused {
			want = []string{`triggers[1].target: target "t" starts the same pipeline for every request, and recipe "ranker" uses it to retrain, so a request to freeze would start a retraining or be skipped. Use a different target for recipe "stop"`}
		}
		var got []string
		c.CheckRecipes(recipes, func(path, msg string) { got = append(got, path+": "+msg) })
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if msg := c.mixes(recipes, "stop", "t"); (msg != "") != tt.refused {
			t.Errorf("%s, if a person asks: %q", name, msg)
		}
	}
}
