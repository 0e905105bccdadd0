package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/rewardwatch/rewardwatch/retrain/recipe"
	"github.com/rewardwatch/rewardwatch/retrain/target"
)

// Kind is what a request orders.
type Kind string

// The kinds of requests.
const (
	KindRetrain  = Kind(recipe.Retrain)
	KindRollback = Kind(recipe.RollBack) // to the version before a retraining, or as a recipe orders
)

// OriginKind is the kind of a request's origin.
type OriginKind string

// The kinds of origins.
const (
	OriginIncident OriginKind = "incident"
	OriginSchedule OriginKind = "schedule"
	OriginPerson   OriginKind = "person"
	OriginOutcome  OriginKind = "outcome" // of a retraining that made things worse
)

// Request is an order to retrain, to roll back, or of another kind of recipe.
type Request struct {
	ID          string          `json:"id"`
	Kind        Kind            `json:"kind"`
	OriginKind  OriginKind      `json:"origin_kind"`
	Origin      string          `json:"origin"`           // the id of the incident, or another origin
	Parent      string          `json:"parent,omitempty"` // the policy's previous request
	Policy      string          `json:"policy"`
	Trigger     string          `json:"trigger"`
	Recipe      string          `json:"recipe"` // "" if a build without recipes opened it
	Target      string          `json:"target"`
	State       State           `json:"state"`
	Untracked   bool            `json:"untracked,omitempty"` // rejected after its target had received it: the job may still run
	Reason      string          `json:"reason"`              // why it is in that state, "" if the state says so
	NewVersion  string          `json:"new_version,omitempty"`
	Log         string          `json:"log,omitempty"` // the end of the job's output
	Attempts    int             `json:"attempts"`
	OpenedAt    time.Time       `json:"opened_at"`
	DueAt       time.Time       `json:"due_at,omitzero"`       // when its state ends by itself; zero for a final state
	NextAttempt time.Time       `json:"next_attempt,omitzero"` // zero unless open
	ClosedAt    time.Time       `json:"closed_at,omitzero"`    // zero while it is unfinished
	Order       json.RawMessage `json:"order"`                 // the webhook's data
}

// Delivery is one attempt to deliver a request.
type Delivery struct {
	Request    string        `json:"request"`
	Attempt    int           `json:"attempt"` // from 1
	Target     string        `json:"target"`
	StartedAt  time.Time     `json:"started_at"`
	FinishedAt time.Time     `json:"finished_at,omitzero"` // zero while in flight
	Result     target.Result `json:"result"`
	Status     int           `json:"status,omitempty"` // HTTP status, 0 without an answer
	Error      string        `json:"error,omitempty"`
	Response   string        `json:"response,omitempty"` // beginning of the answer's body
}

// Recorded is a decision in the ledger: the first of its reason for its incident.
type Recorded struct {
	Incident string    `json:"incident"`
	Policy   string    `json:"policy"`
	Reason   Reason    `json:"reason"`
	At       time.Time `json:"at"`
	Request  string    `json:"request,omitempty"`
	Detail   string    `json:"detail,omitempty"`
}

// StateChange is one line of a request's history.
type StateChange struct {
	At     time.Time `json:"at"`
	State  State     `json:"state"`
	By     string    `json:"by,omitempty"` // "" if written by an earlier build
	Reason string    `json:"reason,omitempty"`
}

// Reader reads the ledger for people, without delaying judgements: it has its own, read-only connections.
type Reader struct {
	reads   *sql.DB
	matches string // condition that a request's text contains the words of ?
	rest    *suspension
}

// Requests returns the newest requests, at most limit.
func (r *Reader) Requests(ctx context.Context, limit int) ([]Request, error) {
	return ask(ctx, r, "requests", scanRequest, selectRequests+` ORDER BY opened_at DESC, id LIMIT $1`, limit)
}

// Unfinished returns the requests that are not in a final state, at most limit: first those that wait for a person, then
// those whose delivery is repeated, then the newest.
func (r *Reader) Unfinished(ctx context.Context, limit int) ([]Request, error) {
	return ask(ctx, r, "requests", scanRequest, selectRequests+`
		WHERE closed_at IS NULL
		ORDER BY CASE WHEN state = 'awaiting_approval' THEN 0 WHEN state = 'open' AND attempts > 1 THEN 1 ELSE 2 END, opened_at DESC, id LIMIT $1`, limit)
}

const selectRequests = `
	SELECT id, kind, origin_kind, origin, parent, policy, trigger_key, recipe, target, state, reason, new_version, log, attempts,
		opened_at, due_at, next_attempt_at, closed_at, ` + bodyNow + `, ` + untrackedNow + `
	FROM requests`

// ErrUnknownRequest means that the ledger has no request with an id.
var ErrUnknownRequest = errors.New("request not found")

// Request returns a request by its id. The error is ErrUnknownRequest if there is none.
func (r *Reader) Request(ctx context.Context, id string) (Request, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if err := r.Suspended(); err != nil {
		return Request{}, err
	}
	return requestOf(ctx, r.reads, id)
}

// Current is Reader.Request on the writer's connection, for callers that change the request or have just changed it.
func (l *Ledger) Current(ctx context.Context, id string) (Request, error) {
	return requestOf(ctx, l.db, id)
}

// Queued returns the queued rollbacks whose policies no longer have another unfinished request.
func (l *Ledger) Queued(ctx context.Context) ([]Request, error) {
	return list(ctx, l.db, "queued rollbacks", scanRequest, selectRequests+` WHERE state = 'queued' AND NOT EXISTS (
		SELECT 1 FROM requests other WHERE other.policy = requests.policy AND other.closed_at IS NULL AND other.state <> 'queued') ORDER BY opened_at, id`)
}

// Underway returns the targets of the requests that were delivered or are running, by request. It waits while the ledger
// is unavailable.
func (l *Ledger) Underway(ctx context.Context) (targets map[string]string, err error) {
	targets = map[string]string{}
	return targets, l.Patiently(ctx, func() error {
		rows, err := list(ctx, l.db, "the requests at their targets", func(rows *sql.Rows) (p Pair, err error) {
			return p, rows.Scan(&p[0], &p[1])
		}, `SELECT id, target FROM requests WHERE closed_at IS NULL AND state IN ('delivered', 'running')`)
		for _, row := range rows {
			targets[row[0]] = row[1]
		}
		return err
	})
}

func requestOf(ctx context.Context, q rowsQueryer, id string) (Request, error) {
	found, err := list(ctx, q, "requests", scanRequest, selectRequests+` WHERE id = $1`, Plain(id))
	if err != nil {
		return Request{}, err
	}
	if len(found) == 0 {
		return Request{}, ErrUnknownRequest
	}
	return found[0], nil
}

// Deliveries returns the newest attempts, at most limit. A request that is not "" restricts them to that one.
func (r *Reader) Deliveries(ctx context.Context, request string, limit int) ([]Delivery, error) {
	return ask(ctx, r, "deliveries", scanDelivery, `
		SELECT request, attempt, target, started_at, finished_at, result, status, error, response
		FROM deliveries WHERE $1 = '' OR request = $1 ORDER BY started_at DESC, request, attempt DESC LIMIT $2`, request, limit)
}

// Decisions returns the newest decisions, at most limit. An incident that is not "" restricts them to that one.
func (r *Reader) Decisions(ctx context.Context, incident string, limit int) ([]Recorded, error) {
	return ask(ctx, r, "decisions", scanDecision, `
		SELECT incident, policy, reason, at, request, detail
		FROM decisions WHERE $1 = '' OR incident = $1 ORDER BY at DESC, incident, reason LIMIT $2`, incident, limit)
}

// History returns the states that a request has gone through, oldest first.
func (r *Reader) History(ctx context.Context, request string) ([]StateChange, error) {
	return ask(ctx, r, "history", scanStateChange, `
		SELECT at, state, by_whom, reason FROM history WHERE request = $1 ORDER BY seq`, request)
}

// ask reads the rows of a query within readTimeout, on the connections for people.
func ask[T any](ctx context.Context, r *Reader, what string, scan func(*sql.Rows) (T, error), query string, args ...any) ([]T, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if err := r.Suspended(); err != nil {
		return nil, err
	}
	return list(ctx, r.reads, what, scan, query, args...)
}

// list reads the rows of a query, never nil.
func list[T any](ctx context.Context, q rowsQueryer, what string, scan func(*sql.Rows) (T, error), query string, args ...any) ([]T, error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", what, err)
	}
	defer func() { _ = rows.Close() }() // rows.Err returns its error
	out := []T{}
	for rows.Next() {
		row, err := scan(rows)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", what, err)
		}
		out = append(out, row)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list %s: %w", what, err)
	}
	return out, nil
}

func scanRequest(rows *sql.Rows) (Request, error) {
	var r Request
	var opened, due, next int64
	var closed sql.NullInt64
	var body []byte
	err := rows.Scan(&r.ID, &r.Kind, &r.OriginKind, &r.Origin, &r.Parent, &r.Policy, &r.Trigger, &r.Recipe, &r.Target, &r.State, &r.Reason,
		&r.NewVersion, &r.Log, &r.Attempts, &opened, &due, &next, &closed, &body, &r.Untracked)
	if err != nil {
		return Request{}, err
	}
	r.OpenedAt, r.ClosedAt = utc(opened), optional(closed)
	if !closed.Valid {
		r.DueAt = utc(due)
	}
	if r.State == StateOpen {
		r.NextAttempt = utc(next)
	}
	var message struct {
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(body, &message); err != nil {
		return Request{}, fmt.Errorf("read the body of %s: %w", r.ID, err)
	}
	r.Order = message.Data
	return r, nil
}

func scanDelivery(rows *sql.Rows) (Delivery, error) {
	var d Delivery
	var started int64
	var finished sql.NullInt64
	err := rows.Scan(&d.Request, &d.Attempt, &d.Target, &started, &finished, &d.Result, &d.Status, &d.Error, &d.Response)
	d.StartedAt, d.FinishedAt = utc(started), optional(finished)
	return d, err
}

func scanDecision(rows *sql.Rows) (Recorded, error) {
	var r Recorded
	var at int64
	err := rows.Scan(&r.Incident, &r.Policy, &r.Reason, &at, &r.Request, &r.Detail)
	r.At = utc(at)
	return r, err
}

func scanStateChange(rows *sql.Rows) (StateChange, error) {
	var c StateChange
	var at int64
	err := rows.Scan(&at, &c.State, &c.By, &c.Reason)
	c.At = utc(at)
	return c, err
}

func utc(milliseconds int64) time.Time { return time.UnixMilli(milliseconds).UTC() }

func optional(milliseconds sql.NullInt64) time.Time {
	if !milliseconds.Valid {
		return time.Time{}
	}
	return utc(milliseconds.Int64)
}
