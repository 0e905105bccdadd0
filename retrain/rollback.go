package retrain

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// EventRollback is the type of the webhook that orders to go back to the version before a retraining.
const EventRollback = "retrain.rollback"

// rollbackOrigin is what the origin of a rollback begins with, before the request that it rolls back.
const rollbackOrigin = "rollback/"

// Setback is a retraining that made things worse.
type Setback struct {
	Request  string // that was missed
	To       string // policy_version that was live before
	Evidence string // that it made things worse
}

// rollback is what the receiver is told.
type rollback struct {
	ID       string            `json:"id"`
	Request  string            `json:"request"` // whose version is to go
	Policy   string            `json:"policy"`
	Group    map[string]string `json:"group"`
	Versions rollbackVersions  `json:"versions"`
	Evidence []string          `json:"evidence"`
}

type rollbackVersions struct {
	From string `json:"from"` // policy_version that is live
	To   string `json:"to"`   // and that is to be live again
}

// queuedLifetime is how long a rollback may wait for the other requests of its policy, which end long before.
const queuedLifetime = 30 * 24 * time.Hour

// RollBack orders to go back to the version before a retraining that made things worse, where a target is configured for
// that. A retraining leads to one such order at most, however often that is called. A request of the policy that only waits for its
// approval is withdrawn for it; for another unfinished one it is queued.
func (d *Desk) RollBack(ctx context.Context, s Setback) error {
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
	err = d.ledger.update(ctx, func(tx *sql.Tx) error {
		news = false
		if err := endOverdue(ctx, tx, e.opened); err != nil {
			return err
		}
		if id, _, err := ofOrigin(ctx, tx, e.origin); err != nil || id != "" {
			return err
		}
		why := "retraining " + q.ID + " made things worse, which is rolled back first"
		disabled, err := isDisabled(ctx, tx, target)
		if err != nil {
			return err
		}
		if !disabled { // else it cannot leave, and nothing need make room for it
			if err := settle(ctx, tx, e.opened, StateWithdrawn, why, `state = 'awaiting_approval' AND policy = $4`, q.Policy); err != nil {
				return err
			}
		}
		news = true
		return insert(ctx, tx, e)
	})
	if err != nil {
		return fmt.Errorf("roll back request %s: %w", q.ID, err)
	}
	if news {
		d.log.Warn().Str("request", e.id).Str("policy", q.Policy).Str("version", s.To).Str("reason", s.Evidence).Msg("a retraining made things worse: rolling back")
	}
	return d.release(ctx)
}

// release sees to rollbacks that are queued and whose policies have no other unfinished request any more.
func (d *Desk) release(ctx context.Context) error {
	queued, err := list(ctx, d.ledger, "queued rollbacks", scanRequest, selectRequests+` WHERE state = 'queued' AND NOT EXISTS (
		SELECT 1 FROM requests other WHERE other.policy = requests.policy AND other.closed_at IS NULL AND other.state <> 'queued') ORDER BY opened_at, id`)
	if err != nil {
		if ctx.Err() == nil {
			d.log.Warn().Err(err).Msg("The ledger cannot be asked which rollbacks are queued, trying again")
		}
		return nil
	}
	for _, q := range queued {
		_, err := d.change(ctx, q.ID, func(tx *sql.Tx, q Request, now time.Time) (move, error) { return d.dequeue(ctx, tx, q, now) })
		if closed := (*StateError)(nil); err != nil && !errors.Is(err, ErrUnfinished) && !errors.As(err, &closed) { // or it is another one's turn
			return err
		}
	}
	return nil
}

// dequeue says what becomes of a rollback whose turn it is. A version that was made meanwhile has replaced the one that it leads away from.
func (d *Desk) dequeue(ctx context.Context, tx *sql.Tx, q Request, now time.Time) (move, error) {
	m := move{by: byService, from: []State{StateQueued}, to: StateOpen, due: now.Add(requestLifetime)}
	newer, version, err := madeSince(ctx, tx, q)
	if err != nil {
		return move{}, err
	}
	if newer != "" {
		m.to, m.why = StateWithdrawn, "request "+newer+" has made version "+version+" since"
		return m, nil
	}
	err = d.mayOpen(ctx, tx, q)
	if errors.Is(err, ErrTargetDisabled) || errors.Is(err, ErrUnknownTarget) {
		m.to, m.why = StateDeadLetter, err.Error()
		return m, nil
	}
	return m, err
}

// madeSince gives the last retraining that was ordered after the one of a rollback and has made a version, "" where none has.
func madeSince(ctx context.Context, tx *sql.Tx, back Request) (id, version string, err error) {
	err = tx.QueryRowContext(ctx, `
		SELECT id, new_version FROM requests WHERE policy = $1 AND kind = 'retrain' AND new_version <> ''
			AND opened_at > (SELECT opened_at FROM requests WHERE id = $2)
		ORDER BY opened_at DESC, id LIMIT 1`, back.Policy, strings.TrimPrefix(back.Origin, rollbackOrigin)).Scan(&id, &version)
	if err := found(err); err != nil {
		return "", "", fmt.Errorf("look for later versions: %w", err)
	}
	return id, version, nil
}

func (d *Desk) rollbackEntry(q Request, s Setback, origin string, target Target, now time.Time) (entry, error) {
	o, err := q.terms()
	if err != nil {
		return entry{}, err
	}
	key := "outcome(missed) -> " + target.Name
	order := rollback{
		ID: requestID(origin, key), Request: q.ID, Policy: q.Policy, Group: o.Group,
		Versions: rollbackVersions{From: q.NewVersion, To: plain(s.To)}, Evidence: []string{plain(s.Evidence)},
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
		return entry{}, fmt.Errorf("write webhook body: %w", err)
	}
	return entry{
		id: order.ID, state: StateQueued, origin: origin, kind: KindRollback, originKind: OriginOutcome, policy: q.Policy, triggerKey: key, target: target.Name,
		body: body, opened: now, due: now.Add(queuedLifetime),
	}, d.schema.check(body)
}
