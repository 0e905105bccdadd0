package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rewardwatch/rewardwatch/retrain"
)

// ordered is a view with a request of the recipe ranker, one of another recipe, and one of a build before recipes.
func ordered() *fixedView {
	v := someView()
	v.requests = []retrain.Request{
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
	flags := append(serveOrders(t, ordered(), &fixedOrders{}), "--config", "testdata/retrain.good.yml")
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
			sameAsFile(t, filepath.Join("testdata", "verbs", name+".txt"), got.out+"\n"+indented(t, []byte(asJSON.out)))
		})
	}
}

func TestDocsShowADiff(t *testing.T) {
	config := writeConfig(t, "retrain: {recipes: ../../deploy/recipes}")
	got := runVerb("retrain", "diff", "base", "checkout-ranker", "--config", config)
	text, err := os.ReadFile("../../docs/retraining.md")
	if err != nil || got.code != exitFine || !strings.Contains(string(text), "--config rewardwatch.yml\n"+got.out+"```") {
		t.Errorf("docs/retraining.md does not have the diff: %v, exit %d %s\n%s", err, got.code, got.err, got.out)
	}
}

func TestRetrainDiffOnATerminal(t *testing.T) {
	var b strings.Builder
	old, now := retrain.Leaf{Path: "config.a", Value: "1", From: "a.yaml:1"}, retrain.Leaf{Path: "config.a", Value: `"\x1b"`}
	if err := diffText(&b, true, "recipe a", "recipe b", retrain.Differences([]retrain.Leaf{old}, []retrain.Leaf{now})); err != nil {
		t.Fatal(err)
	}
	want := "\x1b[31m--- recipe a\x1b[0m\n\x1b[32m+++ recipe b\x1b[0m\n\x1b[31m- config.a: 1  (a.yaml:1)\x1b[0m\n\x1b[32m+ config.a: \"\\x1b\"\x1b[0m\n"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func TestRetrainDiffSaysWhatIsWrong(t *testing.T) {
	server := serveOrders(t, ordered(), &fixedOrders{})
	config := []string{"--config", "testdata/retrain.good.yml"}
	for name, tt := range map[string]struct {
		args []string
		says string
	}{
		"no configuration": {[]string{"base", "ranker"}, "--config must name the configuration, whose retrain.recipes has the recipes"},
		"unknown recipe":   {append([]string{"base", "nobody"}, config...), `no recipe is named "nobody"`},
		"bad recipes":      {[]string{"base", "ranker", "--config", "testdata/recipes.bad.yml"}, "testdata/bad_recipes/ranker.yaml:2:25: config.learning_rate: is a number here and a string in base.yaml:2"},
		"unknown request":  {append([]string{"rr_1", "rr_none"}, server...), "request rr_none: the service refuses (404 Not Found): there is no such request"},
		"old request":      {append([]string{"rr_1", "rr_old"}, server...), "request rr_old: the order has no contract: a build before recipes opened its request"},
		"no service":       {[]string{"rr_1", "rr_2", "--server", "http://127.0.0.1:1"}, "ask the service: "},
		"one side":         {[]string{"base"}, "accepts 2 arg(s), received 1"},
	} {
		t.Run(name, func(t *testing.T) {
			got := runVerb(append([]string{"retrain", "diff"}, tt.args...)...)
			if got.code != exitError || got.out != "" || !strings.Contains(got.err, tt.says) {
				t.Errorf("exit %d, out %q, says %q, want %q", got.code, got.out, got.err, tt.says)
			}
		})
	}
}

func TestRetrainSchemaIsServed(t *testing.T) {
	w := ask(quietServer(t, HTTPConfig{}, someView(), nil), http.MethodGet, "/api/v1/retrain-request.schema.json")
	document, err := jsonschema.UnmarshalJSON(w.Body)
	if err != nil || w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/schema+json" {
		t.Fatalf("%d %s: %v", w.Code, w.Header(), err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", document); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Compile("schema.json"); err != nil {
		t.Error(err)
	}
}

// What the webhook has in common with the API is described alike.
func TestRetrainSchemaAgreesWithOpenAPI(t *testing.T) {
	text, err := web.ReadFile("web/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var api struct {
		Components struct{ Schemas map[string]json.RawMessage }
	}
	var published struct {
		Defs map[string]json.RawMessage `json:"$defs"`
	}
	if err := json.Unmarshal(text, &api); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(retrain.Schema(), &published); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Versions", "Range", "Effect", "Cause", "RankedCause", "OnsetInterval", "ReturnChange", "Promise", "Shift"} {
		want := strings.ReplaceAll(indented(t, api.Components.Schemas[name]), "#/components/schemas/", "#/$defs/")
		if got := indented(t, published.Defs[name]); got != want {
			t.Errorf("%s is\n%s\nand in the API\n%s", name, got, want)
		}
	}
}
