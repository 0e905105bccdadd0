package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/retrain"
)

// fixedDesk shows what a test has put into it, and notes what it was asked for.
type fixedDesk struct {
	requestDesk
	view    *fixedView
	history []retrain.StateChange
	asked   []string
	report  retrain.Report
	err     error
}

func (d *fixedDesk) change(verb, id, by, why string) (retrain.Request, error) {
	d.asked = append(d.asked, strings.Join([]string{verb, id, by, why}, " "))
	return d.view.requests[0], d.err
}

func (d *fixedDesk) Approve(_ context.Context, id, by, why string) (retrain.Request, error) {
	return d.change("approve", id, by, why)
}

func (d *fixedDesk) Reject(_ context.Context, id, by, why string) (retrain.Request, error) {
	return d.change("reject", id, by, why)
}

func (d *fixedDesk) Resend(_ context.Context, id, by, why string) (retrain.Request, error) {
	return d.change("resend", id, by, why)
}

func (d *fixedDesk) Report(_ context.Context, id string, r retrain.Report) (retrain.Request, error) {
	d.report = r
	return d.change("report", id, r.By, r.State)
}

func (d *fixedDesk) History(context.Context, string) ([]retrain.StateChange, error) {
	return d.history, nil
}

func (d *fixedDesk) Unfinished(context.Context, int) ([]retrain.Request, error) {
	return d.view.requests, d.err
}

func (d *fixedDesk) Link(_ context.Context, q retrain.Request) (string, error) {
	if q.State != retrain.StateAwaitingApproval {
		return "", nil
	}
	return "https://rewardwatch.example/retrain/" + q.ID + "/decide?token=t", nil
}

// storied is a view with a request in each of some states, and what became of one of them.
func storied() *fixedDesk {
	opened := quietTime.Add(-time.Hour)
	order := json.RawMessage(`{"id": "rr_1", "group": {"env": "prod-eu"}, "signals": ["return", "reward"], "cause": "environment",
		"evidence": ["env_version went from 41 to 42 at the onset", "\u001b[2J"],
		"contract": {"objective": "checkout-ranker earns what it did", "hypothesis": "customers have changed", "owner": "ranking@shop.example",
			"expected": {"text": "mean return > 480 over 200 episodes within 24h"}},
		"contract_from": {}, "config": {"algorithm": "ppo", "seeds": [7]}, "config_from": {"algorithm": "base.yaml:5", "seeds[0]": "ranker.yaml:7"}}`)
	request := func(id, policy string, state retrain.State) retrain.Request {
		return retrain.Request{
			ID: id, Kind: retrain.KindRetrain, OriginKind: retrain.OriginIncident, Origin: "a1b2", Policy: policy, Trigger: "incident(*) -> trainer",
			Recipe: "ranker", Target: "trainer", State: state, OpenedAt: opened, DueAt: opened.Add(24 * time.Hour), Order: order,
		}
	}
	failed := request("rr_failed", "checkout-ranker", retrain.StateFailed)
	failed.Parent, failed.Reason, failed.Attempts, failed.Log = "rr_0", "out of memory", 2, "epoch 1\nepoch 2\x1b[2J\r\nout of memory"
	failed.DueAt, failed.ClosedAt = time.Time{}, quietTime
	verifying := request("rr_verifying", "search", retrain.StateVerifying)
	verifying.NewVersion = "v3"
	old := request("rr_old", "cartpole", retrain.StateDeadLetter)
	old.Recipe, old.Order = "", json.RawMessage(`{"id": "rr_old"}`)
	back := retrain.Request{
		ID: "rr_back", Kind: retrain.KindRollback, OriginKind: retrain.OriginOutcome, Origin: "rollback/rr_missed", Parent: "rr_missed", Policy: "bidder",
		Trigger: "outcome(missed) -> trainer", Target: "trainer", State: retrain.StateDelivered, OpenedAt: opened, DueAt: opened.Add(24 * time.Hour),
		Order: json.RawMessage(`{"id": "rr_back", "request": "rr_missed", "policy": "bidder", "group": {"env": "prod-eu"},
			"versions": {"from": "v3", "to": "v2"}, "evidence": ["worse than the mean of 412.7 before"]}`),
	}
	v := someView()
	v.requests = []retrain.Request{
		failed, verifying, request("rr_waits", "checkout-ranker", retrain.StateAwaitingApproval),
		request("rr_open", "ads", retrain.StateOpen), request("rr_delivered", "feed", retrain.StateDelivered), request("rr_running", "mail", retrain.StateRunning), old, back,
	}
	v.deliveries = []retrain.Delivery{
		{Request: "rr_failed", Attempt: 2, Target: "trainer", StartedAt: opened.Add(time.Minute), FinishedAt: opened.Add(time.Minute + 120*time.Millisecond), Result: "delivered", Status: 202},
		{Request: "rr_failed", Attempt: 1, Target: "trainer", StartedAt: opened, FinishedAt: opened.Add(15 * time.Second), Result: "failed", Error: "timeout"},
	}
	return &fixedDesk{view: v, history: []retrain.StateChange{
		{At: opened, State: retrain.StateAwaitingApproval, By: "rewardwatch"},
		{At: opened.Add(time.Second), State: retrain.StateOpen, By: "alice", Reason: "go on"},
		{At: quietTime, State: retrain.StateFailed, By: "trainer-7", Reason: "out of memory"},
	}}
}

// serveDesk serves a desk over HTTP and gives the flags of the verbs that reach it.
func serveDesk(t *testing.T, d *fixedDesk) []string {
	t.Helper()
	s := orderServer(t, &fixedOrders{})
	s.view, s.requests = d.view, d
	served := httptest.NewServer(s.handler())
	t.Cleanup(served.Close)
	return []string{"--server", served.URL, "--token-file", s.cfg.TokenFile}
}

func TestVerbsOfRequests(t *testing.T) {
	d := storied()
	flags := serveDesk(t, d)
	log := filepath.Join(t.TempDir(), "train.log")
	if err := os.WriteFile(log, []byte(strings.Repeat("é", sentLog)+"done\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	why := []string{"--by", "alice", "--why", "go on"}
	for name, args := range map[string][]string{
		"retrain_list":          {"list"},
		"retrain_list_policy":   {"list", "--policy", "checkout-ranker"},
		"retrain_list_state":    {"list", "--state", "failed", "--policy", "checkout-ranker"},
		"retrain_show_failed":   {"show", "rr_failed"},
		"retrain_show_waiting":  {"show", "rr_waits"},
		"retrain_show_old":      {"show", "rr_old"},
		"retrain_show_rollback": {"show", "rr_back"},
		"retrain_approve":       append([]string{"approve", "rr_1"}, why...),
		"retrain_reject":        append([]string{"reject", "rr_1"}, why...),
		"retrain_resend":        append([]string{"resend", "rr_1"}, why...),
		"retrain_status":        {"status", "rr_1", "failed", "--error", "out of memory", "--log-file", log, "--by", "trainer-7"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, format := range []string{"text", "json"} {
				got := runVerb(append(append([]string{"retrain"}, args...), append(flags, "--output", format)...)...)
				if got.code != exitFine || got.err != "" || strings.Contains(got.out, "\x1b") {
					t.Fatalf("exit %d: %s%q", got.code, got.err, got.out)
				}
				if format == "text" {
					sameAsFile(t, filepath.Join("testdata", "verbs", name+".txt"), got.out)
					continue
				}
				for line := range strings.Lines(got.out) { // as the API gave it
					var result struct{ Request, Order json.RawMessage }
					if err := json.Unmarshal([]byte(line), &result); err != nil || result.Request == nil && result.Order == nil {
						t.Errorf("%v: %s", err, line)
					}
				}
			}
		})
	}
	asked := strings.Join(d.asked, "\n")
	for _, want := range []string{"approve rr_1 alice go on", "reject rr_1 alice go on", "resend rr_1 alice go on", "report rr_1 trainer-7 failed"} {
		if strings.Count(asked, want) != 2 {
			t.Errorf("asked %q, want %q twice", d.asked, want)
		}
	}
	if r := d.report; r.Error != "out of memory" || !strings.HasSuffix(r.Log, "édone\n") || len(r.Log) > sentLog+3 || r.Version != "" {
		t.Errorf("reported %s %q, a log of %d bytes", r.State, r.Error, len(r.Log))
	}
}

func TestVerbsOfRequestsSayWhatIsWrong(t *testing.T) {
	d := storied()
	d.err = &retrain.StateError{Request: "rr_failed", State: retrain.StateFailed, To: retrain.StateOpen}
	flags := serveDesk(t, d)
	for name, tt := range map[string]struct {
		args []string
		says string
	}{
		"no reason":     {append([]string{"approve", "rr_1", "--by", "alice"}, flags...), "--why must say why"},
		"nobody":        {append([]string{"reject", "rr_1", "--by", "", "--why", "x"}, flags...), "--by must say who"},
		"wrong state":   {append([]string{"approve", "rr_failed", "--by", "alice", "--why", "x"}, flags...), "(409 Conflict): request rr_failed is failed and cannot become open"},
		"no log":        {append([]string{"status", "rr_1", "failed", "--log-file", "/does/not/exist"}, flags...), "--log-file: "},
		"no such state": {append([]string{"list", "--state", "waiting"}, flags...), `--state "waiting" is none of queued, awaiting_approval, open, `},
		"no job state":  {append([]string{"status", "rr_1"}, flags...), "accepts 2 arg(s), received 1"},
		"long version":  {append([]string{"status", "rr_1", "succeeded", "--version", strings.Repeat("x", 201)}, flags...), "version must have at most 200 characters"},
		"unknown":       {append([]string{"show", "rr_none"}, flags...), "(404 Not Found): there is no such request"},
		"no token":      {[]string{"resend", "rr_1", "--by", "alice", "--why", "x", "--server", flags[1]}, "(401 Unauthorized): a valid bearer token is needed"},
	} {
		t.Run(name, func(t *testing.T) {
			got := runVerb(append([]string{"retrain"}, tt.args...)...)
			if got.code != exitError || got.out != "" || !strings.Contains(got.err, tt.says) {
				t.Errorf("exit %d, out %q, says %q, want %q", got.code, got.out, got.err, tt.says)
			}
		})
	}
}

// Without a token on either side, the verbs work on the machine of the service.
func TestVerbsOfRequestsWithoutAToken(t *testing.T) {
	d := storied()
	s := quietServer(t, HTTPConfig{}, d.view, nil)
	s.requests = d
	served := httptest.NewServer(s.handler())
	defer served.Close()
	got := runVerb("retrain", "approve", "rr_waits", "--by", "alice", "--why", "go on", "--server", served.URL)
	if got.code != exitFine || len(d.asked) != 1 {
		t.Errorf("exit %d: %s; asked %v", got.code, got.err, d.asked)
	}
	if got := runVerb("retrain", "show", "rr_waits", "--server", served.URL); !strings.Contains(got.out, "decide?token=t") {
		t.Errorf("exit %d %s, printed %s", got.code, got.err, got.out)
	}
}

func TestFleetShowsRequests(t *testing.T) {
	d := storied()
	d.view.incidents, d.view.faults, d.view.summaries = nil, nil, nil
	d.view.requests = append(d.view.requests[2:3], d.view.requests[1], d.view.requests[3])
	d.view.requests[0].Policy = `<script>alert(1)</script>`
	s := quietServer(t, HTTPConfig{}, d.view, nil)
	s.requests = d
	body := ask(s, http.MethodGet, "/").Body.String()
	for _, want := range []string{"awaiting approval", "&lt;script&gt;", "a person to approve it", "retrain/rr_waits"} {
		if !strings.Contains(body, want) {
			t.Errorf("without %q the page is %s", want, body)
		}
	}
	d.view.requests, d.err = nil, errors.New("/secret/path: disk full")
	body = ask(s, http.MethodGet, "/").Body.String()
	if !strings.Contains(body, "the ledger cannot be read") || strings.Contains(body, "/secret") {
		t.Errorf("without the ledger the page is %s", body)
	}
}
