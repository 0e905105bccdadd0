package retrain

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/prometheus/common/model"
)

// BreakerConfig says when triggers stop ordering retrainings of a policy, as they do not help. People still can.
type BreakerConfig struct {
	After int            `yaml:"after"` // so many retrainings of the policy in a row that ended missed or failed; 0 for no breaker
	Pause model.Duration `yaml:"pause"` // after the last of them, for how long triggers order none
}

func defaultBreaker() BreakerConfig {
	return BreakerConfig{After: 2, Pause: model.Duration(7 * 24 * time.Hour)}
}

func (c BreakerConfig) check(report func(path, msg string)) {
	if c.After < 0 {
		report("breaker.after", "must not be negative; 0 switches the breaker off")
	}
	if c.Pause <= 0 && c.After > 0 {
		report("breaker.pause", "must be greater than 0")
	}
}

// trippedUntil says, of the policies whose breaker has opened and was not closed by a retraining that was met, until when it is
// open, which may be over; of one policy only where that is not "". A retraining of which nothing was seen, or which never left, says
// nothing.
func (c BreakerConfig) trippedUntil(ctx context.Context, q rowsQueryer, policy string) (map[string]time.Time, error) {
	out := map[string]time.Time{}
	if c.After == 0 {
		return out, nil
	}
	rows, err := q.QueryContext(ctx, `
		SELECT policy, max(closed_at) FROM (
			SELECT policy, state, closed_at, row_number() OVER (PARTITION BY policy ORDER BY closed_at DESC, opened_at DESC) AS nth FROM requests
			WHERE kind = 'retrain' AND state IN ('met', 'missed', 'failed') AND ($1 = '' OR policy = $1)
		) AS ended WHERE nth <= $2 GROUP BY policy
		HAVING count(*) = $2 AND sum(CASE WHEN state = 'met' THEN 1 ELSE 0 END) = 0`, policy, c.After)
	if err != nil {
		return nil, fmt.Errorf("read how retrainings ended: %w", err)
	}
	defer func() { _ = rows.Close() }() // its error is that of rows.Err
	for rows.Next() {
		var of string
		var last int64
		if err := rows.Scan(&of, &last); err != nil {
			return nil, fmt.Errorf("read how retrainings ended: %w", err)
		}
		out[of] = time.UnixMilli(last).Add(time.Duration(c.Pause))
	}
	return out, rows.Err()
}

// rowsQueryer is a transaction or the database.
type rowsQueryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// decide gives BreakerOpen where triggers must not order a retraining of the policy now, and no reason else.
func (c BreakerConfig) decide(ctx context.Context, tx *sql.Tx, policy string, now time.Time) (Decision, error) {
	tripped, err := c.trippedUntil(ctx, tx, policy)
	if err != nil || !now.Before(tripped[policy]) {
		return Decision{}, err
	}
	return Decision{Reason: BreakerOpen, Detail: fmt.Sprintf("the last %d retrainings missed or failed; until %s, or until one that a person asks for is met",
		c.After, tripped[policy].UTC().Format(time.RFC3339))}, nil
}
