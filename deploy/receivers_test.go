//go:build e2e

package deploy_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// slackMessage is what Alertmanager posts to a webhook of Slack.
type slackMessage struct {
	Attachments []struct {
		Title, Text, Color string
		Link               string `json:"title_link"`
		Actions            []struct{ Text, URL string }
	}
}

// A real Alertmanager sends the chat message of receivers.yml, with a button for each page that the alert leads to.
func TestE2EChatMessage(t *testing.T) {
	posted := make(chan []byte, 10)
	slack := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		posted <- body
	}))
	t.Cleanup(slack.Close)
	am := startAlertmanager(t, receiversFor(t, slack.URL))
	am.postAlerts(t, map[string]any{
		"labels": map[string]string{"alertname": "RewardDrift", "policy": "checkout", "severity": "warning", "incident": "6dcbf0b8c1d2e3f4"},
		"annotations": map[string]string{
			"summary": "checkout: return fell", "description": "return fell by 1.2 SD", "since": "2026-11-20T10:00:00Z", "cause": "environment",
			"evidence": "env_version went from 41 to 42", "incident_url": "https://rw.example/incidents/6dcbf0b8c1d2e3f4",
			"mute_url": "https://rw.example/incidents/6dcbf0b8c1d2e3f4#act", "approval_url": "https://rw.example/retrain/rr_1/decide?token=a.b", "runbook_url": "https://docs.example/runbooks#rewarddrift",
		},
	})
	var m slackMessage
	select {
	case body := <-posted:
		if err := json.Unmarshal(body, &m); err != nil || len(m.Attachments) != 1 {
			t.Fatalf("%v: %s", err, body)
		}
	case <-time.After(time.Minute):
		t.Fatal("no message came within a minute")
	}
	a := m.Attachments[0]
	if a.Title != "[WARNING] checkout: return fell" || a.Link != "https://rw.example/incidents/6dcbf0b8c1d2e3f4" || a.Color != "warning" {
		t.Errorf("title %q, link %q, colour %q", a.Title, a.Link, a.Color)
	}
	const text = "return fell by 1.2 SD\nSince: 2026-11-20T10:00:00Z\nCause: environment\nenv_version went from 41 to 42"
	if a.Text != text {
		t.Errorf("text %q, want %q", a.Text, text)
	}
	buttons := map[string]string{}
	for _, b := range a.Actions {
		buttons[b.Text] = b.URL
	}
	for name, url := range map[string]string{
		"Approve or reject": "https://rw.example/retrain/rr_1/decide?token=a.b",
		"Incident":          "https://rw.example/incidents/6dcbf0b8c1d2e3f4", "Mute": "https://rw.example/incidents/6dcbf0b8c1d2e3f4#act",
		"Runbook": "https://docs.example/runbooks#rewarddrift", "Dashboard": "https://docs.example/runbooks#rewarddrift", // it has none
	} {
		if buttons[name] != url {
			t.Errorf("the button %s leads to %q, want %q", name, buttons[name], url)
		}
	}
}

// receiversFor returns a directory with receivers.yml and its templates, whose webhook of Slack is at an address.
func receiversFor(t *testing.T, slack string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"receivers.yml", "rewardwatch.tmpl"} {
		text, err := os.ReadFile(filepath.Join("alertmanager", name))
		if err != nil {
			t.Fatal(err)
		}
		shown := strings.ReplaceAll(string(text), "api_url_file: /etc/alertmanager/slack-webhook", "api_url: "+slack)
		shown = strings.ReplaceAll(shown, "group_wait: 10s", "group_wait: 0s")
		if err := os.WriteFile(filepath.Join(dir, name), []byte(shown), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "receivers.yml")
}

// The template for channels without buttons names every page, and has a part for each of several alerts.
func TestE2EMessageWithLinks(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data.json")
	const alerts = `{"receiver":"inbox","status":"firing","commonLabels":{"severity":"critical","policy":"checkout"},"alerts":[
		{"status":"firing","annotations":{"summary":"one","description":"first","incident_url":"https://rw.example/incidents/1","dashboard_url":"https://g.example/d/1","runbook_url":"https://docs.example/1","mute_url":"https://rw.example/incidents/1#act","approval_url":"https://rw.example/retrain/rr_1/decide?token=a.b"}},
		{"status":"firing","annotations":{"summary":"two","description":"second","runbook_url":"https://docs.example/2"}}]}`
	if err := os.WriteFile(data, []byte(alerts), 0o600); err != nil {
		t.Fatal(err)
	}
	render := func(name string) string {
		return command(t, "amtool", "template", "render", "--template.glob=alertmanager/*.tmpl", "--template.text={{ template \""+name+"\" . }}", "--template.data="+data)
	}
	if got := strings.TrimSpace(render("rewardwatch.title")); got != "[CRITICAL] 2 alerts of checkout" {
		t.Errorf("title %q", got)
	}
	got := regexp.MustCompile(`\n+`).ReplaceAllString(strings.TrimSpace(render("rewardwatch.linked")), "\n")
	const want = "one\nfirst\ntwo\nsecond\nIncident: https://rw.example/incidents/1\nDashboard: https://g.example/d/1\nRunbook: https://docs.example/1\n" +
		"Mute: https://rw.example/incidents/1#act\nApprove or reject the retraining: https://rw.example/retrain/rr_1/decide?token=a.b\nRunbook: https://docs.example/2"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
