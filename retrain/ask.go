package retrain

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
)

// Ask is a retraining that a person asks for. Nothing but what would break the ledger's rules speaks against it: a person may retrain
// while a cooldown lasts or a breaker is open, and where the cause is the reward function or the telemetry.
type Ask struct {
	ID             string // by which the same ask is known when it comes again; "" for one that does not
	Policy         string
	Recipe, Target string
	By, Why        string
	Incident       *alerts.Incident // of the policy, which the order then tells of; nil for none
}

// The errors of Ask beside ErrTargetDisabled and ErrUnfinished.
var (
	ErrBadAsk         = errors.New("cannot be asked for")
	ErrAskedOtherwise = errors.New("another retraining was asked for under the same id")
)

// Ask opens a request for a person, and gives it. Asked again under the same id it gives the request that there is. What the order is made
// of must follow the schema, or it is an ErrBadAsk.
func (d *Desk) Ask(ctx context.Context, a Ask) (Request, error) {
	if err := d.checkAsk(a); err != nil {
		return Request{}, err
	}
	policy, origin := plain(a.Policy), "person/"+plain(cmp.Or(a.ID, rand.Text()))
	log := d.log.With().Str("policy", policy).Str("by", a.By).Logger()
	w := wish{
		origin: origin, kind: OriginPerson, policy: policy, recipe: a.Recipe, target: a.Target, by: plain(a.By), why: plain(a.Why), incident: a.Incident,
	}
	if a.Incident != nil {
		w.alarms = present(a.Incident.Alarms)
	}
	decision, err := d.settleOn(ctx, origin, policy, log, func(tx *sql.Tx, now time.Time) (Decision, error) {
		id, _, err := ofOrigin(ctx, tx, origin)
		if err != nil || id != "" {
			return Decision{Reason: AlreadyRequested, Request: id}, err
		}
		if err := d.mayOpen(ctx, tx, Request{Policy: policy, Target: a.Target}); err != nil {
			return Decision{}, err
		}
		placed, err := d.place(ctx, tx, w, now)
		if err == nil && placed.Reason == InvalidOrder {
			err = fmt.Errorf("%w: %s", ErrBadAsk, placed.Detail)
		}
		return placed, err
	})
	if err != nil {
		return Request{}, fmt.Errorf("retrain %s: %w", a.Policy, err)
	}
	q, err := d.Request(ctx, decision.Request)
	if err == nil && (q.Policy != policy || q.Recipe != a.Recipe || q.Target != a.Target) {
		return Request{}, fmt.Errorf("%w: %s", ErrAskedOtherwise, q.ID)
	}
	return q, err
}

func (d *Desk) checkAsk(a Ask) error {
	_, known := d.cfg.target(a.Target)
	switch {
	case a.Policy == "":
		return fmt.Errorf("%w: policy must name a policy", ErrBadAsk)
	case a.By == "" || a.Why == "":
		return fmt.Errorf("%w: by and why must say who asks for it and why", ErrBadAsk)
	case !known:
		return fmt.Errorf("%w: no target is named %q", ErrBadAsk, a.Target)
	case a.Incident != nil && a.Incident.Group.Policy != a.Policy:
		return fmt.Errorf("%w: the incident is of policy %q", ErrBadAsk, a.Incident.Group.Policy)
	}
	if msg := d.recipes.fault(a.Recipe); msg != "" {
		return fmt.Errorf("%w: %s", ErrBadAsk, msg)
	}
	return nil
}

// present gives the alarms that fire, or all where none does any more.
func present(alarms []alerts.Alarm) []alerts.Alarm {
	firing := keep(alarms, func(a alerts.Alarm) bool { return !a.Resolved })
	if len(firing) == 0 {
		return alarms
	}
	return firing
}
