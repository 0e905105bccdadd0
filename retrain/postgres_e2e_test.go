//go:build e2e

package retrain

import (
	"database/sql"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

func TestLedgerOnPostgreSQL(t *testing.T) { testLedger(t, startPostgreSQL(t).storage) }

// postgresql is a real server with a directory of its own.
type postgresql struct {
	dir, port string
	schemas   atomic.Int64
}

const postgresqlPassword = "known-to-the-tests-alone"

func startPostgreSQL(t *testing.T) *postgresql {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	p := &postgresql{dir: t.TempDir(), port: strconv.Itoa(l.Addr().(*net.TCPAddr).Port)}
	check(t, l.Close())
	check(t, os.Chmod(filepath.Dir(p.dir), 0o755)) // PostgreSQL runs as another user where the tests run as root
	t.Cleanup(func() { p.script(t, "stop") })
	p.script(t, "start")
	return p
}

func (p *postgresql) script(t *testing.T, verb string) {
	t.Helper()
	cmd := exec.Command("../deploy/local/postgresql.sh", verb)
	cmd.Env = append(os.Environ(), "POSTGRESQL_DIR="+p.dir, "POSTGRESQL_PORT="+p.port, "POSTGRESQL_PASSWORD="+postgresqlPassword)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("postgresql.sh %s: %v\n%s", verb, err, out)
	}
}

// url gives the connection URL that the script has written.
func (p *postgresql) url(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, "ledger.url"))
	check(t, err)
	return strings.TrimSpace(string(text))
}

// run executes a statement as a client beside the ledger.
func (p *postgresql) run(t *testing.T, statement string) {
	t.Helper()
	db, err := sql.Open("pgx", p.url(t))
	check(t, err)
	_, err = db.ExecContext(t.Context(), statement)
	check(t, err)
	check(t, db.Close())
}

// storage gives each test a schema of its own.
func (p *postgresql) storage(t *testing.T) LedgerConfig {
	t.Helper()
	schema := "test" + strconv.FormatInt(p.schemas.Add(1), 10)
	p.run(t, "CREATE SCHEMA "+schema)
	file := filepath.Join(t.TempDir(), "ledger.url")
	check(t, os.WriteFile(file, []byte(p.url(t)+"&search_path="+schema+"\n"), 0o600))
	return LedgerConfig{PostgresURLFile: file}
}
