package retrain

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// The ledger's half of delivery: what is due, and what became of each attempt.

// A target at which so many attempts in a row have failed, of whichever requests, is tried by one request at a time, so far
// apart, until one succeeds: its circuit is open.
const (
	circuitFailures = 5
	circuitPause    = time.Minute
)

// circuit says until when nothing is to be sent to a target, the zero time where its circuit is closed. Attempts whose end nobody
// knows, and those that were never made, say nothing of the target; but while its circuit is open, one in flight is the one that tries it.
func circuit(ctx context.Context, q queryer, target string) (time.Time, error) {
	var failures int
	var last, trying sql.NullInt64
	err := q.QueryRowContext(ctx, `
		SELECT count(*), max(started_at), (SELECT max(started_at) FROM deliveries WHERE target = $1 AND result = 'in_flight') FROM (
			SELECT result, started_at FROM deliveries
			WHERE target = $1 AND result NOT IN ('in_flight', 'interrupted', 'invalid', 'unsigned')
			ORDER BY started_at DESC, request, attempt DESC LIMIT $2) AS latest
		WHERE result <> 'delivered'`, target, circuitFailures).Scan(&failures, &last, &trying)
	if err != nil {
		return time.Time{}, fmt.Errorf("look up the circuit of %s: %w", target, err)
	}
	if failures < circuitFailures {
		return time.Time{}, nil
	}
	return time.UnixMilli(max(last.Int64, trying.Int64)).Add(circuitPause), nil
}

// claimMargin is how much longer than its target's timeout an attempt may take, with its entries in the ledger.
const claimMargin = 30 * time.Second

// claimEnd is until when an attempt that begins now keeps others away from its request. An instance that dies loses its
// claim by it, and the request is sent again under the same id.
func claimEnd(t Target, now time.Time) time.Time {
	return now.Add(time.Duration(t.Timeout) + claimMargin)
}

// order gives a request and when its next attempt is due, after giving up those that have expired; found is false where it is not
// open. While the circuit of its target is open, it is due when that may be tried again.
func (l *ledger) order(ctx context.Context, request string) (m message, due time.Time, found bool, err error) {
	err = l.update(ctx, func(tx *sql.Tx) error {
		m, due, found = message{}, time.Time{}, false
		if err := endOverdue(ctx, tx, time.Now()); err != nil {
			return err
		}
		var at, opened, expires int64
		err := tx.QueryRowContext(ctx, `
			SELECT id, policy, target, body, next_attempt_at, opened_at, due_at FROM requests WHERE state = 'open' AND id = $1`, request).
			Scan(&m.id, &m.policy, &m.target, &m.body, &at, &opened, &expires)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		found = err == nil
		if err != nil {
			return err
		}
		m.event = eventOf(m.body)
		due, m.opened, m.expires = time.UnixMilli(at), time.UnixMilli(opened), time.UnixMilli(expires)
		until, err := circuit(ctx, tx, m.target)
		if until.After(due) {
			due = until
		}
		return err
	})
	if err != nil {
		return message{}, time.Time{}, false, fmt.Errorf("look up request %s: %w", request, err)
	}
	return m, due, found, nil
}

// begin claims a request that is due, writes that an attempt is about to be made, and gives its number, from 1. It gives
// 0 where the request is no longer open, another instance has claimed it, or the circuit of the target is open.
func (l *ledger) begin(ctx context.Context, request string, t Target) (attempt int, err error) {
	err = l.update(ctx, func(tx *sql.Tx) error {
		now := time.Now()
		attempt = 0
		until, err := circuit(ctx, tx, t.Name) // again, as another instance may have just begun to try the target
		if err != nil || until.After(now) {
			return err
		}
		err = tx.QueryRowContext(ctx, `
			UPDATE requests SET attempts = attempts + 1, next_attempt_at = $1
			WHERE id = $2 AND state = 'open' AND next_attempt_at <= $3 RETURNING attempts`,
			claimEnd(t, now).UnixMilli(), request, now.UnixMilli()).Scan(&attempt)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := interrupt(ctx, tx, now, `request = $3`, request); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `
			INSERT INTO deliveries (request, attempt, target, started_at, result, status, error, response) VALUES ($1, $2, $3, $4, $5, 0, '', '')`,
			request, attempt, t.Name, now.UnixMilli(), ResultInFlight)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("begin delivery of %s: %w", request, err)
	}
	return attempt, nil
}

// interrupt gives up hope for the results of attempts in flight that the condition selects, whose arguments begin with
// $3. A result that comes after all takes its place.
func interrupt(ctx context.Context, tx *sql.Tx, now time.Time, condition string, args ...any) error {
	_, err := tx.ExecContext(ctx, `UPDATE deliveries SET finished_at = $1, result = $2 WHERE finished_at IS NULL AND `+condition,
		append([]any{now.UnixMilli(), ResultInterrupted}, args...)...)
	if err != nil {
		return fmt.Errorf("complete interrupted deliveries: %w", err)
	}
	return nil
}

// finish writes what became of an attempt and what follows from it. A failure says nothing of a request that has been claimed anew.
func (l *ledger) finish(ctx context.Context, t Target, request string, attempt int, o outcome, then step, now time.Time) error {
	err := l.update(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `
			UPDATE deliveries SET finished_at = $1, result = $2, status = $3, error = $4, response = $5 WHERE request = $6 AND attempt = $7`,
			now.UnixMilli(), o.result, o.status, plain(o.err), plain(o.response), request, attempt)
		if err != nil {
			return err
		}
		switch {
		case then.disable:
			return disable(ctx, tx, now, t, request)
		case then.state == StateDelivered:
			return arrive(ctx, tx, t, request, now)
		case then.state == StateDeadLetter:
			return settle(ctx, tx, now, StateDeadLetter, then.reason, `id = $4 AND state = 'open' AND attempts = $5`, request, attempt)
		}
		_, err = tx.ExecContext(ctx, `UPDATE requests SET next_attempt_at = $1 WHERE id = $2 AND attempts = $3`,
			ceilMilli(then.retry), request, attempt)
		return err
	})
	if err != nil {
		return fmt.Errorf("keep the result of delivering %s: %w", request, err)
	}
	return nil
}

// arrive says that the receiver has the order, even if it was given up meanwhile. Where the policy has another unfinished
// request by then, the old one stays closed.
func arrive(ctx context.Context, tx *sql.Tx, t Target, request string, now time.Time) error {
	state, err := stateOf(ctx, tx, request)
	if err != nil || state != StateOpen && !givenUp(state) {
		return err // nil where the job has told more already
	}
	m := move{
		id: request, from: []State{state}, to: StateDelivered, by: t.Name, at: now, due: now.Add(time.Duration(t.CompletesWithin)),
	}
	if givenUp(state) {
		var others int
		err := tx.QueryRowContext(ctx, `
			SELECT count(*) FROM requests WHERE closed_at IS NULL AND policy = (SELECT policy FROM requests WHERE id = $1)`, request).Scan(&others)
		if err != nil {
			return err
		}
		if others > 0 {
			return remember(ctx, tx, request, StateChange{At: now, State: state, By: t.Name, Reason: "it was delivered after all"})
		}
	}
	_, err = m.apply(ctx, tx)
	return err
}

// givenUp reports whether an order in that state may be on its way all the same.
func givenUp(s State) bool { return s == StateDeadLetter || s == StateWithdrawn || s == StateRejected }

// ceilMilli rounds up, or a retry could come before the receiver's Retry-After is over.
func ceilMilli(t time.Time) int64 { return t.Add(time.Millisecond - 1).UnixMilli() }

// resume completes what crashes left: attempts that nobody can be making any more are interrupted. Requests that have
// not left, of targets that are gone from the configuration, are given up, or they would block their policies until they expire.
func (l *ledger) resume(ctx context.Context, cfg Config) error {
	return l.update(ctx, func(tx *sql.Tx) error {
		now := time.Now()
		over := now.Add(-time.Duration(maxTimeout) - claimMargin)
		if err := interrupt(ctx, tx, now, `started_at <= $3`, over.UnixMilli()); err != nil {
			return err
		}
		known, args := "''", []any{}
		for i, t := range cfg.Targets {
			known += fmt.Sprintf(", $%d", i+4)
			args = append(args, t.Name)
		}
		return settle(ctx, tx, now, StateDeadLetter, "the target is no longer configured", `state IN ('open', 'awaiting_approval') AND target NOT IN (`+known+`)`, args...)
	})
}
