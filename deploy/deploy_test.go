// Package deploy_test compares the configurations of this directory with what the code writes and what the servers
// accept.
package deploy_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/alerts/rules"
)

var update = flag.Bool("update", false, "rewrite the rules under deploy")

// The rules are those for rewardwatch.yml, which pushes drift and faults to Alertmanager itself. promtool runs their
// tests in alerts/rules.
func TestDeliveredRulesAreUpToDate(t *testing.T) {
	dir := t.TempDir()
	if *update {
		dir = "prometheus"
	}
	err := rules.Write(dir, rules.Options{
		Push: true, GroupLabels: []string{"env"}, GrafanaURL: "http://127.0.0.1:3000",
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{rules.RulesFile, rules.RulesTestFile} {
		got, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join("prometheus", file))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("prometheus/%s is not what `rewardwatch rules` writes; run `go test ./deploy -update` and look at the difference", file)
		}
	}
}

// The Helm chart has two rule files: one for a service that does not push, and one in which the chart sets Grafana's
// address.
func TestRulesOfTheChartAreUpToDate(t *testing.T) {
	for file, push := range map[string]bool{"rules.yml": false, "rules-push.yml": true} {
		files, err := rules.Files(rules.Options{Push: push, GroupLabels: []string{"env"}, GrafanaURL: "http://grafana.invalid"})
		if err != nil {
			t.Fatal(err)
		}
		upToDate(t, filepath.Join("helm/rewardwatch/files", file), string(files[rules.RulesFile]))
	}
}

// Kustomize's rules are in the object that Prometheus' operator accepts.
func TestRulesOfKustomizeAreUpToDate(t *testing.T) {
	files, err := rules.Files(rules.Options{GroupLabels: []string{"env"}})
	if err != nil {
		t.Fatal(err)
	}
	const head = "apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: rewardwatch\nspec:\n  "
	text := strings.TrimSuffix(strings.ReplaceAll(string(files[rules.RulesFile]), "\n", "\n  "), "  ")
	upToDate(t, "kustomize/monitoring/prometheusrule.yaml", head+text)
}

// upToDate compares a file with its expected content, or writes it.
func upToDate(t *testing.T, file, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what this build writes; run `go test ./deploy -update` and look at the difference", file)
	}
}
