package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// How a suspended ledger is tried again: after which waits, each twice the previous one. If it fails again within
// steadyAfter of a recovery, the waits continue from where they were.
const (
	firstProbe   = time.Second
	LongestProbe = 30 * time.Second
	steadyAfter  = time.Minute
)

// ErrSuspended means that the ledger is currently out of use, for errors.Is. The operation was not done, or its outcome
// is unknown: repeat it once the ledger is back.
var ErrSuspended = errors.New("the ledger is suspended")

// SuspendedError reports since when the ledger has been out of use, and why, in words that may be public. The error
// itself is in the log.
type SuspendedError struct {
	Since time.Time
	Why   string
}

// Error implements error.
func (e *SuspendedError) Error() string {
	return fmt.Sprintf("the ledger of retrain requests has been unavailable since %s: %s", finding.Stamp(e.Since), e.Why)
}

// Is makes errors.Is find ErrSuspended.
func (e *SuspendedError) Is(target error) bool { return target == ErrSuspended }

// suspension tracks whether a ledger is in use. It is safe for concurrent use.
type suspension struct {
	mu    sync.Mutex
	armed bool            // after the start: until then, Open returns the errors of the ledger
	now   *SuspendedError // nil while the ledger is in use
	begun chan struct{}   // closed while the ledger is out of use
	over  chan struct{}   // closed while it is in use
	times int             // how often it recovered
}

func newSuspension() *suspension {
	s := &suspension{begun: make(chan struct{}), over: make(chan struct{})}
	close(s.over)
	return s
}

// arm makes errors of the ledger suspend it from now on.
func (s *suspension) arm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = true
}

// isArmed reports whether errors of the ledger suspend it.
func (s *suspension) isArmed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.armed
}

// err returns a *SuspendedError while the ledger is out of use, else nil.
func (s *suspension) err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil {
		return nil
	}
	return s.now
}

// hasBegun returns a channel that is closed once the ledger is out of use.
func (s *suspension) hasBegun() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun
}

// isOver returns a channel that is closed once the ledger is in use.
func (s *suspension) isOver() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

// begin takes the ledger out of use, or updates the reason, and reports whether it was in use. It returns nil if not
// armed.
func (s *suspension) begin(why string) (now *SuspendedError, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.armed {
		return nil, false
	}
	since := time.Now()
	if first = s.now == nil; first {
		s.over = make(chan struct{})
		close(s.begun)
	} else {
		since = s.now.Since
	}
	s.now = &SuspendedError{Since: since, Why: why} // callers keep the previous one
	return s.now, first
}

// end puts the ledger back in use, and returns since when it was not.
func (s *suspension) end() (since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	since = s.now.Since
	s.now, s.begun = nil, make(chan struct{})
	s.times++
	close(s.over)
	return since
}

// ended returns how often the ledger recovered.
func (s *suspension) ended() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.times
}

// fails reports whether an error is a failure of the ledger, rather than of the request.
func (l *Ledger) fails(err error) bool { return err != nil && (l.outage(err) || l.broken(err)) }

// suspend takes the ledger out of use because of an error, and returns the error for its users: the original one while
// the ledger is being opened.
func (l *Ledger) suspend(err error) error {
	now, first := l.rest.begin(l.why(err))
	if now == nil {
		return err
	}
	if first {
		l.LetGo()
		l.tell.Suspended(err, now)
	}
	return now
}

// Noticed suspends the ledger if a query known to be correct has shown that it is broken. It ignores an outage, which
// the waiting operations handle.
func (l *Ledger) Noticed(err error) {
	if err != nil && l.broken(err) && !l.outage(err) {
		_ = l.suspend(err)
	}
}

// LetGo closes the unused connections, because they would keep open a file that an operator may replace.
func (l *Ledger) LetGo() { l.keepIdle(0) }

// keepIdle bounds the connections kept open for reuse.
func (l *Ledger) keepIdle(n int) {
	for _, db := range []*sql.DB{l.db, l.reads, l.scrapes} {
		db.SetMaxIdleConns(n)
	}
}

// Revive retries a suspended ledger until it is in use again, repeatedly until ctx ends.
func (l *Ledger) Revive(ctx context.Context) {
	var back time.Time // when it last recovered
	for wait := firstProbe; ; {
		select {
		case <-ctx.Done():
			return
		case <-l.rest.hasBegun():
		}
		if time.Since(back) > steadyAfter {
			wait = firstProbe
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = min(2*wait, LongestProbe)
		if err := l.probe(ctx); err != nil {
			if ctx.Err() == nil {
				_, _ = l.rest.begin(l.why(err))
				l.tell.Waits(err, wait)
			}
			continue
		}
		l.keepIdle(idleConnections)
		back = time.Now()
		l.tell.Revived(l.rest.end())
	}
}

// probe returns what is wrong with a suspended ledger, or nil if it works again: it is intact, has not been replaced by
// an empty one, has the schema of this build, and is writable.
func (l *Ledger) probe(ctx context.Context) error {
	if l.prepare != nil {
		if err := l.prepare(); err != nil {
			return err
		}
	}
	if l.Check != nil {
		if err := l.Check(ctx, l.db); err != nil {
			return err
		}
	}
	var migrations int
	if err := l.db.QueryRowContext(ctx, `SELECT count(*) FROM migrations`).Scan(&migrations); err != nil {
		return err
	}
	if migrations == 0 {
		return errEmpty
	}
	return l.try(ctx, func(tx *Tx) error {
		if err := l.upgrade(ctx, tx); err != nil {
			return err
		}
		for _, table := range []string{"requests", "history", "deliveries", "decisions", "disabled_targets", "river_job"} {
			if _, err := tx.ExecContext(ctx, `SELECT 1 FROM `+table+` LIMIT 1`); err != nil {
				return fmt.Errorf("check table %s: %w", table, err)
			}
		}
		return rewrite(ctx, tx)
	})
}

var errEmpty = errors.New("it is empty: restore a copy, or restart the service to start with an empty ledger")

// whyNot describes what is wrong with a ledger of any kind.
func whyNot(err error) string {
	if errors.Is(err, errEmpty) {
		return "it is empty"
	}
	return "it cannot be used"
}

// rewrite writes a row back unchanged, which fails on a full disk and on a read-only one.
func rewrite(ctx context.Context, tx *Tx) error {
	var version int
	var name string
	var at int64
	err := tx.QueryRowContext(ctx, `DELETE FROM migrations WHERE version = 1 RETURNING version, name, applied_at`).Scan(&version, &name, &at)
	if err == nil {
		_, err = tx.ExecContext(ctx, `INSERT INTO migrations (version, name, applied_at) VALUES ($1, $2, $3)`, version, name, at)
	}
	if err != nil {
		return fmt.Errorf("write to the ledger: %w", err)
	}
	return nil
}

// Insist repeats change whenever the ledger is back, until it succeeds or the service ends.
func (l *Ledger) Insist(change func() error) error {
	for {
		err := change()
		if !errors.Is(err, ErrSuspended) {
			return err
		}
		select {
		case <-l.rest.isOver():
		case <-l.stopping:
			return err
		}
	}
}

// Suspended returns a *SuspendedError while the ledger is out of use, else nil. Meanwhile nothing is ordered or
// delivered, and reads and writes fail with it immediately.
func (r *Reader) Suspended() error { return r.rest.err() }

// Revivals returns how often the ledger recovered. Incidents that changed in between must be considered again.
func (r *Reader) Revivals() int { return r.rest.ended() }

// Arm makes errors of the ledger suspend it from now on.
func (l *Ledger) Arm() { l.rest.arm() }

// Away returns a channel that is closed once the ledger is out of use.
func (l *Ledger) Away() <-chan struct{} { return l.rest.hasBegun() }

// Back returns a channel that is closed once the ledger is in use.
func (l *Ledger) Back() <-chan struct{} { return l.rest.isOver() }
