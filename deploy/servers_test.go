//go:build e2e

package deploy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/deploy/deploytest"
)

func TestE2EServersAcceptTheirConfigurations(t *testing.T) {
	for _, test := range []struct {
		name    string
		command []string
		want    string
	}{
		{"prometheus.yml and its rules", []string{"promtool", "check", "config", "prometheus/prometheus.yml"}, "is valid prometheus config file"},
		{"receivers.yml", []string{amtool, "check-config", "alertmanager/receivers.yml"}, "SUCCESS"},
		{"alertmanager.yml", []string{"amtool", "check-config", "alertmanager/alertmanager.yml"}, "SUCCESS"},
		{"rewardwatch.yml", []string{"go", "run", "../cmd/rewardwatch", "validate", withRecipesHere(t)}, "ok"},
	} {
		t.Run(test.name, func(t *testing.T) {
			out := command(t, test.command...)
			if !strings.Contains(out, test.want) {
				t.Errorf("%q is missing from:\n%s", test.want, out)
			}
		})
	}
}

// withRecipesHere returns a copy of rewardwatch.yml that reads the recipes of this directory.
func withRecipesHere(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("rewardwatch.yml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rewardwatch.yml")
	if err := os.WriteFile(file, bytes.Replace(text, []byte("/etc/rewardwatch/recipes"), []byte("recipes"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestE2EWhoIsTold(t *testing.T) {
	for labels, want := range map[string]string{
		"alertname=RewardDrift severity=critical":         "pager",
		"alertname=RewardDrift severity=warning":          "inbox",
		"alertname=RewardDrift severity=info":             "inbox",
		"alertname=TelemetryFault severity=warning":       "inbox",
		"alertname=TelemetryAbsent severity=warning":      "inbox",
		"alertname=RewardChannelFault severity=critical":  "pager",
		"alertname=FreshnessBudgetBurn severity=critical": "pager",
		"alertname=FreshnessBudgetBurn severity=warning":  "inbox",
	} {
		t.Run(labels, func(t *testing.T) {
			args := append([]string{"amtool", "config", "routes", "test", "--config.file=alertmanager/alertmanager.yml"}, strings.Fields(labels)...)
			if got := strings.TrimSpace(command(t, args...)); got != want {
				t.Errorf("goes to %q, want %q", got, want)
			}
		})
	}
}

// A telemetry fault may affect a signal that is unrelated to the drift, so it must not suppress a page.
func TestE2EAFaultHoldsBackNoDrift(t *testing.T) {
	am := startAlertmanager(t, ownConfig)
	am.post(t,
		map[string]string{"alertname": "TelemetryFault", "policy": "p", "env": "a", "severity": "warning"},
		map[string]string{"alertname": "RewardDrift", "policy": "p", "env": "a", "severity": "critical", "incident": "same"},
		map[string]string{"alertname": "RewardDrift", "policy": "p", "env": "b", "severity": "critical", "incident": "other-env"},
		map[string]string{"alertname": "RewardDrift", "policy": "q", "env": "a", "severity": "critical", "incident": "other-policy"},
	)
	am.waitFor(t, map[string]string{"same": "active", "other-env": "active", "other-policy": "active"})
}

// A fault of the rewards makes them drift: its page silences the drift of the same group, and of no other.
func TestE2EAFaultOfTheRewardsSilencesTheDriftThatItCauses(t *testing.T) {
	am := startAlertmanager(t, ownConfig)
	am.post(t,
		map[string]string{"alertname": "RewardChannelFault", "policy": "p", "env": "a", "rule": "scale", "severity": "critical"},
		map[string]string{"alertname": "RewardDrift", "policy": "p", "env": "a", "severity": "critical", "incident": "same"},
		map[string]string{"alertname": "RewardDrift", "policy": "p", "env": "b", "severity": "critical", "incident": "other-env"},
		map[string]string{"alertname": "RewardDrift", "policy": "q", "env": "a", "severity": "critical", "incident": "other-policy"},
		map[string]string{"alertname": "ActionCollapse", "policy": "p", "env": "a", "severity": "critical", "incident": "of-actions"},
	)
	am.waitFor(t, map[string]string{"same": "suppressed", "other-env": "active", "other-policy": "active", "of-actions": "active"})
}

func TestE2EAPageSilencesItsOwnTicket(t *testing.T) {
	am := startAlertmanager(t, ownConfig)
	am.post(t,
		map[string]string{"alertname": "FreshnessBudgetBurn", "job": "one", "severity": "critical", "incident": "page"},
		map[string]string{"alertname": "FreshnessBudgetBurn", "job": "one", "severity": "warning", "incident": "ticket"},
		map[string]string{"alertname": "FreshnessBudgetBurn", "job": "other", "severity": "warning", "incident": "other-job"},
		map[string]string{"alertname": "ConsumerLagHigh", "job": "one", "severity": "warning", "incident": "lag"},
	)
	am.waitFor(t, map[string]string{"page": "active", "ticket": "suppressed", "other-job": "active", "lag": "active"})
}

// ownConfig is the configuration in this directory.
const ownConfig = "alertmanager/alertmanager.yml"

// alertmanager is a real Alertmanager.
type alertmanager struct{ url string }

func startAlertmanager(t *testing.T, config string) alertmanager {
	t.Helper()
	return startAlertmanagerOf(t, "prometheus-alertmanager", config)
}

// The Alertmanager that supports all receivers of receivers.yml; Debian's is older.
const (
	newAlertmanager = "../.cache/bin/alertmanager-v0.28.1"
	amtool          = "../.cache/bin/amtool-v0.28.1"
)

func startAlertmanagerOf(t *testing.T, binary, config string) alertmanager {
	t.Helper()
	dir, port := t.TempDir(), deploytest.FreePorts(t, 1)[0]
	run := func(verb string) {
		cmd := exec.Command("local/alertmanager.sh", verb)
		cmd.Env = append(os.Environ(), "ALERTMANAGER_PORT="+port, "ALERTMANAGER_DIR="+dir, "ALERTMANAGER_CONFIG="+config, "ALERTMANAGER_BINARY="+binary)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("alertmanager.sh %s: %v\n%s", verb, err, out)
		}
	}
	run("start")
	t.Cleanup(func() { run("stop") })
	return alertmanager{url: "http://127.0.0.1:" + port + "/api/v2/alerts"}
}

func (a alertmanager) post(t *testing.T, alerts ...map[string]string) {
	t.Helper()
	var body []map[string]any
	for _, labels := range alerts {
		body = append(body, map[string]any{"labels": labels})
	}
	a.postAlerts(t, body...)
}

func (a alertmanager) postAlerts(t *testing.T, body ...map[string]any) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(a.url, "application/json", strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("posting alerts: %s", resp.Status)
	}
}

// waitFor polls until the incidents are in the wanted states: Alertmanager processes alerts after its response.
func (a alertmanager) waitFor(t *testing.T, want map[string]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		got := a.states(t)
		if fmt.Sprint(got) == fmt.Sprint(want) {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("states %v, want %v", got, want)
		case <-tick.C:
		}
	}
}

// states returns the state of each incident's alert.
func (a alertmanager) states(t *testing.T) map[string]string {
	t.Helper()
	resp, err := http.Get(a.url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var alerts []struct {
		Labels map[string]string
		Status struct{ State string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&alerts); err != nil {
		t.Fatal(err)
	}
	states := map[string]string{}
	for _, alert := range alerts {
		if id := alert.Labels["incident"]; id != "" {
			states[id] = alert.Status.State
		}
	}
	return states
}

// command returns the standard output of a command, which must succeed.
func command(t *testing.T, args ...string) string {
	t.Helper()
	var stderr strings.Builder
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(args, " "), err, out, &stderr)
	}
	return string(out)
}
