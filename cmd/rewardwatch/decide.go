package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// What keeps a person's decision from being carried out, for errors.Is.
var (
	errUnknownIncident = errors.New("there is no such incident, or it closed long ago")
	errIncidentClosed  = errors.New("the incident has closed already")
	errUnknownBaseline = errors.New("there is no such baseline")
	errBaselineEnded   = errors.New("the baseline is not in use any more")
	errUnknownGroup    = errors.New("no unit of such a group has been seen")
	errNotSaved        = errors.New("it is done, but the state could not be saved yet: ask again to be certain")
	errStopping        = errors.New("the service is stopping")
)

// accept ends an open incident: what drifted is the new normal, and the group warms up a new baseline.
func (d *desk) accept(ctx context.Context, id string, decision alerts.Decision) error {
	incident, known := d.book.Incident(id)
	_, ended := incident.Ended()
	switch {
	case !known:
		return errUnknownIncident
	case ended:
		return nil
	case incident.Closed:
		return errIncidentClosed
	}
	return d.restart(ctx, incident.Group, decision)
}

// restart has a group warm up a new baseline, and ends its incident where one is open.
func (d *desk) restart(ctx context.Context, group ingest.Group, decision alerts.Decision) error {
	if err := d.comeBack(group); err != nil {
		return err
	}
	for _, i := range d.book.Incidents() {
		if i.Group == group && !i.Closed {
			d.book.End(i.ID, decision)
		}
	}
	found, err := d.policy.Restart(group, decision.String(), decision.At)
	if errors.Is(err, bank.ErrUnknownGroup) {
		return errUnknownGroup
	}
	if err != nil {
		return err
	}
	return d.apply(ctx, found)
}

// mute has nobody told of an open incident until a time, or ends that.
func (d *desk) mute(ctx context.Context, id string, decision alerts.Decision) error {
	switch incident, known := d.book.Incident(id); {
	case !known:
		return errUnknownIncident
	case incident.Closed:
		return errIncidentClosed
	}
	return d.tell(ctx, d.book.Mute(id, decision))
}

// endMutes tells again of the incidents whose mute is over.
func (d *desk) endMutes(ctx context.Context, now time.Time) error {
	return d.tell(ctx, d.book.EndMutes(now))
}

// promote accepts a provisional baseline as it is.
func (d *desk) promote(id, why string) error {
	d.policy.Publish() // what was published last may be of the baseline before
	for _, g := range d.policy.Summary().Groups {
		if g.Baseline.ID == id {
			if err := d.comeBack(g.Group); err != nil {
				return err
			}
			return d.policy.Promote(g.Group, why)
		}
	}
	return errBaselineEnded
}

// ask has the desk's goroutine do something between two units, when no calibration is under way, and waits until it is
// done. Where ctx ends before it has begun, nothing is done.
func (r *runningDesk) ask(ctx context.Context, do func(context.Context) error) error {
	done := make(chan error, 1)
	order := func() {
		ctx := r.desks.work // what has begun is finished, unless another instance may judge the policy by now
		err := r.apply(ctx, r.policy.Settle())
		if err == nil {
			err = do(ctx)
		}
		if errors.Is(err, errUntold) {
			r.desks.failed(fmt.Errorf("policy %q: %w", r.name, err)) // the next start tells what could not be told
		}
		done <- err
	}
	select {
	case r.orders <- order:
		return <-done
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-r.desks.ctx.Done():
		return errStopping
	}
}

// change has the desk's goroutine change something, and waits until that is shown and saved: in both of the last two saves,
// as nothing that is read again would bring it back where the newest is damaged. What was done already is saved again where
// it is not yet, so that asking again makes certain.
func (r *runningDesk) change(ctx context.Context, do func(context.Context) error) error {
	return r.ask(ctx, func(ctx context.Context) error {
		if err := do(ctx); err != nil {
			return err
		}
		r.publish()
		for range 2 {
			if err := r.save(); err != nil {
				return fmt.Errorf("%w: %w", errNotSaved, err)
			}
		}
		return nil
	})
}

// incident gives an incident of any policy and its desk, as last published.
func (p *pipeline) incident(id string) (*runningDesk, alerts.Incident, error) {
	for _, r := range p.all() {
		for _, i := range r.desk.shown.Load().incidents {
			if i.ID == id {
				return r, i, nil
			}
		}
	}
	return nil, alerts.Incident{}, errUnknownIncident
}

// baseline gives the group that a baseline is, or was, of, and its desk, as last published.
func (p *pipeline) baseline(id string) (*runningDesk, *bank.GroupSummary, error) {
	for _, r := range p.all() {
		for i := range r.policy.Summary().Groups {
			if g := &r.policy.Summary().Groups[i]; hasBaseline(g, id) {
				return r, g, nil
			}
		}
	}
	return nil, nil, errUnknownBaseline
}

func hasBaseline(g *bank.GroupSummary, id string) bool {
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

// Accept implements orders.
func (a *app) Accept(ctx context.Context, incident string, d alerts.Decision) (alerts.Incident, error) {
	return a.decide(ctx, incident, d, (*desk).accept)
}

// Mute implements orders.
func (a *app) Mute(ctx context.Context, incident string, d alerts.Decision) (alerts.Incident, error) {
	return a.decide(ctx, incident, d, (*desk).mute)
}

func (a *app) decide(
	ctx context.Context, id string, d alerts.Decision, do func(*desk, context.Context, string, alerts.Decision) error,
) (alerts.Incident, error) {
	r, _, err := a.pipeline.incident(id)
	if err != nil {
		return alerts.Incident{}, err
	}
	if err := r.change(ctx, func(ctx context.Context) error { return do(r.desk, ctx, id, d) }); err != nil {
		return alerts.Incident{}, err
	}
	a.log.Info().Str("incident", id).Stringer("decision", d).Msg("a person decided on an incident")
	_, incident, err := a.pipeline.incident(id)
	return incident, err
}

// Promote implements orders.
func (a *app) Promote(ctx context.Context, id string, d alerts.Decision) (*bank.GroupSummary, error) {
	r, _, err := a.pipeline.baseline(id)
	if err != nil {
		return nil, err
	}
	if err := r.change(ctx, func(context.Context) error { return r.promote(id, d.String()) }); err != nil {
		return nil, err
	}
	a.log.Info().Str("baseline", id).Stringer("decision", d).Msg("a person promoted a baseline")
	_, group, err := a.pipeline.baseline(id)
	return group, err
}

// Reset implements orders.
func (a *app) Reset(ctx context.Context, policy string, labels map[string]string, d alerts.Decision) (*bank.GroupSummary, error) {
	r, g, err := a.pipeline.group(policy, labels)
	if err != nil {
		return nil, err
	}
	group := g.Group
	if err := r.change(ctx, func(ctx context.Context) error { return r.restart(ctx, group, d) }); err != nil {
		return nil, err
	}
	a.log.Info().Stringer("group", group).Stringer("decision", d).Msg("a person reset a baseline")
	_, g, err = a.pipeline.group(policy, labels)
	return g, err
}

// group gives a group by its policy and labels, and its desk, as last published.
func (p *pipeline) group(policy string, labels map[string]string) (*runningDesk, *bank.GroupSummary, error) {
	for _, r := range p.all() {
		if r.name != policy {
			continue
		}
		groups := r.policy.Summary().Groups
		for i := range groups {
			if maps.Equal(groups[i].Group.Map(), labels) {
				return r, &groups[i], nil
			}
		}
	}
	return nil, nil, errUnknownGroup
}

// Sample implements orders.
func (a *app) Sample(ctx context.Context, id string) ([]bank.QuantitySample, error) {
	r, g, err := a.pipeline.baseline(id)
	if err != nil {
		return nil, err
	}
	var sample []bank.QuantitySample
	err = r.ask(ctx, func(context.Context) error {
		if err := r.comeBack(g.Group); err != nil {
			return err
		}
		kept := false
		if sample, kept = r.policy.Sample(id); !kept {
			return errBaselineEnded
		}
		return nil
	})
	return sample, err
}
