// Package watch defines the configuration of how policies are monitored.
package watch

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Config holds how the policies that match one entry of the configuration are watched.
type Config struct {
	GroupBy      []string       `yaml:"group_by"` // labels that divide a policy into groups: `env` or `labels.<name>`
	Signals      []string       `yaml:"signals"`  // globs for the names of signals to judge
	Baseline     BaselineConfig `yaml:"baseline"`
	FalseAlarms  Budget         `yaml:"false_alarms"`
	KS           KSConfig       `yaml:"ks"`
	Direction    Directions     `yaml:"direction" json:"-"` // direction that is better, by signal name or glob: `up`, `down` or `none` (default: `up` for `return` and `reward`)
	Guaranteed   []GivenMean    `yaml:"guaranteed"`         // signals with a mean known from elsewhere: their false alarms are guaranteed, whatever their distribution
	Causes       CausesConfig   `yaml:"causes" json:"-"`
	Guards       Guards         `yaml:"guards" json:"-"`
	Raters       Raters         `yaml:"raters" json:",omitempty"`  // for each outcome rated by people, the label that identifies the rater (`labels.<name>`). Each rater's usual level is subtracted from the ratings
	Fleet        Budget         `yaml:"-"`                         // the policy's share of a budget over all policies; Budget is 0 if there is none
	Tenant       Budget         `yaml:"-" json:",omitzero"`        // the same of the budget of its tenant
	Learning     Learning       `yaml:"learning" json:",omitzero"` // whether the policy learns while it is monitored: `frozen`, `versions` (each version is frozen) or `continuous`. While it learns, actions and visited states are shown but not judged, and returns and outcomes raise alarms only if they get worse
	Zone         string         `yaml:"zone" json:",omitzero"`     // time zone for hourly, daily and weekend patterns in behavior, such as `Europe/Berlin` (default: `UTC`)
	OnNewVersion string         `yaml:"on_new_version"`            // effect of a new `policy_version`: `compare` keeps the baseline, and `rebaseline` replaces it once the baseline of the new version is complete
}

// BaselineConfig configures the source of the baseline.
type BaselineConfig struct {
	From    string         `yaml:"from"`                    // `warmup` (the first episodes that arrive), `file` (recorded telemetry) or `pinned` (offset ranges in the topic)
	Units   int            `yaml:"units"`                   // number of episodes in an accepted baseline. A warm-up collects up to six times as many to cover two days, or two weeks if days differ
	File    string         `yaml:"file"`                    // recorded telemetry, with `from: file`
	Offsets []ingest.Range `yaml:"offsets"`                 // the ranges, if from is pinned; the topic must hold them when the service starts without a baseline
	Blocks  bool           `yaml:"blocks" json:",omitzero"` // judge frequent one-step episodes in blocks. This uses less CPU, but a baseline requires up to 64 times as many episodes
}

// Budget configures the average number of false alarms that a policy may raise.
type Budget struct {
	Budget float64 `yaml:"budget"` // average number of false alarms in the period set by `per`
	Per    Per     `yaml:"per"`    // a duration, or a count such as `20000 episodes`, `1000000 steps` or `500000 observations`
	Shares Shares  `yaml:"shares"`
}

// CausesConfig configures how causes are found.
type CausesConfig struct {
	Memory  ingest.ByteSize `yaml:"memory"`   // memory per group for laws (models of its steps), and eight times as much while a baseline is collected (0 to find causes from signals only)
	SplitBy []string        `yaml:"split_by"` // `labels.<name>` or `env` that describe the user or request. Laws include their most common values, and if a change is due to their mix, the evidence says so
}

// Context returns the labels that laws include: none if there are no laws.
func (c CausesConfig) Context() []string {
	if c.Memory == 0 {
		return nil
	}
	return c.SplitBy
}

// EachUnitCounts reports whether each decision has effects beyond its block: on raters' levels, on the order of versions,
// or on laws that include its labels.
func (c *Config) EachUnitCounts() bool {
	return len(c.Raters) > 0 || c.OnNewVersion == OnNewVersionRebaseline || c.Causes.Memory > 0 && (len(c.Causes.SplitBy) > 0 || c.Learning.Learns())
}

// mostSplits is the most labels of causes.split_by.
const mostSplits = 4

// LeastCausesMemory is the smallest causes.memory other than 0: the laws of an observation of one component fit
// into it.
const LeastCausesMemory = 64 * ingest.KiB

func (c CausesConfig) check(groupBy []string, report func(path, msg string)) {
	if c.Memory != 0 && c.Memory < LeastCausesMemory {
		report("causes.memory", "must be 0, or at least "+LeastCausesMemory.String())
	}
	if len(c.SplitBy) > mostSplits {
		report("causes.split_by", fmt.Sprintf("must list at most %d labels", mostSplits))
	}
	for i, key := range c.SplitBy {
		at := fmt.Sprintf("causes.split_by[%d]", i)
		switch name, isLabel := strings.CutPrefix(key, "labels."); {
		case slices.Contains(c.SplitBy[:i], key):
			report(at, fmt.Sprintf("%q is listed twice", key))
		case slices.Contains(groupBy, key):
			report(at, fmt.Sprintf("%q is in group_by, so it has the same value throughout a group", key))
		case key != "env" && (!isLabel || name == ""):
			report(at, fmt.Sprintf(`must be "env" or "labels.<name>", not %q`, key))
		}
	}
}

// LeastPromised is the smallest number of units between false alarms that thresholds are set for. With fewer,
// thresholds would have no meaning.
const LeastPromised = 100

// Shares configures how classes of tests share the budget. The sum is at most 1. Budget that a class does not use goes
// to the others.
type Shares struct {
	Primary float64 `yaml:"primary"` // return, reward, length, actions and outcomes
	Other   float64 `yaml:"other"`   // all other signals
	KS      float64 `yaml:"ks"`      // sliding Kolmogorov-Smirnov tests on all signals
}

// MaxWindow is the largest ks.window.
const MaxWindow = 400

// KSConfig configures the sliding Kolmogorov-Smirnov test.
type KSConfig struct {
	Window int `yaml:"window"` // episodes compared with the baseline: 50, 100, 200 or 400
}

// The sources of a baseline.
const (
	FromWarmup = "warmup"
	FromFile   = "file"
	FromPinned = "pinned"
)

// The effects of a new policy version on the baseline. Compare keeps it, and alarms list the versions on each side.
// Rebaseline judges the units of the old version by it until a baseline of the new version is complete, which then
// replaces it.
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

// MinBaselineUnits is the smallest baseline that can be configured: below it no detector can be armed.
const MinBaselineUnits = 20

// DefaultConfig returns a configuration that watches every signal by environment, learns from the first 500 units, and
// allows one false alarm per policy in 30 days.
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
		Causes:       CausesConfig{Memory: 256 * ingest.KiB},
		Guards:       DefaultGuards(),
		Learning:     LearningFrozen,
		OnNewVersion: OnNewVersionCompare,
	}
}

// Hash returns a hash that differs between configurations. Keys that were added later are left out if they have
// their zero value, so that the hash of an older configuration stays the same.
func (c Config) Hash() string {
	text, err := json.Marshal(c)
	if err != nil {
		return "" // a number that JSON cannot represent, which Check refuses
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// Check reports every value that is out of its range, with its path relative to c.
func (c Config) Check(report func(path, msg string)) {
	c.checkGroupBy(report)
	c.checkSignals(report)
	c.Baseline.check(report)
	c.Causes.check(c.GroupBy, report)
	c.Guards.check(report)
	c.Raters.check(c.GroupBy, report)
	if !(c.FalseAlarms.Budget > 0) {
		report("false_alarms.budget", "must be greater than 0")
	}
	if !(c.FalseAlarms.Per.Amount > 0) {
		report("false_alarms.per", "must be greater than 0")
	}
	c.FalseAlarms.Shares.check(report)
	c.Direction.Check(report)
	checkGiven(c.Guaranteed, report)
	c.Learning.check(&c, report)
	if _, err := time.LoadLocation(c.Zone); err != nil || c.Zone == "Local" {
		report("zone", fmt.Sprintf("must be a time zone, such as UTC or Europe/Berlin, not %q", c.Zone))
	}
	if !slices.Contains([]int{50, 100, 200, MaxWindow}, c.KS.Window) {
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
		case !isLabel || name == "":
			report(at, fmt.Sprintf(`must be "env" or "labels.<name>", not %q`, key))
		case !model.LegacyValidation.IsValidLabelName("label_" + name):
			report(at, fmt.Sprintf("%q cannot be the name of a Prometheus label; use letters, digits and _", name))
		}
		seen[key] = true
	}
}

func (c Config) checkSignals(report func(path, msg string)) {
	if len(c.Signals) == 0 {
		report("signals", `must name at least one signal; "*" matches all signals`)
	}
	for i, glob := range c.Signals {
		at := fmt.Sprintf("signals[%d]", i)
		if !signals.ValidGlob(glob) {
			report(at, fmt.Sprintf("%q is not a valid pattern", glob))
		} else if !signals.MayMatch(glob) {
			report(at, noSignal(glob))
		}
	}
}

// noSignal returns the error for a name or glob that no signal matches. It lists the signals.
func noSignal(glob string) string {
	return fmt.Sprintf("unknown signal %q; must be return, reward, episode_length, action, action.<i>, "+
		"outcome.<name>, reward_component.<name>, observation.<name> or feedback_delay", glob)
}

func (b BaselineConfig) check(report func(path, msg string)) {
	if b.Units < MinBaselineUnits {
		report("baseline.units", fmt.Sprintf("must be at least %d", MinBaselineUnits))
	}
	if b.From != FromWarmup && b.From != FromFile && b.From != FromPinned {
		report("baseline.from", fmt.Sprintf(`must be "warmup", "file" or "pinned", not %q`, b.From))
		return
	}
	if b.Blocks && b.From != FromWarmup {
		report("baseline.blocks", `requires baseline.from "warmup" because the warm-up determines the size of blocks`)
	}
	switch isFile := b.From == FromFile; {
	case isFile && b.File == "":
		report("baseline.file", `must name a file if baseline.from is "file"`)
	case !isFile && b.File != "":
		report("baseline.file", `is only used if baseline.from is "file"`)
	}
	switch isPinned := b.From == FromPinned; {
	case isPinned && len(b.Offsets) == 0:
		report("baseline.offsets", `must list ranges if baseline.from is "pinned"`)
	case !isPinned && len(b.Offsets) > 0:
		report("baseline.offsets", `are only used if baseline.from is "pinned"`)
	}
	for i, r := range b.Offsets {
		b.checkRange(i, r, report)
	}
}

func (b BaselineConfig) checkRange(i int, r ingest.Range, report func(path, msg string)) {
	at := fmt.Sprintf("baseline.offsets[%d]", i)
	if r.Partition < 0 || r.First < 0 || r.Last < r.First {
		report(at, "must be a partition and an offset range: numbers of at least 0, with the last offset not before the first")
	}
	for _, other := range b.Offsets[:i] {
		if other.Topic == r.Topic && other.Partition == r.Partition && other.First <= r.Last && r.First <= other.Last {
			report(at, "overlaps another range, so its episodes would be counted twice")
		}
	}
}

// GroupLabel returns the name under which a key of group_by appears in groups and metrics: env is env, labels.region is
// label_region.
func GroupLabel(key string) string {
	if name, ok := strings.CutPrefix(key, "labels."); ok {
		return "label_" + name
	}
	return key
}

// Follows reports whether the signal of that name is followed. Calendar signals must be listed by their full name.
func (c Config) Follows(signal string) bool {
	if strings.HasPrefix(signal, "observation.") && ingest.IsCalendar(signal) {
		return slices.Contains(c.Signals, signal)
	}
	for _, glob := range c.Signals {
		if signals.Match(glob, signal) {
			return true
		}
	}
	return false
}

// Groups reports whether the labels of a group are those that c groups by, with or without a horizon.
func (c Config) Groups(key ingest.Group) bool {
	labels := key.Labels()
	if key.HasHorizon() && len(labels) > len(c.GroupBy) { // otherwise the horizon is one of its own labels
		labels = labels[:len(labels)-1]
	}
	return slices.EqualFunc(c.GroupBy, labels, func(by string, l ingest.Label) bool { return GroupLabel(by) == l.Name })
}

// Per is the stretch of telemetry that a budget of false alarms applies to.
type Per struct {
	Amount float64 // seconds if Unit is time, else a count
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

// String returns the stretch as it is written in the configuration.
func (p Per) String() string {
	if p.Unit == PerTime {
		return model.Duration(p.Amount * float64(time.Second)).String()
	}
	return strconv.FormatFloat(p.Amount, 'f', -1, 64) + " " + p.Unit
}
