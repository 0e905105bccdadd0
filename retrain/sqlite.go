package retrain

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"modernc.org/sqlite" // registers the driver "sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

const matchesOnSQLite = `id IN (SELECT request FROM intents WHERE seq IN (SELECT rowid FROM intent_words WHERE intent_words MATCH ?))`

func jobsOnSQLite(db *sql.DB) riverdriver.Driver[*sql.Tx] { return riversqlite.New(db) }

func openSQLite(cfg LedgerConfig) (*sql.DB, dialect, error) {
	d := dialect{name: "sqlite", place: cfg.SQLite, outage: fileOutage, jobs: jobsOnSQLite, matches: matchesOnSQLite}
	if err := os.MkdirAll(filepath.Dir(cfg.SQLite), 0o755); err != nil {
		return nil, d, fmt.Errorf("make its directory: %w", err)
	}
	db, err := sql.Open("sqlite", dsn(cfg.SQLite))
	if err != nil {
		return nil, d, err
	}
	// SQLite has one writer; one connection makes the others wait in Go instead of failing as busy.
	db.SetMaxOpenConns(1)
	return db, d, nil
}

// dsn names the file. Transactions begin as writers, so that one which reads first cannot fail when it writes. WAL with
// synchronous=FULL syncs every commit. Times are written as those of UTC, as the queue compares them as text.
func dsn(file string) string {
	options := url.Values{
		"_txlock":   {"immediate"},
		"_timezone": {"UTC"},
		"_pragma":   {"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(ON)"},
	}
	return "file:" + (&url.URL{Path: file}).EscapedPath() + "?" + options.Encode()
}

// fileOutage reports whether the file cannot be written or read for now, as on a full disk, or where another process holds it:
// who opens it first is not waited for when it is brought to WAL, whatever busy_timeout says.
func fileOutage(err error) bool {
	said, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return false
	}
	primary := said.Code() & 0xff // without what distinguishes errors of the same kind
	return primary == sqlite3.SQLITE_FULL || primary == sqlite3.SQLITE_IOERR || primary == sqlite3.SQLITE_BUSY
}
