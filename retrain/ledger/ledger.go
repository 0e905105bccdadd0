// Package ledger keeps requests, their history, the attempts to deliver them, and decisions, in a SQLite file or on PostgreSQL.
package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/riverqueue/river/riverdriver"
)

// How a transaction is repeated while the ledger is unavailable: for how long, at the start and later; after which
// waits, each twice the previous one; and how long one try may take.
const (
	startPatience = 5 * time.Minute
	patience      = 10 * time.Second
	firstWait     = 100 * time.Millisecond
	longestWait   = 5 * time.Second
	tryTimeout    = 30 * time.Second
)

// Reads for people have their own connections and a time limit.
const (
	readConnections = 3
	readTimeout     = 10 * time.Second
)

// idleConnections is how many connections of each kind are kept open for reuse.
const idleConnections = 2

// Ledger keeps requests, their history, the attempts to deliver them, and decisions. What a method has written is
// durable when it returns. Transactions that write are serialized, even across instances, so that what one has read
// remains true until it commits.
//
// It is large because each transaction is a method: nothing outside may touch two tables at once.
type Ledger struct {
	Reader
	db      *sql.DB
	scrapes *sql.DB // as reads, for the metrics, which must not wait for a search
	dialect
	tell     Listener
	stopping <-chan struct{} // once closed, no transaction is repeated
	started  time.Time
	writers  underway
	held     io.Closer // the lock of a file; nil on PostgreSQL
}

// Listener receives the events of a ledger. All its functions are required.
type Listener struct {
	Waits     func(err error, wait time.Duration)  // before a transaction is repeated
	Suspended func(err error, now *SuspendedError) // when the ledger is taken out of use
	Revived   func(since time.Time)                // when it is back in use
}

// dialect is the difference between SQLite and PostgreSQL. The statements are the same: both support $1, ON CONFLICT
// and RETURNING.
type dialect struct {
	name   string                                      // of the directory of its migrations
	place  string                                      // where the ledger is, for people
	shared bool                                        // other instances may write to it, over a network
	alone  string                                      // statement that makes a transaction the only one that writes; "" if every one is
	outage func(err error) bool                        // whether an error means that the ledger is temporarily unavailable
	broken func(err error) bool                        // whether an error is another failure, rather than a refusal
	why    func(err error) string                      // such an error in words that may be public
	Check  func(ctx context.Context, db *sql.DB) error // checks that its content is intact; nil if the server ensures that

	prepare func() error // called before it is tried again; nil for nothing to do

	jobs func(*sql.DB) riverdriver.Driver[*sql.Tx] // of the queue
}

// Open opens the ledger, creates it if it does not exist, and upgrades its schema. A newer schema than this build
// supports is an error. While PostgreSQL is unavailable, Open waits, as do all methods that write. When ctx ends, no
// further waits begin, even after Open has returned.
func Open(ctx context.Context, cfg Config, tell Listener) (*Ledger, error) {
	open := openSQLite
	if cfg.OnPostgreSQL() {
		open = openPostgreSQL
	}
	l, err := open(cfg)
	if err != nil {
		return nil, fmt.Errorf("open ledger %s: %w", l.place, err)
	}
	l.tell, l.stopping, l.started = tell, ctx.Done(), time.Now()
	l.reads.SetMaxOpenConns(readConnections)
	l.scrapes.SetMaxOpenConns(1)
	if l.Check != nil {
		err = l.Check(ctx, l.db)
	}
	if err == nil {
		err = l.migrate(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open ledger %s: %w", l.place, err), l.Close())
	}
	return l, nil
}

// Close closes the writer last, because that cleans up a file.
func (l *Ledger) Close() error {
	err := errors.Join(l.scrapes.Close(), l.reads.Close(), l.db.Close())
	if l.held != nil {
		err = errors.Join(err, l.held.Close()) // another process may lock it from now on
		l.held = nil
	}
	return err
}

// Update runs change in one transaction, which is durable when Update returns nil and undone otherwise. While the
// ledger is unavailable, Update repeats it, until its patience or the service ends. So change may run several times,
// and an earlier run's writes may persist if the connection broke during the commit. A ledger that still does not work
// is suspended: Update fails with ErrSuspended, immediately from then on.
func (l *Ledger) Update(ctx context.Context, change func(*Tx) error) error {
	defer l.writers.begin()()
	err := l.Patiently(ctx, func() error { return l.try(ctx, change) })
	if damaged(err) {
		return fmt.Errorf("ledger %s: %w: %w", l.place, errDamaged, err)
	}
	return err
}

// Waiting returns how long the oldest change in progress has been waiting, 0 without one.
func (l *Ledger) Waiting() time.Duration { return l.writers.longest() }

// underway tracks the start times of operations in progress.
type underway struct {
	mu    sync.Mutex
	last  int
	since map[int]time.Time
}

// begin records the start of an operation, and returns the function that ends it.
func (u *underway) begin() (end func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.since == nil {
		u.since = map[int]time.Time{}
	}
	u.last++
	id := u.last
	u.since[id] = time.Now()
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.since, id)
	}
}

// longest returns how long the oldest operation has been in progress, 0 without one.
func (u *underway) longest() time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	longest := time.Duration(0)
	for _, at := range u.since {
		longest = max(longest, time.Since(at))
	}
	return longest
}

// Patiently repeats attempt while the ledger is unavailable, until its patience or the service ends. It suspends a
// ledger that still does not work.
func (l *Ledger) Patiently(ctx context.Context, attempt func() error) error {
	end := time.Now().Add(l.patience())
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		suspended := l.rest.hasBegun()
		if err := l.rest.err(); err != nil {
			return err
		}
		err := attempt()
		switch {
		case ctx.Err() != nil || !l.fails(err):
			return err
		case !l.outage(err) || time.Now().Add(wait).After(end):
			return l.suspend(err)
		}
		l.tell.Waits(err, wait)
		select {
		case <-time.After(wait):
		case <-suspended: // another operation has suspended the ledger
		case <-ctx.Done():
			return err
		case <-l.stopping:
			return err
		}
	}
}

// patience returns how long to wait for an unavailable ledger. Except at the start, such a wait keeps a policy from
// being judged.
func (l *Ledger) patience() time.Duration {
	if l.rest.isArmed() {
		return patience
	}
	return startPatience
}

// try runs change in one transaction. On PostgreSQL, the first statement waits for other writers; read committed lets
// later statements see what those have written.
func (l *Ledger) try(ctx context.Context, change func(*Tx) error) error {
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
	own := &Tx{Tx: tx, started: l.started}
	if err == nil {
		err = change(own)
	}
	if err != nil {
		if undo := tx.Rollback(); undo != nil && !errors.Is(undo, sql.ErrTxDone) {
			err = errors.Join(err, undo)
		}
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	for _, do := range own.committed {
		do(ctx)
	}
	return nil
}
