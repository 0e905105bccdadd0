package retrain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
)

// The values of Trigger.On.
const (
	OnIncident = "incident"
	OnSchedule = "schedule"
)

const defaultCooldown = model.Duration(24 * time.Hour)

// Trigger is a rule that requests retrainings. The first one that matches an incident applies. Empty lists match all.
type Trigger struct {
	On       string   `yaml:"on"`       // what fires the trigger: `incident` or `schedule`
	Policies []string `yaml:"policies"` // globs for policies (with `on: schedule`, their names)

	Signals      []string        `yaml:"signals"`      // names or globs of alarming signals (only with `on: incident`)
	Causes       []alerts.Cause  `yaml:"causes"`       // `environment`, `policy` or `unknown` (only with `on: incident`)
	OffPolicy    []finding.Shown `yaml:"off_policy"`   // required result of the off-policy estimate: `policy`, `world` or `both` (only with `on: incident`)
	Severity     alerts.Severity `yaml:"severity"`     // `critical`, or `warning` to match both (only with `on: incident`)
	Improvements bool            `yaml:"improvements"` // also match improvements (only with `on: incident`)

	Lasting  model.Duration `yaml:"lasting"`  // how long the incident must have been open, in telemetry time (only with `on: incident`)
	Cooldown model.Duration `yaml:"cooldown"` // minimum time between two requests for one policy (only with `on: incident`)

	Cron string `yaml:"cron"` // minute, hour, day of the month, month and day of the week (only with `on: schedule`), in UTC or in the time zone of a prefix such as `CRON_TZ=Europe/Berlin`

	Recipe   string `yaml:"recipe"`   // name of the recipe
	Target   string `yaml:"target"`   // name of the target
	Approval bool   `yaml:"approval"` // require approval before delivery
}

// UnmarshalYAML reads a trigger over its defaults.
func (t *Trigger) UnmarshalYAML(unmarshal func(any) error) error {
	type plain Trigger
	*t = Trigger{Cooldown: defaultCooldown}
	return unmarshal((*plain)(t))
}

func (c Config) checkTrigger(i int, report func(path, msg string)) {
	t, at := c.Triggers[i], fmt.Sprintf("triggers[%d]", i)
	within := func(key, msg string) { report(at+"."+key, msg) }
	switch t.On {
	case OnIncident:
		t.checkIncident(within)
	case OnSchedule:
		t.checkSchedule(within)
	default:
		within("on", fmt.Sprintf("must be %q or %q, not %q", OnIncident, OnSchedule, t.On))
	}
	if t.Recipe == "" {
		within("recipe", "must name a recipe: every request needs a contract")
	}
	if _, ok := c.target(t.Target); !ok {
		within("target", fmt.Sprintf("unknown target %q", t.Target))
	}
	if slices.ContainsFunc(c.Triggers[:i], t.repeats) {
		report(at, "is the same as an earlier trigger")
	}
}

func (t Trigger) checkIncident(report func(key, msg string)) {
	for _, list := range []struct {
		key, of string
		globs   []string
	}{{"signals", "signal", t.Signals}, {"policies", "policy", t.Policies}} {
		for j, glob := range list.globs {
			if glob == "" || !signals.ValidGlob(glob) {
				report(fmt.Sprintf("%s[%d]", list.key, j), fmt.Sprintf("%q is neither a %s nor a glob", glob, list.of))
			}
		}
	}
	for j, cause := range t.Causes {
		if msg := checkCause(cause); msg != "" {
			report(fmt.Sprintf("causes[%d]", j), msg)
		}
	}
	for j, shown := range t.OffPolicy {
		if !slices.Contains(shownByEstimates(), shown) {
			report(fmt.Sprintf("off_policy[%d]", j), fmt.Sprintf("must be %s, %s or %s, not %q", finding.ShownPolicy, finding.ShownWorld, finding.ShownBoth, shown))
		}
	}
	if t.Severity != "" && t.Severity != alerts.Warning && t.Severity != alerts.Critical {
		report("severity", fmt.Sprintf("must be %s or %s, not %q", alerts.Warning, alerts.Critical, t.Severity))
	}
	if t.Lasting < 0 {
		report("lasting", "must not be negative")
	}
	if t.Cooldown < 0 {
		report("cooldown", "must not be negative")
	}
	if t.Cron != "" {
		report("cron", "can only be set with on: schedule")
	}
}

// shownByEstimates returns what an off-policy estimate can show.
func shownByEstimates() []finding.Shown {
	return []finding.Shown{finding.ShownPolicy, finding.ShownWorld, finding.ShownBoth}
}

func checkCause(c alerts.Cause) string {
	switch {
	case c.NeedsPerson():
		return fmt.Sprintf("%s never triggers a retraining, because the policy would learn the fault; request one manually (rewardwatch retrain request)", c)
	case !slices.Contains([]alerts.Cause{alerts.CauseEnvironment, alerts.CausePolicy, alerts.CauseUnknown}, c):
		return fmt.Sprintf("must be %s, %s or %s, not %q", alerts.CauseEnvironment, alerts.CausePolicy, alerts.CauseUnknown, c)
	}
	return ""
}

func (t Trigger) checkSchedule(report func(key, msg string)) {
	if _, err := parseSchedule(t.Cron); err != nil {
		report("cron", err.Error())
	}
	if len(t.Policies) == 0 {
		report("policies", "must list the policies to retrain on the schedule")
	}
	for j, policy := range t.Policies {
		switch {
		case policy == "":
			report(fmt.Sprintf("policies[%d]", j), "must not be empty")
		case slices.Contains(t.Policies[:j], policy):
			report(fmt.Sprintf("policies[%d]", j), fmt.Sprintf("%q is listed twice", policy))
		}
	}
	for _, of := range []struct {
		key   string
		given bool
	}{
		{"signals", len(t.Signals) > 0},
		{"causes", len(t.Causes) > 0},
		{"off_policy", len(t.OffPolicy) > 0},
		{"severity", t.Severity != ""},
		{"improvements", t.Improvements},
		{"lasting", t.Lasting != 0},
		{"cooldown", t.Cooldown != 0 && t.Cooldown != defaultCooldown},
	} {
		if of.given {
			report(of.key, "can only be set with on: incident")
		}
	}
}

// repeats reports whether an earlier trigger makes this one ineffective.
func (t Trigger) repeats(earlier Trigger) bool {
	if t.key() != earlier.key() {
		return false
	}
	return t.On != OnSchedule || slices.ContainsFunc(t.Policies, func(p string) bool { return slices.Contains(earlier.Policies, p) })
}

// key identifies the trigger in the ledger. Other fields can be edited without ending a running cooldown or
// ordering the slots of a schedule again.
func (t Trigger) key() string {
	if t.On == OnSchedule {
		return t.On + "(" + strings.Join(strings.Fields(t.Cron), " ") + ") -> " + t.Target
	}
	rules := "*"
	if len(t.Signals) > 0 {
		rules = sorted(t.Signals)
	}
	if len(t.Policies) > 0 {
		rules += "; policies " + sorted(t.Policies)
	}
	if len(t.Causes) > 0 {
		rules += "; causes " + sorted(t.Causes)
	}
	if len(t.OffPolicy) > 0 {
		rules += "; off-policy " + sorted(t.OffPolicy)
	}
	if t.Severity == alerts.Critical {
		rules += "; critical"
	}
	if t.Improvements {
		rules += "; improvements"
	}
	return t.On + "(" + rules + ") -> " + t.Target
}

func sorted[T ~string](list []T) string {
	texts := make([]string, len(list))
	for i, s := range slices.Sorted(slices.Values(list)) {
		texts[i] = string(s)
	}
	return strings.Join(texts, ",")
}

// wants reports whether the trigger applies to an incident, whatever its signals. Every trigger applies to a cause that
// needs a person and to a provisional baseline, so that the decision can say why nothing is ordered.
func (t Trigger) wants(inc *alerts.Incident) bool {
	return t.On == OnIncident &&
		(len(t.Policies) == 0 || matchesAny(t.Policies, inc.Group.Policy)) &&
		(len(t.Causes) == 0 || slices.Contains(t.Causes, inc.Cause) || inc.Cause.NeedsPerson()) &&
		(len(t.OffPolicy) == 0 || slices.Contains(t.OffPolicy, inc.Shown()) || inc.Cause.NeedsPerson()) &&
		(t.Severity != alerts.Critical || inc.Severity == alerts.Critical || inc.Provisional)
}

func (t Trigger) matches(signal string) bool {
	return len(t.Signals) == 0 || matchesAny(t.Signals, signal)
}

func matchesAny(globs []string, name string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool { return signals.Match(glob, name) })
}
