package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/rewardwatch/rewardwatch/retrain/recipe"
)

// VerdictMargin is how long a request still waits for its verdict after the time of its contract, because units in
// transit may decide it.
const VerdictMargin = time.Hour

// Verification is a delivered retraining whose outcome is awaited.
type Verification struct {
	Request  string
	Policy   string
	Group    map[string]string // whose units decide; empty for the units of all groups
	Version  string            // policy_version whose telemetry decides, "" if the job has not reported yet
	Reported bool              // whether only its job reports the version, which need not be a new one
	Ordered  []string          // policy_versions named in the order, the last live one last
	Expected recipe.Expected
	Since    time.Time // when it entered its current state
	Due      time.Time // when the units must have arrived; zero without a version

	state State
}

// Awaited returns the retrainings whose outcome is awaited, by policy. A job that has reported its start is left alone
// until it reports its end. A ledger found to be broken is suspended.
func (l *Ledger) Awaited(ctx context.Context) (map[string]Verification, error) {
	all, err := expecting(ctx, l.db)
	l.Noticed(err)
	maps.DeleteFunc(all, func(_ string, v Verification) bool { return v.state == StateRunning })
	return all, err
}

// Shown is the last retraining of a policy that was delivered, and what the telemetry has shown of it.
type Shown struct {
	Request, Policy string
	State           State
	Observed        sql.NullFloat64 // the statistic of the contract, if its outcome is known and it was measured
}

// LastDelivered returns the last retraining of each policy among those that were delivered.
func (l *Ledger) LastDelivered(ctx context.Context) ([]Shown, error) {
	const delivered = ` kind = 'retrain' AND state IN ('delivered', 'running', 'verifying', 'met', 'missed', 'inconclusive', 'failed')`
	return list(ctx, l.scrapes, "the last retrainings", func(rows *sql.Rows) (s Shown, err error) {
		return s, rows.Scan(&s.Request, &s.Policy, &s.State, &s.Observed)
	}, `SELECT id, policy, state, observed FROM requests JOIN
		(SELECT policy AS of_policy, max(opened_at) AS newest_at FROM requests WHERE`+delivered+` GROUP BY policy) AS newest
		ON policy = of_policy AND opened_at = newest_at WHERE`+delivered+` ORDER BY policy, id`)
}

// Entered is a state that the last request of a policy has entered.
type Entered struct {
	Request, Policy string
	Kind            recipe.Kind
	StateChange
}

// LastSteps returns the history of the last request of each policy, oldest first, unless the request ended before since.
func (l *Ledger) LastSteps(ctx context.Context, since time.Time) ([]Entered, error) {
	return list(ctx, l.scrapes, "the last requests", func(rows *sql.Rows) (s Entered, err error) {
		var at int64
		err = rows.Scan(&s.Request, &s.Policy, &s.Kind, &at, &s.State, &s.By)
		s.At = utc(at)
		return s, err
	}, `SELECT r.id, r.policy, r.kind, h.at, h.state, h.by_whom FROM requests r JOIN
		(SELECT policy AS of_policy, max(opened_at) AS newest_at FROM requests GROUP BY policy) AS newest
		ON r.policy = of_policy AND r.opened_at = newest_at JOIN history h ON h.request = r.id
		WHERE r.closed_at IS NULL OR r.closed_at >= $1 ORDER BY r.policy, r.id, h.seq`, since.UnixMilli())
}

// ExpectedOf returns what the contract of a request expects.
func (l *Ledger) ExpectedOf(ctx context.Context, request string) (recipe.Expected, error) {
	var body []byte
	if err := l.scrapes.QueryRowContext(ctx, `SELECT body FROM requests WHERE id = $1`, request).Scan(&body); err != nil {
		return recipe.Expected{}, fmt.Errorf("read the contents of request %s: %w", request, err)
	}
	terms, err := termsOf(request, body)
	return terms.Contract.Expected, err
}

// expecting returns the retrainings that were delivered, are running or are being verified, by policy.
func expecting(ctx context.Context, q rowsQueryer) (map[string]Verification, error) {
	found, err := list(ctx, q, "awaited requests", scanVerification, `
		SELECT id, kind, policy, state, new_version, due_at, body, (SELECT max(at) FROM history WHERE request = requests.id) FROM requests
		WHERE closed_at IS NULL AND recipe <> '' AND state IN ('delivered', 'running', 'verifying')`)
	if err != nil {
		return nil, err
	}
	all := make(map[string]Verification, len(found))
	for _, v := range found {
		if v.Expected.Over > 0 { // builds without contracts expected nothing
			all[v.Policy] = v
		}
	}
	return all, nil
}

func scanVerification(rows *sql.Rows) (Verification, error) {
	var v Verification
	var due, since int64
	var body []byte
	var kind Kind
	if err := rows.Scan(&v.Request, &kind, &v.Policy, &v.state, &v.Version, &due, &body, &since); err != nil {
		return Verification{}, err
	}
	terms, err := termsOf(v.Request, body)
	if err != nil {
		return Verification{}, err
	}
	v.Reported = kind != KindRetrain
	v.Group, v.Ordered, v.Expected, v.Since = terms.Group, terms.Before(), terms.Contract.Expected, utc(since)
	if v.state == StateVerifying {
		v.Due = utc(due).Add(-VerdictMargin)
	}
	return v, nil
}

// termsOf reads the terms of an order from the body of its webhook.
func termsOf(request string, body []byte) (recipe.Terms, error) {
	var message struct {
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(body, &message); err != nil {
		return recipe.Terms{}, fmt.Errorf("read the body of %s: %w", request, err)
	}
	terms, err := recipe.ReadTerms(message.Data)
	if err != nil {
		return recipe.Terms{}, fmt.Errorf("read the body of %s: %w", request, err)
	}
	return terms, nil
}
