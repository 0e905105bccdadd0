package retrain

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver "pgx"
	_ "modernc.org/sqlite"             // registers the driver "sqlite"

	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/ledgertest"
)

// storage creates an empty ledger for a test, and returns its configuration.
type storage func(t *testing.T) ledger.Config

func onSQLite(t *testing.T) ledger.Config {
	return ledger.Config{SQLite: filepath.Join(t.TempDir(), "new", "ledger.db")}
}

// onServer keeps ledgers on a server.
func onServer(p *ledgertest.PostgreSQL) storage {
	return func(t *testing.T) ledger.Config { return ledger.Config{PostgresURLFile: p.Schema(t)} }
}

// database opens the database of a ledger separately from the ledger. The caller closes it.
func database(t testing.TB, cfg ledger.Config) *sql.DB {
	t.Helper()
	driver, source := "sqlite", "file:"+cfg.SQLite+"?mode=rw&_pragma=busy_timeout(5000)"
	if cfg.OnPostgreSQL() {
		text, err := os.ReadFile(cfg.PostgresURLFile)
		check(t, err)
		driver, source = "pgx", strings.TrimSpace(string(text))
	}
	db, err := sql.Open(driver, source)
	check(t, err)
	return db
}

// put executes a statement on the database of a ledger.
func put(t testing.TB, cfg ledger.Config, statement string, args ...any) {
	t.Helper()
	db := database(t, cfg)
	_, err := db.ExecContext(t.Context(), statement, args...)
	check(t, err)
	check(t, db.Close())
}

// migrated creates a ledger with the migrations up to the named one.
func migrated(t testing.TB, cfg ledger.Config, last string) {
	t.Helper()
	dialect := "postgres"
	if !cfg.OnPostgreSQL() {
		dialect = "sqlite"
		check(t, os.MkdirAll(filepath.Dir(cfg.SQLite), 0o750))
		check(t, os.WriteFile(cfg.SQLite, nil, 0o600))
	}
	put(t, cfg, `CREATE TABLE migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at BIGINT NOT NULL)`)
	files, err := filepath.Glob(filepath.Join("ledger", "migrations", dialect, "*.sql"))
	check(t, err)
	for i, file := range files {
		text, err := os.ReadFile(file)
		check(t, err)
		put(t, cfg, string(text))
		put(t, cfg, `INSERT INTO migrations (version, name, applied_at) VALUES ($1, $2, 0)`, i+1, filepath.Base(file))
		if filepath.Base(file) == last {
			return
		}
	}
	t.Fatalf("there is no migration %s", last)
}
