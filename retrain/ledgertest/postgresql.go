// Package ledgertest provides a PostgreSQL server for tests of ledgers.
package ledgertest

import (
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver "pgx"

	"github.com/rewardwatch/rewardwatch/deploy/deploytest"
)

// PostgreSQL is a real server with its own directory.
type PostgreSQL struct {
	dir, port string
	schemas   atomic.Int64
}

// Password is the password of the server.
const Password = "known-to-the-tests-alone"

// StartPostgreSQL starts a server that stops at the end of the test.
func StartPostgreSQL(t *testing.T) *PostgreSQL {
	t.Helper()
	p := &PostgreSQL{dir: t.TempDir(), port: deploytest.FreePorts(t, 1)[0]}
	check(t, os.Chmod(filepath.Dir(p.dir), 0o755)) // PostgreSQL runs as another user if the tests run as root
	t.Cleanup(func() { p.Stop(t) })
	p.Start(t)
	return p
}

// Start disables fsync: the tests kill the server, not the machine.
func (p *PostgreSQL) Start(t *testing.T) { p.script(t, "start", "-c", "fsync=off") }

// Stop stops the server.
func (p *PostgreSQL) Stop(t *testing.T) { p.script(t, "stop") }

func (p *PostgreSQL) script(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(root(t), "deploy/local/postgresql.sh"), args...)
	cmd.Env = append(os.Environ(), "POSTGRESQL_DIR="+p.dir, "POSTGRESQL_PORT="+p.port, "POSTGRESQL_PASSWORD="+Password)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("postgresql.sh %s: %v\n%s", args[0], err, out)
	}
}

// URL returns the connection URL that the script has written.
func (p *PostgreSQL) URL(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, "ledger.url"))
	check(t, err)
	return strings.TrimSpace(string(text))
}

// Run executes a statement as a client beside the ledger.
func (p *PostgreSQL) Run(t *testing.T, statement string) { p.Query(t, statement) }

// Query returns the first column of the first row of a statement, "" if there is none.
func (p *PostgreSQL) Query(t *testing.T, statement string) (answer string) {
	t.Helper()
	db, err := sql.Open("pgx", p.URL(t))
	check(t, err)
	if err := db.QueryRowContext(t.Context(), statement).Scan(&answer); !errors.Is(err, sql.ErrNoRows) {
		check(t, err)
	}
	check(t, db.Close())
	return answer
}

// Schema creates a schema for a test, and returns the file with the URL of it.
func (p *PostgreSQL) Schema(t *testing.T) string {
	t.Helper()
	name := "test" + strconv.FormatInt(p.schemas.Add(1), 10)
	p.Run(t, "CREATE SCHEMA "+name)
	file := filepath.Join(t.TempDir(), "ledger.url")
	check(t, os.WriteFile(file, []byte(p.URL(t)+"&search_path="+name+"\n"), 0o600))
	return file
}

// root returns the directory of the module.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
	}
	t.Fatal(err)
	return ""
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
