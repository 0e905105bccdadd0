package feedback

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Config configures how decisions are joined with later rewards and outcomes.
type Config struct {
	Key      string             `yaml:"key"`      // field that a decision and its feedback share: `episode_id`, `agent_id` or `labels.<name>`
	Window   model.Duration     `yaml:"window"`   // how long to wait for feedback before the decision is judged
	Horizons []model.Duration   `yaml:"horizons"` // shorter waits, in ascending order, after which decisions are also judged with the feedback received so far, in a group with the label `horizon`
	Default  map[string]float64 `yaml:"default"`  // values of `reward`, `outcome.<name>` or `reward_component.<name>` for decisions without feedback
}

// Enabled reports whether decisions are joined with feedback.
func (c Config) Enabled() bool { return c.Key != "" }

// maxHorizons limits the number of groups that a configured group becomes.
const maxHorizons = 4

// Check reports every invalid value.
func (c Config) Check(report func(path, msg string)) {
	if !c.Enabled() {
		if c.Window != 0 || len(c.Horizons) > 0 || len(c.Default) > 0 {
			report("key", "must be set, or the other keys of feedback have no effect")
		}
		return
	}
	if name, isLabel := strings.CutPrefix(c.Key, labelPrefix); c.Key != byEpisode && c.Key != byAgent && (!isLabel || name == "") {
		report("key", fmt.Sprintf("must be episode_id, agent_id or labels.<name>, not %q", c.Key))
	}
	if c.Window < model.Duration(time.Second) || c.Window > model.Duration(90*24*time.Hour) {
		report("window", "must be between 1s and 90d")
	}
	if len(c.Horizons) > maxHorizons {
		report("horizons", fmt.Sprintf("must be at most %d", maxHorizons))
	}
	shorter := model.Duration(0)
	for i, h := range c.Horizons {
		if h <= shorter || h >= c.Window {
			report(fmt.Sprintf("horizons[%d]", i), "must be longer than the previous value and shorter than window")
		}
		shorter = h
	}
	c.checkDefault(report)
}

func (c Config) checkDefault(report func(path, msg string)) {
	for name, x := range c.Default {
		kind, rest := kindOf(name)
		switch {
		case name != reward && (kind != outcome && kind != component || rest == ""):
			report("default."+name, "must be reward, outcome.<name> or reward_component.<name>")
		case math.IsNaN(x) || math.IsInf(x, 0):
			report("default."+name, "must be a finite number")
		}
	}
}

// The valid keys.
const (
	byEpisode   = "episode_id"
	byAgent     = "agent_id"
	labelPrefix = "labels."
)

const reward = "reward"

// rules is a Config that is ready to use.
type rules struct {
	config   Config
	moments  []time.Duration
	names    []string // names of the horizons, as values of HorizonLabel
	reward   *float64
	defaults []value
}

func newRules(c Config) *rules {
	r := &rules{config: c}
	for _, h := range c.Horizons {
		r.moments, r.names = append(r.moments, time.Duration(h)), append(r.names, h.String())
	}
	r.moments = append(r.moments, time.Duration(c.Window))
	for name, x := range c.Default {
		if name == reward {
			r.reward = new(x)
			continue
		}
		kind, rest := kindOf(name)
		r.defaults = append(r.defaults, value{field: field{kind, rest}, x: x})
	}
	slices.SortFunc(r.defaults, func(a, b value) int { return a.compare(b.field) })
	return r
}

// KeyOf returns the key of an event, or "" if it has none.
func (c Config) KeyOf(e *ingest.Event) string {
	switch c.Key {
	case byEpisode:
		return e.EpisodeID
	case byAgent:
		return e.AgentID
	}
	label := strings.TrimPrefix(c.Key, labelPrefix)
	for i := range e.Labels {
		if e.Labels[i].Name == label {
			return e.Labels[i].Value
		}
	}
	return ""
}

// last returns the index of the moment at which a decision is final.
func (r *rules) last() int { return len(r.moments) - 1 }
