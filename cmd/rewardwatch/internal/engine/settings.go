package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/tenant"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/feedback"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// CheckpointConfig configures how state is kept across restarts.
type CheckpointConfig struct {
	Directory string         `yaml:"directory"` // directory of the state, which is created if missing. Not used in a cluster
	Every     model.Duration `yaml:"every"`     // time between checkpoints, and the maximum span of telemetry that is read again after a crash. Policies are saved less often if saves take a long time
}

// PolicyConfig configures how policies are monitored. The first entry that matches applies. A policy that matches no entry is
// not monitored. Without entries, every policy is monitored with the defaults.
type PolicyConfig struct {
	Match        string `yaml:"match"` // glob for the name of the policy. `*` also matches slashes
	watch.Config `yaml:",inline"`
	Feedback     feedback.Config `yaml:"feedback"`
}

// FleetConfig configures a false alarm budget for all policies together. The stricter of a policy's own budget and an
// equal share of this budget applies.
type FleetConfig struct {
	Budget   float64   `yaml:"budget"`   // average number of false alarms in the period set by `per` (0 for no budget)
	Per      watch.Per `yaml:"per"`      // period of the budget, written as in `policies[].false_alarms`
	Policies int       `yaml:"policies"` // number of policies that share the budget. With more policies, the budget is exceeded and a warning is logged
}

// LimitsConfig configures limits on what is kept in memory. Reaching a limit is counted, but never stops the service.
type LimitsConfig struct {
	Streams       int `yaml:"streams"`        // maximum number of judged streams. One policy can take at most half of the limit
	OpenEpisodes  int `yaml:"open_episodes"`  // maximum number of unfinished episodes per partition. Above it, the oldest is dropped
	OpenDecisions int `yaml:"open_decisions"` // maximum number of decisions per partition that are waiting for feedback. Above it, the decision whose window ends first is dropped
	Series        int `yaml:"series"`         // maximum number of exported series. Healthy streams and guards are omitted first

	// maximum resident memory of the process. Above it, the least recently used groups are evicted to the checkpoint
	Memory ingest.ByteSize `yaml:"memory"`
}

// UnmarshalYAML reads a policy entry over its defaults.
func (p *PolicyConfig) UnmarshalYAML(unmarshal func(any) error) error {
	type plain PolicyConfig
	*p = PolicyConfig{Config: watch.DefaultConfig()}
	return unmarshal((*plain)(p))
}

// Policy returns how the named policy is monitored, and whether it is monitored.
func (c *Settings) Policy(name string) (cfg watch.Config, watched bool) {
	if len(c.Policies) == 0 {
		cfg, watched = watch.DefaultConfig(), true
	}
	if i := c.entry(name); i >= 0 {
		cfg, watched = c.Policies[i].Config, true
	}
	if c.Fleet.Budget > 0 {
		cfg.Fleet = watch.Budget{Budget: c.Fleet.Budget / float64(c.Fleet.Policies), Per: c.Fleet.Per}
	}
	cfg.Tenant = c.Tenants.Budget(name)
	return cfg, watched
}

// Joins reports whether any policy has delayed feedback, which may arrive in another topic.
func (c *Settings) Joins() bool {
	return slices.ContainsFunc(c.Policies, func(p PolicyConfig) bool { return p.Feedback.Enabled() })
}

// Feedback returns how the decisions of the named policy are joined with delayed feedback.
func (c *Settings) Feedback(name string) feedback.Config {
	if i := c.entry(name); i >= 0 {
		return c.Policies[i].Feedback
	}
	return feedback.Config{}
}

// JoinKey returns the key that a decision and its delayed feedback share, or "" for events of other policies.
func (c *Settings) JoinKey(e *ingest.Event) string {
	if f := c.Feedback(e.Policy); f.Enabled() {
		return f.KeyOf(e)
	}
	return ""
}

// JoinKeys describes the result of JoinKey, as a list of the policies with a key and the entries before them.
func (c *Settings) JoinKeys() string {
	var all []string
	last := 0
	for i, p := range c.Policies {
		if all = append(all, p.Match+"="+p.Feedback.Key); p.Feedback.Enabled() {
			last = i + 1
		}
	}
	return strings.Join(all[:last], " ")
}

// Key returns the key that related events of a policy share: the key of delayed feedback, or else their agent, or else
// the policy.
func (c *Settings) Key(e *ingest.Event) string {
	return cmp.Or(c.JoinKey(e), e.AgentID, e.Policy)
}

// check reports every value that is out of range, with its path.
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

// entry returns the index of the entry that applies to a policy, or -1 if there is none.
func (c *Settings) entry(name string) int {
	return slices.IndexFunc(c.Policies, func(p PolicyConfig) bool { return signals.Match(p.Match, name) })
}

// GroupLabels returns the labels by which any policy is grouped, as they are spelled in metrics.
func (c *Settings) GroupLabels() []string {
	policies := c.Policies
	if len(policies) == 0 {
		policies = []PolicyConfig{{Config: watch.DefaultConfig()}}
	}
	var out []string
	for _, p := range policies {
		for _, key := range p.GroupBy {
			if label := watch.GroupLabel(key); !slices.Contains(out, label) {
				out = append(out, label)
			}
		}
		if len(p.Feedback.Horizons) > 0 && !slices.Contains(out, ingest.HorizonLabel) {
			out = append(out, ingest.HorizonLabel)
		}
	}
	return out
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
		report("match", `must be the name of a policy or a pattern; "*" matches all policies`)
	} else if !signals.ValidGlob(p.Match) {
		report("match", fmt.Sprintf("%q is not a valid pattern", p.Match))
	}
	p.Check(report)
	p.Feedback.Check(func(path, msg string) { report(yamlfile.Join("feedback", path), msg) })
}

// leastMemory is the memory that the process takes without any groups, plus the same amount for data that it reads.
const leastMemory = 128 * ingest.MiB

func (l LimitsConfig) check(report func(path, msg string)) {
	atLeast := func(key string, value, least int) {
		if value < least {
			report(key, fmt.Sprintf("must be at least %d", least))
		}
	}
	atLeast("streams", l.Streams, 1)
	atLeast("open_episodes", l.OpenEpisodes, 1)
	atLeast("open_decisions", l.OpenDecisions, 1)
	atLeast("series", l.Series, 100)
	if l.Memory < leastMemory {
		report("memory", fmt.Sprintf("must be at least %s", leastMemory))
	}
}

// Settings determine which policies are monitored, and how their state is kept and limited.
type Settings struct {
	Checkpoint CheckpointConfig `yaml:"checkpoint"`
	Policies   []PolicyConfig   `yaml:"policies"`
	Fleet      FleetConfig      `yaml:"fleet"`
	Limits     LimitsConfig     `yaml:"limits"`
	Tenants    tenant.List      `yaml:"tenants"`
}

// DefaultSettings returns settings that monitor every signal of every policy.
func DefaultSettings() Settings {
	return Settings{
		Checkpoint: CheckpointConfig{
			Directory: "data/checkpoints",
			Every:     model.Duration(10 * time.Second),
		},
		Fleet:  FleetConfig{Per: watch.DefaultConfig().FalseAlarms.Per, Policies: 10},
		Limits: LimitsConfig{Streams: 20000, OpenEpisodes: 100000, OpenDecisions: 1_000_000, Series: 50000, Memory: 2 * ingest.GiB},
	}
}

// Check reports every value that is out of range, with its path.
func (c *Settings) Check(report func(path, msg string)) {
	within := func(section string) func(path, msg string) {
		return func(path, msg string) { report(yamlfile.Join(section, path), msg) }
	}
	c.Checkpoint.check(within("checkpoint"))
	for i, p := range c.Policies {
		p.check(within(fmt.Sprintf("policies[%d]", i)))
	}
	c.Fleet.check(report)
	c.Limits.check(within("limits"))
	c.Tenants.Check(c.divided(), report)
}
