package console

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/session"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/recipe"
	"github.com/rewardwatch/rewardwatch/retrain/target"
)

// madeUpDesk is a ledger in memory.
type madeUpDesk struct {
	Desk
	requests   []ledger.Request // the most recent first
	history    map[string][]ledger.StateChange
	deliveries []ledger.Delivery
	judged     []ledger.Recorded
	filter     ledger.Filter // of the last search
	slow       bool          // does not respond until no one waits any more
	err        error         // of all calls
	refuse     error         // of decisions
	decided    int
	asks       []retrain.Ask
	delivers   time.Time // when open requests are delivered; never if zero
	noParent   bool      // whether recipes have no parent
}

// madeUpOrders records the orders that it receives, and stores them with the incidents of a view.
type madeUpOrders struct {
	view  *madeUp
	asked []alerts.Decision
	err   error
}

func (o *madeUpOrders) do(id string, d alerts.Decision) (alerts.Incident, error) {
	if o.err != nil {
		return alerts.Incident{}, o.err
	}
	o.asked = append(o.asked, d)
	i := &o.view.incidents[slices.IndexFunc(o.view.incidents, func(i alerts.Incident) bool { return i.ID == id })]
	i.Decisions = append(i.Decisions, d)
	switch d.Kind {
	case alerts.Muted, alerts.Unmuted:
		i.MutedUntil = d.Until
	case alerts.Accepted, alerts.Released:
		i.Closed = true
	}
	return *i, nil
}

func (o *madeUpOrders) Accept(_ context.Context, id string, d alerts.Decision) (alerts.Incident, error) {
	return o.do(id, d)
}

func (o *madeUpOrders) Mute(_ context.Context, id string, d alerts.Decision) (alerts.Incident, error) {
	return o.do(id, d)
}

func (o *madeUpOrders) Comment(_ context.Context, id string, d alerts.Decision) (alerts.Incident, error) {
	return o.do(id, d)
}

// trouble returns why the ledger does not respond.
func (d *madeUpDesk) trouble(ctx context.Context) error {
	if d.slow {
		<-ctx.Done()
		return ctx.Err()
	}
	return d.err
}

func (d *madeUpDesk) Unfinished(ctx context.Context, limit int) ([]ledger.Request, error) {
	return d.requests[:min(limit, len(d.requests))], d.trouble(ctx)
}

func (d *madeUpDesk) Search(ctx context.Context, f ledger.Filter) (found []ledger.Request, more bool, err error) {
	d.filter = f
	if err := d.trouble(ctx); err != nil {
		return nil, false, err
	}
	for _, q := range d.requests {
		if f.Policy == "" || q.Policy == f.Policy {
			found = append(found, q)
		}
	}
	return found[:min(f.Limit, len(found))], len(found) > f.Limit, nil
}

func (d *madeUpDesk) Request(ctx context.Context, id string) (ledger.Request, error) {
	if err := d.trouble(ctx); err != nil {
		return ledger.Request{}, err
	}
	if i := d.find(id); i >= 0 {
		return d.requests[i], nil
	}
	return ledger.Request{}, ledger.ErrUnknownRequest
}

func (d *madeUpDesk) find(id string) int {
	return slices.IndexFunc(d.requests, func(q ledger.Request) bool { return q.ID == id })
}

func (d *madeUpDesk) History(_ context.Context, id string) ([]ledger.StateChange, error) {
	if n := len(d.history[id]); !d.delivers.IsZero() && !time.Now().Before(d.delivers) && n > 0 && d.history[id][n-1].State == ledger.StateOpen {
		d.move(id, ledger.StateDelivered, "rewardwatch", "")
	}
	return d.history[id], nil
}

func (d *madeUpDesk) Deliveries(context.Context, string, int) ([]ledger.Delivery, error) {
	return d.deliveries, nil
}

func (d *madeUpDesk) Decisions(context.Context, string, int) ([]ledger.Recorded, error) {
	return d.judged, nil
}

func (d *madeUpDesk) Delta(q ledger.Request) (string, []recipe.Difference, error) {
	now, err := recipe.LeavesOfOrder(q.Order)
	old := []recipe.Leaf{
		{Path: "config.learning_rate", Value: "0.0003", From: "base.yaml:8"}, {Path: "config.warmup", Value: "100", From: "base.yaml:9"},
	}
	if d.noParent {
		return "", recipe.Differences(nil, now), err
	}
	return "base", recipe.Differences(old, now), err
}

func (d *madeUpDesk) DoSeen(ctx context.Context, id string, seen int, v retrain.Verb, by, why string) (ledger.Request, error) {
	if err := errors.Join(d.trouble(ctx), d.refuse); err != nil {
		return ledger.Request{}, err
	}
	q, err := d.Request(ctx, id)
	if err == nil && seen != len(d.history[id]) {
		err = &ledger.StateError{Request: id, State: q.State, Untracked: q.Untracked, To: v.To()}
	}
	if err != nil {
		return ledger.Request{}, err
	}
	d.decided++
	return d.move(id, v.To(), by, why), nil
}

func (d *madeUpDesk) Offers(string) (recipes, targets []string) {
	return []string{"ranker", "base"}, []string{"trainer"}
}

func (d *madeUpDesk) Ask(_ context.Context, a retrain.Ask) (ledger.Request, error) {
	d.asks = append(d.asks, a)
	return ledger.Request{ID: "rr_new"}, d.refuse
}

func (d *madeUpDesk) LinkedRequest(ctx context.Context, id, _ string) (ledger.Request, error) {
	return d.Request(ctx, id)
}

func (d *madeUpDesk) ApproveByLink(ctx context.Context, id, _, by, why string) (ledger.Request, error) {
	return d.DoSeen(ctx, id, len(d.history[id]), retrain.VerbApprove, by, why)
}

// move moves a request to a state, like a person, a job or the dispatcher.
func (d *madeUpDesk) move(id string, to ledger.State, by, why string) ledger.Request {
	q := &d.requests[d.find(id)]
	q.State = to
	q.Untracked = to == ledger.StateRejected && slices.ContainsFunc(d.history[id], func(h ledger.StateChange) bool { return h.State.AtTarget() })
	d.history[id] = append(d.history[id], ledger.StateChange{At: someTime, State: to, By: by, Reason: why})
	return *q
}

// someIncident returns an incident with everything that a story can contain: two alarms, one of which has resolved.
func someIncident() alerts.Incident {
	at := func(ordinal int64, minutes int) finding.UnitRef {
		return finding.UnitRef{
			Ordinal: ordinal, Agent: "a-17", TS: someTime.Add(time.Duration(minutes) * time.Minute).UnixNano(),
			First: ingest.Position{Offset: 38 * ordinal}, Pos: ingest.Position{Offset: 38*ordinal + 31},
		}
	}
	group := ingest.NewGroup("checkout-ranker", ingest.Label{Name: "env", Value: "prod-eu"})
	causes := []alerts.RankedCause{
		{Cause: alerts.CauseEnvironment, Weight: .87, Evidence: []string{
			"env_version went from 41 to 42 at the onset", "observation.basket moved by -0.8 sd, which a policy seldom does",
		}},
		{Cause: alerts.CausePolicy, Weight: .12, Evidence: []string{"policy_version stayed v1", "actions moved less than observations"}},
		{Cause: alerts.CauseRewardFunction, Weight: .01, Evidence: []string{"reward_version stayed r7"}},
	}
	before, after := ingest.Versions{Policy: "v1", Env: "41", Reward: "r7"}, ingest.Versions{Policy: "v1", Env: "42", Reward: "r7"}
	baseline := finding.BaselineRef{ID: "9c41beef02a7d310", Units: 500, Offsets: []ingest.Range{{First: 0, Last: 19000}}}
	drifting := alerts.Alarm{
		ID: "5f0c2e9a11d04b7c", Incident: "5f0c2e9a11d04b7c", Group: group, Signal: "return", Detectors: []string{finding.DetectorLocation, finding.DetectorWilcoxon}, Score: 1.83,
		At: at(1234, -90), Onset: at(1203, -120), OnsetFrom: at(1196, -127), OnsetTo: at(1209, -114), OnsetOffsets: []ingest.Range{{First: 45448, Last: 45973}},
		Effect: finding.Effect{
			Quantity: "return", BaselineMean: 482.1, CurrentMean: 401.7, MeanShift: -80.4, BaselineSD: 62.3, CurrentSD: 71.9, StandardShift: -1.29, CurrentUnits: 161,
			SpreadRatio: 1.15, AtLeast: .31,
		},
		Return:   &finding.Decomposition{Change: -80.4, PerStep: -71.2, Length: -14.8, ActionMix: 6.1, Rest: -.5},
		Promise:  finding.Promise{N: 20000, ARL0: 41000, Low: 21000, High: 90000, Confidence: finding.ConfidenceKept},
		Baseline: baseline, Before: before, After: after, Offsets: []ingest.Range{{First: 45714, Last: 52903}},
		Cause: alerts.CauseEnvironment, Evidence: causes[0].Evidence, Causes: causes, EvidenceAt: at(1364, -10),
		Shifts: []finding.Shift{
			{Signal: "return", Quantity: "return", BaselineMean: 482.1, CurrentMean: 401.7, StandardShift: -1.29, Z: -14, Drifted: true},
			{Signal: "outcome.conversion", Quantity: "mean", BaselineMean: .21, CurrentMean: .14, StandardShift: -1.02, Z: -9, Drifted: true},
			{Signal: "observation.basket", Quantity: "mean", BaselineMean: 3.2, CurrentMean: 2.6, StandardShift: -.8, Z: -7},
		},
	}
	back := drifting
	back.ID, back.Signal, back.Return = "77aa2e9a11d04b7c", "outcome.conversion", nil
	back.At, back.Onset, back.OnsetFrom, back.OnsetTo = at(1251, -76), at(1210, -113), at(1201, -122), at(1228, -97)
	back.Effect = finding.Effect{Quantity: "mean", BaselineMean: .21, CurrentMean: .14, BaselineSD: .069, CurrentSD: .07, StandardShift: -1.02, CurrentUnits: 154}
	back.Resolved, back.ResolvedAt, back.Score, back.EvidenceAt = true, at(1330, -25), 1.21, at(1301, -45)
	return alerts.Incident{
		ID: drifting.ID, Group: group, Severity: alerts.Critical, Cause: alerts.CauseEnvironment, Evidence: causes[0].Evidence, Causes: causes,
		Alarms: []alerts.Alarm{drifting, back}, Opened: drifting.At,
		Decisions: []alerts.Decision{
			{Kind: alerts.Muted, By: "ann", Why: "the catalogue team is on it", At: someTime.Add(-80 * time.Minute), Until: someTime.Add(-50 * time.Minute)},
		},
	}
}

// someOrder returns the data of a webhook.
func someOrder(learningRate string) json.RawMessage {
	return json.RawMessage(`{"id": "rr_waits", "incident": "5f0c2e9a11d04b7c", "policy": "checkout-ranker", "group": {"env": "prod-eu"},
		"signals": ["return", "outcome.conversion"], "cause": "environment", "evidence": ["env_version went from 41 to 42 at the onset"],
		"contract": {"objective": "checkout-ranker performs as well as when it was accepted",
			"hypothesis": "return moved in prod-eu since the new catalogue: a policy trained on the data since then will perform better",
			"owner": "ranking@shop.example", "expected": {"text": "mean return > 480 over 200 episodes within 24h"}},
		"contract_from": {"objective": "base.yaml:4", "hypothesis": "checkout-ranker.yaml:4", "owner": "base.yaml:5", "expected": "checkout-ranker.yaml:5"},
		"config": {"algorithm": "ppo", "learning_rate": ` + learningRate + `, "seeds": [1, 2, 3], "start_from": "v1"},
		"config_from": {"algorithm": "base.yaml:6", "learning_rate": "checkout-ranker.yaml:7", "seeds[0]": "base.yaml:9", "seeds[1]": "base.yaml:9", "seeds[2]": "base.yaml:9",
			"start_from": "checkout-ranker.yaml:8"}}`)
}

// someDesk returns a desk with a request that waits for a person, after one that has missed and its rollback.
func someDesk() *madeUpDesk {
	opened := someTime.Add(-time.Hour)
	request := func(id string, state ledger.State, age time.Duration) ledger.Request {
		q := ledger.Request{
			ID: id, Kind: ledger.KindRetrain, OriginKind: ledger.OriginIncident, Origin: "5f0c2e9a11d04b7c", Policy: "checkout-ranker", Trigger: "incident(return) -> trainer",
			Recipe: "checkout-ranker", Target: "trainer", State: state, OpenedAt: opened.Add(-age), DueAt: opened.Add(24 * time.Hour), Order: someOrder("0.0001"),
		}
		if state.Final() {
			q.DueAt, q.ClosedAt = time.Time{}, opened.Add(-age/2)
		}
		return q
	}
	waits := request("rr_waits", ledger.StateAwaitingApproval, 0)
	waits.Parent = "rr_missed"
	missed := request("rr_missed", ledger.StateMissed, 48*time.Hour)
	missed.Origin, missed.Order, missed.NewVersion, missed.Attempts = "0123", someOrder("0.0003"), "v2", 2
	missed.Reason = "the mean of return was 455.2 (95% of 448.0 to 462.4) over 200 episodes, not > 480"
	missed.Log = "epoch 1 loss 0.713\nepoch 2 loss 0.544\n<script>alert(1)</script>\nsaved v2\n"
	back := ledger.Request{
		ID: "rr_back", Kind: ledger.KindRollback, OriginKind: ledger.OriginOutcome, Origin: "rollback/rr_missed", Parent: "rr_missed", Policy: "checkout-ranker",
		Trigger: "outcome(missed) -> trainer", Target: "trainer", State: ledger.StateDelivered, OpenedAt: opened.Add(-time.Minute), DueAt: opened.Add(24 * time.Hour),
		Order: json.RawMessage(`{"id": "rr_back", "request": "rr_missed", "policy": "checkout-ranker", "group": {"env": "prod-eu"},
			"versions": {"from": "v2", "to": "v1"}, "evidence": ["worse than the mean of 482.1 before"]}`),
	}
	return &madeUpDesk{
		requests: []ledger.Request{waits, back, missed},
		history: map[string][]ledger.StateChange{
			"rr_waits": {{At: opened, State: ledger.StateAwaitingApproval, By: "rewardwatch"}},
			"rr_missed": {
				{At: opened.Add(-48 * time.Hour), State: ledger.StateOpen, By: "rewardwatch"},
				{At: opened.Add(-48*time.Hour + time.Second), State: ledger.StateDelivered, By: "rewardwatch"},
				{At: opened.Add(-40 * time.Hour), State: ledger.StateVerifying, By: "job", Reason: "the job made version v2"},
				{At: opened.Add(-24 * time.Hour), State: ledger.StateMissed, By: "rewardwatch", Reason: missed.Reason},
			},
		},
		deliveries: []ledger.Delivery{
			{Request: "rr_missed", Attempt: 2, Target: "trainer", StartedAt: opened.Add(-48 * time.Hour), FinishedAt: opened.Add(-48*time.Hour + 120*time.Millisecond), Result: target.ResultDelivered, Status: 202, Response: `{"job":"7781"}`},
			{Request: "rr_missed", Attempt: 1, Target: "trainer", StartedAt: opened.Add(-48*time.Hour - time.Minute), FinishedAt: opened.Add(-48*time.Hour - 45*time.Second), Result: target.ResultTimeout, Error: "no answer within 15s"},
		},
		judged: []ledger.Recorded{
			{Incident: "5f0c2e9a11d04b7c", Reason: ledger.Opened, At: opened, Request: "rr_waits"},
			{Incident: "5f0c2e9a11d04b7c", Reason: ledger.CauseUnsettled, At: opened.Add(-20 * time.Minute)},
		},
	}
}

func closed(i alerts.Incident) alerts.Incident {
	i.ID, i.Closed, i.ClosedAt, i.Alarms = "c105ed", true, i.Alarms[1].ResolvedAt, slices.Clone(i.Alarms)
	for k := range i.Alarms {
		i.Alarms[k].Resolved, i.Alarms[k].ResolvedAt = true, i.ClosedAt
	}
	return i
}

// someAccess lets everyone decide.
func someAccess() session.Access {
	return session.Access{Local: func(*http.Request) bool { return true }}
}
