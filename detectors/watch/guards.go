package watch

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// Guards configures limits on what a policy does. Agents read whether the policy stays within them.
type Guards struct {
	MaxAge    model.Duration `yaml:"max_age"`    // how long agents may use the last state that they read
	OnSilence string         `yaml:"on_silence"` // what agents do when that state is older: `keep`, `hold` or `fallback`
	Limits    []GuardLimit   `yaml:"limits"`
}

// GuardLimit sets one limit. Set exactly one of `actions`, `range`, `outcome`, `return_below`, `largest_share`, `entropy`
// and `causes` to define what it counts.
type GuardLimit struct {
	Name string `yaml:"name"` // name of the limit: letters, digits, `_` and `-`

	Actions      []string    `yaml:"actions"`       // count steps with one of these actions
	Range        ActionRange `yaml:"range"`         // count steps with a numeric action outside this range
	Outcome      string      `yaml:"outcome"`       // add up this outcome, from 0 to 1, over the steps, such as a cost or whether the step explored
	ReturnBelow  Bound       `yaml:"return_below"`  // count episodes with a lower return
	LargestShare bool        `yaml:"largest_share"` // count steps with the most frequent action so far
	Entropy      float64     `yaml:"entropy"`       // minimum action entropy, in nats
	Causes       []string    `yaml:"causes"`        // trip if an incident has one of these causes, such as `reward_hacking`

	Share float64 `yaml:"share"` // maximum share, or mean of an outcome, at least 0 and less than 1. With 0, a single occurrence trips the guard
	Alpha float64 `yaml:"alpha"` // maximum probability that the guard ever trips while the policy stays within the limit, at most 0.5

	Then         string `yaml:"then"`          // state of the guard when it trips: `warn`, `hold` or `fallback`
	ReleaseAfter int64  `yaml:"release_after"` // number of consecutive episodes within the limit after which the guard is released. With 0, it must be released manually
}

// ActionRange is the allowed range of a numeric action, including both ends. Set `min`, `max` or both.
type ActionRange struct {
	Signal string  `yaml:"signal"` // `action`, or `action.<i>` for a component of an array (default: `action`)
	Min    float64 `yaml:"min"`    // smallest allowed value (default: no lower limit)
	Max    float64 `yaml:"max"`    // largest allowed value (default: no upper limit)
}

// States that a guard can trip to, and what agents can do in silence.
const (
	GuardKeep     = "keep"
	GuardWarn     = "warn"
	GuardHold     = "hold"
	GuardFallback = "fallback"
)

// GuardCauses returns the causes of incidents that a limit can name.
func GuardCauses() []string {
	return []string{"policy", "environment", "reward_function", "reward_hacking", "observations", "telemetry", "unknown"}
}

// ofActions matches the names of numeric actions, and none.
var ofActions = regexp.MustCompile(`^(?:action(?:\.[0-9]+)?)?$`)

// DefaultGuards returns the defaults of the guards.
func DefaultGuards() Guards {
	return Guards{MaxAge: model.Duration(time.Minute), OnSilence: GuardHold}
}

// mostGuards bounds the guards of a policy.
const mostGuards = 32

// UnmarshalYAML reads a limit over its defaults.
func (l *GuardLimit) UnmarshalYAML(unmarshal func(any) error) error {
	type plain GuardLimit
	*l = GuardLimit{Range: anyAction, Alpha: .01, Then: GuardHold}
	return unmarshal((*plain)(l))
}

// Of returns the name of the numeric action.
func (r ActionRange) Of() string { return cmp.Or(r.Signal, "action") }

// anyAction is the range of a limit that has none.
var anyAction = ActionRange{Min: math.Inf(-1), Max: math.Inf(1)}

// Given reports whether the limit has a range.
func (r ActionRange) Given() bool { return r != ActionRange{} && r != anyAction }

// Outside describes the values outside the range, such as "above 5".
func (r ActionRange) Outside() string {
	switch {
	case math.IsInf(r.Min, -1):
		return fmt.Sprintf("above %g", r.Max)
	case math.IsInf(r.Max, 1):
		return fmt.Sprintf("below %g", r.Min)
	}
	return fmt.Sprintf("outside %g to %g", r.Min, r.Max)
}

// Bound is a number, or "" if it is not given.
type Bound string

// UnmarshalText reads a number.
func (b *Bound) UnmarshalText(text []byte) error {
	x, err := strconv.ParseFloat(string(text), 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		return fmt.Errorf("must be a number, not %q", text)
	}
	*b = Bound(strconv.FormatFloat(x, 'g', -1, 64))
	return nil
}

// MarshalText writes the number.
func (b Bound) MarshalText() ([]byte, error) { return []byte(b), nil }

// Number returns the number, 0 if it is not given.
func (b Bound) Number() float64 {
	x, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		return 0
	}
	return x
}

func (g Guards) check(report func(path, msg string)) {
	if g.MaxAge < model.Duration(time.Second) {
		report("guards.max_age", "must be at least 1s")
	}
	if !slices.Contains([]string{GuardKeep, GuardHold, GuardFallback}, g.OnSilence) {
		report("guards.on_silence", fmt.Sprintf(`must be "keep", "hold" or "fallback", not %q`, g.OnSilence))
	}
	if len(g.Limits) > mostGuards {
		report("guards.limits", fmt.Sprintf("must not list more than %d limits", mostGuards))
	}
	names := map[string]bool{}
	for i, l := range g.Limits {
		at := fmt.Sprintf("guards.limits[%d]", i)
		if names[l.Name] {
			report(at+".name", fmt.Sprintf("%q is listed twice", l.Name))
		}
		names[l.Name] = true
		l.check(func(key, msg string) { report(at+"."+key, msg) })
	}
}

func (l GuardLimit) check(report func(key, msg string)) {
	if !validGuardName(l.Name) {
		report("name", fmt.Sprintf("must be 1 to 64 letters, digits, _ and -, not %q", l.Name))
	}
	switch {
	case l.Actions != nil && len(l.Actions) == 0:
		report("actions", "must not be empty")
	case l.Causes != nil && len(l.Causes) == 0:
		report("causes", "must not be empty")
	case l.kinds() == 0 && l.Range == (ActionRange{}): // as {min: 0, max: 0} is read
		report("range", "min must be less than max")
	case l.kinds() != 1:
		report("name", "requires exactly one of actions, range, outcome, return_below, largest_share, entropy and causes")
	}
	for i, c := range l.Causes {
		if !slices.Contains(GuardCauses(), c) {
			report(fmt.Sprintf("causes[%d]", i), fmt.Sprintf("must be one of %s, not %q", strings.Join(GuardCauses(), ", "), c))
		}
	}
	switch {
	case l.Entropy != 0:
		if l.Share != 0 {
			report("share", "cannot be set with entropy")
		}
	case len(l.Causes) > 0:
		if l.Share != 0 {
			report("share", "cannot be set with causes")
		}
	case !(l.Share >= 0 && l.Share < 1):
		report("share", "must be at least 0 and less than 1")
	case l.Share == 0 && l.LargestShare:
		report("share", "must be greater than 0 with largest_share")
	}
	if r := l.Range; r.Given() {
		switch {
		case math.IsInf(r.Min, -1) && math.IsInf(r.Max, 1):
			report("range", "needs min, max or both")
		case !(r.Min < r.Max):
			report("range", "min must be less than max")
		}
		if !ofActions.MatchString(r.Signal) {
			report("range.signal", fmt.Sprintf(`must be "action" or "action.<i>", not %q`, r.Signal))
		}
	}
	if !(l.Entropy >= 0 && l.Entropy <= 4) {
		report("entropy", "must be from 0 to 4 nats: guards distinguish 64 actions")
	}
	if !(l.Alpha > 0 && l.Alpha <= .5) {
		report("alpha", "must be greater than 0 and at most 0.5")
	}
	if !slices.Contains([]string{GuardWarn, GuardHold, GuardFallback}, l.Then) {
		report("then", fmt.Sprintf(`must be "warn", "hold" or "fallback", not %q`, l.Then))
	}
	if l.ReleaseAfter < 0 {
		report("release_after", "must not be negative")
	}
}

// OfEpisodes reports whether the limit counts episodes, not steps.
func (l *GuardLimit) OfEpisodes() bool { return l.ReturnBelow != "" || len(l.Causes) > 0 }

// kinds returns how many of the kinds of limits are set.
func (l GuardLimit) kinds() int {
	n := 0
	for _, given := range []bool{len(l.Actions) > 0, l.Range.Given(), l.Outcome != "", l.ReturnBelow != "", l.LargestShare, l.Entropy != 0, len(l.Causes) > 0} {
		if given {
			n++
		}
	}
	return n
}

func validGuardName(name string) bool {
	if name == "" || len(name) > 64 {
		return false
	}
	for _, r := range name {
		if letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'; !letter && (r < '0' || r > '9') && r != '_' && r != '-' {
			return false
		}
	}
	return true
}
