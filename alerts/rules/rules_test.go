package rules

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

// ruleCases are the options with which rules are written.
var ruleCases = map[string]Options{
	"metrics": {
		GroupLabels: []string{"env"}, GrafanaURL: "https://grafana.example/drift/",
	},
	"push": { // those of deploy/prometheus
		Push: true, GroupLabels: []string{"env"}, GrafanaURL: "http://127.0.0.1:3000",
	},
	"regions":   {GroupLabels: []string{"env", "label_region"}},
	"ungrouped": {},
}

func TestWriteRulesGolden(t *testing.T) {
	for name, opts := range ruleCases {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "made")
			for range 2 { // the second time over the first
				if err := Write(dir, opts); err != nil {
					t.Fatal(err)
				}
			}
			for _, file := range []string{RulesFile, RulesTestFile} {
				golden(t, filepath.Join("testdata", name, file), filepath.Join(dir, file))
			}
		})
	}
}

// golden compares a written file with its golden file byte by byte.
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

// TestEveryRuleIsTestedBothWays requires that the written tests show each rule firing, and show it or its namesake
// silent.
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

// TestAlertsSeeWhatWasRecordedNow requires that a recording rule is in the same group as the alerts that use it, and
// before them: the rules of a group are evaluated one after another, and groups in any order.
func TestAlertsSeeWhatWasRecordedNow(t *testing.T) {
	opts := ruleCases["metrics"]
	looking := 0
	for _, group := range rulesFile(allRecords(), allRules(opts), opts.GrafanaURL).Groups {
		recorded := map[string]bool{}
		for _, r := range group.Rules {
			switch r := r.(type) {
			case recordRule:
				recorded[r.Record] = true
			case alertRule:
				for _, name := range regexp.MustCompile(`job:\w+:\w+`).FindAllString(r.Expr, -1) {
					looking++
					if !recorded[name] {
						t.Errorf("%s looks at %s, which is not recorded before it in its group", r.Alert, name)
					}
				}
			}
		}
	}
	if looking == 0 {
		t.Error("no alert looks at what is recorded")
	}
}

// TestEveryRecordIsUsed requires that every recorded series is used by an alert.
func TestEveryRecordIsUsed(t *testing.T) {
	recorded := map[string]bool{}
	for _, r := range allRecords() {
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
