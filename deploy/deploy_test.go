// Package deploy_test holds the configurations of this directory to what the code writes and to what the servers accept.
package deploy_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/rewardwatch/rewardwatch/alerts/rules"
)

var update = flag.Bool("update", false, "rewrite the rules under deploy/prometheus")

// The rules are those for rewardwatch.yml, which pushes drift and faults to Alertmanager itself.
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
