package retrain

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// The ledger's half of delivery: what is due, and what became of each attempt.

// message is an open request as the courier needs it.
type message struct {
	id      string
	body    []byte
	due     time.Time
	expires time.Time
}

// next gives the target's open request that is due first, after giving up those that have expired.
func (l *ledger) next(ctx context.Context, target string, now time.Time) (m message, found bool, err error) {
	err = l.update(ctx, func(tx *sql.Tx) error {
		if _, err := expire(ctx, tx, now); err != nil {
			return err
		}
		var due, expires int64
		err := tx.QueryRowContext(ctx, `
			SELECT id, body, next_attempt_at, expires_at FROM requests
			WHERE state = 'open' AND target = ? ORDER BY next_attempt_at, opened_at, id LIMIT 1`, target).
			Scan(&m.id, &m.body, &due, &expires)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		found = err == nil
		m.due, m.expires = time.UnixMilli(due), time.UnixMilli(expires)
		return err
	})
	if err != nil {
		return message{}, false, fmt.Errorf("look for due deliveries of %s: %w", target, err)
	}
	return m, found, nil
}

// begin writes that an attempt is about to be made and gives its number, from 1. It gives 0 where the request is no
// longer open.
func (l *ledger) begin(ctx context.Context, request, target string, now time.Time) (attempt int, err error) {
	err = l.update(ctx, func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, `UPDATE requests SET attempts = attempts + 1 WHERE id = ? AND state = 'open' RETURNING attempts`, request).Scan(&attempt)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `
			INSERT INTO deliveries (request, attempt, target, started_at, result, status, error, response) VALUES (?, ?, ?, ?, ?, 0, '', '')`,
			request, attempt, target, now.UnixMilli(), ResultInFlight)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("begin delivery of %s: %w", request, err)
	}
	return attempt, nil
}

// finish writes what became of an attempt and what follows from it. An order that was delivered counts as delivered
// even if it was given up meanwhile: the receiver has it.
func (l *ledger) finish(ctx context.Context, t Target, request string, attempt int, o outcome, then step, now time.Time) error {
	err := l.update(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `
			UPDATE deliveries SET finished_at = ?, result = ?, status = ?, error = ?, response = ? WHERE request = ? AND attempt = ?`,
			now.UnixMilli(), o.result, o.status, o.err, o.response, request, attempt)
		if err != nil {
			return err
		}
		switch {
		case then.disable:
			return disable(ctx, tx, now, t, request)
		case then.state == StateDelivered:
			_, err = settle(ctx, tx, now, StateDelivered, then.reason, `id = ? AND state <> 'delivered'`, request)
		case then.state == StateDeadLetter:
			_, err = settle(ctx, tx, now, StateDeadLetter, then.reason, `id = ? AND state = 'open'`, request)
		default:
			_, err = tx.ExecContext(ctx, `UPDATE requests SET next_attempt_at = ? WHERE id = ?`, ceilMilli(then.retry), request)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("keep the result of delivering %s: %w", request, err)
	}
	return nil
}

// ceilMilli rounds up, or a retry could come before the receiver's Retry-After is over.
func ceilMilli(t time.Time) int64 { return t.Add(time.Millisecond - 1).UnixMilli() }

// resume completes what a crash left: attempts whose result is not known are interrupted, and their requests stay
// due, so that they are sent again under the same id. Open requests of targets that are gone from the configuration
// are given up, or they would block their policies until they expire.
func (l *ledger) resume(ctx context.Context, cfg Config, now time.Time) error {
	return l.update(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE deliveries SET finished_at = ?, result = ? WHERE finished_at IS NULL`,
			now.UnixMilli(), ResultInterrupted)
		if err != nil {
			return fmt.Errorf("complete interrupted deliveries: %w", err)
		}
		known, args := "''", []any{}
		for _, t := range cfg.Targets {
			known += ", ?"
			args = append(args, t.Name)
		}
		_, err = settle(ctx, tx, now, StateDeadLetter, "the target is no longer configured", `state = 'open' AND target NOT IN (`+known+`)`, args...)
		return err
	})
}
