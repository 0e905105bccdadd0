package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api/apitest"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// guardedConfig returns a configuration of a service that accepts orders.
func guardedConfig(t *testing.T, broker string) string {
	t.Helper()
	config := serviceConfig(t, broker)
	withHTTP(t, config, fmt.Sprintf("token_file: %q", testkit.WriteFile(t, apitest.SomeToken)))
	return config
}

// withHTTP adds a key to the http section of a configuration.
func withHTTP(t *testing.T, config, key string) {
	t.Helper()
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte(strings.Replace(string(text), "http: {", "http: {"+key+", ", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// order posts to the service and returns the status and the response.
func (p *process) order(t *testing.T, path, body string) (int, string) {
	t.Helper()
	return p.post(t, path, body, http.Header{"Authorization": {"Bearer " + apitest.SomeToken}})
}

// post posts to the service with the headers and returns the status and the response.
func (p *process) post(t *testing.T, path, body string, headers http.Header) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+p.address+"/api/v1/"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = headers
	return answerTo(t, r)
}

// answerTo sends a request and returns the status and the text of the response.
func answerTo(t *testing.T, r *http.Request) (int, string) {
	t.Helper()
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// incidents returns the incidents of the service, the most recent last.
func (p *process) incidents() []wire.Incident {
	var a struct{ Incidents []wire.Incident }
	p.get("/api/v1/incidents", &a)
	return a.Incidents
}

// A person's decision survives a kill at the moment of the response, and reading the last seconds again does not undo
// it.
func TestDecisionsSurviveAKill(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	t.Parallel()
	broker := startBroker(t, 1)
	config := guardedConfig(t, broker)
	log := audited(t, config)
	f := newFleet(21, 5)
	f.episodes(700)
	f.mean = -1.4
	f.episodes(100)
	f.produce(t, broker, 0, len(f.lines))
	p := startService(t, config)
	testkit.Eventually(t, "all units", func() bool { return p.units() == int64(f.ended) })
	opened := p.incidents()
	if len(opened) != 1 || opened[0].State != "open" {
		t.Fatalf("incidents %+v", opened)
	}
	id := opened[0].ID

	if code, answer := p.order(t, "incidents/"+id+"/mute", `{"by":"alice","why":"known","for":"1h"}`); code != http.StatusOK {
		t.Fatalf("mute gives %d %s", code, answer)
	}
	p.killMember(t)
	p = startService(t, config)
	i := p.incidents()[0]
	if i.State != "open" || i.MutedUntil == nil || len(i.Decisions) != 1 || i.Decisions[0].By != "alice" {
		t.Fatalf("after a mute and a kill: %+v", i)
	}

	for range 2 { // repeating it changes nothing
		if code, answer := p.order(t, "incidents/"+id+"/accept", `{"by":"bob","why":"new prices"}`); code != http.StatusOK {
			t.Fatalf("accept gives %d %s", code, answer)
		}
	}
	p.killMember(t)
	p = startService(t, config)
	testkit.Eventually(t, "the units read again", func() bool { return p.units() == int64(f.ended) })
	if i = p.incidents()[0]; i.State != "closed" || i.MutedUntil != nil || len(i.Decisions) != 2 || i.Decisions[1].Decision != alerts.Accepted {
		t.Fatalf("after an acceptance and a kill: %+v", i)
	}
	if code, answer := p.order(t, "incidents/"+id+"/mute", `{"by":"alice","why":"known","for":"1h"}`); code != http.StatusConflict {
		t.Errorf("a mute of a closed incident gives %d %s", code, answer)
	}
	if code, answer := p.order(t, "incidents/none/accept", `{"by":"alice","why":"known"}`); code != http.StatusNotFound {
		t.Errorf("an unknown incident gives %d %s", code, answer)
	}

	at := len(f.lines)
	f.episodes(600)
	f.produce(t, broker, at, len(f.lines))
	testkit.Eventually(t, "the units of the new normal", func() bool { return p.units() == int64(f.ended) })
	var b struct{ Baselines []wire.Baseline }
	p.get("/api/v1/baselines", &b)
	if len(p.incidents()) != 1 || len(b.Baselines) != 1 || b.Baselines[0].Units != 500 || len(b.Baselines[0].Past) != 1 {
		t.Fatalf("after the new baseline: %d incidents, baselines %+v", len(p.incidents()), b.Baselines)
	}
	past := b.Baselines[0].Past[0]
	if !strings.HasPrefix(past.Why, "accepted by bob") || b.Baselines[0].UsedInAYear != 2 {
		t.Errorf("the past baseline ended because %q; %d used in a year", past.Why, b.Baselines[0].UsedInAYear)
	}
	var d wire.BaselineDiff
	if !p.get("/api/v1/baselines/"+past.ID+"/diff/"+*b.Baselines[0].ID, &d) || len(d.Quantities) == 0 {
		t.Errorf("the baselines side by side: %+v", d)
	}
	testkit.Eventually(t, "the audit log in its topic", func() bool {
		lines, err := os.ReadFile(log)
		return err == nil && strings.Count(string(lines), "\n") >= 3 && sentOf(t, broker) == string(lines)
	})
	p.interrupt(t)
}

// audited adds an audit log with a topic to a configuration, and returns its path.
func audited(t *testing.T, config string) string {
	t.Helper()
	log := filepath.Join(t.TempDir(), "audit.log")
	withHTTP(t, config, fmt.Sprintf("audit_log: %q, audit_topic: %s", log, auditTopic))
	return log
}

// sentOf returns the lines in the topic of the audit log, each once.
func sentOf(t *testing.T, broker string) (lines string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.ConsumeTopics(auditTopic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	seen := map[string]bool{}
	client.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
		if id := string(r.Headers[0].Value); !seen[id] {
			seen[id] = true
			lines += string(r.Value) + "\n"
		}
	})
	return lines
}

// A request that needs approval waits for it. Its link is shown and logged, and can be used to decide.
func TestServiceTakesDecisionsOnRequests(t *testing.T) {
	t.Parallel()
	broker := startBroker(t, 1)
	config := guardedConfig(t, broker)
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	pushed := make(chan string, 1000)
	alertmanager := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		pushed <- string(body)
	}))
	t.Cleanup(alertmanager.Close)
	text = append([]byte(strings.Replace(string(text), "http: {", `http: {external_url: "https://rewardwatch.example", `, 1)), `
alerts: {approval_links: true, alertmanager: {urls: ["`+alertmanager.URL+`"]}}
retrain:
  ledger: {sqlite: `+filepath.Join(dir, "ledger.db")+`}
  recipes: ../config/testdata/recipes
  targets: [{name: trainer, webhook: "http://127.0.0.1:1/", secret_file: `+secret+`}]
  triggers: [{on: incident, recipe: ranker, target: trainer, approval: true}]
`...)
	err = errors.Join(os.WriteFile(config, text, 0o600), os.WriteFile(secret, []byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	f := newFleet(21, 5)
	f.episodes(700)
	f.mean = -1.4
	f.episodes(100)
	f.produce(t, broker, 0, len(f.lines))
	p := startService(t, config)
	var listed struct {
		Requests []ledger.Request `json:"retrain_requests"`
	}
	testkit.Eventually(t, "a request", func() bool { return p.get("/api/v1/retrain-requests", &listed) && len(listed.Requests) == 1 })
	id := listed.Requests[0].ID
	flags := []string{"--server", "http://" + p.address, "--token-file", filepath.Join(dir, "token")}
	if err := os.WriteFile(flags[3], []byte(apitest.SomeToken), 0o600); err != nil {
		t.Fatal(err)
	}
	const at = "https://rewardwatch.example/retrain/"
	shown := runVerb(append([]string{"retrain", "show", id}, flags...)...)
	_, token, found := strings.Cut(shown.out, at+id+"/decide?token=")
	if !found {
		t.Fatalf("exit %d %s, shown %s; want a link", shown.code, shown.err, shown.out)
	}
	testkit.Eventually(t, "the link in the log", func() bool { return p.said(at+id+"/decide?token=") == 1 }) // once the ledger has the request
	token, _, _ = strings.Cut(token, "\n")
	for alert := ""; !strings.Contains(alert, `"approval_url":"`+at+id+"/decide?token="+token+`"`); {
		select {
		case alert = <-pushed:
		case <-time.After(time.Minute):
			t.Fatalf("no alert has the link of the request, the last one is %s", alert)
		}
	}
	answer, err := http.PostForm("http://"+p.address+"/retrain/"+id+"/decide", url.Values{
		"token": {token}, "decision": {"reject"}, "by": {"bob"}, "why": {"the load test runs"},
	})
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close() // only the status is needed
	if answer.StatusCode != http.StatusOK {
		t.Errorf("the page answers %s", answer.Status)
	}
	for resolved := false; !resolved; {
		select {
		case body := <-pushed:
			resolved = resolves(t, body, alerts.AlertRetrainAwaitsApproval)
		case <-time.After(time.Minute):
			t.Fatal("the alert that asks for an approval goes on after the decision")
		}
	}
	if shown := runVerb(append([]string{"retrain", "show", id}, flags...)...); !strings.Contains(shown.out, "rejected           bob (by signed link)  the load test runs") {
		t.Errorf("exit %d %s, shown %s", shown.code, shown.err, shown.out)
	}
	approved := runVerb(append([]string{"retrain", "approve", id, "--by", "ann", "--why", "go on"}, flags...)...)
	if approved.code != exitError || !strings.Contains(approved.err, "is rejected, so it cannot be approved or delivered again") {
		t.Errorf("exit %d %s, printed %s", approved.code, approved.err, approved.out)
	}
	p.interrupt(t)
}

// resolves reports whether a push to Alertmanager ends an alert with a name, and no longer has an address to approve.
func resolves(t *testing.T, push, name string) bool {
	t.Helper()
	var sent []struct {
		Labels, Annotations map[string]string
		EndsAt              time.Time
	}
	if err := json.Unmarshal([]byte(push), &sent); err != nil {
		t.Fatal(err)
	}
	for _, a := range sent {
		if a.Labels["alertname"] == name && a.Annotations["approval_url"] == "" && !a.EndsAt.After(time.Now()) {
			return true
		}
	}
	return false
}
