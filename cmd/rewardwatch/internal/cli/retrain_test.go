package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api/apitest"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/recipe"
)

// ordered returns a view with a request of the recipe ranker, one of another recipe, and one of a build without
// recipes.
func ordered() *apitest.FixedView {
	v := apitest.SomeView()
	v.Ordered = []ledger.Request{
		{ID: "rr_1", Recipe: "ranker", Order: json.RawMessage(`{"id": "rr_1",
			"contract": {"objective": "checkout-ranker earns what it did", "hypothesis": "x > y", "owner": "ranking@shop.example",
				"expected": {"text": "mean return > 480 over 200 episodes within 24h"}},
			"contract_from": {"objective": "base.yaml:2", "hypothesis": "ranker.yaml:3", "owner": "base.yaml:3", "expected": "ranker.yaml:4"},
			"config": {"algorithm": "ppo", "learning_rate": 1.0, "seeds": [7, 8], "entropy": {"start": 0.01, "end": 0}, "note": "\u001b[2J"},
			"config_from": {"algorithm": "base.yaml:5", "learning_rate": "ranker.yaml:6", "seeds[0]": "ranker.yaml:7", "seeds[1]": "ranker.yaml:7",
				"entropy.start": "ranker.yaml:8", "entropy.end": "ranker.yaml:8", "note": "ranker.yaml:9"}}`)},
		{ID: "rr_2", Recipe: "other", Order: json.RawMessage(`{"id": "rr_2",
			"contract": {"objective": "o", "hypothesis": "h", "owner": "w", "expected": {"text": "mean return > 1 over 2 units within 3h"}},
			"contract_from": {}, "config": {"learning_rate": 1}, "config_from": {"learning_rate": "other.yaml:1"}}`)},
		{ID: "rr_old", Order: json.RawMessage(`{"id": "rr_old"}`)},
	}
	return v
}

func TestRetrainDiff(t *testing.T) {
	flags := append(serveOrders(t, ordered(), &apitest.FixedOrders{}), "--config", fromHere(t, "retrain.good.yml"))
	for name, args := range map[string][]string{
		"retrain_diff_recipes":  {"base", "ranker"},
		"retrain_diff_mixed":    {"ranker", "rr_1"},
		"retrain_diff_requests": {"rr_1", "rr_2"},
		"retrain_diff_same":     {"ranker", "ranker"},
	} {
		t.Run(name, func(t *testing.T) {
			args := append(append([]string{"retrain", "diff"}, args...), flags...)
			got := runVerb(args...)
			if got.code != exitFine || got.err != "" || strings.Contains(got.out, "\x1b") {
				t.Fatalf("exit %d: %s%q", got.code, got.err, got.out)
			}
			asJSON := runVerb(append(args, "--output", "json")...)
			if asJSON.code != exitFine || asJSON.err != "" {
				t.Fatalf("exit %d: %s", asJSON.code, asJSON.err)
			}
			testkit.SameAsFile(t, filepath.Join("testdata", "verbs", name+".txt"), got.out+"\n"+testkit.Indented(t, []byte(asJSON.out)))
		})
	}
}

func TestDocsShowADiff(t *testing.T) {
	config := testkit.WriteConfig(t, "retrain: {recipes: ../../../../deploy/recipes}")
	got := runVerb("retrain", "diff", "base", "checkout-ranker", "--config", config)
	text, err := os.ReadFile("../../../../docs/retraining.md")
	if err != nil || got.code != exitFine || !strings.Contains(string(text), "--config rewardwatch.yml\n"+got.out+"```") {
		t.Errorf("docs/retraining.md does not have the diff: %v, exit %d %s\n%s", err, got.code, got.err, got.out)
	}
}

func TestRetrainDiffOnATerminal(t *testing.T) {
	var b strings.Builder
	old, now := recipe.Leaf{Path: "config.a", Value: "1", From: "a.yaml:1"}, recipe.Leaf{Path: "config.a", Value: `"\x1b"`}
	if err := diffText(&b, true, "recipe a", "recipe b", recipe.Differences([]recipe.Leaf{old}, []recipe.Leaf{now})); err != nil {
		t.Fatal(err)
	}
	want := "\x1b[31m--- recipe a\x1b[0m\n\x1b[32m+++ recipe b\x1b[0m\n\x1b[31m- config.a: 1  (a.yaml:1)\x1b[0m\n\x1b[32m+ config.a: \"\\x1b\"\x1b[0m\n"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func TestRetrainDiffSaysWhatIsWrong(t *testing.T) {
	server := serveOrders(t, ordered(), &apitest.FixedOrders{})
	config := []string{"--config", fromHere(t, "retrain.good.yml")}
	for name, tt := range map[string]struct {
		args []string
		says string
	}{
		"no configuration": {[]string{"base", "ranker"}, "--config is required to compare recipes: pass the configuration file with retrain.recipes"},
		"unknown recipe":   {append([]string{"base", "nobody"}, config...), `unknown recipe "nobody"`},
		"bad recipes":      {[]string{"base", "ranker", "--config", fromHere(t, "recipes.bad.yml")}, "../config/testdata/bad_recipes/ranker.yaml:2:25: config.learning_rate: is a number here and a string in base.yaml:2"},
		"unknown request":  {append([]string{"rr_1", "rr_none"}, server...), "rr_none: request not found"},
		"old request":      {append([]string{"rr_1", "rr_old"}, server...), "request rr_old: the request has no contract: it was opened by a build without recipes"},
		"no service":       {[]string{"rr_1", "rr_2", "--server", "http://127.0.0.1:1"}, "query the service: "},
		"one side":         {[]string{"base"}, "1 argument given; usage: rewardwatch retrain "},
	} {
		t.Run(name, func(t *testing.T) {
			got := runVerb(append([]string{"retrain", "diff"}, tt.args...)...)
			if got.code != exitError || got.out != "" || !strings.Contains(got.err, tt.says) {
				t.Errorf("exit %d, out %q, says %q, want %q", got.code, got.out, got.err, tt.says)
			}
		})
	}
}

// fromHere copies a test configuration of the package config, with paths of recipes relative to this package.
func fromHere(t *testing.T, name string) string {
	t.Helper()
	return testkit.WriteConfig(t, strings.ReplaceAll(testkit.Read(t, "../config/testdata/"+name), "testdata/", "../config/testdata/"))
}
