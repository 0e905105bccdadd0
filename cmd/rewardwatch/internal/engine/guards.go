package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/guard"
)

// Reasons why a guard is not released, for errors.Is.
var (
	ErrUnknownGuard    = errors.New("the policy has no guard with this name")
	ErrGuardNotTripped = errors.New("the guard has not tripped")
)

// Guards returns the state of the guards of a policy as last published. Before its first unit, all guards are ok. It
// returns false for a policy that is not monitored or, in a cluster, not judged here: another instance may know that
// one of its guards has tripped.
func (p *Pipeline) Guards(policy string) (*guard.Summary, bool) {
	if r := p.worker(policy); r != nil {
		return r.Shown.Load().Guards, true
	}
	if p.Source.Shared {
		return nil, false
	}
	cfg, watched := p.Cfg.Policy(policy)
	if !watched {
		return nil, false
	}
	return guard.New(policy, cfg.Guards).Summary(), true
}

// worker returns the worker of a policy, nil if there is none.
func (p *Pipeline) worker(policy string) *RunningWorker {
	for _, d := range p.Present() {
		if r := d.Of(policy); r != nil {
			return r
		}
	}
	return nil
}

// AllGuards returns the guards of all policies with guards, as last published.
func (p *Pipeline) AllGuards() (all []*guard.Summary) {
	for _, r := range p.All() {
		if s := r.Shown.Load().Guards; len(s.Guards) > 0 {
			all = append(all, s)
		}
	}
	return all
}

// Release implements orders.
func (p *Pipeline) Release(ctx context.Context, policy, name string, d alerts.Decision) (*guard.Summary, error) {
	s, known := p.Guards(policy)
	if !known {
		return nil, ErrUnknownPolicy
	}
	if !slices.ContainsFunc(s.Guards, func(g guard.Verdict) bool { return g.Name == name }) {
		return nil, ErrUnknownGuard
	}
	id, open := p.tripOf(policy, name)
	if !open {
		return nil, ErrGuardNotTripped
	}
	if _, err := p.Accept(ctx, id, d); err != nil {
		return nil, err
	}
	s, _ = p.Guards(policy)
	return s, nil
}

// tripOf returns the open incident of a guard.
func (p *Pipeline) tripOf(policy, name string) (id string, open bool) {
	r := p.worker(policy)
	if r == nil {
		return "", false
	}
	for _, i := range r.Shown.Load().Incidents {
		if !i.Closed && guard.Of(i.Group) == name && i.Guard() != nil {
			return i.ID, true
		}
	}
	return "", false
}

// warnOfInvalid logs that a guard ignores values: at the first one, and whenever their number has doubled.
func warnOfInvalid(r *RunningWorker) {
	for _, g := range r.Shown.Load().Guards.Guards {
		if g.Invalid > 2*r.invalid {
			r.invalid = g.Invalid
			r.workers.Pipeline.Log.Warn().Str("policy", r.Name).Str("guard", g.Name).Int64("values", g.Invalid).
				Msg("a guard ignores values that it cannot count: outcome values must be finite and between 0 and 1")
		}
	}
}
