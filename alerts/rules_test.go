package alerts

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// update rewrites the golden files instead of comparing with them.
var update = flag.Bool("update", false, "rewrite golden files")

// webhookMetric is retrain.MetricDeadLetters, which this package may not import.
const webhookMetric = "rewardwatch_webhooks_given_up_total"

// ruleCases are the ways in which rules are written.
var ruleCases = map[string]RulesOptions{
	"metrics": {
		GroupLabels: []string{"env"}, WebhooksGivenUp: webhookMetric, RetrainRequests: "rewardwatch_retrain_requests",
		Memory: "rewardwatch_memory_bytes", MemoryLimit: "rewardwatch_memory_limit_bytes", UnitDelay: "rewardwatch_unit_delay_seconds",
	},
	"push":      {Push: true, GroupLabels: []string{"env"}},
	"regions":   {GroupLabels: []string{"env", "label_region"}},
	"ungrouped": {},
}

func TestWriteRulesGolden(t *testing.T) {
	for name, opts := range ruleCases {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "made")
			for range 2 { // the second time over the first
				if err := WriteRules(dir, opts); err != nil {
					t.Fatal(err)
				}
			}
			for _, file := range []string{RulesFile, RulesTestFile} {
				golden(t, filepath.Join("testdata", name, file), filepath.Join(dir, file))
			}
		})
	}
}

// golden compares a written file with its golden one byte by byte.
func golden(t *testing.T, want, got string) {
	t.Helper()
	b, err := os.ReadFile(got)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.MkdirAll(filepath.Dir(want), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(want, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	w, err := os.ReadFile(want)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b, w) {
		t.Errorf("differs from %s (rewrite with -update):\n%s", want, b)
	}
}

// TestEveryRuleIsTestedBothWays asks that the written tests show each rule firing, and show it or its namesake silent.
func TestEveryRuleIsTestedBothWays(t *testing.T) {
	silent := map[string]bool{}
	rules := allRules(ruleCases["metrics"])
	for _, r := range rules {
		for _, c := range r.tests {
			silent[r.alert] = silent[r.alert] || len(c.fires) == 0
		}
	}
	for _, r := range rules {
		if !slices.ContainsFunc(r.tests, func(c ruleTest) bool { return len(c.fires) > 0 }) {
			t.Errorf("%s of severity %s is never shown firing", r.alert, r.severity)
		}
		if !silent[r.alert] {
			t.Errorf("%s is never shown silent", r.alert)
		}
	}
}

// TestEveryRecordIsUsed asks that what is recorded is what alerts look at, and no more.
func TestEveryRecordIsUsed(t *testing.T) {
	recorded := map[string]bool{}
	for _, r := range allRecords(ruleCases["metrics"]) {
		recorded[r.name] = false
	}
	for _, r := range allRules(ruleCases["metrics"]) {
		for _, name := range regexp.MustCompile(`job:\w+:\w+`).FindAllString(r.expr, -1) {
			if _, ok := recorded[name]; !ok {
				t.Errorf("%s looks at %s, which nothing records", r.alert, name)
			}
			recorded[name] = true
		}
	}
	if len(recorded) == 0 {
		t.Error("nothing is recorded")
	}
	for name, used := range recorded {
		if !used {
			t.Errorf("nothing looks at %s", name)
		}
	}
}
