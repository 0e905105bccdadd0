package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/rewardwatch/rewardwatch/retrain/target"
)

// Pair is the key of a count: a policy or a target, and a second name or "".
type Pair [2]string

// count reads rows of two names and a number, for the metrics.
func (l *Ledger) count(ctx context.Context, query string) (map[Pair]int64, error) {
	rows, err := l.scrapes.QueryContext(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("count requests in the ledger: %w", err)
	}
	defer func() { _ = rows.Close() }() // rows.Err returns its error
	counts := map[Pair]int64{}
	for rows.Next() {
		var k Pair
		var n int64
		if err := rows.Scan(&k[0], &k[1], &n); err != nil {
			return nil, fmt.Errorf("count requests in the ledger: %w", err)
		}
		counts[k] = n
	}
	return counts, rows.Err()
}

// CountRequests counts the requests by policy and state.
func (l *Ledger) CountRequests(ctx context.Context) (map[Pair]int64, error) {
	return l.count(ctx, `SELECT policy, state, count(*) FROM requests GROUP BY policy, state`)
}

// CountRetrainings counts the retrainings by policy and state, and adds up the milliseconds taken by those that have
// ended.
func (l *Ledger) CountRetrainings(ctx context.Context) (counts, took map[Pair]int64, err error) {
	const of = ` FROM requests WHERE kind = 'retrain' GROUP BY policy, state`
	if counts, err = l.count(ctx, `SELECT policy, state, count(*)`+of); err != nil {
		return nil, nil, err
	}
	took, err = l.count(ctx, `SELECT policy, state, CAST(coalesce(sum(closed_at - opened_at), 0) AS BIGINT)`+of)
	return counts, took, err
}

// LastOpenings returns when each trigger last opened a request, in Unix milliseconds by policy and trigger.
func (l *Ledger) LastOpenings(ctx context.Context) (map[Pair]int64, error) {
	return l.count(ctx, `SELECT policy, trigger_key, max(opened_at) FROM requests GROUP BY policy, trigger_key`)
}

// CountDeadLetters counts the requests that are currently given up, by target.
func (l *Ledger) CountDeadLetters(ctx context.Context) (map[Pair]int64, error) {
	return l.count(ctx, `SELECT target, '', count(*) FROM requests WHERE state = 'dead_letter' GROUP BY target`)
}

// CountRetrying counts the requests that at least one attempt has failed to deliver and that will be tried again, by
// target.
func (l *Ledger) CountRetrying(ctx context.Context) (map[Pair]int64, error) {
	return l.count(ctx, `SELECT target, '', count(*) FROM requests WHERE state = 'open' AND EXISTS
		(SELECT 1 FROM deliveries d WHERE d.request = requests.id AND d.finished_at IS NOT NULL) GROUP BY target`)
}

// CountGivenUp counts how often requests were given up, by target. It counts in the history, which only grows.
func (l *Ledger) CountGivenUp(ctx context.Context) (map[Pair]int64, error) {
	return l.count(ctx, `SELECT r.target, '', count(*) FROM history h JOIN requests r ON r.id = h.request
		WHERE h.state = 'dead_letter' GROUP BY r.target`)
}

// Expected returns all retrainings from their delivery to their outcome, by policy.
func (l *Ledger) Expected(ctx context.Context) (map[string]Verification, error) {
	return expecting(ctx, l.scrapes)
}

// Failing is Tx.Failing for all policies.
func (l *Ledger) Failing(ctx context.Context, times int) (map[string]time.Time, error) {
	return failing(ctx, l.scrapes, times, "")
}

// IsDisabled is Tx.IsDisabled without a transaction.
func (l *Ledger) IsDisabled(ctx context.Context, t target.Target) (bool, error) {
	return isDisabled(ctx, l.scrapes, t)
}

// Circuit returns until when nothing may be sent to a target, the zero time if its circuit is closed.
func (l *Ledger) Circuit(ctx context.Context, target string) (time.Time, error) {
	return circuit(ctx, l.scrapes, target)
}
