package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"sync/atomic"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/tenant"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/guard"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Reasons why a person's decision is not carried out, for errors.Is.
var (
	ErrUnknownIncident = errors.New("incident not found (it may have closed long ago)")
	ErrIncidentClosed  = errors.New("the incident is already closed")
	ErrUnknownBaseline = errors.New("baseline not found")
	ErrBaselineEnded   = errors.New("the baseline is no longer in use")
	ErrUnknownGroup    = errors.New("group not found: no telemetry has been received for it")
	ErrNotSaved        = errors.New("the change was applied but not saved yet: repeat the request to confirm")
	ErrBusy            = errors.New("nothing was changed because the policy is calibrating baselines: try again in a few minutes")
	ErrStopping        = errors.New("the service is stopping")
)

// accept closes an open incident: the drifted behavior becomes the new normal, and the group warms up a new baseline.
func (d *Worker) accept(ctx context.Context, id string, decision alerts.Decision) error {
	incident, known := d.tracker.Incident(id)
	_, ended := incident.Ended()
	switch {
	case !known:
		return ErrUnknownIncident
	case ended:
		return nil
	case incident.Closed:
		return ErrIncidentClosed
	case incident.Guard() != nil:
		decision.Kind = alerts.Released
	}
	return d.restart(ctx, incident.Group, decision)
}

// restart makes a group warm up a new baseline, or releases the guard that the group represents. It closes the open
// incident of the group, if there is one.
func (d *Worker) restart(ctx context.Context, group ingest.Group, decision alerts.Decision) error {
	if err := d.comeBack(group); err != nil {
		return err
	}
	for _, i := range d.tracker.Incidents() {
		if i.Group == group && !i.Closed {
			d.tracker.End(i.ID, decision)
		}
	}
	if name := guard.Of(group); name != "" {
		return d.apply(ctx, d.guards.Release(name, guard.Decision{By: decision.By, Why: decision.Why, At: decision.At}))
	}
	found, err := d.Policy.Restart(group, decision.String(), decision.At)
	if errors.Is(err, bank.ErrUnknownGroup) {
		return ErrUnknownGroup
	}
	if err != nil {
		return err
	}
	return d.apply(ctx, found)
}

// mute silences the notifications of an open incident until a given time, or ends its mute.
func (d *Worker) mute(ctx context.Context, id string, decision alerts.Decision) error {
	switch incident, known := d.tracker.Incident(id); {
	case !known:
		return ErrUnknownIncident
	case incident.Closed:
		return ErrIncidentClosed
	}
	return d.tell(ctx, d.tracker.Mute(id, decision))
}

// comment records a comment on an incident, which may already be closed.
func (d *Worker) comment(ctx context.Context, id string, decision alerts.Decision) error {
	if _, known := d.tracker.Incident(id); !known {
		return ErrUnknownIncident
	}
	return d.tell(ctx, d.tracker.Comment(id, decision))
}

// endMutes resumes the notifications of incidents whose mute has expired.
func (d *Worker) endMutes(ctx context.Context, now time.Time) error {
	return d.tell(ctx, d.tracker.EndMutes(now))
}

// promote accepts a provisional baseline as it is.
func (d *Worker) promote(id, why string) error {
	d.Policy.Publish() // the last published state may show an earlier baseline
	for _, g := range d.Policy.Summary().Groups {
		if g.Baseline.ID == id {
			if err := d.comeBack(g.Group); err != nil {
				return err
			}
			return d.Policy.Promote(g.Group, why)
		}
	}
	return ErrBaselineEnded
}

// Ask runs do on the worker's goroutine, between two units and while no group waits for a calibration, and waits for it
// to finish. If ctx ends before do has started, do never runs.
func (r *RunningWorker) Ask(ctx context.Context, do func(context.Context) error) error {
	var decided atomic.Bool // whether do runs
	done := make(chan error, 1)
	order := func() {
		work := r.workers.work // once started, do finishes, unless another instance may judge the policy by then
		err := r.settle(work, ctx)
		if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
			err = fmt.Errorf("%w: %w", ErrBusy, err)
		}
		if err == nil && decided.CompareAndSwap(false, true) {
			err = do(work)
		}
		if errors.Is(err, errUntold) {
			r.workers.failed(fmt.Errorf("policy %q: %w", r.Name, err)) // a change that could not be reported now is reported at the next start
		}
		done <- err
	}
	select {
	case r.orders <- order:
	case <-r.gone:
		return ErrUnknownPolicy
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrBusy, context.Cause(ctx))
	case <-r.workers.Ctx.Done():
		return ErrStopping
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		if decided.CompareAndSwap(false, true) {
			return fmt.Errorf("%w: %w", ErrBusy, context.Cause(ctx))
		}
		return <-done
	}
}

// change runs do on the worker's goroutine, and waits until the result is published and saved. The result must be in
// both of the last two saves: if the newest save is damaged, reading the telemetry again would not restore it. If an
// earlier request has already applied do but the result is not yet in both saves, change saves again, so that a retried
// request is certain to be durable.
func (r *RunningWorker) change(ctx context.Context, do func(context.Context) error) error {
	return r.Ask(ctx, func(ctx context.Context) error {
		if err := do(ctx); err != nil {
			return err
		}
		r.Publish()
		for range 2 {
			if err := r.save(); err != nil {
				return fmt.Errorf("%w: %w", ErrNotSaved, err)
			}
		}
		return nil
	})
}

// incident returns an incident of any policy that ctx may access, and its worker, as last published.
func (p *Pipeline) incident(ctx context.Context, id string) (*RunningWorker, alerts.Incident, error) {
	for r := range p.within(ctx) {
		for _, i := range r.Worker.Shown.Load().Incidents {
			if i.ID == id {
				return r, i, nil
			}
		}
	}
	return nil, alerts.Incident{}, ErrUnknownIncident
}

// within calls yield with the workers of all policies that ctx may access.
func (p *Pipeline) within(ctx context.Context) iter.Seq[*RunningWorker] {
	return func(yield func(*RunningWorker) bool) {
		for _, r := range p.All() {
			if tenant.Owns(ctx, r.Name) && !yield(r) {
				return
			}
		}
	}
}

// baseline returns the group that has, or had, a baseline, and the group's worker, as last published.
func (p *Pipeline) baseline(ctx context.Context, id string) (*RunningWorker, *finding.GroupSummary, error) {
	for r := range p.within(ctx) {
		for i := range r.Policy.Summary().Groups {
			if g := &r.Policy.Summary().Groups[i]; hasBaseline(g, id) {
				return r, g, nil
			}
		}
	}
	return nil, nil, ErrUnknownBaseline
}

func hasBaseline(g *finding.GroupSummary, id string) bool {
	if id != "" && g.Baseline.ID == id {
		return true
	}
	for _, past := range g.Lineage.Past {
		if past.ID == id {
			return true
		}
	}
	return false
}

// group returns the group with the given policy and labels, and its worker, as last published.
func (p *Pipeline) group(policy string, labels map[string]string) (*RunningWorker, *finding.GroupSummary, error) {
	for _, r := range p.All() {
		if r.Name != policy {
			continue
		}
		groups := r.Policy.Summary().Groups
		for i := range groups {
			if maps.Equal(groups[i].Group.Map(), labels) {
				return r, &groups[i], nil
			}
		}
	}
	return nil, nil, ErrUnknownGroup
}

// readSample reads the baseline values of an evicted group from its checkpoint, which it leaves unchanged. Only one
// is read at a time, since the checkpoint parts take memory too.
func (p *Pipeline) readSample(ctx context.Context, r *RunningWorker, parts []string, group ingest.Group, id string) ([]finding.QuantitySample, bool, error) {
	select {
	case p.reading <- struct{}{}:
	case <-ctx.Done():
		return nil, false, context.Cause(ctx)
	}
	defer func() { <-p.reading }()
	loaded, err := r.workers.Store.LoadParts(BankPrefix+r.Name, parts)
	if err != nil {
		return nil, false, fmt.Errorf("read a baseline of an evicted group: %w", err)
	}
	return bank.ReadSample(loaded, group, id)
}

// Accept implements orders.
func (p *Pipeline) Accept(ctx context.Context, incident string, d alerts.Decision) (alerts.Incident, error) {
	return p.decide(ctx, incident, d, (*Worker).accept)
}

// Mute implements orders.
func (p *Pipeline) Mute(ctx context.Context, incident string, d alerts.Decision) (alerts.Incident, error) {
	return p.decide(ctx, incident, d, (*Worker).mute)
}

// Comment implements orders.
func (p *Pipeline) Comment(ctx context.Context, incident string, d alerts.Decision) (alerts.Incident, error) {
	return p.decide(ctx, incident, d, (*Worker).comment)
}

func (p *Pipeline) decide(
	ctx context.Context, id string, d alerts.Decision, do func(*Worker, context.Context, string, alerts.Decision) error,
) (alerts.Incident, error) {
	r, _, err := p.incident(ctx, id)
	if err != nil {
		return alerts.Incident{}, err
	}
	if err := r.change(ctx, func(ctx context.Context) error { return do(r.Worker, ctx, id, d) }); err != nil {
		return alerts.Incident{}, err
	}
	p.Log.Info().Str("incident", id).Stringer("decision", d).Msg("decision on an incident")
	_, incident, err := p.incident(ctx, id)
	return incident, err
}

// Promote implements orders.
func (p *Pipeline) Promote(ctx context.Context, id string, d alerts.Decision) (*finding.GroupSummary, error) {
	r, _, err := p.baseline(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := r.change(ctx, func(context.Context) error { return r.promote(id, d.String()) }); err != nil {
		return nil, err
	}
	p.Log.Info().Str("baseline", id).Stringer("decision", d).Msg("baseline promoted on request")
	_, group, err := p.baseline(ctx, id)
	return group, err
}

// Reset implements orders.
func (p *Pipeline) Reset(ctx context.Context, policy string, labels map[string]string, d alerts.Decision) (*finding.GroupSummary, error) {
	r, g, err := p.group(policy, labels)
	if err != nil {
		return nil, err
	}
	group := g.Group
	if err := r.change(ctx, func(ctx context.Context) error { return r.restart(ctx, group, d) }); err != nil {
		return nil, err
	}
	p.Log.Info().Stringer("group", group).Stringer("decision", d).Msg("baseline reset on request")
	_, g, err = p.group(policy, labels)
	return g, err
}

// Sample implements orders. It does not use the goroutine that judges the policy.
func (p *Pipeline) Sample(ctx context.Context, id string) ([]finding.QuantitySample, error) {
	r, g, err := p.baseline(ctx, id)
	if err != nil {
		return nil, err
	}
	for range 2 { // an evicted group may be loaded and change while it is read
		sample, parts, known := r.Policy.Sample(g.Group, id)
		if len(parts) > 0 {
			if sample, known, err = p.readSample(ctx, r, parts, g.Group, id); ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
		}
		if known {
			return sample, nil
		}
	}
	if err == nil {
		err = ErrBaselineEnded
	}
	return nil, err
}
