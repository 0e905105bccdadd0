//go:build e2e

package pipelines

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Prometheus accepts the generated rules. Their tests with promtool are those of alerts/rules.
func TestE2EPrometheusTakesTheRules(t *testing.T) {
	dir := t.TempDir()
	mustRun(t, "generate", "-o", dir, example)
	rules := filepath.Join(dir, "pipeline", "rules", "rewardwatch.rules.yml")
	if out, err := exec.Command("promtool", "check", "rules", rules).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
	if err := os.WriteFile(rules, bytes.ReplaceAll(readFile(t, rules), []byte("expr: "), []byte("expr: (")), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("promtool", "check", "rules", rules).CombinedOutput(); err == nil {
		t.Errorf("promtool found no fault: %s", out)
	}
}
