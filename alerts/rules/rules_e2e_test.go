//go:build e2e

package rules

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/goccy/go-yaml"
)

// TestE2EPromtoolAcceptsRules lets the real promtool check the rules and run their tests. For one set, it runs all
// tests, which take 40 s of CPU; for the others, only those of alerts with different expressions.
func TestE2EPromtoolAcceptsRules(t *testing.T) {
	const whole = "metrics"
	known := alertsOf(t, written(t, whole))
	for name := range ruleCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := written(t, name)
			promtool(t, "check", "rules", filepath.Join(dir, RulesFile))
			if name != whole {
				own := alertsOf(t, dir)
				if !keepTests(t, dir, func(alert string) bool { return !slices.Equal(own[alert], known[alert]) }) {
					return
				}
			}
			promtool(t, "test", "rules", filepath.Join(dir, RulesTestFile))
		})
	}
}

func written(t *testing.T, name string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := Write(dir, ruleCases[name]); err != nil {
		t.Fatal(err)
	}
	return dir
}

// alertsOf returns the expressions of the rules of each alert in a directory.
func alertsOf(t *testing.T, dir string) map[string][]string {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	parsed(t, filepath.Join(dir, RulesFile), &file)
	all := map[string][]string{}
	for _, group := range file.Groups {
		for _, r := range group.Rules {
			all[r.Alert] = append(all[r.Alert], r.Expr)
		}
	}
	return all
}

// keepTests removes the tests of unwanted alerts from the file in a directory, and reports whether any tests are left.
func keepTests(t *testing.T, dir string, wanted func(alert string) bool) bool {
	t.Helper()
	path := filepath.Join(dir, RulesTestFile)
	var file map[string]any
	parsed(t, path, &file)
	tests := slices.DeleteFunc(file["tests"].([]any), func(test any) bool {
		cases, _ := test.(map[string]any)["alert_rule_test"].([]any)
		return !slices.ContainsFunc(cases, func(c any) bool { return wanted(c.(map[string]any)["alertname"].(string)) })
	})
	file["tests"] = tests
	text, err := yaml.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return len(tests) > 0
}

func parsed(t *testing.T, path string, to any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, to); err != nil {
		t.Fatal(err)
	}
}

func promtool(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.Command("promtool", args...).CombinedOutput()
	if err != nil {
		t.Errorf("promtool %v: %v\n%s", args, err, out)
	}
}
