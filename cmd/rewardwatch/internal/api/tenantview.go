package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/console/plots"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/tenant"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/guard"
	"github.com/rewardwatch/rewardwatch/detectors/history"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/receive"
	"github.com/rewardwatch/rewardwatch/retrain"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/recipe"
)

// The types in this file embed nothing, so that a new method of an interface cannot reveal the data of others by
// mistake. Objects of others are reported as unknown, not as forbidden, because even their ids and names belong to
// others.

// tenantView is a View of the data of a tenant.
type tenantView struct {
	of   View
	owns func(policy string) bool
}

// Owns implements ledger.Owner.
func (v *tenantView) Owns(policy string) bool { return v.owns(policy) }

// owned returns the elements of a list whose policies belong to the tenant.
func owned[T any](v tenantView, all []T, policy func(T) string) (out []T) {
	for _, x := range all {
		if v.owns(policy(x)) {
			out = append(out, x)
		}
	}
	return out
}

func (v tenantView) Summaries() []*finding.Summary {
	return owned(v, v.of.Summaries(), func(s *finding.Summary) string { return s.Policy })
}

func (v tenantView) Alarms() []alerts.Alarm {
	return owned(v, v.of.Alarms(), func(a alerts.Alarm) string { return a.Group.Policy })
}

func (v tenantView) Incidents() []alerts.Incident {
	return owned(v, v.of.Incidents(), func(i alerts.Incident) string { return i.Group.Policy })
}

func (v tenantView) Faults() []alerts.Fault {
	return owned(v, v.of.Faults(), func(f alerts.Fault) string { return f.Group.Policy })
}

func (v tenantView) Guards(policy string) (*guard.Summary, bool) {
	if !v.owns(policy) {
		return nil, false
	}
	return v.of.Guards(policy)
}

func (v tenantView) AllGuards() []*guard.Summary {
	return owned(v, v.of.AllGuards(), func(g *guard.Summary) string { return g.Policy })
}

func (v tenantView) GuardsChanged() <-chan struct{} { return v.of.GuardsChanged() }

func (v tenantView) Delivery(incident string) alerts.Delivery {
	if !v.hasIncident(incident) {
		return alerts.Delivery{}
	}
	return v.of.Delivery(incident)
}

func (v tenantView) Course(g ingest.Group) plots.Course {
	if !v.owns(g.Policy) {
		return plots.Course{}
	}
	return v.of.Course(g)
}

func (v tenantView) History(ctx context.Context, g ingest.Group) (history.Record, error) {
	if !v.owns(g.Policy) {
		return history.Record{}, engine.ErrUnknownPolicy
	}
	return v.of.History(ctx, g)
}

func (v tenantView) Ready() error    { return v.of.Ready() }
func (v tenantView) Degraded() error { return v.of.Degraded() }

// asked returns a filter that selects only requests of the tenant.
func (v tenantView) asked(ctx context.Context, f ledger.Filter) (ledger.Filter, error) {
	f.Owner = &v
	for _, id := range []string{f.After, f.Parent} { // otherwise the answer would reveal that such a request exists
		if id == "" {
			continue
		}
		switch _, err := v.RetrainRequest(ctx, id); {
		case errors.Is(err, ledger.ErrUnknownRequest):
			return f, fmt.Errorf("%w: unknown request %q", ledger.ErrBadFilter, id)
		case err != nil:
			return f, err
		}
	}
	return f, nil
}

func (v tenantView) RetrainRequests(ctx context.Context, f ledger.Filter) (found []ledger.Request, more bool, err error) {
	if f, err = v.asked(ctx, f); err != nil {
		return nil, false, err
	}
	found, more, err = v.of.RetrainRequests(ctx, f)
	return ownRequests(v, found), more, err
}

func ownRequests(v tenantView, all []ledger.Request) []ledger.Request {
	return owned(v, all, func(q ledger.Request) string { return q.Policy })
}

func (v tenantView) RetrainRecords(ctx context.Context, f ledger.Filter, each func(ledger.Record) error) error {
	f, err := v.asked(ctx, f)
	if err != nil {
		return err
	}
	return v.of.RetrainRecords(ctx, f, func(r ledger.Record) error {
		if !v.owns(r.Request.Policy) {
			return nil
		}
		r.Decisions = owned(v, r.Decisions, func(d ledger.Recorded) string { return d.Policy })
		return each(r)
	})
}

func (v tenantView) RetrainRequest(ctx context.Context, id string) (ledger.Request, error) {
	q, err := v.of.RetrainRequest(ctx, id)
	if err == nil && !v.owns(q.Policy) {
		return ledger.Request{}, ledger.ErrUnknownRequest
	}
	return q, err
}

// newest is the number of requests whose newest deliveries are listed.
const newest = 100

func (v tenantView) Deliveries(ctx context.Context, request string, limit int) ([]ledger.Delivery, error) {
	if request != "" {
		switch _, err := v.RetrainRequest(ctx, request); {
		case errors.Is(err, ledger.ErrUnknownRequest):
			return nil, nil
		case err != nil:
			return nil, err
		}
		return v.of.Deliveries(ctx, request, limit)
	}
	requests, _, err := v.RetrainRequests(ctx, ledger.Filter{Limit: newest})
	if err != nil {
		return nil, err
	}
	var all []ledger.Delivery
	for _, q := range requests {
		of, err := v.of.Deliveries(ctx, q.ID, limit)
		if err != nil {
			return nil, err
		}
		all = append(all, of...)
	}
	slices.SortStableFunc(all, func(a, b ledger.Delivery) int {
		return cmp.Or(b.StartedAt.Compare(a.StartedAt), cmp.Compare(a.Request, b.Request), cmp.Compare(b.Attempt, a.Attempt))
	})
	return all[:min(limit, len(all))], nil
}

func (v tenantView) hasIncident(id string) bool {
	return slices.ContainsFunc(v.Incidents(), func(i alerts.Incident) bool { return i.ID == id })
}

func (v tenantView) hasBaseline(id string) bool {
	for _, s := range v.Summaries() {
		for i := range s.Groups {
			g := &s.Groups[i]
			if id != "" && g.Baseline.ID == id || slices.ContainsFunc(g.Lineage.Past, func(p finding.PastBaseline) bool { return p.ID == id }) {
				return true
			}
		}
	}
	return false
}

// tenantOrders carries out orders that concern the data of a tenant.
type tenantOrders struct {
	of   orders
	view tenantView
}

func (o tenantOrders) Accept(ctx context.Context, incident string, d alerts.Decision) (alerts.Incident, error) {
	if !o.view.hasIncident(incident) {
		return alerts.Incident{}, engine.ErrUnknownIncident
	}
	return o.of.Accept(tenant.Within(ctx, o.view.owns), incident, d)
}

func (o tenantOrders) Mute(ctx context.Context, incident string, d alerts.Decision) (alerts.Incident, error) {
	if !o.view.hasIncident(incident) {
		return alerts.Incident{}, engine.ErrUnknownIncident
	}
	return o.of.Mute(tenant.Within(ctx, o.view.owns), incident, d)
}

func (o tenantOrders) Comment(ctx context.Context, incident string, d alerts.Decision) (alerts.Incident, error) {
	if !o.view.hasIncident(incident) {
		return alerts.Incident{}, engine.ErrUnknownIncident
	}
	return o.of.Comment(tenant.Within(ctx, o.view.owns), incident, d)
}

func (o tenantOrders) Promote(ctx context.Context, baseline string, d alerts.Decision) (*finding.GroupSummary, error) {
	if !o.view.hasBaseline(baseline) {
		return nil, engine.ErrUnknownBaseline
	}
	return o.of.Promote(tenant.Within(ctx, o.view.owns), baseline, d)
}

func (o tenantOrders) Reset(ctx context.Context, policy string, labels map[string]string, d alerts.Decision) (*finding.GroupSummary, error) {
	if !o.view.owns(policy) {
		return nil, engine.ErrUnknownGroup
	}
	return o.of.Reset(ctx, policy, labels, d)
}

func (o tenantOrders) Forget(ctx context.Context, policy string, d alerts.Decision) (pending bool, err error) {
	if !o.view.owns(policy) {
		return false, engine.ErrUnknownPolicy
	}
	return o.of.Forget(ctx, policy, d)
}

func (o tenantOrders) Release(ctx context.Context, policy, guard string, d alerts.Decision) (*guard.Summary, error) {
	if !o.view.owns(policy) {
		return nil, engine.ErrUnknownPolicy
	}
	return o.of.Release(ctx, policy, guard, d)
}

func (o tenantOrders) Sample(ctx context.Context, baseline string) ([]finding.QuantitySample, error) {
	if !o.view.hasBaseline(baseline) {
		return nil, engine.ErrUnknownBaseline
	}
	return o.of.Sample(tenant.Within(ctx, o.view.owns), baseline)
}

// tenantDesk is the desk for requests of a tenant. Its people can only ask for the recipe and the target of a policy's
// trigger, because those of others run with the rights of others.
type tenantDesk struct {
	of    RequestDesk
	view  tenantView
	name  string
	where string // text that follows "is not judged" in an error
}

// change changes a request of the tenant.
func (d tenantDesk) change(ctx context.Context, id string, do func() (ledger.Request, error)) (ledger.Request, error) {
	if _, err := d.Request(ctx, id); err != nil {
		return ledger.Request{}, err
	}
	return do()
}

func (d tenantDesk) Unfinished(ctx context.Context, limit int) ([]ledger.Request, error) {
	all, err := d.of.Unfinished(ctx, math.MaxInt32) // a policy has one at a time
	all = ownRequests(d.view, all)
	return all[:min(limit, len(all))], err
}

func (d tenantDesk) Search(ctx context.Context, f ledger.Filter) (found []ledger.Request, more bool, err error) {
	if f, err = d.view.asked(ctx, f); err != nil {
		return nil, false, err
	}
	found, more, err = d.of.Search(ctx, f)
	return ownRequests(d.view, found), more, err
}

func (d tenantDesk) Request(ctx context.Context, id string) (ledger.Request, error) {
	q, err := d.of.Request(ctx, id)
	if err == nil && !d.view.owns(q.Policy) {
		return ledger.Request{}, ledger.ErrUnknownRequest
	}
	return q, err
}

func (d tenantDesk) History(ctx context.Context, id string) ([]ledger.StateChange, error) {
	if _, err := d.Request(ctx, id); err != nil {
		return nil, err
	}
	return d.of.History(ctx, id)
}

func (d tenantDesk) Deliveries(ctx context.Context, request string, limit int) ([]ledger.Delivery, error) {
	return d.view.Deliveries(ctx, request, limit)
}

func (d tenantDesk) Decisions(ctx context.Context, incident string, limit int) ([]ledger.Recorded, error) {
	if incident == "" {
		return nil, nil
	}
	all, err := d.of.Decisions(ctx, incident, limit)
	return owned(d.view, all, func(r ledger.Recorded) string { return r.Policy }), err
}

func (d tenantDesk) Delta(q ledger.Request) (parent string, differences []recipe.Difference, err error) {
	if !d.view.owns(q.Policy) {
		return "", nil, ledger.ErrUnknownRequest
	}
	return d.of.Delta(q)
}

func (d tenantDesk) Usual(policy string) (recipe, target string) {
	if !d.view.owns(policy) {
		return "", ""
	}
	return d.of.Usual(policy)
}

func (d tenantDesk) Offers(policy string) (recipes, targets []string) {
	recipe, target := d.Usual(policy)
	if recipe == "" || target == "" {
		return nil, nil
	}
	return []string{recipe}, []string{target}
}

func (d tenantDesk) Ask(ctx context.Context, a retrain.Ask) (ledger.Request, error) {
	recipe, target := d.Usual(a.Policy)
	switch {
	case !d.view.owns(a.Policy):
		return ledger.Request{}, fmt.Errorf("%w: unknown policy %q", retrain.ErrBadAsk, a.Policy)
	case !slices.ContainsFunc(d.view.Summaries(), func(s *finding.Summary) bool { return s.Policy == a.Policy }):
		return ledger.Request{}, fmt.Errorf("%w: policy %q is not judged%s", retrain.ErrBadAsk, a.Policy, d.where)
	case recipe == "" || a.Recipe != recipe || a.Target != target:
		return ledger.Request{}, fmt.Errorf("%w: recipe and target must match the trigger of policy %q", retrain.ErrBadAsk, a.Policy)
	case a.Incident != nil && a.Incident.Group.Policy != a.Policy:
		return ledger.Request{}, fmt.Errorf("%w: the incident belongs to another policy", retrain.ErrBadAsk)
	}
	if a.ID != "" {
		a.ID = d.name + "/" + a.ID // unique among tenants
	}
	return d.of.Ask(ctx, a)
}

func (d tenantDesk) DoSeen(ctx context.Context, id string, seen int, v retrain.Verb, by, why string) (ledger.Request, error) {
	return d.change(ctx, id, func() (ledger.Request, error) { return d.of.DoSeen(ctx, id, seen, v, by, why) })
}

func (d tenantDesk) LinkedRequest(ctx context.Context, id, token string) (ledger.Request, error) {
	return d.change(ctx, id, func() (ledger.Request, error) { return d.of.LinkedRequest(ctx, id, token) })
}

func (d tenantDesk) ApproveByLink(ctx context.Context, id, token, by, why string) (ledger.Request, error) {
	return d.change(ctx, id, func() (ledger.Request, error) { return d.of.ApproveByLink(ctx, id, token, by, why) })
}

func (d tenantDesk) RejectByLink(ctx context.Context, id, token, by, why string) (ledger.Request, error) {
	return d.change(ctx, id, func() (ledger.Request, error) { return d.of.RejectByLink(ctx, id, token, by, why) })
}

func (d tenantDesk) Approve(ctx context.Context, id, by, why string) (ledger.Request, error) {
	return d.change(ctx, id, func() (ledger.Request, error) { return d.of.Approve(ctx, id, by, why) })
}

func (d tenantDesk) Reject(ctx context.Context, id, by, why string) (ledger.Request, error) {
	return d.change(ctx, id, func() (ledger.Request, error) { return d.of.Reject(ctx, id, by, why) })
}

func (d tenantDesk) Withdraw(ctx context.Context, id, by, why string) (ledger.Request, error) {
	return d.change(ctx, id, func() (ledger.Request, error) { return d.of.Withdraw(ctx, id, by, why) })
}

func (d tenantDesk) Resend(ctx context.Context, id, by, why string) (ledger.Request, error) {
	return d.change(ctx, id, func() (ledger.Request, error) { return d.of.Resend(ctx, id, by, why) })
}

func (d tenantDesk) Report(ctx context.Context, id string, r retrain.Report) (ledger.Request, error) {
	return d.change(ctx, id, func() (ledger.Request, error) { return d.of.Report(ctx, id, r) })
}

func (d tenantDesk) IsReportToken(ctx context.Context, id, token string) (bool, error) {
	return d.of.IsReportToken(ctx, id, token)
}

func (d tenantDesk) Link(ctx context.Context, q ledger.Request) (string, error) {
	if !d.view.owns(q.Policy) {
		return "", ledger.ErrUnknownRequest
	}
	return d.of.Link(ctx, q)
}

// tenantTelemetry accepts the telemetry of a tenant's policies, and refuses that of others.
type tenantTelemetry struct {
	of   TelemetryReceiver
	owns func(policy string) bool
	name string
}

func (t tenantTelemetry) Receive(ctx context.Context, b receive.Batch) (receive.Result, error) {
	b.Takes, b.Tenant = t.owns, t.name
	if b.ID != "" {
		b.ID, b.Sender = t.name+"/"+b.ID, t.name
	}
	return t.of.Receive(ctx, b)
}
