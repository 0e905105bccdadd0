package bank

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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
	KS           KSConfig       `yaml:"ks"`
	Guaranteed   []GivenMean    `yaml:"guaranteed"`     // signals whose mean is known from elsewhere: their false alarms are guaranteed, whatever their law
	Fleet        Budget         `yaml:"-"`              // the policy's share of a budget over all policies; Budget 0 where there is none
	OnNewVersion string         `yaml:"on_new_version"` // what a new policy_version does: compare keeps the baseline, and alarms list the versions on each side; rebaseline collects a baseline of the new version beside the old one, which it replaces once it is complete
}

// BaselineConfig says where the reference units come from.
type BaselineConfig struct {
	From    string         `yaml:"from"`    // warmup: the first units that arrive; file: the units of recorded telemetry; pinned: those of ranges of offsets of the topic
	Units   int            `yaml:"units"`   // size of an accepted baseline
	File    string         `yaml:"file"`    // the recorded telemetry, where from is file
	Offsets []ingest.Range `yaml:"offsets"` // the ranges, where from is pinned; the topic must hold them when the service starts without a baseline
}

// Budget is how many false alarms a policy may raise, on average, in a stretch of telemetry.
type Budget struct {
	Budget float64 `yaml:"budget"` // false alarms that can be borne, on average, in the stretch per
	Per    Per     `yaml:"per"`    // a duration, or a count such as "20000 episodes", "1000000 steps" or "500000 observations"
	Shares Shares  `yaml:"shares"`
}

// Shares says how the budget is shared out. They sum to 1 at most; what one class does not use is the others'.
type Shares struct {
	Primary float64 `yaml:"primary"` // of the return, the reward, the length, actions and outcomes
	Other   float64 `yaml:"other"`   // of all other signals
	KS      float64 `yaml:"ks"`      // of the sliding Kolmogorov-Smirnov tests of all signals
}

// maxWindow is the largest ks.window.
const maxWindow = 400

// KSConfig says how the sliding Kolmogorov-Smirnov test runs.
type KSConfig struct {
	Window int `yaml:"window"` // units that are compared with the baseline: 50, 100, 200 or 400
}

// The sources of a baseline.
const (
	FromWarmup = "warmup"
	FromFile   = "file"
	FromPinned = "pinned"
)

// What a new policy version does to the baseline. Compare keeps it, and alarms list the versions on each side. Rebaseline
// judges the units of the old version by it until a baseline of the new version is complete, which then takes over.
const (
	OnNewVersionCompare    = "compare"
	OnNewVersionRebaseline = "rebaseline"
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
		GroupBy:  []string{"env"},
		Signals:  []string{"*"},
		Baseline: BaselineConfig{From: FromWarmup, Units: 500},
		FalseAlarms: Budget{
			Budget: 1, Per: Per{Amount: (30 * 24 * time.Hour).Seconds(), Unit: PerTime},
			Shares: Shares{Primary: .8, Other: .15, KS: .05},
		},
		KS:           KSConfig{Window: 200},
		OnNewVersion: OnNewVersionCompare,
	}
}

// hash tells configurations apart.
func (c Config) hash() string {
	text, err := json.Marshal(c)
	if err != nil {
		return "" // a number that JSON does not have, which Check refuses
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
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
	c.FalseAlarms.Shares.check(report)
	checkGiven(c.Guaranteed, report)
	if !slices.Contains([]int{50, 100, 200, maxWindow}, c.KS.Window) {
		report("ks.window", fmt.Sprintf("must be 50, 100, 200 or 400, not %d", c.KS.Window))
	}
	if c.OnNewVersion != OnNewVersionCompare && c.OnNewVersion != OnNewVersionRebaseline {
		report("on_new_version", fmt.Sprintf(`must be "compare" or "rebaseline", not %q`, c.OnNewVersion))
	}
}

func (s Shares) check(report func(path, msg string)) {
	for _, share := range []struct {
		name string
		x    float64
	}{{"primary", s.Primary}, {"other", s.Other}, {"ks", s.KS}} {
		if !(share.x >= 0 && share.x <= 1) {
			report("false_alarms.shares."+share.name, "must be from 0 to 1")
		}
	}
	switch sum := s.Primary + s.Other + s.KS; {
	case sum > 1+1e-9:
		report("false_alarms.shares", "must not sum to more than 1")
	case sum == 0:
		report("false_alarms.shares", "must not all be 0: nothing could raise an alarm")
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
func mayBeSignal(glob string) bool { return strings.ContainsAny(glob, `*?[\`) || IsSignal(glob) }

// IsSignal reports whether a signal can have this name.
func IsSignal(name string) bool {
	switch name {
	case "return", "reward", "episode_length", "action":
		return true
	}
	for _, prefix := range []string{"action.", "outcome.", "reward_component.", "observation."} {
		if len(name) > len(prefix) && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

func (b BaselineConfig) check(report func(path, msg string)) {
	if b.Units < MinBaselineUnits {
		report("baseline.units", fmt.Sprintf("must be at least %d", MinBaselineUnits))
	}
	if b.From != FromWarmup && b.From != FromFile && b.From != FromPinned {
		report("baseline.from", fmt.Sprintf(`must be "warmup", "file" or "pinned", not %q`, b.From))
		return
	}
	switch isFile := b.From == FromFile; {
	case isFile && b.File == "":
		report("baseline.file", `must name a file, as baseline.from is "file"`)
	case !isFile && b.File != "":
		report("baseline.file", `is not read unless baseline.from is "file"`)
	}
	switch isPinned := b.From == FromPinned; {
	case isPinned && len(b.Offsets) == 0:
		report("baseline.offsets", `must list ranges, as baseline.from is "pinned"`)
	case !isPinned && len(b.Offsets) > 0:
		report("baseline.offsets", `are not read unless baseline.from is "pinned"`)
	}
	for i, r := range b.Offsets {
		b.checkRange(i, r, report)
	}
}

func (b BaselineConfig) checkRange(i int, r ingest.Range, report func(path, msg string)) {
	at := fmt.Sprintf("baseline.offsets[%d]", i)
	if r.Partition < 0 || r.First < 0 || r.Last < r.First {
		report(at, "must be a partition from 0 on, and offsets from 0 on of which the last is not before the first")
	}
	for _, other := range b.Offsets[:i] {
		if other.Partition == r.Partition && other.First <= r.Last && r.First <= other.Last {
			report(at, "overlaps with another range: its units would count twice")
		}
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
