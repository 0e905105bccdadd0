package ledger

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/rewardwatch/rewardwatch/retrain/target"
)

// Tx is a transaction that writes. What it reads remains true until it commits.
type Tx struct {
	*sql.Tx
	started   time.Time               // of the instance
	committed []func(context.Context) // run once it has committed
}

// queryer is a transaction or the database.
type queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// rowsQueryer is a transaction or the database.
type rowsQueryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Entry is a new request for the ledger to deliver.
type Entry struct {
	Id, Origin, Policy, TriggerKey, Recipe, Target string
	Kind                                           Kind
	OriginKind                                     OriginKind
	State                                          State
	By, Why                                        string // who asks for it, and why
	Body                                           []byte
	Opened, Due                                    time.Time
}

// Insert opens a request, as a child of the policy's last one. The schema refuses a second request of an origin, and a
// second unfinished one of a policy unless it is queued.
func (tx *Tx) Insert(ctx context.Context, e Entry) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO requests (id, kind, origin_kind, origin, parent, policy, trigger_key, recipe, target, state, reason, body, attempts,
			opened_at, due_at, next_attempt_at)
		VALUES ($1, $2, $3, $4, coalesce((SELECT id FROM requests WHERE policy = $5 ORDER BY opened_at DESC, id LIMIT 1), ''),
			$5, $6, $7, $8, $9, '', $10, 0, $11, $12, $11)`,
		e.Id, e.Kind, e.OriginKind, e.Origin, e.Policy, e.TriggerKey, e.Recipe, e.Target, e.State, e.Body,
		e.Opened.UnixMilli(), e.Due.UnixMilli())
	if err != nil {
		return fmt.Errorf("insert request %s: %w", e.Id, err)
	}
	return remember(ctx, tx, e.Id, StateChange{At: e.Opened, State: e.State, By: cmp.Or(e.By, ByService), Reason: e.Why})
}

// disable records that a target wants no more deliveries, and gives up all open requests for it.
func disable(ctx context.Context, tx *Tx, now time.Time, t target.Target, request string) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO disabled_targets (target, url, at, request) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`,
		t.Name, recognised(t.Address()), now.UnixMilli(), request)
	if err != nil {
		return fmt.Errorf("disable target %s: %w", t.Name, err)
	}
	return settle(ctx, tx, now, StateDeadLetter, "the target responded with 410 Gone and is disabled", `state = 'open' AND target = $4`, t.Name)
}

// recognized returns what the ledger keeps of an address, whose path and query may contain secrets: its host, and a
// hash of the whole.
func recognised(address string) string {
	host := ""
	if u, err := url.Parse(address); err == nil {
		host = u.Host
	}
	sum := sha256.Sum256([]byte(address))
	return fmt.Sprintf("sha256:%x %s", sum[:16], host)
}

// hideAddresses removes the addresses that earlier builds have written to the ledger.
func hideAddresses(ctx context.Context, tx *Tx) error {
	whole, err := wholeAddresses(ctx, tx)
	if err != nil {
		return fmt.Errorf("find the addresses of disabled targets: %w", err)
	}
	for _, of := range whole {
		_, err := tx.ExecContext(ctx, `
			INSERT INTO disabled_targets (target, url, at, request)
			SELECT target, $1, at, request FROM disabled_targets WHERE target = $2 AND url = $3 ON CONFLICT DO NOTHING`,
			recognised(of[1]), of[0], of[1])
		if err == nil {
			_, err = tx.ExecContext(ctx, `DELETE FROM disabled_targets WHERE target = $1 AND url = $2`, of[0], of[1])
		}
		if err != nil {
			return fmt.Errorf("mask the address of disabled target %s: %w", of[0], err)
		}
	}
	return nil
}

// wholeAddresses returns the targets with addresses that are stored unhashed.
func wholeAddresses(ctx context.Context, tx *Tx) (out []Pair, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT target, url FROM disabled_targets WHERE url NOT LIKE 'sha256:%'`)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // rows.Err returns its error
	for rows.Next() {
		var p Pair
		if err := rows.Scan(&p[0], &p[1]); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, rows.Err()
}

// IsDisabled reports whether the target has answered 410 Gone under its current address.
func (tx *Tx) IsDisabled(ctx context.Context, t target.Target) (bool, error) {
	return isDisabled(ctx, tx, t)
}

func isDisabled(ctx context.Context, q queryer, t target.Target) (bool, error) {
	var n int
	err := q.QueryRowContext(ctx, `SELECT count(*) FROM disabled_targets WHERE target = $1 AND url IN ($2, $3)`,
		t.Name, recognised(t.Address()), t.Address()).Scan(&n) // an instance of an earlier build may store the address itself
	if err != nil {
		return false, fmt.Errorf("look up target %s: %w", t.Name, err)
	}
	return n > 0, nil
}

// OfOrigin returns the request with an origin, which is an incident, a slot of a schedule, or a person's request.
func (tx *Tx) OfOrigin(ctx context.Context, origin string) (id string, state State, err error) {
	err = tx.QueryRowContext(ctx, `SELECT id, state FROM requests WHERE origin = $1`, origin).Scan(&id, &state)
	return id, state, found(err)
}

// Unfinished returns the unfinished request of a policy, or else its first queued one, or "".
func (tx *Tx) Unfinished(ctx context.Context, policy string) (id string, err error) {
	err = tx.QueryRowContext(ctx, `
		SELECT id FROM requests WHERE closed_at IS NULL AND policy = $1
		ORDER BY CASE state WHEN 'queued' THEN 1 ELSE 0 END, opened_at, id LIMIT 1`, policy).Scan(&id)
	return id, found(err)
}

// LastOpened returns when a trigger last opened a request for a policy; the zero time if never.
func (tx *Tx) LastOpened(ctx context.Context, policy, triggerKey string) (time.Time, error) {
	var at sql.NullInt64
	err := tx.QueryRowContext(ctx, `SELECT max(opened_at) FROM requests WHERE policy = $1 AND trigger_key = $2`, policy, triggerKey).Scan(&at)
	if err != nil || !at.Valid {
		return time.Time{}, err
	}
	return time.UnixMilli(at.Int64), nil
}

// FirstDecided returns when a reason was first recorded for an incident; the zero time if never.
func (tx *Tx) FirstDecided(ctx context.Context, incident string, reason Reason) (time.Time, error) {
	var at int64
	err := tx.QueryRowContext(ctx, `SELECT at FROM decisions WHERE incident = $1 AND reason = $2`, incident, reason).Scan(&at)
	if err != nil {
		return time.Time{}, found(err)
	}
	return time.UnixMilli(at), nil
}

// Record records the first decision of each reason about an incident or another origin, and reports whether this is the
// first.
func (tx *Tx) Record(ctx context.Context, at time.Time, incident, policy string, d Decision) (bool, error) {
	done, err := tx.ExecContext(ctx, `
		INSERT INTO decisions (incident, reason, at, policy, request, detail) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`,
		incident, d.Reason, at.UnixMilli(), policy, d.Request, d.Detail)
	if err != nil {
		return false, fmt.Errorf("record decision %s: %w", d.Reason, err)
	}
	n, err := done.RowsAffected()
	return n > 0, err
}

// found drops the error for the absence of a row, which is an empty answer.
func found(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return err
}

// IsDecided reports whether anything was decided about an origin.
func (tx *Tx) IsDecided(ctx context.Context, origin string) (bool, error) {
	var n int
	err := tx.QueryRowContext(ctx, `SELECT count(*) FROM decisions WHERE incident = $1`, origin).Scan(&n)
	return n > 0, err
}

// Verified returns the version that a request is being verified with, "" if it is not, and who reported it.
func (tx *Tx) Verified(ctx context.Context, id string) (version, by string, err error) {
	err = tx.QueryRowContext(ctx, `
		SELECT r.new_version, h.by_whom FROM requests r JOIN history h ON h.request = r.id
		WHERE r.id = $1 AND r.state = $2 AND h.state = r.state ORDER BY h.seq DESC LIMIT 1`, id, StateVerifying).Scan(&version, &by)
	if err := found(err); err != nil {
		return "", "", fmt.Errorf("find the version: %w", err)
	}
	return version, by, nil
}

// MadeSince returns the last request of a policy that was opened after another one and has put a version in place,
// or "" if there is none.
func (tx *Tx) MadeSince(ctx context.Context, policy, request string) (id, version string, err error) {
	err = tx.QueryRowContext(ctx, `
		SELECT id, new_version FROM requests WHERE policy = $1 AND (kind = 'retrain' OR kind = 'rollback' AND recipe <> '') AND new_version <> ''
			AND opened_at > (SELECT opened_at FROM requests WHERE id = $2)
		ORDER BY opened_at DESC, id LIMIT 1`, policy, request).Scan(&id, &version)
	if err := found(err); err != nil {
		return "", "", fmt.Errorf("find later versions: %w", err)
	}
	return id, version, nil
}
