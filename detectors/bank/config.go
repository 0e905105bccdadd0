package bank

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Config says how the policies that one entry of the configuration matches are watched.
type Config struct {
	GroupBy      []string       `yaml:"group_by"` // what divides a policy into groups: env, or labels.<name> for a label of the events
	Signals      []string       `yaml:"signals"`  // globs over the names of signals; a signal that none matches is not followed
	Baseline     BaselineConfig `yaml:"baseline"`
	FalseAlarms  Budget         `yaml:"false_alarms"`
	OnNewVersion string         `yaml:"on_new_version"` // what a new policy_version does: compare keeps the baseline, and alarms list the versions on each side
}

// BaselineConfig says where the reference units come from.
type BaselineConfig struct {
	From  string `yaml:"from"`  // warmup: the first units that arrive; file: the units of recorded telemetry
	Units int    `yaml:"units"` // size of an accepted baseline
	File  string `yaml:"file"`  // the recorded telemetry, where from is file
}

// Budget is how many false alarms a policy may raise, on average, in a stretch of telemetry.
type Budget struct {
	Budget float64 `yaml:"budget"` // false alarms that can be borne, on average, in the stretch per
	Per    Per     `yaml:"per"`    // a duration, or a count such as "20000 episodes", "1000000 steps" or "500000 observations"
}

// The sources of a baseline.
const (
	FromWarmup = "warmup"
	FromFile   = "file"
)

// What a new policy version does to the baseline. Compare keeps it, and alarms list the versions on each side.
const (
	OnNewVersionCompare = "compare"
)

// The units of Per.
const (
	PerTime         = "time"
	PerEpisodes     = "episodes"
	PerSteps        = "steps"
	PerObservations = "observations"
)

// MinBaselineUnits is the smallest baseline that can be asked for: below it no detector can be armed.
const MinBaselineUnits = 20

// DefaultConfig watches every signal by environment, learns from the first 500 units, and allows one false alarm a
// policy in 30 days.
func DefaultConfig() Config {
	return Config{
		GroupBy:      []string{"env"},
		Signals:      []string{"*"},
		Baseline:     BaselineConfig{From: FromWarmup, Units: 500},
		FalseAlarms:  Budget{Budget: 1, Per: Per{Amount: (30 * 24 * time.Hour).Seconds(), Unit: PerTime}},
		OnNewVersion: OnNewVersionCompare,
	}
}

// Check reports every value that is out of its range, with its path relative to c.
func (c Config) Check(report func(path, msg string)) {
	c.checkGroupBy(report)
	c.checkSignals(report)
	c.Baseline.check(report)
	if !(c.FalseAlarms.Budget > 0) {
		report("false_alarms.budget", "must be greater than 0")
	}
	if !(c.FalseAlarms.Per.Amount > 0) {
		report("false_alarms.per", "must be greater than 0")
	}
	switch c.OnNewVersion {
	case OnNewVersionCompare:
	case "rebaseline":
		report("on_new_version", `"rebaseline" is not supported by this version; use "compare"`)
	default:
		report("on_new_version", fmt.Sprintf(`must be "compare", not %q`, c.OnNewVersion))
	}
}

func (c Config) checkGroupBy(report func(path, msg string)) {
	seen := map[string]bool{}
	for i, key := range c.GroupBy {
		at := fmt.Sprintf("group_by[%d]", i)
		name, isLabel := strings.CutPrefix(key, "labels.")
		switch {
		case seen[key]:
			report(at, fmt.Sprintf("%q is listed twice", key))
		case key == "env":
		case !isLabel:
			report(at, fmt.Sprintf(`must be "env" or "labels.<name>", not %q`, key))
		case !model.LegacyValidation.IsValidLabelName("label_" + name):
			report(at, fmt.Sprintf("%q cannot be the name of a Prometheus label; use letters, digits and _", name))
		}
		seen[key] = true
	}
}

func (c Config) checkSignals(report func(path, msg string)) {
	if len(c.Signals) == 0 {
		report("signals", `must name at least one signal; "*" is all of them`)
	}
	for i, glob := range c.Signals {
		at := fmt.Sprintf("signals[%d]", i)
		if !ValidGlob(glob) {
			report(at, fmt.Sprintf("%q is not a valid pattern", glob))
		} else if !mayBeSignal(glob) {
			report(at, fmt.Sprintf("no signal is called %q; there are return, reward, episode_length, action, action.<i>, "+
				"outcome.<name>, reward_component.<name> and observation.<name>", glob))
		}
	}
}

// mayBeSignal catches misspelt names, which would silently leave a signal unwatched. A pattern is taken as it is.
func mayBeSignal(glob string) bool {
	switch glob {
	case "return", "reward", "episode_length", "action":
		return true
	}
	if strings.ContainsAny(glob, `*?[\`) {
		return true
	}
	for _, prefix := range []string{"action.", "outcome.", "reward_component.", "observation."} {
		if len(glob) > len(prefix) && strings.HasPrefix(glob, prefix) {
			return true
		}
	}
	return false
}

func (b BaselineConfig) check(report func(path, msg string)) {
	if b.Units < MinBaselineUnits {
		report("baseline.units", fmt.Sprintf("must be at least %d", MinBaselineUnits))
	}
	switch {
	case b.From != FromWarmup && b.From != FromFile:
		report("baseline.from", fmt.Sprintf(`must be "warmup" or "file", not %q`, b.From))
	case b.From == FromFile && b.File == "":
		report("baseline.file", `must name a file, as baseline.from is "file"`)
	case b.From == FromWarmup && b.File != "":
		report("baseline.file", `is not read unless baseline.from is "file"`)
	}
}

// GroupLabel gives the name under which a key of group_by appears in groups and metrics: env is env, labels.region is
// label_region.
func GroupLabel(key string) string {
	if name, ok := strings.CutPrefix(key, "labels."); ok {
		return "label_" + name
	}
	return key
}

// Follows reports whether the signal of that name is to be followed.
func (c Config) Follows(signal string) bool {
	for _, glob := range c.Signals {
		if Match(glob, signal) {
			return true
		}
	}
	return false
}

// ValidGlob reports whether a glob can be matched at all.
func ValidGlob(glob string) bool {
	_, err := path.Match(glob, "")
	return err == nil
}

// groups reports whether a group has the labels that c groups by.
func (c Config) groups(key ingest.Group) bool {
	labels := key.Labels()
	return slices.EqualFunc(c.GroupBy, labels, func(by string, l ingest.Label) bool { return GroupLabel(by) == l.Name })
}

// Match reports whether a name matches a glob: * is any run of characters, ? any one, [a-z] one of a set. A slash is a
// character like any other, as names such as ALE/Pong-v5 are common. A malformed glob matches nothing.
func Match(glob, name string) bool {
	const flat = "\x1f"
	ok, err := path.Match(strings.ReplaceAll(glob, "/", flat), strings.ReplaceAll(name, "/", flat))
	return err == nil && ok
}

// Per is the stretch of telemetry that a budget of false alarms is for.
type Per struct {
	Amount float64 // seconds where Unit is time, else a count
	Unit   string  // time, episodes, steps or observations
}

var errPer = errors.New(`must be a duration such as 30d, or a count such as "20000 episodes", "1000000 steps" or "500000 observations"`)

// UnmarshalText reads a Prometheus duration, or a count and its unit.
func (p *Per) UnmarshalText(text []byte) error {
	fields := strings.Fields(string(text))
	switch len(fields) {
	case 1:
		d, err := model.ParseDuration(fields[0])
		if err != nil {
			return errPer
		}
		*p = Per{Amount: time.Duration(d).Seconds(), Unit: PerTime}
		return nil
	case 2:
		return p.setCount(fields[0], fields[1])
	}
	return errPer
}

func (p *Per) setCount(amount, unit string) error {
	n, err := strconv.ParseUint(amount, 10, 53)
	if err != nil {
		return errPer
	}
	switch unit {
	case PerEpisodes, PerSteps, PerObservations:
		*p = Per{Amount: float64(n), Unit: unit}
		return nil
	}
	return errPer
}

// MarshalText writes what UnmarshalText reads.
func (p Per) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// String gives the stretch as it is written in the configuration.
func (p Per) String() string {
	if p.Unit == PerTime {
		return model.Duration(p.Amount * float64(time.Second)).String()
	}
	return strconv.FormatFloat(p.Amount, 'f', -1, 64) + " " + p.Unit
}
