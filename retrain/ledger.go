package retrain

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/riverqueue/river/riverdriver"
)

//go:embed migrations
var migrations embed.FS

// How a transaction is begun again while the ledger cannot be reached: for how long, after which waits, each twice the
// one before, and how long one try may take.
const (
	patience    = 5 * time.Minute
	firstWait   = 100 * time.Millisecond
	longestWait = 5 * time.Second
	tryTimeout  = 30 * time.Second
)

// ledger keeps requests, their history, the attempts to deliver them, and decisions. What a method has written is on
// disk when it returns. Transactions that write come one after another, also those of several instances, so that what
// one has read holds until it commits.
type ledger struct {
	db *sql.DB
	dialect
	waiting  func(err error, wait time.Duration) // told before a transaction is begun again
	stopping <-chan struct{}                     // once closed, no transaction is begun again
}

// dialect is what sets SQLite and PostgreSQL apart. The statements are the same: both know $1, ON CONFLICT and RETURNING.
type dialect struct {
	name   string               // of the directory of its migrations
	place  string               // where the ledger lies, for people
	shared bool                 // other instances may write to it, and a network lies before it
	alone  string               // statement that makes a transaction the only one that writes; "" where each one is
	outage func(err error) bool // whether an error says that the ledger cannot be reached for now

	jobs func(*sql.DB) riverdriver.Driver[*sql.Tx] // of the queue

	matches string // condition on a request in whose text the words of ? stand
}

// openLedger opens the ledger, makes it where there is none, and brings its schema up to date. A ledger of a newer
// schema than this build knows is an error. While PostgreSQL cannot be reached it waits, as all methods that write do:
// waiting is told of each wait, and when ctx ends no more waits are begun, not even after openLedger has returned.
func openLedger(ctx context.Context, cfg LedgerConfig, waiting func(error, time.Duration)) (*ledger, error) {
	open := openSQLite
	if cfg.OnPostgreSQL() {
		open = openPostgreSQL
	}
	db, d, err := open(cfg)
	if err != nil {
		return nil, fmt.Errorf("open ledger %s: %w", d.place, err)
	}
	l := &ledger{db: db, dialect: d, waiting: waiting, stopping: ctx.Done()}
	if err := l.migrate(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open ledger %s: %w", d.place, err), db.Close())
	}
	return l, nil
}

func (l *ledger) close() error { return l.db.Close() }

// update runs change in one transaction, which is durable when update returns nil and undone otherwise. Where the ledger
// cannot be reached it begins again, until its patience or the service ends: change may run several times, and what an
// earlier run has written may stand, where the connection broke while it was committed.
func (l *ledger) update(ctx context.Context, change func(*sql.Tx) error) error {
	return l.patiently(ctx, func() error { return l.try(ctx, change) })
}

// patiently calls attempt again for as long as the ledger cannot be reached, until its patience or the service ends.
func (l *ledger) patiently(ctx context.Context, attempt func() error) error {
	end := time.Now().Add(patience)
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		err := attempt()
		if err == nil || ctx.Err() != nil || !l.outage(err) || time.Now().Add(wait).After(end) {
			return err
		}
		l.waiting(err, wait)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return err
		case <-l.stopping:
			return err
		}
	}
}

// try runs change in one transaction. On PostgreSQL the first statement waits until other writers are done; read
// committed lets the ones after it see what those have written.
func (l *ledger) try(ctx context.Context, change func(*sql.Tx) error) error {
	var options sql.TxOptions
	if l.shared {
		options.Isolation = sql.LevelReadCommitted
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, tryTimeout)
		defer cancel()
	}
	tx, err := l.db.BeginTx(ctx, &options)
	if err != nil {
		return err
	}
	if l.alone != "" {
		_, err = tx.ExecContext(ctx, l.alone)
	}
	if err == nil {
		err = change(tx)
	}
	if err != nil {
		if undo := tx.Rollback(); undo != nil && !errors.Is(undo, sql.ErrTxDone) {
			err = errors.Join(err, undo)
		}
		return err
	}
	return tx.Commit()
}

// migrate applies the embedded migrations that the ledger has not seen, in order, in one transaction.
func (l *ledger) migrate(ctx context.Context) error {
	dir := path.Join("migrations", l.name)
	files, err := migrations.ReadDir(dir)
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
			if err := apply(ctx, tx, dir, f.Name()); err != nil {
				return fmt.Errorf("migration %s: %w", f.Name(), err)
			}
		}
		return l.migrateQueue(ctx, tx)
	})
}

func schemaVersion(ctx context.Context, tx *sql.Tx) (int, error) {
	const table = `CREATE TABLE IF NOT EXISTS migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at BIGINT NOT NULL)`
	if _, err := tx.ExecContext(ctx, table); err != nil {
		return 0, err
	}
	var version int
	err := tx.QueryRowContext(ctx, `SELECT coalesce(max(version), 0) FROM migrations`).Scan(&version)
	return version, err
}

// apply runs one migration, whose name begins with its version.
func apply(ctx context.Context, tx *sql.Tx, dir, name string) error {
	number, _, _ := strings.Cut(name, "_")
	version, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	text, err := migrations.ReadFile(path.Join(dir, name))
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, string(text)); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO migrations (version, name, applied_at) VALUES ($1, $2, $3)`,
		version, name, time.Now().UnixMilli())
	return err
}

// entry is a request as it enters the ledger, to be delivered.
type entry struct {
	id, origin, policy, triggerKey, recipe, target string
	kind                                           Kind
	originKind                                     OriginKind
	state                                          State
	by, why                                        string // who asks for it, and why
	body                                           []byte
	opened, due                                    time.Time
}

// insert opens a request, as a child of the policy's last one. The schema refuses a second one of the origin and a second
// unfinished one of the policy that is not queued.
func insert(ctx context.Context, tx *sql.Tx, e entry) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO requests (id, kind, origin_kind, origin, parent, policy, trigger_key, recipe, target, state, reason, body, attempts,
			opened_at, due_at, next_attempt_at)
		VALUES ($1, $2, $3, $4, coalesce((SELECT id FROM requests WHERE policy = $5 ORDER BY opened_at DESC, id LIMIT 1), ''),
			$5, $6, $7, $8, $9, '', $10, 0, $11, $12, $11)`,
		e.id, e.kind, e.originKind, e.origin, e.policy, e.triggerKey, e.recipe, e.target, e.state, e.body,
		e.opened.UnixMilli(), e.due.UnixMilli())
	if err != nil {
		return fmt.Errorf("insert request %s: %w", e.id, err)
	}
	return remember(ctx, tx, e.id, StateChange{At: e.opened, State: e.state, By: cmp.Or(e.by, byService), Reason: e.why})
}

// disable keeps that a target wants no more deliveries, and gives up all that are open for it.
func disable(ctx context.Context, tx *sql.Tx, now time.Time, t Target, request string) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO disabled_targets (target, url, at, request) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`,
		t.Name, t.address(), now.UnixMilli(), request)
	if err != nil {
		return fmt.Errorf("disable target %s: %w", t.Name, err)
	}
	return settle(ctx, tx, now, StateDeadLetter, "the target answered 410 Gone and is disabled", `state = 'open' AND target = $4`, t.Name)
}

func isDisabled(ctx context.Context, q queryer, t Target) (bool, error) {
	var n int
	err := q.QueryRowContext(ctx, `SELECT count(*) FROM disabled_targets WHERE target = $1 AND url = $2`, t.Name, t.address()).Scan(&n)
	if err != nil {
		return false, fmt.Errorf("look up target %s: %w", t.Name, err)
	}
	return n > 0, nil
}

// ofOrigin finds the request that an incident, a slot or a person has asked for.
func ofOrigin(ctx context.Context, q queryer, origin string) (id string, state State, err error) {
	err = q.QueryRowContext(ctx, `SELECT id, state FROM requests WHERE origin = $1`, origin).Scan(&id, &state)
	return id, state, found(err)
}

// unfinishedOf gives the request of a policy that is not finished, or the first one that is queued where there is none, "" where nothing
// is.
func unfinishedOf(ctx context.Context, q queryer, policy string) (id string, err error) {
	err = q.QueryRowContext(ctx, `
		SELECT id FROM requests WHERE closed_at IS NULL AND policy = $1
		ORDER BY CASE state WHEN 'queued' THEN 1 ELSE 0 END, opened_at, id LIMIT 1`, policy).Scan(&id)
	return id, found(err)
}

// lastOpened says when a trigger last opened a request for a policy; the zero time where it never did.
func lastOpened(ctx context.Context, q queryer, policy, triggerKey string) (time.Time, error) {
	var at sql.NullInt64
	err := q.QueryRowContext(ctx, `SELECT max(opened_at) FROM requests WHERE policy = $1 AND trigger_key = $2`, policy, triggerKey).Scan(&at)
	if err != nil || !at.Valid {
		return time.Time{}, err
	}
	return time.UnixMilli(at.Int64), nil
}

// firstDecided says when that was first decided of an incident; the zero time where it never was.
func firstDecided(ctx context.Context, q queryer, incident string, reason Reason) (time.Time, error) {
	var at int64
	err := q.QueryRowContext(ctx, `SELECT at FROM decisions WHERE incident = $1 AND reason = $2`, incident, reason).Scan(&at)
	if err != nil {
		return time.Time{}, found(err)
	}
	return time.UnixMilli(at), nil
}

// record keeps the first decision of each reason of an incident, or of what else asks for a request, and reports whether this is it.
func record(ctx context.Context, tx *sql.Tx, at time.Time, incident, policy string, d Decision) (bool, error) {
	done, err := tx.ExecContext(ctx, `
		INSERT INTO decisions (incident, reason, at, policy, request, detail) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`,
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
