package retrain

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// State is where a request stands.
type State string

// The states of a request. One open request a policy; the others are final here.
const (
	StateOpen       State = "open"        // to be delivered
	StateDelivered  State = "delivered"   // the receiver has accepted it
	StateDeadLetter State = "dead_letter" // given up: expired, target disabled or gone
	StateWithdrawn  State = "withdrawn"   // its cause turned out to need a person before it was delivered
)

// Request is an order to retrain.
type Request struct {
	ID          string          `json:"id"`
	Incident    string          `json:"incident"`
	Policy      string          `json:"policy"`
	Trigger     string          `json:"trigger"`
	Recipe      string          `json:"recipe"` // "" where a build before recipes opened it
	Target      string          `json:"target"`
	State       State           `json:"state"`
	Reason      string          `json:"reason"` // why it is in that state, "" where that says it
	Attempts    int             `json:"attempts"`
	OpenedAt    time.Time       `json:"opened_at"`
	ExpiresAt   time.Time       `json:"expires_at"`
	NextAttempt time.Time       `json:"next_attempt,omitzero"` // zero unless open
	ClosedAt    time.Time       `json:"closed_at,omitzero"`    // zero while open
	Order       json.RawMessage `json:"order"`                 // the webhook's data
}

// Delivery is one attempt to deliver a request.
type Delivery struct {
	Request    string    `json:"request"`
	Attempt    int       `json:"attempt"` // from 1
	Target     string    `json:"target"`
	StartedAt  time.Time `json:"started_at"`
	FinishedAt time.Time `json:"finished_at,omitzero"` // zero while in flight
	Result     Result    `json:"result"`
	Status     int       `json:"status,omitempty"` // HTTP status, 0 where no answer came
	Error      string    `json:"error,omitempty"`
	Response   string    `json:"response,omitempty"` // beginning of the answer's body
}

// Recorded is a decision as the ledger keeps it: the first of its reason for its incident.
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
	Reason string    `json:"reason,omitempty"`
}

// Requests gives the newest requests, at most limit.
func (d *Desk) Requests(ctx context.Context, limit int) ([]Request, error) {
	return list(ctx, d.ledger, "requests", scanRequest, selectRequests+` ORDER BY opened_at DESC, id LIMIT $1`, limit)
}

const selectRequests = `
	SELECT id, incident, policy, trigger_key, recipe, target, state, reason, attempts, opened_at, expires_at, next_attempt_at, closed_at, body
	FROM requests`

// ErrUnknownRequest says that the ledger has no request of an id.
var ErrUnknownRequest = errors.New("there is no such request")

// Request gives a request by its id, ErrUnknownRequest where there is none.
func (d *Desk) Request(ctx context.Context, id string) (Request, error) {
	found, err := list(ctx, d.ledger, "requests", scanRequest, selectRequests+` WHERE id = $1`, plain(id))
	if err != nil {
		return Request{}, err
	}
	if len(found) == 0 {
		return Request{}, ErrUnknownRequest
	}
	return found[0], nil
}

// Deliveries gives the newest attempts, at most limit; of one request only where that is not "".
func (d *Desk) Deliveries(ctx context.Context, request string, limit int) ([]Delivery, error) {
	return list(ctx, d.ledger, "deliveries", scanDelivery, `
		SELECT request, attempt, target, started_at, finished_at, result, status, error, response
		FROM deliveries WHERE $1 = '' OR request = $1 ORDER BY started_at DESC, request, attempt DESC LIMIT $2`, request, limit)
}

// Decisions gives the newest decisions, at most limit; of one incident only where that is not "".
func (d *Desk) Decisions(ctx context.Context, incident string, limit int) ([]Recorded, error) {
	return list(ctx, d.ledger, "decisions", scanDecision, `
		SELECT incident, policy, reason, at, request, detail
		FROM decisions WHERE $1 = '' OR incident = $1 ORDER BY at DESC, incident, reason LIMIT $2`, incident, limit)
}

// History gives the states that a request has gone through, the first one first.
func (d *Desk) History(ctx context.Context, request string) ([]StateChange, error) {
	return list(ctx, d.ledger, "history", scanStateChange, `
		SELECT at, state, reason FROM history WHERE request = $1 ORDER BY seq`, request)
}

// list reads the rows of a query, never nil.
func list[T any](ctx context.Context, l *ledger, what string, scan func(*sql.Rows) (T, error), query string, args ...any) ([]T, error) {
	rows, err := l.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", what, err)
	}
	defer func() { _ = rows.Close() }() // its error is that of rows.Err
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
	var opened, expires, next int64
	var closed sql.NullInt64
	var body []byte
	err := rows.Scan(&r.ID, &r.Incident, &r.Policy, &r.Trigger, &r.Recipe, &r.Target, &r.State, &r.Reason, &r.Attempts, &opened, &expires, &next, &closed, &body)
	if err != nil {
		return Request{}, err
	}
	r.OpenedAt, r.ExpiresAt, r.ClosedAt = utc(opened), utc(expires), optional(closed)
	if r.State == StateOpen {
		r.NextAttempt = utc(next)
	}
	var message struct {
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(body, &message); err != nil {
		return Request{}, fmt.Errorf("body of %s: %w", r.ID, err)
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
	err := rows.Scan(&at, &c.State, &c.Reason)
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
