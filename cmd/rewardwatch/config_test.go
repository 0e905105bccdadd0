package main

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"

	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

var update = flag.Bool("update", false, "rewrite the golden files and docs/configuration.md")

// sameAsFile compares text with a golden file, or rewrites the file with -update.
func sameAsFile(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; run `go test ./cmd/rewardwatch -update` and look at the difference.\ngot:\n%s\nwant:\n%s", file, got, want)
	}
}

func configFiles(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no file matches %s: %v", pattern, err)
	}
	return files
}

func TestGoodConfigsAreAccepted(t *testing.T) {
	for _, file := range configFiles(t, "*.good.yml") {
		if _, err := LoadServiceConfig(file); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestBadConfigsNameEveryMistakeAndItsPlace(t *testing.T) {
	for _, file := range configFiles(t, "*.bad.yml") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			c, err := LoadServiceConfig(file)
			var bad *yamlfile.Error
			if c != nil || !errors.As(err, &bad) {
				t.Fatalf("LoadServiceConfig gave %v, %v", c, err)
			}
			sameAsFile(t, strings.TrimSuffix(file, ".yml")+".txt", bad.Error()+"\n")
		})
	}
}

func TestEveryBadConfigHasAGoodOne(t *testing.T) {
	for _, file := range configFiles(t, "*.bad.yml") {
		good := strings.Replace(file, ".bad.", ".good.", 1)
		if _, err := os.Stat(good); err != nil {
			t.Error(err)
		}
	}
}

func TestEmptyConfigIsTheDefault(t *testing.T) {
	want := DefaultConfig()
	for _, file := range []string{"", "testdata/empty.good.yml", "testdata/commented.good.yml"} {
		got, err := LoadConfig(file)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(*got, want) {
			t.Errorf("%q gives %+v, want %+v", file, *got, want)
		}
	}
}

func TestConfigValuesAreRead(t *testing.T) {
	c, err := LoadConfig("testdata/full.good.yml")
	if err != nil {
		t.Fatal(err)
	}
	first := PolicyConfig{Match: "checkout-*", Config: bank.Config{
		GroupBy:  []string{"env", "labels.region"},
		Signals:  []string{"return", "reward", "action", "outcome.conversion"},
		Baseline: bank.BaselineConfig{From: bank.FromWarmup, Units: 250},
		FalseAlarms: bank.Budget{
			Budget: .5, Per: bank.Per{Amount: 20000, Unit: bank.PerEpisodes}, Shares: bank.Shares{Primary: .6, Other: .2, KS: .1},
		},
		KS:           bank.KSConfig{Window: 100},
		OnNewVersion: bank.OnNewVersionCompare,
	}}
	if want := []PolicyConfig{first, {Match: "*", Config: bank.DefaultConfig()}}; !reflect.DeepEqual(c.Policies, want) {
		t.Errorf("policies are %+v, want %+v", c.Policies, want)
	}
	if got, want := c.Retrain.Triggers[0].Cooldown, model.Duration(12*time.Hour); got != want {
		t.Errorf("cooldown is %s, want %s", got, want)
	}
	if got := c.Retrain.Targets[0].Timeout; got <= 0 {
		t.Errorf("a target that names no timeout got %s, not its default", got)
	}
	if want := (LimitsConfig{Streams: 2000, OpenEpisodes: 1000, Series: 5000, Memory: ingest.GiB}); c.Limits != want {
		t.Errorf("limits are %+v, want %+v", c.Limits, want)
	}
	if want := []string{"env", "label_region"}; !reflect.DeepEqual(c.groupLabels(), want) {
		t.Errorf("group labels are %q, want %q", c.groupLabels(), want)
	}
	anchors, err := LoadConfig("testdata/anchors.good.yml")
	if err != nil {
		t.Fatal(err)
	}
	if got := anchors.Policies[1].Signals; !reflect.DeepEqual(got, []string{"return", "reward"}) {
		t.Errorf("an alias gave %q", got)
	}
}

func TestFirstMatchingPolicyHolds(t *testing.T) {
	entry := func(match string, units int) PolicyConfig {
		p := PolicyConfig{Match: match, Config: bank.DefaultConfig()}
		p.Baseline.Units = units
		return p
	}
	some := &Config{Policies: []PolicyConfig{entry("checkout-*", 100), entry("checkout-ranker", 200), entry("ALE/*", 300)}}
	tests := []struct {
		config  *Config
		policy  string
		units   int
		watched bool
	}{
		{some, "checkout-ranker", 100, true},
		{some, "ALE/Pong-v5", 300, true},
		{some, "search", 0, false},
		{&Config{}, "anything", 500, true},
	}
	for _, tt := range tests {
		got, watched := tt.config.policy(tt.policy)
		if watched != tt.watched || got.Baseline.Units != tt.units {
			t.Errorf("%s: watched %v with %d units, want %v with %d", tt.policy, watched, got.Baseline.Units, tt.watched, tt.units)
		}
	}
}

func TestMissingConfigIsNotAMistakeInIt(t *testing.T) {
	_, err := LoadConfig(filepath.Join(t.TempDir(), "none.yml"))
	var bad *yamlfile.Error
	if !errors.Is(err, fs.ErrNotExist) || errors.As(err, &bad) {
		t.Errorf("got %v", err)
	}
}

func FuzzParseConfig(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := parseConfig("fuzz.yml", text, (*Config).checkAlone)
		if (c == nil) == (err == nil) {
			t.Errorf("got %v and %v", c, err)
		}
	})
}

// A fleet's budget is shared out evenly, and the stricter of the two budgets holds for a policy.
func TestFleetBudgetReachesEveryPolicy(t *testing.T) {
	c, err := LoadConfig("testdata/fleet.good.yml")
	if err != nil {
		t.Fatal(err)
	}
	cfg, watched := c.policy("any")
	if want := (bank.Budget{Budget: .05, Per: bank.Per{Amount: 7 * 86400, Unit: bank.PerTime}}); !watched || cfg.Fleet != want {
		t.Errorf("fleet's share is %+v, want %+v", cfg.Fleet, want)
	}
	if cfg, _ := new(Config).policy("any"); cfg.Fleet.Budget != 0 {
		t.Error("a fleet's budget without a configuration of one")
	}
}
