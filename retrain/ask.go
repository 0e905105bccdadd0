package retrain

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// Ask is a retraining that a person requests. Only the rules of the ledger can refuse it: a person can request a
// retraining during a cooldown, while the breaker is open, and if the cause requires a person's decision.
type Ask struct {
	ID             string // identifies a repeated request; "" if it is not repeated
	Policy         string
	Recipe, Target string
	By, Why        string
	// Incident of the policy is reported in the order; nil for none. The incident of a guard is not reported: its
	// group has no baseline and no units, so nothing could show what the retraining reacts to.
	Incident *alerts.Incident
}

// The errors of Ask besides ErrTargetDisabled and ErrUnfinished.
var (
	ErrBadAsk         = errors.New("invalid request")
	ErrAskedOtherwise = errors.New("the same id was already used for a different retraining")
)

// Ask opens a request for a person, and returns it. A repeated ask with the same id returns the existing request. The
// error is ErrBadAsk if the order would violate the schema.
func (d *Desk) Ask(ctx context.Context, a Ask) (ledger.Request, error) {
	if err := d.checkAsk(a); err != nil {
		return ledger.Request{}, err
	}
	policy, origin := ledger.Plain(a.Policy), "person/"+ledger.Plain(cmp.Or(a.ID, rand.Text()))
	log := d.log.With().Str("policy", policy).Str("by", a.By).Logger()
	w := requestSpec{
		origin: origin, kind: ledger.OriginPerson, policy: policy, recipe: a.Recipe, target: a.Target, by: ledger.Plain(a.By), why: ledger.Plain(a.Why),
	}
	if i := a.Incident; i != nil && i.Guard() == nil {
		w.incident, w.alarms = i, present(i.Alarms)
	}
	decision, err := d.settleOn(ctx, origin, policy, log, func(tx *ledger.Tx, now time.Time) (ledger.Decision, error) {
		id, _, err := tx.OfOrigin(ctx, origin)
		if err != nil || id != "" {
			return ledger.Decision{Reason: ledger.AlreadyRequested, Request: id}, err
		}
		if err := d.mayOpen(ctx, tx, ledger.Request{Policy: policy, Target: a.Target}); err != nil {
			return ledger.Decision{}, err
		}
		placed, err := d.place(ctx, tx, w, now)
		if err == nil && placed.Reason == ledger.InvalidOrder {
			err = fmt.Errorf("%w: %s", ErrBadAsk, placed.Detail)
		}
		return placed, err
	})
	if err != nil {
		return ledger.Request{}, fmt.Errorf("retrain %s: %w", a.Policy, err)
	}
	q, err := d.ledger.Current(ctx, decision.Request)
	if err == nil && (q.Policy != policy || q.Recipe != a.Recipe || q.Target != a.Target) {
		return ledger.Request{}, fmt.Errorf("%w: %s", ErrAskedOtherwise, q.ID)
	}
	return q, err
}

// Usual returns the recipe and the target of a policy's trigger, or "" if it has none.
func (d *Desk) Usual(policy string) (recipe, target string) {
	for _, t := range d.cfg.Triggers {
		if len(t.Policies) == 0 || matchesAny(t.Policies, policy) {
			return t.Recipe, t.Target
		}
	}
	return "", ""
}

// Offers returns the recipes and the targets that an Ask for a policy can name. The first of each are those of the
// policy's trigger, if it has one.
func (d *Desk) Offers(policy string) (recipes, targets []string) {
	if recipe, target := d.Usual(policy); target != "" {
		recipes, targets = []string{recipe}, []string{target}
	}
	for _, name := range slices.Sorted(maps.Keys(d.recipes)) {
		if !slices.Contains(recipes, name) && d.recipes.Fault(name) == "" {
			recipes = append(recipes, name)
		}
	}
	for _, t := range d.cfg.Targets {
		if !slices.Contains(targets, t.Name) {
			targets = append(targets, t.Name)
		}
	}
	return recipes, targets
}

func (d *Desk) checkAsk(a Ask) error {
	_, known := d.cfg.target(a.Target)
	switch {
	case a.Policy == "":
		return fmt.Errorf("%w: policy is required", ErrBadAsk)
	case a.By == "" || a.Why == "":
		return fmt.Errorf("%w: by and why are required: who requests the retraining, and for what reason", ErrBadAsk)
	case !known:
		return fmt.Errorf("%w: unknown target %q", ErrBadAsk, a.Target)
	case a.Incident != nil && a.Incident.Group.Policy != a.Policy:
		return fmt.Errorf("%w: the incident belongs to policy %q", ErrBadAsk, a.Incident.Group.Policy)
	}
	if msg := cmp.Or(d.recipes.Fault(a.Recipe), d.cfg.mixes(d.recipes, a.Recipe, a.Target)); msg != "" {
		return fmt.Errorf("%w: %s", ErrBadAsk, msg)
	}
	return nil
}

// present returns the firing alarms, or all alarms if none is firing.
func present(alarms []alerts.Alarm) []alerts.Alarm {
	firing := keep(alarms, func(a alerts.Alarm) bool { return !a.Resolved })
	if len(firing) == 0 {
		return alarms
	}
	return firing
}
