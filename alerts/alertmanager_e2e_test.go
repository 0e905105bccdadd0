//go:build e2e

package alerts

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/deploy/deploytest"
	"github.com/rewardwatch/rewardwatch/detectors/fault"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// deadline is the time limit for each action of a real Alertmanager.
const deadline = 2 * time.Minute

// TestE2EAlertmanager sends an incident and a telemetry fault to a real Alertmanager that starts late. It checks that
// both appear in its API and at a receiver, and that both resolve there.
func TestE2EAlertmanager(t *testing.T) {
	notified := make(chan notification, 100)
	box := inbox{notified: notified}
	address := "127.0.0.1:" + deploytest.FreePorts(t, 1)[0]
	tracker, n := NewTracker(), notifierFor(t, "http://"+address)
	changes := applied(tracker, drift("return", 100), faulty("observation.x", fault.Constant, 110))
	id := changes[0].Incident.ID
	n.Update(changes)
	startAlertmanager(t, address, receiverURL(t, notified))

	labels := map[string]string{
		"alertname": "RewardDrift", "incident": id, "policy": "checkout", "env": "prod", "severity": "critical",
	}
	until(t, "both alerts are active", func() bool { return len(active(t, address)) == 2 })
	shown := active(t, address)["RewardDrift"]
	if fmt.Sprint(shown.Labels) != fmt.Sprint(labels) || shown.Annotations["signals"] != "return" {
		t.Errorf("shown as %+v", shown)
	}
	box.await(t, "RewardDrift", "firing")
	box.await(t, "TelemetryFault", "firing")

	n.Update(applied(tracker, drift("reward", 120)))
	until(t, "the alert names the second signal", func() bool {
		return active(t, address)["RewardDrift"].Annotations["signals"] == "return, reward"
	})
	n.Update(applied(tracker, goes("observation.x", finding.TelemetryFault, finding.OK, 140), quiet(170)))
	until(t, "no alert is active", func() bool { return len(active(t, address)) == 0 })
	resolved := box.await(t, "RewardDrift", "resolved")
	if fmt.Sprint(resolved.Labels) != fmt.Sprint(labels) {
		t.Errorf("resolved with labels %v", resolved.Labels)
	}
	box.await(t, "TelemetryFault", "resolved")
}

// notification is an alert in a notification from Alertmanager to a webhook receiver.
type notification struct {
	Status string            `json:"status"`
	Labels map[string]string `json:"labels"`
}

// notifierFor runs a notifier until the test ends.
func notifierFor(t *testing.T, url string) *Notifier {
	t.Helper()
	cfg := DefaultAlertmanagerConfig()
	cfg.URLs = []string{url}
	n, err := NewNotifier(cfg, Links{Grafana: "https://grafana.example", Console: "https://rewardwatch.example"}, nil, zerolog.New(zerolog.NewTestWriter(t)), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- n.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return n
}

// receiverURL starts the receiver that Alertmanager notifies.
func receiverURL(t *testing.T, notified chan<- notification) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var body struct {
			Alerts []notification `json:"alerts"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		for _, a := range body.Alerts {
			notified <- a
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// startAlertmanager runs the binary of the Debian package prometheus-alertmanager until the test ends.
func startAlertmanager(t *testing.T, address, receiver string) {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "alertmanager.yml")
	content := fmt.Sprintf(`route: {receiver: test, group_by: ["..."], group_wait: 10ms, group_interval: 100ms}
receivers: [{name: test, webhook_configs: [{url: %q, send_resolved: true}]}]
`, receiver)
	if err := os.WriteFile(config, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	var output bytes.Buffer
	cmd := exec.Command("prometheus-alertmanager", "--config.file="+config, "--storage.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address, "--cluster.listen-address=")
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting Alertmanager (Debian package prometheus-alertmanager): %v", err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil || t.Failed() {
			t.Logf("Alertmanager ended: %v\n%s", err, output.String())
		}
	})
}

// active returns the alerts of Alertmanager's API by name, or none while it does not answer.
func active(t *testing.T, address string) map[string]message {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: deadline}
	response, err := client.Get("http://" + address + "/api/v2/alerts")
	if err != nil {
		return nil
	}
	defer func() { _ = response.Body.Close() }()
	var list []message
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	out := map[string]message{}
	for _, m := range list {
		out[m.Labels["alertname"]] = m
	}
	return out
}

// until polls until a condition holds.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	late := time.After(deadline)
	for !holds() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// inbox keeps the notifications, which arrive in any order.
type inbox struct {
	notified <-chan notification
	seen     []notification
}

// await returns the notification of an alert in a state, and keeps the others that arrive before it.
func (i *inbox) await(t *testing.T, name, status string) notification {
	t.Helper()
	wanted := func(n notification) bool { return n.Labels["alertname"] == name && n.Status == status }
	late := time.After(deadline)
	for {
		if at := slices.IndexFunc(i.seen, wanted); at >= 0 {
			return i.seen[at]
		}
		select {
		case n := <-i.notified:
			i.seen = append(i.seen, n)
		case <-late:
			t.Fatalf("%s was not notified as %s", name, status)
		}
	}
}
