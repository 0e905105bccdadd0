package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/retrain/recipe"
)

// bodyNow is the webhook body of a request, with its drifted data as last cut.
const bodyNow = `coalesce((SELECT cuts.body FROM cuts WHERE cuts.request = requests.id), requests.body)`

// Recut extends the drifted data of an order that waits for a person up to now. An order may wait for a day, and
// when it was opened, the drifted data may have been only a handful of episodes.
func (tx *Tx) Recut(ctx context.Context, id string, inc alerts.Incident, now time.Time) error {
	var body []byte
	if err := tx.QueryRowContext(ctx, `SELECT `+bodyNow+` FROM requests WHERE id = $1`, id).Scan(&body); err != nil {
		return fmt.Errorf("read the contents of request %s: %w", id, err)
	}
	body, changed, err := recipe.CutAgain(body, inc, now)
	if err != nil {
		return fmt.Errorf("update the offsets of %s: %w", id, err)
	}
	if !changed {
		return nil
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO cuts (request, at, body) VALUES ($1, $2, $3) ON CONFLICT (request) DO UPDATE SET at = excluded.at, body = excluded.body`,
		id, now.UnixMilli(), body)
	if err != nil {
		return fmt.Errorf("update the offsets of %s: %w", id, err)
	}
	return nil
}
