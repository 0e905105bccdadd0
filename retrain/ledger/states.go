package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// State is the state of a request.
type State string

// The states of a request, in the order in which it goes through them. A policy has at most one unfinished request,
// apart from queued ones.
const (
	StateQueued           State = "queued"            // a rollback that waits for the policy's unfinished request
	StateAwaitingApproval State = "awaiting_approval" // a person must approve it before its delivery
	StateOpen             State = "open"              // waits for its delivery
	StateDelivered        State = "delivered"         // the receiver has accepted it
	StateRunning          State = "running"           // the job has begun
	StateVerifying        State = "verifying"         // the telemetry of the new version is compared with the contract

	// The final ones.
	StateMet          State = "met"          // the new version shows what the contract expects
	StateMissed       State = "missed"       // the new version does not show it
	StateInconclusive State = "inconclusive" // neither was shown in time
	StateFailed       State = "failed"       // the job has failed, or did not end in time
	StateRejected     State = "rejected"     // by a person
	StateExpired      State = "expired"      // not approved in time
	StateDeadLetter   State = "dead_letter"  // not delivered: its time was over, or its target disabled or removed
	StateWithdrawn    State = "withdrawn"    // before its delivery: by a person, or its incident was accepted, its cause turned out to need a person, or a rollback came first or too late
)

// UnfinishedStates returns the states that are not final.
func UnfinishedStates() []State {
	return []State{StateQueued, StateAwaitingApproval, StateOpen, StateDelivered, StateRunning, StateVerifying}
}

func finalStates() []State {
	return []State{
		StateMet, StateMissed, StateInconclusive, StateFailed, StateRejected, StateExpired, StateDeadLetter, StateWithdrawn,
	}
}

// States returns all states, in the order in which a request goes through them.
func States() []State { return slices.Concat(UnfinishedStates(), finalStates()) }

// Final reports whether the request does not change by itself any more.
func (s State) Final() bool { return !slices.Contains(UnfinishedStates(), s) }

// AtTarget reports whether the target of an unfinished request has received it. A job may report before the ledger knows
// of the delivery.
func (s State) AtTarget() bool {
	return s == StateDelivered || s == StateRunning || s == StateVerifying
}

// untrackedNow is whether a request is rejected although its target has received it: it was AtTarget before.
const untrackedNow = `state = 'rejected' AND EXISTS (
	SELECT 1 FROM history h WHERE h.request = requests.id AND h.state IN ('delivered', 'running', 'verifying'))`

// InWords returns the state for people. An untracked request continues at its target, so its words differ.
func (s State) InWords(untracked bool) string {
	if untracked {
		return "no longer tracked"
	}
	return strings.ReplaceAll(string(s), "_", " ")
}

// StateError means that the state of a request does not allow the change.
type StateError struct {
	Request   string
	State     State
	Untracked bool // as that of Request
	To        State
}

func (e *StateError) Error() string {
	return fmt.Sprintf("request %s is %s, so it cannot %s", e.Request, e.State.InWords(e.Untracked), becoming(e.To))
}

// becoming returns, for StateError, what happens to a request that enters a state.
func becoming(s State) string {
	switch s {
	case StateOpen:
		return "be approved or delivered again"
	case StateDelivered:
		return "be delivered"
	case StateRunning:
		return "start"
	case StateVerifying:
		return "succeed"
	case StateFailed:
		return "fail"
	case StateRejected, StateWithdrawn:
		return "be " + s.InWords(false)
	}
	return "become " + s.InWords(false)
}

// ByService is the author of state changes that neither a person nor a job makes.
const ByService = "rewardwatch"

// Move changes the state of one request.
type Move struct {
	Id      string
	From    []State // states in which it may be
	To      State
	By, Why string
	At      time.Time
	Due     time.Time       // when the new state ends by itself; ignored for a final one
	Version string          // made by the job, "" if not new
	Log     string          // last output of the job, "" if not new
	Shown   sql.NullFloat64 // the statistic of the contract over the new version, if it is known
	Once    bool            // already being in the state is an error too
}

// Apply changes the state and records the change. If the request is already in the state, nothing changes, which is an
// error only if Once is set: a repeated call may not have seen the first answer. The other errors are ErrUnknownRequest
// and *StateError.
func (m Move) Apply(ctx context.Context, tx *Tx) (changed bool, err error) {
	state, untracked, err := tx.State(ctx, m.Id)
	if err != nil || state == m.To && !m.Once {
		return false, err
	}
	if !slices.Contains(m.From, state) {
		return false, &StateError{Request: m.Id, State: state, Untracked: untracked, To: m.To}
	}
	var closed, due any
	if m.To.Final() {
		closed, due = m.At.UnixMilli(), m.At.UnixMilli()
	} else {
		due = m.Due.UnixMilli()
	}
	_, err = tx.ExecContext(ctx, `
		UPDATE requests SET state = $1, reason = $2, closed_at = $3, due_at = $4, next_attempt_at = $5,
			new_version = CASE WHEN $6 = '' THEN new_version ELSE $6 END, log = CASE WHEN $7 = '' THEN log ELSE $7 END,
			observed = coalesce($8, observed), extended_at = NULL
		WHERE id = $9`,
		m.To, Plain(m.Why), closed, due, m.At.UnixMilli(), Plain(m.Version), Plain(m.Log), m.Shown, m.Id)
	if err != nil {
		return false, fmt.Errorf("set request %s to %s: %w", m.Id, m.To, err)
	}
	return true, remember(ctx, tx, m.Id, StateChange{At: m.At, State: m.To, By: m.By, Reason: m.Why})
}

// State returns the state of a request, and whether it is untracked. The error is ErrUnknownRequest if there is none.
func (tx *Tx) State(ctx context.Context, id string) (state State, untracked bool, err error) {
	err = tx.QueryRowContext(ctx, `SELECT state, `+untrackedNow+` FROM requests WHERE id = $1`, Plain(id)).Scan(&state, &untracked)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, ErrUnknownRequest
	}
	return state, untracked, err
}

// Entries returns the number of entries in the history of a request.
func (tx *Tx) Entries(ctx context.Context, id string) (n int, err error) {
	if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM history WHERE request = $1`, Plain(id)).Scan(&n); err != nil {
		return 0, fmt.Errorf("count the history: %w", err)
	}
	return n, nil
}

// remember adds a line to the history of a request.
func remember(ctx context.Context, tx *Tx, id string, c StateChange) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO history (request, at, state, by_whom, reason) VALUES ($1, $2, $3, $4, $5)`,
		id, c.At.UnixMilli(), c.State, Plain(c.By), Plain(c.Reason))
	if err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	return nil
}

// settle moves the requests that the condition selects to a final state and records that in their history. The
// condition's arguments begin with $4.
func settle(ctx context.Context, tx *Tx, at time.Time, to State, reason, condition string, args ...any) error {
	args = append([]any{at.UnixMilli(), to, reason}, args...)
	_, err := tx.ExecContext(ctx,
		`INSERT INTO history (request, at, state, reason, by_whom) SELECT id, $1, $2, $3, '`+ByService+`' FROM requests WHERE `+condition, args...)
	if err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	_, err = tx.ExecContext(ctx, `UPDATE requests SET state = $2, reason = $3, closed_at = $1 WHERE `+condition, args...)
	if err != nil {
		return fmt.Errorf("set requests to %s: %w", to, err)
	}
	return nil
}

// Withdraw ends a request that has not been delivered.
func (tx *Tx) Withdraw(ctx context.Context, id, why string, now time.Time) error {
	return settle(ctx, tx, now, StateWithdrawn, Plain(why), `id = $4 AND state IN ('awaiting_approval', 'open')`, id)
}

// WithdrawWaiting ends the request of a policy that waits for approval, if there is one.
func (tx *Tx) WithdrawWaiting(ctx context.Context, policy, why string, now time.Time) error {
	return settle(ctx, tx, now, StateWithdrawn, why, `state = 'awaiting_approval' AND policy = $4`, policy)
}

// anyOverdue reports whether any state is past its time.
func anyOverdue(ctx context.Context, q queryer, now time.Time) (found bool, err error) {
	err = q.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM requests WHERE closed_at IS NULL AND due_at <= $1)`, now.UnixMilli()).Scan(&found)
	if err != nil {
		return false, fmt.Errorf("find overdue requests: %w", err)
	}
	return found, nil
}

// AnyOverdue reports whether any state is past its time.
func (l *Ledger) AnyOverdue(ctx context.Context, now time.Time) (bool, error) {
	return anyOverdue(ctx, l.db, now)
}

// EndOverdue ends the states that are past their time. After a start, the telemetry of a new version can arrive
// late, because it is read from where the last instance stopped.
func (tx *Tx) EndOverdue(ctx context.Context, now time.Time) error {
	if found, err := anyOverdue(ctx, tx, now); err != nil || !found {
		return err
	}
	for _, end := range []struct {
		from, to State
		why      string
	}{
		{StateQueued, StateExpired, "another request for the policy was unfinished for too long"},
		{StateAwaitingApproval, StateExpired, "it was not approved in time"},
		{StateOpen, StateDeadLetter, "expired"},
		{StateDelivered, StateInconclusive, "neither a job report nor a new version arrived in time"},
		{StateRunning, StateFailed, "the job did not finish in time"},
		{StateVerifying, StateInconclusive, "not enough telemetry of the new version arrived in time"},
	} {
		if end.from == StateVerifying && now.Before(tx.started.Add(VerdictMargin)) {
			continue
		}
		if err := settle(ctx, tx, now, end.to, end.why, `state = $4 AND closed_at IS NULL AND due_at <= $5`, end.from, now.UnixMilli()); err != nil {
			return err
		}
	}
	return nil
}
