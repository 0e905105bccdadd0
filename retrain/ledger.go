package retrain

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	_ "modernc.org/sqlite" // registers the driver "sqlite"
)

//go:embed migrations/*.sql
var migrations embed.FS

// ledger keeps requests, their history, the attempts to deliver them, and decisions. What a method has written is on
// disk when it returns: WAL with synchronous=FULL syncs every commit.
type ledger struct {
	db *sql.DB
}

// openLedger opens the ledger, makes it where there is none, and brings its schema up to date. A ledger of a newer
// schema than this build knows is an error.
func openLedger(ctx context.Context, file string) (*ledger, error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, fmt.Errorf("make the ledger's directory: %w", err)
	}
	db, err := sql.Open("sqlite", dsn(file))
	if err != nil {
		return nil, fmt.Errorf("open ledger %s: %w", file, err)
	}
	// SQLite has one writer; one connection makes the others wait in Go instead of failing as busy.
	db.SetMaxOpenConns(1)
	l := &ledger{db: db}
	if err := l.migrate(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open ledger %s: %w", file, err), db.Close())
	}
	return l, nil
}

// dsn names the file. Transactions begin as writers, so that one which reads first cannot fail when it writes.
func dsn(file string) string {
	options := url.Values{
		"_txlock": {"immediate"},
		"_pragma": {"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(ON)"},
	}
	return "file:" + (&url.URL{Path: file}).EscapedPath() + "?" + options.Encode()
}

func (l *ledger) close() error { return l.db.Close() }

// update runs change in one transaction, which is durable when update returns nil and undone otherwise.
func (l *ledger) update(ctx context.Context, change func(*sql.Tx) error) error {
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := change(tx); err != nil {
		if undo := tx.Rollback(); undo != nil && !errors.Is(undo, sql.ErrTxDone) {
			err = errors.Join(err, undo)
		}
		return err
	}
	return tx.Commit()
}

// migrate applies the embedded migrations that the ledger has not seen, in order, in one transaction.
func (l *ledger) migrate(ctx context.Context) error {
	files, err := migrations.ReadDir("migrations")
	if err != nil {
		return err
	}
	return l.update(ctx, func(tx *sql.Tx) error {
		seen, err := schemaVersion(ctx, tx)
		if err != nil {
			return err
		}
		if seen > len(files) {
			return fmt.Errorf("its schema has version %d and this build knows %d: a newer build has written it", seen, len(files))
		}
		for _, f := range files[seen:] {
			if err := apply(ctx, tx, f.Name()); err != nil {
				return fmt.Errorf("migration %s: %w", f.Name(), err)
			}
		}
		return nil
	})
}

func schemaVersion(ctx context.Context, tx *sql.Tx) (int, error) {
	const table = `CREATE TABLE IF NOT EXISTS migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT`
	if _, err := tx.ExecContext(ctx, table); err != nil {
		return 0, err
	}
	var version int
	err := tx.QueryRowContext(ctx, `SELECT coalesce(max(version), 0) FROM migrations`).Scan(&version)
	return version, err
}

// apply runs one migration, whose name begins with its version.
func apply(ctx context.Context, tx *sql.Tx, name string) error {
	number, _, _ := strings.Cut(name, "_")
	version, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	text, err := migrations.ReadFile(path.Join("migrations", name))
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, string(text)); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO migrations (version, name, applied_at) VALUES (?, ?, ?)`,
		version, name, time.Now().UnixMilli())
	return err
}

// entry is a request as it enters the ledger.
type entry struct {
	id, incident, policy, triggerKey, target string
	body                                     []byte
	opened, expires                          time.Time
}

// insert opens a request. The schema refuses a second one of the incident and a second open one of the policy.
func insert(ctx context.Context, tx *sql.Tx, e entry) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO requests (id, incident, policy, trigger_key, target, state, reason, body, attempts, opened_at, expires_at, next_attempt_at)
		VALUES (?, ?, ?, ?, ?, ?, '', ?, 0, ?, ?, ?)`,
		e.id, e.incident, e.policy, e.triggerKey, e.target, StateOpen, e.body,
		e.opened.UnixMilli(), e.expires.UnixMilli(), e.opened.UnixMilli())
	if err != nil {
		return fmt.Errorf("insert request %s: %w", e.id, err)
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO history (request, at, state, reason) VALUES (?, ?, ?, '')`,
		e.id, e.opened.UnixMilli(), StateOpen)
	return err
}

// settle moves the requests that the condition selects out of the open state and writes their history.
// It gives how many they were.
func settle(ctx context.Context, tx *sql.Tx, at time.Time, to State, reason, condition string, args ...any) (int64, error) {
	_, err := tx.ExecContext(ctx, `INSERT INTO history (request, at, state, reason) SELECT id, ?, ?, ? FROM requests WHERE `+condition,
		append([]any{at.UnixMilli(), to, reason}, args...)...)
	if err != nil {
		return 0, fmt.Errorf("write history: %w", err)
	}
	done, err := tx.ExecContext(ctx, `UPDATE requests SET state = ?, reason = ?, closed_at = ? WHERE `+condition,
		append([]any{to, reason, at.UnixMilli()}, args...)...)
	if err != nil {
		return 0, fmt.Errorf("set request %s: %w", to, err)
	}
	return done.RowsAffected()
}

// expire gives up the open requests whose time is over.
func expire(ctx context.Context, tx *sql.Tx, now time.Time) (int64, error) {
	return settle(ctx, tx, now, StateDeadLetter, "expired", `state = 'open' AND expires_at <= ?`, now.UnixMilli())
}

// disable keeps that a target wants no more deliveries, and gives up all that are open for it.
func disable(ctx context.Context, tx *sql.Tx, now time.Time, t Target, request string) error {
	_, err := tx.ExecContext(ctx, `INSERT OR IGNORE INTO disabled_targets (target, url, at, request) VALUES (?, ?, ?, ?)`,
		t.Name, t.Webhook, now.UnixMilli(), request)
	if err != nil {
		return fmt.Errorf("disable target %s: %w", t.Name, err)
	}
	_, err = settle(ctx, tx, now, StateDeadLetter, "the target answered 410 Gone and is disabled", `state = 'open' AND target = ?`, t.Name)
	return err
}

func isDisabled(ctx context.Context, q queryer, t Target) (bool, error) {
	var n int
	err := q.QueryRowContext(ctx, `SELECT count(*) FROM disabled_targets WHERE target = ? AND url = ?`, t.Name, t.Webhook).Scan(&n)
	if err != nil {
		return false, fmt.Errorf("look up target %s: %w", t.Name, err)
	}
	return n > 0, nil
}

// ofIncident finds the request of an incident.
func ofIncident(ctx context.Context, q queryer, incident string) (id string, state State, err error) {
	err = q.QueryRowContext(ctx, `SELECT id, state FROM requests WHERE incident = ?`, incident).Scan(&id, &state)
	return id, state, found(err)
}

// openOf gives the open request of a policy, "" where there is none.
func openOf(ctx context.Context, q queryer, policy string) (id string, err error) {
	err = q.QueryRowContext(ctx, `SELECT id FROM requests WHERE state = 'open' AND policy = ?`, policy).Scan(&id)
	return id, found(err)
}

// lastOpened says when a trigger last opened a request for a policy; the zero time where it never did.
func lastOpened(ctx context.Context, q queryer, policy, triggerKey string) (time.Time, error) {
	var at sql.NullInt64
	err := q.QueryRowContext(ctx, `SELECT max(opened_at) FROM requests WHERE policy = ? AND trigger_key = ?`, policy, triggerKey).Scan(&at)
	if err != nil || !at.Valid {
		return time.Time{}, err
	}
	return time.UnixMilli(at.Int64), nil
}

// record keeps the first decision of each reason of an incident, and reports whether this is it.
func record(ctx context.Context, tx *sql.Tx, at time.Time, incident, policy string, d Decision) (bool, error) {
	done, err := tx.ExecContext(ctx, `INSERT OR IGNORE INTO decisions (incident, reason, at, policy, request, detail) VALUES (?, ?, ?, ?, ?, ?)`,
		incident, d.Reason, at.UnixMilli(), policy, d.Request, d.Detail)
	if err != nil {
		return false, fmt.Errorf("record decision %s: %w", d.Reason, err)
	}
	n, err := done.RowsAffected()
	return n > 0, err
}

// queryer is a transaction or the database.
type queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// found takes the absence of a row for an empty answer.
func found(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return err
}
