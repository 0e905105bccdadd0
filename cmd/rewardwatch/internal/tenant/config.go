// Package tenant divides policies and limits among tenants: it defines which tenant owns a policy, and how much each
// tenant can use.
//
// The owner of a policy follows from the name of the policy alone, so it is the same in every process and after every
// restart. If the topic or labels of an event belong to a tenant, its policy is prefixed with the name of that tenant.
package tenant

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Config configures a tenant: a team whose policies are separate from those of others. If the topic or labels of its
// events are assigned to a tenant, a policy belongs to that tenant and is named `TENANT:POLICY`. Otherwise, it belongs
// to the first tenant with a pattern that matches its name. All other policies have no tenant.
type Config struct {
	Name     string            `yaml:"name"`     // lowercase letters, digits and hyphens
	Topics   []string          `yaml:"topics"`   // telemetry topics of the tenant, which no other tenant can use
	Labels   map[string]string `yaml:"labels"`   // labels of the tenant's events, all of which must match
	Policies []string          `yaml:"policies"` // patterns of policy names, as in `policies[].match`

	FalseAlarms Budget `yaml:"false_alarms"`
	Quota       Quota  `yaml:"quota"`
}

// Budget configures a false alarm budget for all policies of the tenant together. The strictest of a policy's own
// budget, the fleet's budget and an equal share of this budget applies.
type Budget struct {
	Budget float64   `yaml:"budget"` // average number of false alarms in the period set by `per`, divided among `quota.policies` policies (0 for no budget)
	Per    watch.Per `yaml:"per"`    // period of the budget, written as in `policies[].false_alarms`
}

// Quota configures how much of the limits a tenant can use. The rest is divided equally among the tenants without a
// quota and the policies without a tenant. A quota is reserved: no one else can use it.
type Quota struct {
	Policies       int     `yaml:"policies"`         // maximum number of its policies per instance (0 for no limit)
	Streams        int     `yaml:"streams"`          // its share of `limits.streams` (0 for an equal share of the rest)
	OpenEpisodes   int     `yaml:"open_episodes"`    // its share of `limits.open_episodes` (0 for an equal share of the rest)
	OpenDecisions  int     `yaml:"open_decisions"`   // its share of `limits.open_decisions` (0 for an equal share of the rest)
	UnitsPerSecond float64 `yaml:"units_per_second"` // maximum rate of its units per partition in event time, averaged over 10 s. Units above it are not judged (0 for no limit)
}

// UnmarshalYAML reads a tenant over its defaults.
func (c *Config) UnmarshalYAML(unmarshal func(any) error) error {
	type plain Config
	*c = Config{FalseAlarms: Budget{Per: watch.DefaultConfig().FalseAlarms.Per}}
	return unmarshal((*plain)(c))
}

// Limits are the limits that are divided among tenants.
type Limits struct{ Streams, OpenEpisodes, OpenDecisions int }

var validName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}$`)

// Check reports every value that is out of its range, with its path.
func (l List) Check(limits Limits, report func(path, msg string)) {
	names, topics := map[string]bool{}, map[string]bool{}
	for i, c := range l {
		within := func(path, msg string) { report(fmt.Sprintf("tenants[%d].%s", i, path), msg) }
		switch {
		case !validName.MatchString(c.Name):
			within("name", "must be 1 to 40 lowercase letters, digits and hyphens, and begin with a letter or digit")
		case names[c.Name]:
			within("name", "another tenant has this name")
		}
		names[c.Name] = true
		l[:i].checkHidden(c, within)
		for k, glob := range c.Policies {
			if other := l.named(glob); other >= 0 {
				within(fmt.Sprintf("policies[%d]", k), fmt.Sprintf("has no effect: policies whose names begin with %q belong to the tenant %q", l[other].Name+divider, l[other].Name))
			}
		}
		for k, topic := range c.Topics {
			if topics[topic] {
				within(fmt.Sprintf("topics[%d]", k), "belongs to another tenant, or is listed twice")
			}
			topics[topic] = true
		}
		c.check(within)
	}
	for _, d := range []struct {
		key   string
		limit int
		of    func(Quota) int
	}{
		{"streams", limits.Streams, streamsOf},
		{"open_episodes", limits.OpenEpisodes, episodesOf},
		{"open_decisions", limits.OpenDecisions, decisionsOf},
	} {
		if _, fits := l.divide(d.limit, d.of); len(l) > 0 && !fits {
			report("tenants", fmt.Sprintf("the %s quotas exceed limits.%s (%d): they must leave at least 1 for each tenant without a quota, and 1 for policies without a tenant",
				d.key, d.key, d.limit))
		}
	}
}

// checkHidden reports settings of a tenant that have no effect because of tenants listed before it.
func (l List) checkHidden(c Config, report func(path, msg string)) {
	for _, before := range l {
		if len(before.Labels) > 0 && len(c.Labels) > 0 && covers(before.Labels, c.Labels) {
			report("labels", fmt.Sprintf("have no effect: events with these labels belong to the tenant %q, which is listed first", before.Name))
		}
		for i, glob := range c.Policies {
			if slices.ContainsFunc(before.Policies, func(first string) bool { return hides(first, glob) }) {
				report(fmt.Sprintf("policies[%d]", i), fmt.Sprintf("has no effect: policies that match %q belong to the tenant %q, which is listed first", glob, before.Name))
			}
		}
	}
}

// covers reports whether everything with all labels of all also has those of few.
func covers(few, all map[string]string) bool {
	for name, value := range few {
		if all[name] != value {
			return false
		}
	}
	return true
}

// hides reports whether a pattern certainly matches all names that another one matches: the two are equal, or its only
// special characters are stars.
func hides(first, glob string) bool {
	return first == glob || !strings.ContainsAny(first, `?[\`) && signals.Match(first, glob)
}

func (c Config) check(report func(path, msg string)) {
	if len(c.Topics)+len(c.Labels)+len(c.Policies) == 0 {
		report("policies", "must be set unless topics or labels are set")
	}
	for i, topic := range c.Topics {
		if !ingest.ValidTopic(topic) {
			report(fmt.Sprintf("topics[%d]", i), "must be 1 to 249 letters, digits, dots, underscores and hyphens")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Labels)) {
		if name == "" || c.Labels[name] == "" {
			report("labels", "must each have a name and a value")
		}
	}
	for i, glob := range c.Policies {
		if glob == "" || !signals.ValidGlob(glob) {
			report(fmt.Sprintf("policies[%d]", i), fmt.Sprintf("%q is not a valid pattern", glob))
		}
	}
	for key, value := range map[string]float64{
		"policies": float64(c.Quota.Policies), "streams": float64(c.Quota.Streams), "open_episodes": float64(c.Quota.OpenEpisodes),
		"open_decisions": float64(c.Quota.OpenDecisions), "units_per_second": c.Quota.UnitsPerSecond,
	} {
		if !(value >= 0) {
			report("quota."+key, "must not be negative")
		}
	}
	switch b := c.FalseAlarms; {
	case !(b.Budget >= 0):
		report("false_alarms.budget", "must not be negative")
	case b.Budget > 0 && c.Quota.Policies < 1:
		report("false_alarms.budget", "requires quota.policies, the number of policies that share it")
	case !(b.Per.Amount > 0):
		report("false_alarms.per", "must be greater than 0")
	}
}

func streamsOf(q Quota) int   { return q.Streams }
func episodesOf(q Quota) int  { return q.OpenEpisodes }
func decisionsOf(q Quota) int { return q.OpenDecisions }

// divide divides a limit among the tenants and, as the last part, the policies without a tenant. It reports whether
// every part is at least 1.
func (l List) divide(limit int, of func(Quota) int) (parts []int, fits bool) {
	left, without := limit, 1
	for _, c := range l {
		if n := of(c.Quota); n > 0 {
			left -= n
		} else {
			without++
		}
	}
	even := left / without
	for _, c := range l {
		if n := of(c.Quota); n > 0 {
			parts = append(parts, n)
		} else {
			parts = append(parts, max(1, even))
		}
	}
	return append(parts, max(1, left-even*(without-1))), even >= 1
}

// Streams divides limits.streams among the tenants and, as the last part, the policies without a tenant.
func (l List) Streams(limit int) []int {
	parts, _ := l.divide(limit, streamsOf)
	return parts
}

// OpenEpisodes divides limits.open_episodes like Streams.
func (l List) OpenEpisodes(limit int) []int {
	parts, _ := l.divide(limit, episodesOf)
	return parts
}

// OpenDecisions divides limits.open_decisions like Streams.
func (l List) OpenDecisions(limit int) []int {
	parts, _ := l.divide(limit, decisionsOf)
	return parts
}

// List are all tenants.
type List []Config

// divider separates the name of a tenant from the name of its policy.
const divider = ":"

// Of returns the index of the tenant that a policy belongs to, and the number of tenants if it belongs to none.
func (l List) Of(policy string) int {
	if i := l.named(policy); i >= 0 {
		return i
	}
	for i, c := range l {
		if slices.ContainsFunc(c.Policies, func(glob string) bool { return signals.Match(glob, policy) }) {
			return i
		}
	}
	return len(l)
}

// named returns the index of the tenant with whose name the name of a policy, or a pattern, begins, or -1 if there is
// none.
func (l List) named(policy string) int {
	name, _, has := strings.Cut(policy, divider)
	if !has {
		return -1
	}
	return slices.IndexFunc(l, func(c Config) bool { return c.Name == name && c.prefixes() })
}

// Name returns the name of the tenant that a policy belongs to, or "" if it belongs to none.
func (l List) Name(policy string) string {
	if i := l.Of(policy); i < len(l) {
		return l[i].Name
	}
	return ""
}

// Has reports whether there is a tenant with a name.
func (l List) Has(name string) bool {
	return slices.ContainsFunc(l, func(c Config) bool { return c.Name == name })
}

// Names returns the names of all tenants.
func (l List) Names() (names []string) {
	for _, c := range l {
		names = append(names, c.Name)
	}
	return names
}

// Inbox returns the index of the topic for records that a tenant sends over HTTP, or the platform if name is "". topics
// are those that accept records over HTTP. Inbox returns the tenant's own first topic, or else the first topic of no
// tenant. It returns -1 if there is no topic whose events can belong to the tenant.
func (l List) Inbox(name string, topics []string) int {
	of := slices.IndexFunc(l, func(c Config) bool { return c.Name == name })
	if of >= 0 {
		if own := slices.IndexFunc(topics, func(t string) bool { return slices.Contains(l[of].Topics, t) }); own >= 0 || len(l[of].Labels)+len(l[of].Policies) == 0 {
			return own
		}
	}
	return slices.IndexFunc(topics, func(t string) bool {
		return !slices.ContainsFunc(l, func(c Config) bool { return slices.Contains(c.Topics, t) })
	})
}

// Budget returns the share in the budget of a tenant for each of its policies; 0 if there is none. policy is one of
// them.
func (l List) Budget(policy string) watch.Budget {
	i := l.Of(policy)
	if i == len(l) || l[i].FalseAlarms.Budget == 0 {
		return watch.Budget{}
	}
	b := l[i].FalseAlarms
	return watch.Budget{Budget: b.Budget / float64(l[i].Quota.Policies), Per: b.Per}
}

// prefixes reports whether the names of the tenant's policies begin with the name of the tenant.
func (c Config) prefixes() bool { return len(c.Topics)+len(c.Labels) > 0 }
