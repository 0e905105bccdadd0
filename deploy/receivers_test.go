//go:build e2e

package deploy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/retrain/retraintest"
)

// slackMessage is what Alertmanager posts to a Slack webhook.
type slackMessage struct{ Attachments []slackAttachment }

type slackAttachment struct {
	Title, Text, Color string
	Link               string `json:"title_link"`
	Actions            []struct{ Text, URL string }
}

func (a slackAttachment) buttons() map[string]string {
	buttons := map[string]string{}
	for _, b := range a.Actions {
		buttons[b.Text] = b.URL
	}
	return buttons
}

// teamsMessage is what Alertmanager posts to a Microsoft Teams workflow: a card with a title and a text.
type teamsMessage struct {
	Attachments []struct {
		Content struct{ Body []struct{ Text string } }
	}
}

// channel returns the address of a webhook and what is posted to it.
func channel(t *testing.T) (url string, posted <-chan []byte) {
	t.Helper()
	bodies := make(chan []byte, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, "ok") // like Slack: otherwise Alertmanager sends the message again
		bodies <- body
	}))
	t.Cleanup(server.Close)
	return server.URL, bodies
}

// nextOf returns the next posted message.
func nextOf[T any](t *testing.T, posted <-chan []byte) (m T) {
	t.Helper()
	select {
	case body := <-posted:
		if err := json.Unmarshal(body, &m); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
	case <-time.After(3 * time.Minute):
		t.Fatal("no message came within a minute")
	}
	return m
}

// A real Alertmanager sends the chat message of receivers.yml, with a button for each page that the alert links to.
func TestE2EChatMessage(t *testing.T) {
	slack, posted := channel(t)
	am := startAlertmanagerOf(t, newAlertmanager, receiversFor(t, slack, "chat"))
	am.postAlerts(t, map[string]any{
		"labels": map[string]string{"alertname": "RewardDrift", "policy": "checkout", "severity": "warning", "incident": "6dcbf0b8c1d2e3f4"},
		"annotations": map[string]string{
			"summary": "checkout: return fell", "description": "return fell by 1.2 SD", "since": "2026-11-20T10:00:00Z", "cause": "environment",
			"evidence": "env_version went from 41 to 42", "incident_url": "https://rw.example/incidents/6dcbf0b8c1d2e3f4",
			"mute_url": "https://rw.example/incidents/6dcbf0b8c1d2e3f4#act", "approval_url": "https://rw.example/retrain/rr_1/decide?token=a.b", "runbook_url": "https://docs.example/runbooks#rewarddrift",
		},
	})
	a := nextOf[slackMessage](t, posted).Attachments[0]
	if a.Title != "[WARNING] checkout: return fell" || a.Link != "https://rw.example/incidents/6dcbf0b8c1d2e3f4" || a.Color != "warning" {
		t.Errorf("title %q, link %q, colour %q", a.Title, a.Link, a.Color)
	}
	const text = "return fell by 1.2 SD\nSince: 2026-11-20T10:00:00Z\nCause: environment\nenv_version went from 41 to 42"
	if a.Text != text {
		t.Errorf("text %q, want %q", a.Text, text)
	}
	buttons := a.buttons()
	for name, url := range map[string]string{
		"Approve or reject": "https://rw.example/retrain/rr_1/decide?token=a.b",
		"Incident":          "https://rw.example/incidents/6dcbf0b8c1d2e3f4", "Mute": "https://rw.example/incidents/6dcbf0b8c1d2e3f4#act",
		"Runbook": "https://docs.example/runbooks#rewarddrift", "Dashboard": "https://docs.example/runbooks#rewarddrift", // it has no dashboard
	} {
		if buttons[name] != url {
			t.Errorf("the button %s leads to %q, want %q", name, buttons[name], url)
		}
	}
}

// pagerDutyEvent is what Alertmanager posts to PagerDuty.
type pagerDutyEvent struct {
	Key     string `json:"routing_key"`
	Action  string `json:"event_action"`
	Payload struct {
		Summary, Severity string
		Details           map[string]string `json:"custom_details"`
	}
	Links []struct{ Href, Text string }
}

func (e pagerDutyEvent) links() map[string]string {
	links := map[string]string{}
	for _, l := range e.Links {
		links[l.Text] = l.Href
	}
	return links
}

// A real Alertmanager pages PagerDuty with the event of receivers.yml, and ends the page when the alert is resolved.
func TestE2EPage(t *testing.T) {
	pagerDuty, posted := channel(t)
	am := startAlertmanagerOf(t, newAlertmanager, receiversFor(t, pagerDuty, "pager"))
	alert := map[string]any{
		"labels": map[string]string{"alertname": "RewardDrift", "policy": "checkout", "severity": "critical", "incident": "6dcbf0b8c1d2e3f4"},
		"annotations": map[string]string{
			"summary": "checkout: return fell", "description": "return fell by 1.2 SD", "cause": "environment",
			"incident_url": "https://rw.example/incidents/6dcbf0b8c1d2e3f4", "mute_url": "https://rw.example/incidents/6dcbf0b8c1d2e3f4#act",
			"dashboard_url": "https://grafana.example/d/rewardwatch-policy?var-policy=checkout", "runbook_url": "https://docs.example/runbooks#rewarddrift",
			"approval_url": "https://rw.example/retrain/rr_1/decide?token=a.b",
		},
	}
	am.postAlerts(t, alert)
	e := nextOf[pagerDutyEvent](t, posted)
	if e.Key != "key" || e.Action != "trigger" || e.Payload.Summary != "[CRITICAL] checkout: return fell" || e.Payload.Severity != "critical" {
		t.Errorf("event %+v", e)
	}
	if got := e.Payload.Details["what"]; got != "return fell by 1.2 SD\nCause: environment" {
		t.Errorf("details %q", got)
	}
	want := map[string]string{
		"Incident": "https://rw.example/incidents/6dcbf0b8c1d2e3f4", "Mute": "https://rw.example/incidents/6dcbf0b8c1d2e3f4#act",
		"Dashboard": "https://grafana.example/d/rewardwatch-policy?var-policy=checkout", "Runbook": "https://docs.example/runbooks#rewarddrift",
		"Approve or reject": "https://rw.example/retrain/rr_1/decide?token=a.b",
	}
	if got := e.links(); !maps.Equal(got, want) {
		t.Errorf("links %v, want %v", got, want)
	}
	alert["endsAt"] = time.Now().Add(-time.Second).Format(time.RFC3339)
	am.postAlerts(t, alert)
	if e := nextOf[pagerDutyEvent](t, posted); e.Action != "resolve" {
		t.Errorf("event %+v, want the end of the page", e)
	}
}

// The Mute button of an alert without its own mute form leads to a new silence in Alertmanager for only this alert.
func TestE2EEveryAlertCanBeMuted(t *testing.T) {
	slack, posted := channel(t)
	am := startAlertmanagerOf(t, newAlertmanager, receiversFor(t, slack, "chat"))
	of := func(policy string) map[string]any {
		return map[string]any{
			"labels":      map[string]string{"alertname": "TelemetryFault", "policy": policy, "severity": "warning", "env": `eu "west" + 1`},
			"annotations": map[string]string{"summary": policy, "description": "no rewards", "runbook_url": "https://docs.example/runbooks#telemetryfault"},
		}
	}
	am.postAlerts(t, of("checkout"), of("search"))
	for range 2 {
		a := nextOf[slackMessage](t, posted).Attachments[0]
		_, filter, found := strings.Cut(a.buttons()["Mute"], "/#/silences/new?filter=")
		if !found {
			t.Fatalf("Mute leads to %q", a.buttons()["Mute"])
		}
		matchers, err := url.PathUnescape(filter)
		if err != nil {
			t.Fatal(err)
		}
		query := url.Values{"filter": strings.Split(strings.Trim(matchers, "{}"), ",")}
		var matched []struct{ Annotations map[string]string }
		get(t, am.url+"?"+query.Encode(), &matched)
		if len(matched) != 1 || !strings.HasSuffix(a.Title, " "+matched[0].Annotations["summary"]) {
			t.Errorf("%s is of %v, want the alert of %q", matchers, matched, a.Title)
		}
	}
}

// get decodes the response of a server.
func get(t *testing.T, address string, into any) {
	t.Helper()
	resp, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		t.Fatalf("%s: %s: %v", address, resp.Status, err)
	}
}

// receiversFor returns receivers.yml in a directory with its templates. One of its receivers, whose webhook is at an
// address, receives all alerts.
func receiversFor(t *testing.T, webhook, receiver string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"receivers.yml", "rewardwatch.tmpl"} {
		text, err := os.ReadFile(filepath.Join("alertmanager", name))
		if err != nil {
			t.Fatal(err)
		}
		shown := strings.NewReplacer(
			"api_url_file: /etc/alertmanager/slack-webhook", "api_url: "+webhook, "webhook_url_file: /etc/alertmanager/teams-webhook", "webhook_url: "+webhook,
			"routing_key_file: /etc/alertmanager/pagerduty-key", "routing_key: key\n        url: "+webhook,
			"receiver: chat", "receiver: "+receiver, "receiver: pager", "receiver: "+receiver, "group_wait: 10s", "group_wait: 1s", "group_interval: 1m", "group_interval: 1s",
		).Replace(string(text))
		if err := os.WriteFile(filepath.Join(dir, name), []byte(shown), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "receivers.yml")
}

// A channel that was notified of an incident before its retraining waited for approval gets a message with the button,
// and another one when the request is decided.
func TestE2ERequestReachesAChannelThatWasToldBefore(t *testing.T) {
	const link, page = "https://rw.example/retrain/rr_1/decide?token=a.b", "https://rw.example/incidents/i1"
	const group = `checkout{env="prod-eu"}`
	for receiver, said := range map[string]func([]byte) string{
		"chat": func(body []byte) string {
			var m slackMessage
			if err := json.Unmarshal(body, &m); err != nil || len(m.Attachments) != 1 {
				return fmt.Sprint(err, string(body))
			}
			return m.Attachments[0].Title + " -> " + m.Attachments[0].buttons()["Approve or reject"]
		},
		"teams": func(body []byte) string {
			var m teamsMessage
			if err := json.Unmarshal(body, &m); err != nil || len(m.Attachments) != 1 || len(m.Attachments[0].Content.Body) != 2 {
				return fmt.Sprint(err, string(body))
			}
			card := m.Attachments[0].Content.Body
			at := page
			if _, rest, found := strings.Cut(card[1].Text, "[Approve or reject]("); found {
				at, _, _ = strings.Cut(rest, ")")
			}
			return card[0].Text + " -> " + at
		},
	} {
		t.Run(receiver, func(t *testing.T) {
			webhook, posted := channel(t)
			am := startAlertmanagerOf(t, newAlertmanager, receiversFor(t, webhook, receiver))
			n, err := alerts.NewNotifier(
				alerts.AlertmanagerConfig{URLs: []string{strings.TrimSuffix(am.url, "/api/v2/alerts")}, Timeout: model.Duration(time.Minute)},
				alerts.Links{Console: "https://rw.example"}, nil, zerolog.Nop(), prometheus.NewRegistry())
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- n.Run(ctx) }()
			next := func(want string) {
				t.Helper()
				select {
				case body := <-posted:
					if got := said(body); got != want {
						t.Errorf("message %q, want %q", got, want)
					}
				case <-time.After(3 * time.Minute):
					t.Errorf("no message %q within a minute", want)
				}
			}
			i := retraintest.Incident("i1", "checkout")
			n.Update([]alerts.Change{{Incident: &i}})
			next("[CRITICAL] " + group + ": return has drifted from the baseline since episode or block 0 (cause: policy) -> " + page)
			n.AskApproval(&i, "rr_1", link)
			next("[INFO] " + group + ": a retraining is waiting for approval -> " + link)
			n.AskApproval(&i, "rr_1", "")
			next("[RESOLVED] " + group + ": a retraining is waiting for approval -> " + page)
			stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// rendered returns the output of a template for the data of alerts.
func rendered(t *testing.T, name, alerts string) string {
	t.Helper()
	return renderedText(t, "{{ template \""+name+"\" . }}", alerts)
}

// renderedText returns a text with its templates filled from the data of alerts.
func renderedText(t *testing.T, text, alerts string) string {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data.json")
	if err := os.WriteFile(data, []byte(alerts), 0o600); err != nil {
		t.Fatal(err)
	}
	return command(t, amtool, "template", "render", "--template.glob=alertmanager/*.tmpl", "--template.text="+text, "--template.data="+data)
}

// A name from telemetry is neither a link nor a mention in a chat, where a link can have any text.
func TestE2ENamesAreNoLinks(t *testing.T) {
	const name = "<!channel> <https://evil.example|Approve> [Approve](https://evil.example)"
	const one = `{"status":"firing","annotations":{"summary":"` + name + `","description":"` + name + `","evidence":"` + name + `"}}`
	for _, alerts := range []string{
		`{"status":"firing","commonLabels":{"severity":"critical","policy":"` + name + `"},"alerts":[` + one + `]}`,
		`{"status":"firing","commonLabels":{"severity":"critical","policy":"` + name + `"},"alerts":[` + one + "," + one + `]}`,
	} {
		for template, no := range map[string]string{
			"rewardwatch.slack.title": "<", "rewardwatch.slack.text": "<",
			"rewardwatch.markdown.title": "](https://evil", "rewardwatch.markdown": "](https://evil",
		} {
			if got := rendered(t, template, alerts); strings.Contains(got, no) || !strings.Contains(got, "evil.example") {
				t.Errorf("%s: %s", template, got)
			}
		}
		if got := rendered(t, "rewardwatch.title", alerts); !strings.Contains(got, name) { // plain text is unchanged
			t.Errorf("the subject of a mail: %s", got)
		}
	}
}

// The template for channels without buttons links to every page, and has a part for each of several alerts.
func TestE2EMessageWithLinks(t *testing.T) {
	const alerts = `{"receiver":"inbox","status":"firing","externalURL":"https://am.example","commonLabels":{"severity":"critical","policy":"checkout"},"alerts":[
		{"status":"firing","annotations":{"summary":"one","description":"first","incident_url":"https://rw.example/incidents/1","dashboard_url":"https://g.example/d/1","runbook_url":"https://docs.example/1","mute_url":"https://rw.example/incidents/1#act","approval_url":"https://rw.example/retrain/rr_1/decide?token=a.b"}},
		{"status":"firing","labels":{"alertname":"TelemetryFault","env":"eu west","policy":"check\"out"},"annotations":{"summary":"two","description":"second","runbook_url":"https://docs.example/2"}}]}`
	render := func(name string) string { return rendered(t, name, alerts) }
	if got := strings.TrimSpace(render("rewardwatch.title")); got != "[CRITICAL] 2 alerts of checkout" {
		t.Errorf("title %q", got)
	}
	got := regexp.MustCompile(`\n+`).ReplaceAllString(strings.TrimSpace(render("rewardwatch.linked")), "\n")
	const want = "one\nfirst\ntwo\nsecond\nIncident: https://rw.example/incidents/1\nDashboard: https://g.example/d/1\nRunbook: https://docs.example/1\n" +
		"Mute: https://rw.example/incidents/1#act\nApprove or reject the retraining: https://rw.example/retrain/rr_1/decide?token=a.b\nRunbook: https://docs.example/2\n" +
		"Mute: https://am.example/#/silences/new?filter=%7Balertname%3D%22TelemetryFault%22%2Cenv%3D%22eu%20west%22%2Cpolicy%3D%22check%5C%22out%22%7D"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// pushedAlert is an alert as pushed by Rewardwatch.
type pushedAlert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	EndsAt      time.Time         `json:"endsAt"`
}

// pushed returns the alerts that Rewardwatch pushes when an incident opens, when its retraining waits for approval, and
// when it closes.
func pushed(t *testing.T) (opened, asked, closed pushedAlert) {
	t.Helper()
	address, posted := channel(t)
	n, err := alerts.NewNotifier(
		alerts.AlertmanagerConfig{URLs: []string{address}, Timeout: model.Duration(time.Minute)},
		alerts.Links{Console: "https://rw.example", Grafana: "https://grafana.example"}, nil, zerolog.Nop(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	// Unchanged alerts may be sent as well.
	next := func(want func(pushedAlert) bool) pushedAlert {
		for {
			for _, a := range nextOf[[]pushedAlert](t, posted) {
				if want(a) {
					return a
				}
			}
		}
	}
	i := retraintest.Incident("6dcbf0b8c1d2e3f4", "checkout")
	ended := func(a pushedAlert) bool { return a.EndsAt.Before(time.Now()) }
	n.Update([]alerts.Change{{Incident: &i}})
	opened = next(func(a pushedAlert) bool { return a.Labels["alertname"] == "RewardDrift" && !ended(a) })
	n.AskApproval(&i, "rr_1", "https://rw.example/retrain/rr_1/decide?token=a.b")
	asked = next(func(a pushedAlert) bool { return a.Annotations["approval_url"] != "" })
	over := i
	over.Closed, over.ClosedAt = true, i.Alarms[0].At
	over.Alarms[0].Resolved, over.Alarms[0].ResolvedAt = true, i.Alarms[0].At
	n.Update([]alerts.Change{{Incident: &over}})
	closed = next(func(a pushedAlert) bool { return a.Labels["alertname"] == "RewardDrift" && ended(a) })
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	return opened, asked, closed
}

// templatesOf returns the texts with templates of each receiver in receivers.yml, without those that only set a color
// or a severity.
func templatesOf(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("alertmanager/receivers.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Receivers []map[string]any }
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, r := range file.Receivers {
		var within func(v any) string
		within = func(v any) (all string) {
			switch v := v.(type) {
			case string:
				if strings.Contains(v, "{{ template") {
					return v + "\n"
				}
			case []any:
				for _, e := range v {
					all += within(e)
				}
			case map[string]any:
				for _, name := range slices.Sorted(maps.Keys(v)) {
					all += within(v[name])
				}
			}
			return all
		}
		out[r["name"].(string)] = within(r)
	}
	return out
}

// In every channel, the message of an alert that Rewardwatch pushes says what has drifted, since when and why. It links
// to the incident, the dashboard, the runbook and the mute form and, if a retraining waits for a person, to the
// decision. The message of its end says so.
func TestE2EEveryChannelLeadsSomewhere(t *testing.T) {
	opened, asked, closed := pushed(t)
	for receiver, text := range templatesOf(t) {
		for name, tt := range map[string]struct {
			status string
			alert  pushedAlert
			state  string
		}{
			"firing": {"firing", opened, "[CRITICAL]"}, "approval": {"firing", asked, "[INFO]"}, "resolved": {"resolved", closed, "[RESOLVED]"},
		} {
			t.Run(receiver+" "+name, func(t *testing.T) {
				one := map[string]any{"status": tt.status, "labels": tt.alert.Labels, "annotations": tt.alert.Annotations}
				data, err := json.Marshal(map[string]any{
					"receiver": receiver, "status": tt.status, "externalURL": "https://am.example", "commonLabels": tt.alert.Labels, "alerts": []any{one},
				})
				if err != nil {
					t.Fatal(err)
				}
				got := renderedText(t, text, string(data))
				a := tt.alert.Annotations
				wanted := []string{tt.state + " ", a["summary"], a["description"], a["runbook_url"], a["dashboard_url"], a["mute_url"], a["incident_url"]}
				if name == "approval" {
					wanted = append(wanted, a["approval_url"])
				}
				if name == "firing" {
					wanted = append(wanted, a["since"], a["cause"], a["evidence"])
				}
				plain := strings.NewReplacer("&gt;", ">", "&lt;", "<", "&amp;", "&").Replace(got)
				for _, want := range wanted {
					if want == "" && name == "firing" || !strings.Contains(plain, want) {
						t.Errorf("%q is missing from the message:\n%s", want, got)
					}
				}
			})
		}
	}
}
