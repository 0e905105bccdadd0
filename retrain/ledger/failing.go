package ledger

import (
	"context"
	"fmt"
	"time"
)

// Failing returns, for each policy whose last times retrainings all missed or failed, when the last of them ended.
// If policy is not "", it considers only that one. It ignores retrainings without a result and those never
// delivered.
func (tx *Tx) Failing(ctx context.Context, times int, policy string) (map[string]time.Time, error) {
	return failing(ctx, tx, times, policy)
}

func failing(ctx context.Context, q rowsQueryer, times int, policy string) (map[string]time.Time, error) {
	out := map[string]time.Time{}
	if times == 0 {
		return out, nil
	}
	rows, err := q.QueryContext(ctx, `
		SELECT policy, max(closed_at) FROM (
			SELECT policy, state, closed_at, row_number() OVER (PARTITION BY policy ORDER BY closed_at DESC, opened_at DESC) AS nth FROM requests
			WHERE kind = 'retrain' AND state IN ('met', 'missed', 'failed') AND ($1 = '' OR policy = $1)
		) AS ended WHERE nth <= $2 GROUP BY policy
		HAVING count(*) = $2 AND sum(CASE WHEN state = 'met' THEN 1 ELSE 0 END) = 0`, policy, times)
	if err != nil {
		return nil, fmt.Errorf("read the outcomes of retrainings: %w", err)
	}
	defer func() { _ = rows.Close() }() // rows.Err returns its error
	for rows.Next() {
		var of string
		var last int64
		if err := rows.Scan(&of, &last); err != nil {
			return nil, fmt.Errorf("read the outcomes of retrainings: %w", err)
		}
		out[of] = time.UnixMilli(last)
	}
	return out, rows.Err()
}
