package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"modernc.org/sqlite" // registers the driver "sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

const matchesOnSQLite = `id IN (SELECT request FROM intents WHERE seq IN (SELECT rowid FROM intent_words WHERE intent_words MATCH ?))`

func jobsOnSQLite(db *sql.DB) riverdriver.Driver[*sql.Tx] { return riversqlite.New(db) }

func openSQLite(cfg Config) (*Ledger, error) {
	l := &Ledger{Reader: Reader{rest: newSuspension(), matches: matchesOnSQLite}, dialect: dialect{
		name: "sqlite", place: cfg.SQLite, outage: fileOutage, broken: fileBroken, why: whyFile, Check: checkFile, jobs: jobsOnSQLite,
		prepare: func() error { return tighten(cfg.SQLite, cfg.SQLite+"-wal", cfg.SQLite+"-shm") }, // a restored copy may have any mode
	}}
	if err := keepPrivate(cfg.SQLite); err != nil {
		return l, err
	}
	var err error
	if l.held, err = lockFile(cfg.SQLite); err != nil {
		return l, err
	}
	for _, to := range []struct {
		db  **sql.DB
		dsn string
	}{{&l.db, dsn(cfg.SQLite)}, {&l.reads, readDSN(cfg.SQLite)}, {&l.scrapes, readDSN(cfg.SQLite)}} {
		db, err := sql.Open("sqlite", to.dsn)
		if err != nil {
			return l, errors.Join(err, l.held.Close())
		}
		*to.db = db
	}
	// SQLite has one writer. With one connection, the others wait in Go instead of failing as busy.
	l.db.SetMaxOpenConns(1)
	return l, nil
}

// The file modes of the ledger, which holds the key of approval links.
const (
	ledgerMode    = 0o600
	directoryMode = 0o750
)

// keepPrivate creates the file and its directory if they do not exist. It lets only the owner read the file, whatever
// the umask is and whichever build created it. SQLite creates its -wal and -shm with the mode of the file. A directory
// in which others could replace the file is refused.
func keepPrivate(file string) error {
	directory := filepath.Dir(file)
	if _, err := os.Stat(directory); errors.Is(err, os.ErrNotExist) {
		if err := os.MkdirAll(directory, directoryMode); err != nil {
			return fmt.Errorf("create its directory: %w", err)
		}
		if err := os.Chmod(directory, directoryMode); err != nil {
			return fmt.Errorf("create its directory: %w", err)
		}
	}
	info, err := os.Stat(directory)
	if err != nil {
		return err
	}
	if mode := info.Mode(); mode.Perm()&0o002 != 0 && mode&os.ModeSticky == 0 && runtime.GOOS != "windows" {
		return fmt.Errorf("its directory has mode %04o, so any local user can replace it: run chmod 750 %s", mode.Perm(), directory)
	}
	made, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, ledgerMode)
	if err != nil {
		return err
	}
	if err := made.Close(); err != nil {
		return err
	}
	return tighten(file, file+"-wal", file+"-shm")
}

// tighten sets the mode of the ledger on existing files.
func tighten(files ...string) error {
	for _, file := range files {
		info, err := os.Stat(file)
		if errors.Is(err, os.ErrNotExist) || err == nil && info.Mode().Perm()&^ledgerMode == 0 {
			continue
		}
		if err == nil {
			err = os.Chmod(file, ledgerMode)
		}
		if err != nil {
			return fmt.Errorf("it must not be readable by others: run chmod 600 %s as its owner: %w", file, err)
		}
	}
	return nil
}

// lockFile locks a ledger for this process until the returned file is closed or the process ends, however it ends.
// Otherwise two processes would deliver each request twice. The lock is on a separate file, because closing the
// ledger itself would release the locks of SQLite.
func lockFile(ledger string) (*os.File, error) {
	f, err := os.OpenFile(ledger+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock it: %w", err)
	}
	switch err := syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_WRLCK}); {
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EACCES):
		return nil, errors.Join(errInUse, f.Close())
	case err != nil:
		return nil, errors.Join(fmt.Errorf("lock it: %w", err), f.Close())
	}
	return f, nil
}

var (
	errInUse = errors.New("another process uses it; give each instance its own ledger, or share one on PostgreSQL")
	// errDamaged means that nothing in the ledger can be relied on.
	errDamaged = errors.New("the file is damaged; stop the service and restore a backup, or move the file aside to start " +
		"with an empty ledger, which loses the open requests, cooldowns and approvals")
)

// damaged reports whether the file is not a database, or one with inconsistent content.
func damaged(err error) bool {
	said, ok := errors.AsType[*sqlite.Error](err)
	return ok && (said.Code()&0xff == sqlite3.SQLITE_CORRUPT || said.Code()&0xff == sqlite3.SQLITE_NOTADB)
}

// checkFile reads the whole file, so that damage is found at the start and not when an incident needs the damaged page.
func checkFile(ctx context.Context, db *sql.DB) error {
	var found string
	err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&found)
	switch {
	case damaged(err):
		return fmt.Errorf("%w: %w", errDamaged, err)
	case err == nil && found != "ok":
		return fmt.Errorf("%w: %s", errDamaged, found)
	}
	return nil // the first transaction waits for anything else or reports it
}

// dsn returns the data source name of the file. Transactions begin as writers, so that one that reads first cannot fail
// when it writes. WAL with synchronous=FULL syncs every commit. Times are in UTC, as the queue compares them as text.
func dsn(file string) string {
	options := url.Values{
		"mode":      {"rw"}, // a missing file is an error, and must not be replaced by an empty one
		"_txlock":   {"immediate"},
		"_timezone": {"UTC"},
		"_pragma":   {"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(ON)"},
	}
	return fileURL(file, options)
}

// readDSN returns the data source name for readers beside the writer, which WAL allows.
func readDSN(file string) string {
	return fileURL(file, url.Values{"mode": {"ro"}, "_timezone": {"UTC"}, "_pragma": {"busy_timeout(5000)"}})
}

func fileURL(file string, options url.Values) string {
	return "file:" + (&url.URL{Path: file}).EscapedPath() + "?" + options.Encode()
}

// fileOutage reports whether the file is temporarily not writable or readable, as on a full disk or while another
// process holds it. The switch to WAL does not wait for the process that opens the file first, whatever busy_timeout
// says.
func fileOutage(err error) bool {
	said, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return false
	}
	primary := said.Code() & 0xff // without the bits that distinguish errors of the same kind
	return primary == sqlite3.SQLITE_FULL || primary == sqlite3.SQLITE_IOERR || primary == sqlite3.SQLITE_BUSY
}

// fileBroken reports whether an error means that the file does not work, rather than that it refuses a violation of its
// rules.
func fileBroken(err error) bool {
	if errors.Is(err, errDamaged) {
		return true
	}
	said, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return false
	}
	switch said.Code() & 0xff {
	case sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_RANGE:
		return false
	}
	return true
}

// whyFile describes what is wrong with the file.
func whyFile(err error) string {
	if damaged(err) || errors.Is(err, errDamaged) {
		return "its file is damaged"
	}
	said, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return whyNot(err)
	}
	switch said.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		return "its disk is full"
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return "its file is not writable"
	case sqlite3.SQLITE_CANTOPEN:
		return "its file is missing or cannot be opened"
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return "another process has locked its file"
	case sqlite3.SQLITE_IOERR:
		return "its file cannot be read or written"
	case sqlite3.SQLITE_ERROR:
		return "its tables are missing"
	}
	return "its file cannot be used"
}
