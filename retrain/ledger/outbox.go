package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/rewardwatch/rewardwatch/retrain/recipe"
	"github.com/rewardwatch/rewardwatch/retrain/target"
)

// The ledger's part of delivery: which attempts to make, and their outcomes.

// When this many attempts at a target have failed in a row, for any requests, its circuit opens: one request at a
// time tries the target, at this interval, until one succeeds.
const (
	CircuitFailures = 5
	CircuitPause    = time.Minute
)

// circuit returns until when nothing may be sent to a target, the zero time if its circuit is closed. Attempts with
// an unknown end, and those never made, do not count. But while the circuit is open, an attempt in flight counts as
// the one that tries the target.
func circuit(ctx context.Context, q queryer, target string) (time.Time, error) {
	var failures int
	var last, trying sql.NullInt64
	err := q.QueryRowContext(ctx, `
		SELECT count(*), max(started_at), (SELECT max(started_at) FROM deliveries WHERE target = $1 AND result = 'in_flight') FROM (
			SELECT result, started_at FROM deliveries
			WHERE target = $1 AND result NOT IN ('in_flight', 'interrupted', 'invalid', 'unsigned')
			ORDER BY started_at DESC, request, attempt DESC LIMIT $2) AS latest
		WHERE result <> 'delivered'`, target, CircuitFailures).Scan(&failures, &last, &trying)
	if err != nil {
		return time.Time{}, fmt.Errorf("look up the circuit breaker of %s: %w", target, err)
	}
	if failures < CircuitFailures {
		return time.Time{}, nil
	}
	return time.UnixMilli(max(last.Int64, trying.Int64)).Add(CircuitPause), nil
}

// ClaimMargin is how much longer than its target's timeout an attempt may take, including its ledger entries.
const ClaimMargin = 30 * time.Second

// ClaimEnd returns until when an attempt that begins now keeps its request claimed. If its instance dies, the claim
// ends then, and the request is sent again under the same id.
func ClaimEnd(t target.Target, now time.Time) time.Time {
	return now.Add(time.Duration(t.Timeout) + ClaimMargin)
}

// Order returns a request and when to make its next attempt, after giving up expired requests; found is false if the
// request is not open. While the circuit of its target is open, the attempt waits until the target may be tried again.
func (l *Ledger) Order(ctx context.Context, request string) (m target.Message, due time.Time, found bool, err error) {
	err = l.Update(ctx, func(tx *Tx) error {
		m, due, found = target.Message{}, time.Time{}, false
		if err := tx.EndOverdue(ctx, time.Now()); err != nil {
			return err
		}
		var at, opened, expires int64
		err := tx.QueryRowContext(ctx, `
			SELECT id, policy, target, `+bodyNow+`, next_attempt_at, opened_at, due_at FROM requests WHERE state = 'open' AND id = $1`, request).
			Scan(&m.ID, &m.Policy, &m.Target, &m.Body, &at, &opened, &expires)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		found = err == nil
		if err != nil {
			return err
		}
		m.Event = recipe.EventOf(m.Body)
		due, m.Opened, m.Expires = time.UnixMilli(at), time.UnixMilli(opened), time.UnixMilli(expires)
		until, err := circuit(ctx, tx, m.Target)
		if until.After(due) {
			due = until
		}
		return err
	})
	if err != nil {
		return target.Message{}, time.Time{}, false, fmt.Errorf("look up request %s: %w", request, err)
	}
	return m, due, found, nil
}

// Begin claims a request for an attempt, records the attempt, and returns its number, from 1. It returns 0 if the
// request is no longer open, another instance has claimed it, or the circuit of the target is open.
func (l *Ledger) Begin(ctx context.Context, request string, t target.Target) (attempt int, err error) {
	err = l.Update(ctx, func(tx *Tx) error {
		now := time.Now()
		attempt = 0
		until, err := circuit(ctx, tx, t.Name) // again, because another instance may just have begun to try the target
		if err != nil || until.After(now) {
			return err
		}
		err = tx.QueryRowContext(ctx, `
			UPDATE requests SET attempts = attempts + 1, next_attempt_at = $1
			WHERE id = $2 AND state = 'open' AND next_attempt_at <= $3 RETURNING attempts`,
			ClaimEnd(t, now).UnixMilli(), request, now.UnixMilli()).Scan(&attempt)
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
			request, attempt, t.Name, now.UnixMilli(), target.ResultInFlight)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("start the delivery of %s: %w", request, err)
	}
	return attempt, nil
}

// interrupt marks the attempts in flight that the condition selects as interrupted. The condition's arguments begin
// with $3. A result that arrives later replaces the mark.
func interrupt(ctx context.Context, tx *Tx, now time.Time, condition string, args ...any) error {
	_, err := tx.ExecContext(ctx, `UPDATE deliveries SET finished_at = $1, result = $2 WHERE finished_at IS NULL AND `+condition,
		append([]any{now.UnixMilli(), target.ResultInterrupted}, args...)...)
	if err != nil {
		return fmt.Errorf("complete interrupted deliveries: %w", err)
	}
	return nil
}

// Step is what follows from an attempt.
type Step struct {
	State   State     // StateOpen: send again at Retry
	Retry   time.Time // valid if the request stays open
	Reason  string
	Disable bool // the target wants no more deliveries
}

// Finish records the result of an attempt and what follows from it. A failure does not affect a request that has been
// claimed again.
func (l *Ledger) Finish(ctx context.Context, t target.Target, request string, attempt int, o target.Attempt, then Step, now time.Time) error {
	err := l.Update(ctx, func(tx *Tx) error {
		_, err := tx.ExecContext(ctx, `
			UPDATE deliveries SET finished_at = $1, result = $2, status = $3, error = $4, response = $5 WHERE request = $6 AND attempt = $7`,
			now.UnixMilli(), o.Result, o.Status, Plain(o.Err), Plain(o.Response), request, attempt)
		if err != nil {
			return err
		}
		switch {
		case then.Disable:
			return disable(ctx, tx, now, t, request)
		case then.State == StateDelivered:
			return arrive(ctx, tx, t, request, now)
		case then.State == StateDeadLetter:
			return settle(ctx, tx, now, StateDeadLetter, then.Reason, `id = $4 AND state = 'open' AND attempts = $5`, request, attempt)
		}
		_, err = tx.ExecContext(ctx, `UPDATE requests SET next_attempt_at = $1 WHERE id = $2 AND attempts = $3`,
			ceilMilli(then.Retry), request, attempt)
		return err
	})
	if err != nil {
		return fmt.Errorf("store the result of delivering %s: %w", request, err)
	}
	return nil
}

// arrive records that the receiver has the order, even if it was given up meanwhile. A request that was given up
// stays closed if the policy has another unfinished request by then, or if a person rejected it after its job had
// reported.
func arrive(ctx context.Context, tx *Tx, t target.Target, request string, now time.Time) error {
	state, untracked, err := tx.State(ctx, request)
	if err != nil || untracked || state != StateOpen && !givenUp(state) {
		return err // nil if the job has already reported more
	}
	m := Move{
		Id: request, From: []State{state}, To: StateDelivered, By: t.Name, At: now, Due: now.Add(time.Duration(t.CompletesWithin)),
	}
	if givenUp(state) {
		var others int
		err := tx.QueryRowContext(ctx, `
			SELECT count(*) FROM requests WHERE closed_at IS NULL AND policy = (SELECT policy FROM requests WHERE id = $1)`, request).Scan(&others)
		if err != nil {
			return err
		}
		if others > 0 {
			return remember(ctx, tx, request, StateChange{At: now, State: state, By: t.Name, Reason: "it was delivered"})
		}
	}
	_, err = m.Apply(ctx, tx)
	return err
}

// givenUp reports whether an order in that state may have been sent nevertheless.
func givenUp(s State) bool { return s == StateDeadLetter || s == StateWithdrawn || s == StateRejected }

// ceilMilli rounds up: otherwise a retry could come before the receiver's Retry-After ends.
func ceilMilli(t time.Time) int64 { return t.Add(time.Millisecond - 1).UnixMilli() }

// ReportMargin is how long a request at its target waits for a report after a start of the service, even if its
// time has passed meanwhile. A training may have ended while no instance ran, and its result is only known once its
// Job or command has been checked, or its own report has been repeated. Only the first start in a state adds time.
// Otherwise a service that restarts often, or whose instances do, would never end a request whose job is dead.
const ReportMargin = 30 * time.Minute

// Resume cleans up after crashes: it marks attempts that no instance can still be making as interrupted. It gives up
// undelivered requests of targets no longer configured, which would otherwise block their policies until they expire. Those
// at their targets get the time that their reports need, once.
func (l *Ledger) Resume(ctx context.Context, targets []target.Target) error {
	return l.Update(ctx, func(tx *Tx) error {
		now := time.Now()
		if err := hideAddresses(ctx, tx); err != nil {
			return err
		}
		over := now.Add(-time.Duration(target.MaxTimeout) - ClaimMargin)
		if err := interrupt(ctx, tx, now, `started_at <= $3`, over.UnixMilli()); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `
			UPDATE requests SET due_at = $1, extended_at = $2
			WHERE closed_at IS NULL AND state IN ('delivered', 'running') AND due_at < $1 AND extended_at IS NULL`,
			now.Add(ReportMargin).UnixMilli(), now.UnixMilli())
		if err != nil {
			return fmt.Errorf("wait for reports: %w", err)
		}
		known, args := "''", []any{}
		for i, t := range targets {
			known += fmt.Sprintf(", $%d", i+4)
			args = append(args, t.Name)
		}
		return settle(ctx, tx, now, StateDeadLetter, "the target is no longer configured", `state IN ('open', 'awaiting_approval') AND target NOT IN (`+known+`)`, args...)
	})
}
