//go:build e2e

package rules

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestE2EPromtoolAcceptsRules lets the real promtool check the rules and run their tests.
func TestE2EPromtoolAcceptsRules(t *testing.T) {
	for name, opts := range ruleCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := Write(dir, opts); err != nil {
				t.Fatal(err)
			}
			promtool(t, "check", "rules", filepath.Join(dir, RulesFile))
			promtool(t, "test", "rules", filepath.Join(dir, RulesTestFile))
		})
	}
}

func promtool(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.Command("promtool", args...).CombinedOutput()
	if err != nil {
		t.Errorf("promtool %v: %v\n%s", args, err, out)
	}
}
