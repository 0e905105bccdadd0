package watch

import (
	"reflect"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/signals"
)

func TestDefaultConfigIsValid(t *testing.T) {
	DefaultConfig().Check(func(path, msg string) { t.Errorf("%s: %s", path, msg) })
}

func TestConfigCheck(t *testing.T) {
	tests := map[string]struct {
		change func(*Config)
		want   []string
	}{
		"labels":           {func(c *Config) { c.GroupBy = []string{"env", "labels.region"} }, nil},
		"no groups":        {func(c *Config) { c.GroupBy = nil }, nil},
		"unknown group":    {func(c *Config) { c.GroupBy = []string{"env", "host"} }, []string{"group_by[1]"}},
		"group twice":      {func(c *Config) { c.GroupBy = []string{"env", "env"} }, []string{"group_by[1]"}},
		"label name":       {func(c *Config) { c.GroupBy = []string{"labels.a-b"} }, []string{"group_by[0]"}},
		"no label name":    {func(c *Config) { c.GroupBy = []string{"labels."} }, []string{"group_by[0]"}},
		"no signal":        {func(c *Config) { c.Signals = nil }, []string{"signals"}},
		"misspelt":         {func(c *Config) { c.Signals = []string{"return", "retrun"} }, []string{"signals[1]"}},
		"prefix alone":     {func(c *Config) { c.Signals = []string{"outcome."} }, []string{"signals[0]"}},
		"signal names":     {func(c *Config) { c.Signals = []string{"outcome.conversion", "reward_component.*"} }, nil},
		"bad pattern":      {func(c *Config) { c.Signals = []string{"action.["} }, []string{"signals[0]"}},
		"baseline source":  {func(c *Config) { c.Baseline.From = "topic" }, []string{"baseline.from"}},
		"baseline size":    {func(c *Config) { c.Baseline.Units = 19 }, []string{"baseline.units"}},
		"no baseline file": {func(c *Config) { c.Baseline.From = FromFile }, []string{"baseline.file"}},
		"stray file":       {func(c *Config) { c.Baseline.File = "x.ndjson" }, []string{"baseline.file"}},
		"budget":           {func(c *Config) { c.FalseAlarms.Budget = 0 }, []string{"false_alarms.budget"}},
		"per":              {func(c *Config) { c.FalseAlarms.Per.Amount = 0 }, []string{"false_alarms.per"}},
		"on_new_version":   {func(c *Config) { c.OnNewVersion = "ignore" }, []string{"on_new_version"}},
		"zone":             {func(c *Config) { c.Zone = "Europe/Berlin" }, nil},
		"unknown zone":     {func(c *Config) { c.Zone = "Berlin" }, []string{"zone"}},
		"zone of machine":  {func(c *Config) { c.Zone = "Local" }, []string{"zone"}},
		"learning":         {func(c *Config) { c.Learning = "online" }, []string{"learning"}},
		"learning rebased": {func(c *Config) { c.Learning, c.OnNewVersion = LearningVersions, OnNewVersionRebaseline }, []string{"learning"}},
		"several": {
			func(c *Config) { c.Baseline.Units, c.OnNewVersion = 0, "" },
			[]string{"baseline.units", "on_new_version"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := DefaultConfig()
			tt.change(&c)
			var got []string
			c.Check(func(path, _ string) { got = append(got, path) })
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("Check reported %q, want %q", got, tt.want)
			}
		})
	}
}

func TestPer(t *testing.T) {
	tests := map[string]struct {
		want Per
		text string
	}{
		"30d":                 {Per{2592000, PerTime}, "30d"},
		"36h":                 {Per{129600, PerTime}, "1d12h"},
		"20000 episodes":      {Per{20000, PerEpisodes}, "20000 episodes"},
		" 1000000   steps ":   {Per{1000000, PerSteps}, "1000000 steps"},
		"500000 observations": {Per{500000, PerObservations}, "500000 observations"},
	}
	for in, tt := range tests {
		var got Per
		if err := got.UnmarshalText([]byte(in)); err != nil {
			t.Errorf("%q: %v", in, err)
		}
		if got != tt.want || got.String() != tt.text {
			t.Errorf("%q: got %+v (%s), want %+v (%s)", in, got, got, tt.want, tt.text)
		}
	}
	for _, in := range []string{"", "30", "episodes", "1e6 steps", "-5 episodes", "20000 units", "1 2 3", "99999999999999999999 steps"} {
		var got Per
		if err := got.UnmarshalText([]byte(in)); err == nil {
			t.Errorf("%q was accepted as %+v", in, got)
		}
	}
}

func TestMatch(t *testing.T) {
	tests := []struct {
		glob, name string
		want       bool
	}{
		{"*", "return", true},
		{"*", "ALE/Pong-v5", true},
		{"ALE/*", "ALE/Pong-v5", true},
		{"checkout-*", "checkout-ranker", true},
		{"checkout-*", "search", false},
		{"outcome.?", "outcome.a", true},
		{"a[/]b", "a/b", true},
		{"[", "[", false},
	}
	for _, tt := range tests {
		if got := signals.Match(tt.glob, tt.name); got != tt.want {
			t.Errorf("Match(%q, %q) = %v", tt.glob, tt.name, got)
		}
	}
	if a, b := GroupLabel("env"), GroupLabel("labels.region"); a != "env" || b != "label_region" {
		t.Errorf("GroupLabel gives %q and %q", a, b)
	}
	c := Config{Signals: []string{"return", "outcome.*"}}
	if !c.Follows("outcome.won") || c.Follows("reward") {
		t.Error("Follows does not go by the globs")
	}
	if c := (Config{Signals: []string{"*"}}); c.Follows("observation.hour") || !c.Follows("observation.load") || !c.Follows("action") {
		t.Error("a glob follows the calendar, or not the rest")
	}
	if c := (Config{Signals: []string{"observation.hour"}}); !c.Follows("observation.hour") {
		t.Error("a signal that is named is not followed")
	}
}
