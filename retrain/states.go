package retrain

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// State is where a request stands.
type State string

// The states of a request, in the order in which it goes through them. A policy has at most one request that is not finished, beside
// those that are queued.
const (
	StateQueued           State = "queued"            // a rollback that waits for the policy's unfinished request to end
	StateAwaitingApproval State = "awaiting_approval" // a person has to approve it before it leaves
	StateOpen             State = "open"              // to be delivered
	StateDelivered        State = "delivered"         // the receiver has accepted it
	StateRunning          State = "running"           // the job has begun
	StateVerifying        State = "verifying"         // there is a new version: its telemetry is held against the contract

	// The final ones.
	StateMet          State = "met"          // the new version shows what the contract expects
	StateMissed       State = "missed"       // it does not
	StateInconclusive State = "inconclusive" // neither was shown in time
	StateFailed       State = "failed"       // the job has failed, or did not end in time
	StateRejected     State = "rejected"     // by a person
	StateExpired      State = "expired"      // nobody approved it in time
	StateDeadLetter   State = "dead_letter"  // could not be delivered: its time was over, its target disabled or gone
	StateWithdrawn    State = "withdrawn"    // before it was delivered: its incident was accepted, its cause turned out to need a person, or a rollback came first or too late
)

func unfinishedStates() []State {
	return []State{StateQueued, StateAwaitingApproval, StateOpen, StateDelivered, StateRunning, StateVerifying}
}

func finalStates() []State {
	return []State{
		StateMet, StateMissed, StateInconclusive, StateFailed, StateRejected, StateExpired, StateDeadLetter, StateWithdrawn,
	}
}

// States gives all states, in the order in which a request goes through them.
func States() []State { return slices.Concat(unfinishedStates(), finalStates()) }

// Final reports whether nothing more comes of the request by itself.
func (s State) Final() bool { return !slices.Contains(unfinishedStates(), s) }

// StateError says that a request is not in a state in which that can be done to it which was asked for.
type StateError struct {
	Request string
	State   State
	To      State
}

func (e *StateError) Error() string {
	return fmt.Sprintf("request %s is %s and cannot become %s", e.Request, words(e.State), words(e.To))
}

func words(s State) string { return strings.ReplaceAll(string(s), "_", " ") }

// byService is who changes the state of a request where no person and no job does.
const byService = "rewardwatch"

// move takes one request to another state.
type move struct {
	id      string
	from    []State // in which it must be
	to      State
	by, why string
	at      time.Time
	due     time.Time // when the new state ends by itself; not read where it is final
	version string    // that the job has made, "" where that is not news
	log     string    // what the job has printed last, "" where that is not news
	once    bool      // being in the state already is an error too
}

// apply changes the state and writes its history. Where the request is in the state already, nothing is changed and that is no
// error unless once is set: who asks a second time has not heard of the first. The other errors are ErrUnknownRequest and *StateError.
func (m move) apply(ctx context.Context, tx *sql.Tx) (changed bool, err error) {
	state, err := stateOf(ctx, tx, m.id)
	if err != nil || state == m.to && !m.once {
		return false, err
	}
	if !slices.Contains(m.from, state) {
		return false, &StateError{Request: m.id, State: state, To: m.to}
	}
	var closed, due any
	if m.to.Final() {
		closed, due = m.at.UnixMilli(), m.at.UnixMilli()
	} else {
		due = m.due.UnixMilli()
	}
	_, err = tx.ExecContext(ctx, `
		UPDATE requests SET state = $1, reason = $2, closed_at = $3, due_at = $4, next_attempt_at = $5,
			new_version = CASE WHEN $6 = '' THEN new_version ELSE $6 END, log = CASE WHEN $7 = '' THEN log ELSE $7 END
		WHERE id = $8`,
		m.to, plain(m.why), closed, due, m.at.UnixMilli(), plain(m.version), plain(m.log), m.id)
	if err != nil {
		return false, fmt.Errorf("set request %s %s: %w", m.id, m.to, err)
	}
	return true, remember(ctx, tx, m.id, StateChange{At: m.at, State: m.to, By: m.by, Reason: m.why})
}

// stateOf fails with ErrUnknownRequest where there is no such request.
func stateOf(ctx context.Context, q queryer, id string) (state State, err error) {
	err = q.QueryRowContext(ctx, `SELECT state FROM requests WHERE id = $1`, plain(id)).Scan(&state)
	if errors.Is(err, sql.ErrNoRows) {
		return "", ErrUnknownRequest
	}
	return state, err
}

// remember adds a line to the history of a request.
func remember(ctx context.Context, tx *sql.Tx, id string, c StateChange) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO history (request, at, state, by_whom, reason) VALUES ($1, $2, $3, $4, $5)`,
		id, c.At.UnixMilli(), c.State, plain(c.By), plain(c.Reason))
	if err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	return nil
}

// settle moves the requests that the condition selects to a final state and writes their history. The arguments of the
// condition begin with $4.
func settle(ctx context.Context, tx *sql.Tx, at time.Time, to State, reason, condition string, args ...any) error {
	args = append([]any{at.UnixMilli(), to, reason}, args...)
	_, err := tx.ExecContext(ctx,
		`INSERT INTO history (request, at, state, reason, by_whom) SELECT id, $1, $2, $3, '`+byService+`' FROM requests WHERE `+condition, args...)
	if err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	_, err = tx.ExecContext(ctx, `UPDATE requests SET state = $2, reason = $3, closed_at = $1 WHERE `+condition, args...)
	if err != nil {
		return fmt.Errorf("set request %s: %w", to, err)
	}
	return nil
}

// anyOverdue reports whether there are states whose time is over.
func anyOverdue(ctx context.Context, q queryer, now time.Time) (found bool, err error) {
	err = q.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM requests WHERE closed_at IS NULL AND due_at <= $1)`, now.UnixMilli()).Scan(&found)
	if err != nil {
		return false, fmt.Errorf("look for overdue requests: %w", err)
	}
	return found, nil
}

// endOverdue ends the states whose time is over.
func endOverdue(ctx context.Context, tx *sql.Tx, now time.Time) error {
	if found, err := anyOverdue(ctx, tx, now); err != nil || !found {
		return err
	}
	for _, end := range []struct {
		from, to State
		why      string
	}{
		{StateQueued, StateExpired, "the policy had another unfinished request for too long"},
		{StateAwaitingApproval, StateExpired, "nobody approved it in time"},
		{StateOpen, StateDeadLetter, "expired"},
		{StateDelivered, StateInconclusive, "nothing was heard of the job, and no new version was seen"},
		{StateRunning, StateFailed, "the job did not end in time"},
		{StateVerifying, StateInconclusive, "too little was seen of the new version in time"},
	} {
		if err := settle(ctx, tx, now, end.to, end.why, `state = $4 AND closed_at IS NULL AND due_at <= $5`, end.from, now.UnixMilli()); err != nil {
			return err
		}
	}
	return nil
}
