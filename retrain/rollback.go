package retrain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/outcome"
	"github.com/rewardwatch/rewardwatch/retrain/recipe"
	"github.com/rewardwatch/rewardwatch/retrain/target"
)

// EventRollback is the type of the webhook that requests a rollback to the version before a retraining.
const EventRollback = "retrain.rollback"

// rollbackOrigin is the prefix of the origin of a rollback, before the id of the request that it rolls back.
const rollbackOrigin = "rollback/"

// rollback is the content for the receiver.
type rollback struct {
	ID       string            `json:"id"`
	Request  string            `json:"request"` // request whose version is rolled back
	Policy   string            `json:"policy"`
	Group    map[string]string `json:"group"`
	Versions rollbackVersions  `json:"versions"`
	Evidence []string          `json:"evidence"`
}

type rollbackVersions struct {
	From string `json:"from"` // the live policy_version
	To   string `json:"to"`   // the policy_version to return to
}

// queuedLifetime is how long a rollback may wait for the other requests of its policy, which end much earlier.
const queuedLifetime = 30 * 24 * time.Hour

// RollBack requests a rollback to the version before a retraining that made things worse, if a target is configured for
// rollbacks. A retraining leads to at most one rollback, however often RollBack is called. If the policy has a request
// that is only waiting for approval, it is withdrawn; if it has any other unfinished request, the rollback is queued.
func (d *Desk) RollBack(ctx context.Context, s outcome.Setback) error {
	target, configured := d.cfg.target(d.cfg.Rollback)
	if !configured {
		return nil
	}
	q, err := d.requestPatiently(ctx, s.Request)
	if err != nil {
		return err
	}
	e, err := d.rollbackEntry(q, s, rollbackOrigin+q.ID, target, time.Now())
	if err != nil {
		return err
	}
	news := false
	err = d.ledger.Update(ctx, func(tx *ledger.Tx) error {
		news = false
		if err := tx.EndOverdue(ctx, e.Opened); err != nil {
			return err
		}
		if id, _, err := tx.OfOrigin(ctx, e.Origin); err != nil || id != "" {
			return err
		}
		why := "retraining " + q.ID + " made the policy worse and is rolled back first"
		disabled, err := tx.IsDisabled(ctx, target)
		if err != nil {
			return err
		}
		if !disabled { // otherwise it cannot be delivered, and nothing must make room for it
			if err := tx.WithdrawWaiting(ctx, q.Policy, why, e.Opened); err != nil {
				return err
			}
		}
		news = true
		return tx.Insert(ctx, e)
	})
	if err != nil {
		return fmt.Errorf("roll back request %s: %w", q.ID, err)
	}
	if news {
		d.log.Warn().Str("request", e.Id).Str("policy", q.Policy).Str("version", s.To).Str("reason", s.Evidence).Msg("a retraining made the policy worse: rolling back")
	}
	return d.release(ctx)
}

// release opens queued rollbacks whose policies no longer have another unfinished request.
func (d *Desk) release(ctx context.Context) error {
	queued, err := d.ledger.Queued(ctx)
	if err != nil {
		if ctx.Err() == nil {
			d.log.Warn().Err(err).Msg("failed to read queued rollbacks, retrying")
		}
		return nil
	}
	for _, q := range queued {
		_, err := d.change(ctx, q.ID, func(tx *ledger.Tx, q ledger.Request, now time.Time) (ledger.Move, error) {
			return d.dequeue(ctx, tx, q, now)
		})
		if closed := (*ledger.StateError)(nil); err != nil && !errors.Is(err, ErrUnfinished) && !errors.As(err, &closed) { // otherwise another request must end first
			return err
		}
	}
	return nil
}

// dequeue decides on the next rollback in the queue. If a later request has produced a version, that version has
// already replaced the one to leave.
func (d *Desk) dequeue(ctx context.Context, tx *ledger.Tx, q ledger.Request, now time.Time) (ledger.Move, error) {
	m := ledger.Move{By: ledger.ByService, From: []ledger.State{ledger.StateQueued}, To: ledger.StateOpen, Due: now.Add(requestLifetime)}
	newer, version, err := tx.MadeSince(ctx, q.Policy, strings.TrimPrefix(q.Origin, rollbackOrigin))
	if err != nil {
		return ledger.Move{}, err
	}
	if newer != "" {
		m.To, m.Why = ledger.StateWithdrawn, "request "+newer+" has made version "+version+" since"
		return m, nil
	}
	err = d.mayOpen(ctx, tx, q)
	if errors.Is(err, ErrTargetDisabled) || errors.Is(err, ErrUnknownTarget) {
		m.To, m.Why = ledger.StateDeadLetter, err.Error()
		return m, nil
	}
	return m, err
}

func (d *Desk) rollbackEntry(q ledger.Request, s outcome.Setback, origin string, target target.Target, now time.Time) (ledger.Entry, error) {
	o, err := recipe.ReadTerms(q.Order)
	if err != nil {
		return ledger.Entry{}, err
	}
	key := "outcome(missed) -> " + target.Name
	order := rollback{
		ID: recipe.RequestID(origin, key), Request: q.ID, Policy: q.Policy, Group: o.Group,
		Versions: rollbackVersions{From: q.NewVersion, To: ledger.Plain(s.To)}, Evidence: []string{ledger.Plain(s.Evidence)},
	}
	if order.Group == nil {
		order.Group = map[string]string{}
	}
	body, err := json.Marshal(struct {
		Type      string    `json:"type"`
		Timestamp time.Time `json:"timestamp"`
		Data      rollback  `json:"data"`
	}{EventRollback, now.UTC(), order})
	if err != nil {
		return ledger.Entry{}, fmt.Errorf("write webhook body: %w", err)
	}
	return ledger.Entry{
		Id: order.ID, State: ledger.StateQueued, Origin: origin, Kind: ledger.KindRollback, OriginKind: ledger.OriginOutcome, Policy: q.Policy, TriggerKey: key, Target: target.Name,
		Body: body, Opened: now, Due: now.Add(queuedLifetime),
	}, d.schema.Check(body)
}
