package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/model"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

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
		if _, err := LoadForService(file); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestBadConfigsNameEveryMistakeAndItsPlace(t *testing.T) {
	for _, file := range configFiles(t, "*.bad.yml") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			c, err := LoadForService(file)
			var bad *yamlfile.Error
			if c != nil || !errors.As(err, &bad) {
				t.Fatalf("LoadForService gave %v, %v", c, err)
			}
			testkit.SameAsFile(t, strings.TrimSuffix(file, ".yml")+".txt", bad.Error()+"\n")
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
	want := Default()
	for _, file := range []string{"", "testdata/empty.good.yml", "testdata/commented.good.yml"} {
		got, err := Load(file)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(*got, want) {
			t.Errorf("%q gives %+v, want %+v", file, *got, want)
		}
	}
}

func TestConfigValuesAreRead(t *testing.T) {
	c, err := Load("testdata/full.good.yml")
	if err != nil {
		t.Fatal(err)
	}
	first := engine.PolicyConfig{Match: "checkout-*", Config: watch.Config{
		GroupBy:  []string{"env", "labels.region"},
		Signals:  []string{"return", "reward", "action", "outcome.conversion"},
		Baseline: watch.BaselineConfig{From: watch.FromWarmup, Units: 250},
		FalseAlarms: watch.Budget{
			Budget: .5, Per: watch.Per{Amount: 20000, Unit: watch.PerEpisodes}, Shares: watch.Shares{Primary: .6, Other: .2, KS: .1},
		},
		KS:           watch.KSConfig{Window: 100},
		Causes:       watch.CausesConfig{Memory: 256 * ingest.KiB},
		Guards:       watch.DefaultGuards(),
		Learning:     watch.LearningFrozen,
		OnNewVersion: watch.OnNewVersionCompare,
	}}
	if want := []engine.PolicyConfig{first, {Match: "*", Config: watch.DefaultConfig()}}; !reflect.DeepEqual(c.Policies, want) {
		t.Errorf("policies are %+v, want %+v", c.Policies, want)
	}
	if got, want := c.Retrain.Triggers[0].Cooldown, model.Duration(12*time.Hour); got != want {
		t.Errorf("cooldown is %s, want %s", got, want)
	}
	if got := c.Retrain.Targets[0].Timeout; got <= 0 {
		t.Errorf("a target that names no timeout got %s, not its default", got)
	}
	if want := (engine.LimitsConfig{Streams: 2000, OpenEpisodes: 1000, OpenDecisions: 1_000_000, Series: 5000, Memory: ingest.GiB}); c.Limits != want {
		t.Errorf("limits are %+v, want %+v", c.Limits, want)
	}
	if want := []string{"env", "label_region"}; !reflect.DeepEqual(c.Settings().GroupLabels(), want) {
		t.Errorf("group labels are %q, want %q", c.Settings().GroupLabels(), want)
	}
	anchors, err := Load("testdata/anchors.good.yml")
	if err != nil {
		t.Fatal(err)
	}
	if got := anchors.Policies[1].Signals; !reflect.DeepEqual(got, []string{"return", "reward"}) {
		t.Errorf("an alias gave %q", got)
	}
}

func TestFirstMatchingPolicyHolds(t *testing.T) {
	entry := func(match string, units int) engine.PolicyConfig {
		p := engine.PolicyConfig{Match: match, Config: watch.DefaultConfig()}
		p.Baseline.Units = units
		return p
	}
	some := &engine.Settings{Policies: []engine.PolicyConfig{entry("checkout-*", 100), entry("checkout-ranker", 200), entry("ALE/*", 300)}}
	tests := []struct {
		config  *engine.Settings
		policy  string
		units   int
		watched bool
	}{
		{some, "checkout-ranker", 100, true},
		{some, "ALE/Pong-v5", 300, true},
		{some, "search", 0, false},
		{&engine.Settings{}, "anything", 500, true},
	}
	for _, tt := range tests {
		got, watched := tt.config.Policy(tt.policy)
		if watched != tt.watched || got.Baseline.Units != tt.units {
			t.Errorf("%s: watched %v with %d units, want %v with %d", tt.policy, watched, got.Baseline.Units, tt.watched, tt.units)
		}
	}
}

func TestMissingConfigIsNotAMistakeInIt(t *testing.T) {
	_, err := Load(filepath.Join(t.TempDir(), "none.yml"))
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
		c, err := ParseConfig("fuzz.yml", text, (*Config).CheckAlone)
		if (c == nil) == (err == nil) {
			t.Errorf("got %v and %v", c, err)
		}
	})
}

// A fleet's budget is divided evenly, and the stricter of the two budgets applies to a policy.
func TestFleetBudgetReachesEveryPolicy(t *testing.T) {
	c, err := Load("testdata/fleet.good.yml")
	if err != nil {
		t.Fatal(err)
	}
	cfg, watched := c.Settings().Policy("any")
	if want := (watch.Budget{Budget: .05, Per: watch.Per{Amount: 7 * 86400, Unit: watch.PerTime}}); !watched || cfg.Fleet != want {
		t.Errorf("fleet's share is %+v, want %+v", cfg.Fleet, want)
	}
	if cfg, _ := new(engine.Settings).Policy("any"); cfg.Fleet.Budget != 0 {
		t.Error("a fleet's budget without a configuration of one")
	}
}

// A configuration file that could be read forever, or never, is refused.
func TestConfigIsARegularFile(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "rewardwatch.yml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{pipe, "/dev/zero"} {
		if _, err := LoadForService(file); err == nil || !strings.Contains(err.Error(), file+": it is not a regular file") {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// A first run as an unprivileged user creates its state below the working directory.
func TestDefaultStateLiesInTheWorkingDirectory(t *testing.T) {
	c := Default()
	for name, path := range map[string]string{
		"checkpoint.directory": c.Checkpoint.Directory, "ingest.dead_letters.directory": c.Ingest.DeadLetters.Directory,
		"retrain.ledger.sqlite": c.Retrain.Ledger.SQLite, "retrain.runs_directory": c.Retrain.Runs,
	} {
		if !strings.HasPrefix(path, "data/") {
			t.Errorf("%s is %q", name, path)
		}
	}
}
