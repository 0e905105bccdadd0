package pipelines

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/alerts/rules"
	"github.com/rewardwatch/rewardwatch/dashboards"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/keep"
)

var update = flag.Bool("update", false, "write the golden files")

// The directory beside the documentation's example is what the example generates.
func TestExampleIsWhatIsGenerated(t *testing.T) {
	dir := filepath.Join(filepath.Dir(example), "generated")
	if *update {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		mustRun(t, "generate", "-o", dir, example)
	}
	changes, err := changesOf(example, dir, pipeline.Options{Release: "v0.1.0"})
	if err != nil {
		t.Fatal(err)
	}
	known := []string{}
	for i := range changes {
		known = append(known, changes[i].Path)
		if changes[i].Changed() {
			t.Errorf("%s is not what is generated: run this test with -update", changes[i].Path)
		}
	}
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if rel, _ := filepath.Rel(dir, path); err == nil && !d.IsDir() && !slices.Contains(known, filepath.ToSlash(rel)) {
			t.Errorf("%s is not generated", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A guard in the file is one of the configuration, and its mistakes are reported at their place in the file.
func TestGuardsAreThoseOfTheFile(t *testing.T) {
	text := string(readFile(t, example))
	before, rest, _ := strings.Cut(text, "guards:\n")
	_, rest, _ = strings.Cut(rest, "\ntrigger:")
	line := strings.Count(before, "\n") + 1
	for name, test := range map[string]struct{ guards, want string }{
		"all keys": {"guards:\n  max_age: 30s\n  on_silence: keep\n  limits:\n    - {name: a-1, actions: [\"it's: | #\", \"7\", \"on\"], share: 1e-5, alpha: 0.05, then: warn, release_after: 500}\n" +
			"    - {name: b, range: {signal: action.0, min: -1.5, max: 2}, share: .1}\n    - {name: g, range: {signal: action, max: 2}}\n    - {name: c, return_below: -3.5}\n    - {name: d, largest_share: true, share: 0.9}\n    - {name: e, entropy: 0.2}\n    - {name: f, causes: [reward_hacking, telemetry]}\n", ""},
		"unknown key":   {"guards:\n  limits:\n    - name: a\n      outcome: cost\n      shara: 0.1\n", fmt.Sprintf("pipeline.yaml:%d:14: guards.limits[0].shara: ", line+4)},
		"value":         {"guards:\n  limits:\n    - {name: a, outcome: cost,\n       share: 2}\n", fmt.Sprintf("pipeline.yaml:%d:15: guards.limits[0].share: must be at least 0 and less than 1", line+3)},
		"two kinds":     {"guards:\n  limits:\n    - {name: a, outcome: cost, entropy: 1}\n", fmt.Sprintf("pipeline.yaml:%d:14: guards.limits[0].name: requires exactly one", line+2)},
		"twice":         {"guards:\n  limits:\n    - {name: a, outcome: cost}\n    - {name: a, outcome: cost}\n", fmt.Sprintf("pipeline.yaml:%d:14: guards.limits[1].name: \"a\" is listed twice", line+3)},
		"no actions":    {"guards:\n  limits:\n    - {name: a, actions: []}\n", fmt.Sprintf("pipeline.yaml:%d:26: guards.limits[0].actions: must not be empty", line+2)},
		"no causes":     {"guards:\n  limits:\n    - {name: a, causes: []}\n", "guards.limits[0].causes: must not be empty"},
		"no share":      {"guards:\n  limits:\n    - {name: a, largest_share: true}\n", "guards.limits[0].share: must be greater than 0 with largest_share"},
		"open range":    {"guards:\n  limits:\n    - {name: a, range: {signal: action}}\n", fmt.Sprintf("pipeline.yaml:%d:24: guards.limits[0].range: needs min, max or both", line+2)},
		"component":     {"guards:\n  limits:\n    - {name: a, range: {signal: action.x, min: 0, max: 1}}\n", `guards.limits[0].range.signal: must be "action" or "action.<i>", not "action.x"`},
		"no limits":     {"guards: {}\n", "guards: must contain limits"},
		"not a mapping": {"guards: [a]\n", "guards: must be a mapping that contains limits, not a list"},
		"odd key":       {"guards: {\"a\\nb\": 1}\n", "must be a name of letters, digits and underscores"},
		"template":      {"guards: {limits: [{name: a, outcome: \"{{x}}\"}]}\n", "guards.limits[0].outcome: must not contain {{"},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "pipeline.yaml")
		if err := os.WriteFile(file, []byte(before+test.guards+"trigger:"+rest), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := verb(t, "generate", "-o", filepath.Join(dir, "out"), file)
		if test.want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q\n%s", name, err, test.want, out)
		}
		if _, err := os.Stat(filepath.Join(dir, "out")); err == nil {
			t.Errorf("%s: something was written", name)
		}
	}
	if out := mustRun(t, "explain", example, "--line", fmt.Sprint(line+2)); strings.Count(out, "rewardwatch.yml:") != 5 || !strings.Contains(out, "guards.limits[0].share") {
		t.Errorf("line %d of the file: %s", line+2, out)
	}
}

// The rules and dashboards are those that their verbs write for the generated configuration, except for the origin that
// they name.
func TestRulesAndDashboardsMatchTheConfiguration(t *testing.T) {
	dir := t.TempDir()
	mustRun(t, "generate", "-o", dir, example)
	compare(t, dir, rules.Options{GroupLabels: []string{"env"}}, dashboards.DefaultOptions())

	// A person's lines in the configuration count.
	addLines(t, dir, "alerts:\n  alertmanager: {urls: [\"http://alertmanager:9093\"]}\n  grafana_url: https://grafana.example.com\n")
	mustRun(t, "generate", "-o", dir, example)
	compare(t, dir, rules.Options{Push: true, GroupLabels: []string{"env"}, GrafanaURL: "https://grafana.example.com"}, dashboards.DefaultOptions())
	if out := mustRun(t, "generate", "-o", dir, example); strings.Count(out, "same    ") != 30 {
		t.Errorf("%s", out)
	}
}

// compare compares the generated files with the output of the packages for rules and dashboards.
func compare(t *testing.T, dir string, alerting rules.Options, drawn dashboards.Options) {
	t.Helper()
	want := t.TempDir()
	if err := rules.Write(want, alerting); err != nil {
		t.Fatal(err)
	}
	if _, err := dashboards.Write(want, drawn); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{
		"rules/rewardwatch.rules.yml", "rules/rewardwatch.rules.test.yml", "dashboards/fleet.json", "dashboards/policy.json",
		"dashboards/retraining.json", "dashboards/service.json",
	} {
		got := readFile(t, filepath.Join(dir, "pipeline", file))
		own := readFile(t, filepath.Join(want, filepath.Base(file)))
		if filepath.Ext(file) == ".yml" {
			_, got, _ = bytes.Cut(got, []byte("\n"))
			_, own, _ = bytes.Cut(own, []byte("\n"))
		}
		if got = bytes.Replace(got, []byte(" "+pipeline.Written+"\","), []byte("\","), 1); !bytes.Equal(got, own) {
			t.Errorf("%s is not what the verb for it writes", file)
		}
	}
}

func readFile(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// addLines adds lines to the kept part of the generated configuration.
func addLines(t *testing.T, dir, body string) {
	t.Helper()
	file := filepath.Join(dir, "pipeline", "rewardwatch.yml")
	text, err := keep.WithPart(string(readFile(t, file)), configPart, body)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A mistake in a person's lines is reported at its place in their file, and nothing is written.
func TestMistakesInAddedLinesHavePlaces(t *testing.T) {
	dir := t.TempDir()
	mustRun(t, "generate", "-o", dir, example)
	config := filepath.Join(dir, "pipeline", "rewardwatch.yml")
	above := "# A line that moves the others.\n"
	if err := os.WriteFile(config, append([]byte(above), readFile(t, config)...), 0o600); err != nil {
		t.Fatal(err)
	}
	addLines(t, dir, "http:\n  listen: nowhere\n  liste: x\n")
	before := readFile(t, config)
	at := 1 + strings.Count(strings.Split(string(before), "  listen:")[0], "\n")
	_, err := verb(t, "generate", "-o", dir, example)
	want := fmt.Sprintf("%s:%d:3: http: unknown key \"liste\"", config, at+1)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	if !bytes.Equal(readFile(t, config), before) {
		t.Error("the configuration was written")
	}
}

// A team's template cannot make a file that the program makes.
func TestTemplatesCannotMakeTheRules(t *testing.T) {
	dir := t.TempDir()
	own := filepath.Join(dir, "own", "pipeline", "rules")
	if err := os.MkdirAll(own, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(own, "rewardwatch.rules.yml.tmpl"), []byte("# {{template \"generated\"}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "pipeline.yaml")
	if err := os.WriteFile(file, append(readFile(t, example), "templates: [own]\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := verb(t, "validate", file); err == nil || !strings.Contains(err.Error(), "pipeline/rules/rewardwatch.rules.yml:1:1: is already generated by a template") {
		t.Errorf("%v", err)
	}
}
