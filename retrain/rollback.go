package retrain

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"
)

// EventRollback is the type of the webhook that orders to go back to the version before a retraining.
const EventRollback = "retrain.rollback"

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

// RollBack orders to go back to the version before a retraining that made things worse, where a target is configured for
// that. A retraining leads to one such order at most, however often that is called; to none where the policy has another
// unfinished request by then, or the target is disabled, of which the log has a warning.
func (d *Desk) RollBack(ctx context.Context, s Setback) error {
	target, configured := d.cfg.target(d.cfg.Rollback)
	if !configured {
		return nil
	}
	q, err := d.Request(ctx, s.Request)
	if err != nil {
		return err
	}
	origin := "rollback/" + q.ID
	e, err := d.rollbackEntry(q, s, origin, target, time.Now())
	if err != nil {
		return err
	}
	held := ""
	err = d.ledger.update(ctx, func(tx *sql.Tx) error {
		held = ""
		if err := endOverdue(ctx, tx, e.opened); err != nil {
			return err
		}
		if id, _, err := ofOrigin(ctx, tx, origin); err != nil || id != "" {
			return err
		}
		disabled, err := isDisabled(ctx, tx, target)
		if err != nil {
			return err
		}
		unfinished, err := unfinishedOf(ctx, tx, q.Policy)
		switch {
		case err != nil:
			return err
		case disabled:
			held = "the target is disabled"
		case unfinished != "":
			held = "request " + unfinished + " of the policy is not finished"
		default:
			return insert(ctx, tx, e)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("roll back request %s: %w", q.ID, err)
	}
	if held != "" {
		d.log.Warn().Str("request", q.ID).Str("policy", q.Policy).Str("reason", held).Msg("a retraining made things worse, but nothing is rolled back")
		return nil
	}
	d.log.Warn().Str("request", e.id).Str("policy", q.Policy).Str("version", s.To).Str("reason", s.Evidence).Msg("a retraining made things worse: rolling back")
	d.courier.notify(target.Name)
	return nil
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
		id: order.ID, origin: origin, kind: KindRollback, originKind: OriginOutcome, policy: q.Policy, triggerKey: key, target: target.Name,
		body: body, opened: now, due: now.Add(requestLifetime),
	}, d.schema.check(body)
}
