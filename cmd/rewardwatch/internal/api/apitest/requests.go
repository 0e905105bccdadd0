package apitest

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/retrain"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// FixedDesk returns what a test has set, and records its calls.
type FixedDesk struct {
	*retrain.Desk // nil; methods that are not defined below are not called
	View          *FixedView
	Changes       []ledger.StateChange
	Asked         []string
	Reported      retrain.Report
	Err           error
}

func (d *FixedDesk) change(verb, id, by, why string) (ledger.Request, error) {
	d.Asked = append(d.Asked, strings.Join([]string{verb, id, by, why}, " "))
	return d.View.Ordered[0], d.Err
}

// Approve records the decision.
func (d *FixedDesk) Approve(_ context.Context, id, by, why string) (ledger.Request, error) {
	return d.change("approve", id, by, why)
}

// Reject records the decision.
func (d *FixedDesk) Reject(_ context.Context, id, by, why string) (ledger.Request, error) {
	return d.change("reject", id, by, why)
}

// Withdraw records the decision.
func (d *FixedDesk) Withdraw(_ context.Context, id, by, why string) (ledger.Request, error) {
	return d.change("withdraw", id, by, why)
}

// Resend records the decision.
func (d *FixedDesk) Resend(_ context.Context, id, by, why string) (ledger.Request, error) {
	return d.change("resend", id, by, why)
}

// Report records the report.
func (d *FixedDesk) Report(_ context.Context, id string, r retrain.Report) (ledger.Request, error) {
	d.Reported = r
	return d.change("report", id, r.By, r.State)
}

// History returns what a test has set.
func (d *FixedDesk) History(context.Context, string) ([]ledger.StateChange, error) {
	return d.Changes, nil
}

// Unfinished returns the requests of the view.
func (d *FixedDesk) Unfinished(context.Context, int) ([]ledger.Request, error) {
	return d.View.Ordered, d.Err
}

// Link returns a link with the token "t".
func (d *FixedDesk) Link(_ context.Context, q ledger.Request) (string, error) {
	if q.State != ledger.StateAwaitingApproval {
		return "", nil
	}
	return "https://rewardwatch.example/retrain/" + q.ID + "/decide?token=t", nil
}

// IsReportToken accepts the id of a request in capital letters as its token.
func (d *FixedDesk) IsReportToken(_ context.Context, id, token string) (bool, error) {
	return token == strings.ToUpper(id), d.Err
}

// Storied returns a view with a request in each of several states, and the history of one of them.
func Storied() *FixedDesk {
	opened := QuietTime.Add(-time.Hour)
	order := json.RawMessage(`{"id": "rr_1", "group": {"env": "prod-eu"}, "signals": ["return", "reward"], "cause": "environment",
		"evidence": ["env_version went from 41 to 42 at the onset", "\u001b[2J"],
		"contract": {"objective": "checkout-ranker earns what it did", "hypothesis": "customers have changed", "owner": "ranking@shop.example",
			"expected": {"text": "mean return > 480 over 200 episodes within 24h"}},
		"contract_from": {}, "config": {"algorithm": "ppo", "seeds": [7]}, "config_from": {"algorithm": "base.yaml:5", "seeds[0]": "ranker.yaml:7"}}`)
	request := func(id, policy string, state ledger.State) ledger.Request {
		return ledger.Request{
			ID: id, Kind: ledger.KindRetrain, OriginKind: ledger.OriginIncident, Origin: "a1b2", Policy: policy, Trigger: "incident(*) -> trainer",
			Recipe: "ranker", Target: "trainer", State: state, OpenedAt: opened, DueAt: opened.Add(24 * time.Hour), Order: order,
		}
	}
	failed := request("rr_failed", "checkout-ranker", ledger.StateFailed)
	failed.Parent, failed.Reason, failed.Attempts, failed.Log = "rr_0", "out of memory", 2, "epoch 1\nepoch 2\x1b[2J\r\nout of memory"
	failed.DueAt, failed.ClosedAt = time.Time{}, QuietTime
	verifying := request("rr_verifying", "search", ledger.StateVerifying)
	verifying.NewVersion = "v3"
	old := request("rr_old", "cartpole", ledger.StateDeadLetter)
	old.Recipe, old.Order = "", json.RawMessage(`{"id": "rr_old"}`)
	back := ledger.Request{
		ID: "rr_back", Kind: ledger.KindRollback, OriginKind: ledger.OriginOutcome, Origin: "rollback/rr_missed", Parent: "rr_missed", Policy: "bidder",
		Trigger: "outcome(missed) -> trainer", Target: "trainer", State: ledger.StateDelivered, OpenedAt: opened, DueAt: opened.Add(24 * time.Hour),
		Order: json.RawMessage(`{"id": "rr_back", "request": "rr_missed", "policy": "bidder", "group": {"env": "prod-eu"},
			"versions": {"from": "v3", "to": "v2"}, "evidence": ["worse than the mean of 412.7 before"]}`),
	}
	v := SomeView()
	v.Ordered = []ledger.Request{
		failed, verifying, request("rr_waits", "checkout-ranker", ledger.StateAwaitingApproval),
		request("rr_open", "ads", ledger.StateOpen), request("rr_delivered", "feed", ledger.StateDelivered), request("rr_running", "mail", ledger.StateRunning), old, back,
	}
	v.deliveries = []ledger.Delivery{
		{Request: "rr_failed", Attempt: 2, Target: "trainer", StartedAt: opened.Add(time.Minute), FinishedAt: opened.Add(time.Minute + 120*time.Millisecond), Result: "delivered", Status: 202},
		{Request: "rr_failed", Attempt: 1, Target: "trainer", StartedAt: opened, FinishedAt: opened.Add(15 * time.Second), Result: "failed", Error: "timeout"},
	}
	return &FixedDesk{View: v, Changes: []ledger.StateChange{
		{At: opened, State: ledger.StateAwaitingApproval, By: "rewardwatch"},
		{At: opened.Add(time.Second), State: ledger.StateOpen, By: "alice", Reason: "go on"},
		{At: QuietTime, State: ledger.StateFailed, By: "trainer-7", Reason: "out of memory"},
	}}
}
