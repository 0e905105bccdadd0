//go:build e2e

package retrain

import (
	"bytes"
	"context"
	"database/sql"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"
)

// TestPostgreSQL runs the tests of the ledger on PostgreSQL, and those of what only a server can do.
func TestPostgreSQL(t *testing.T) {
	p := startPostgreSQL(t)
	t.Run("Ledger", func(t *testing.T) { testLedger(t, p.storage) })
	t.Run("BrokenConnections", func(t *testing.T) { testBrokenConnections(t, p) })
	t.Run("Refusals", func(t *testing.T) { testRefusals(t, p) })
	t.Run("CommitsAreSynced", func(t *testing.T) { testCommitsAreSynced(t, p) })
	t.Run("Crashes", func(t *testing.T) { testCrashes(t, p.storage(t).PostgresURLFile) })
	t.Run("GoesDown", func(t *testing.T) { testGoesDown(t, p) }) // and stays so
}

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
	t.Cleanup(func() { p.stop(t) })
	p.start(t)
	return p
}

// start leaves the disk out of it: what the tests end is the server, not the machine.
func (p *postgresql) start(t *testing.T) { p.script(t, "start", "-c", "fsync=off") }

func (p *postgresql) stop(t *testing.T) { p.script(t, "stop") }

func (p *postgresql) script(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command("../deploy/local/postgresql.sh", args...)
	cmd.Env = append(os.Environ(), "POSTGRESQL_DIR="+p.dir, "POSTGRESQL_PORT="+p.port, "POSTGRESQL_PASSWORD="+postgresqlPassword)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("postgresql.sh %s: %v\n%s", args[0], err, out)
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
func (p *postgresql) run(t *testing.T, statement string) { p.query(t, statement) }

// query gives the first column of the first row of a statement, "" where there is none.
func (p *postgresql) query(t *testing.T, statement string) (answer string) {
	t.Helper()
	db, err := sql.Open("pgx", p.url(t))
	check(t, err)
	err = db.QueryRowContext(t.Context(), statement).Scan(&answer)
	check(t, found(err))
	check(t, db.Close())
	return answer
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

// Connections are ended by the server at any point of a transaction, also while it commits.
func testBrokenConnections(t *testing.T, p *postgresql) {
	breakOne := `SELECT pg_terminate_backend(pid)::text || pg_sleep(.02)::text FROM pg_stat_activity
		WHERE application_name = 'rewardwatch' ORDER BY random() LIMIT 1`
	synctest.Test(t, func(t *testing.T) {
		broken := 0
		opened, requests := severalInstances(t, p.storage, func() {
			for range 40 {
				if p.query(t, breakOne) == "true" {
					broken++
				}
			}
		})
		if broken < 50 {
			t.Errorf("%d connections were broken, want 50 at least", broken)
		}
		// Where a connection broke while a request was committed, the next try finds it requested already.
		if opened > requests {
			t.Errorf("%d decisions opened a request, and there are %d", opened, requests)
		}
	})
	if out := p.query(t, `SELECT count(*) FROM pg_stat_activity WHERE application_name = 'rewardwatch'`); out != "0" {
		t.Errorf("%s connections are left", out)
	}
}

// The server is down when the service starts, goes down again while nothing happens, and again while a webhook is on its
// way. Nothing is lost, and nothing is said of the password.
func testGoesDown(t *testing.T, p *postgresql) {
	cfg := testConfig(t, p.storage)
	var log lockedBuffer
	var arrivals atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if arrivals.Add(1) == 2 {
			p.stop(t)
		}
	}))
	defer server.Close()
	cfg.Targets[0].Webhook, cfg.Targets[0].AllowPrivate = server.URL, true
	ctx, cancel := contextWithCancel(t)

	p.stop(t)
	opened, recipes := make(chan *Desk, 1), testRecipes(t)
	go func() {
		desk, err := Open(ctx, cfg, recipes, zerolog.New(&log), prometheus.NewRegistry())
		if err != nil {
			t.Error(err)
		}
		opened <- desk
	}()
	waitUntil(t, "Open says that it waits", func() bool { return strings.Contains(log.String(), "the ledger cannot be reached") })
	p.start(t)
	desk := <-opened
	if desk == nil {
		return
	}
	p.stop(t)
	done := make(chan error, 1)
	go func() { done <- desk.Run(ctx) }()
	decided := make(chan Decision, 1)
	go func() {
		d, err := desk.Consider(ctx, incident("i1", "ranker"), time.Time{})
		if err != nil {
			t.Error(err)
		}
		decided <- d
	}()
	before := testutil.ToFloat64(desk.metrics.retries)
	waitUntil(t, "Consider waits", func() bool { return testutil.ToFloat64(desk.metrics.retries) >= before+3 })
	if _, err := desk.Requests(ctx, 10); err == nil {
		t.Error("a server that is down was read")
	}
	p.start(t)
	if d := <-decided; d.Reason != Opened {
		t.Errorf("decision %+v, want opened", d)
	}
	waitUntil(t, "the first request is delivered", func() bool { return delivered(t, desk) == 1 })

	second, err := desk.Consider(ctx, incident("i2", "bidder"), time.Time{})
	check(t, err)
	before = testutil.ToFloat64(desk.metrics.retries)
	waitUntil(t, "the courier waits to record the second delivery", func() bool { return testutil.ToFloat64(desk.metrics.retries) > before })
	p.start(t)
	waitUntil(t, "the second request is delivered", func() bool { return delivered(t, desk) == 2 })
	attempts, err := desk.Deliveries(ctx, second.Request, 10)
	check(t, err)
	if n := arrivals.Load(); n != 2 || len(attempts) != 1 {
		t.Errorf("%d arrivals and attempts %+v, want 2 arrivals, one of them of the second request", n, attempts)
	}

	p.stop(t)
	go func() {
		_, err := desk.Consider(context.WithoutCancel(ctx), incident("i3", "pricer"), time.Time{})
		done <- err
	}()
	before = testutil.ToFloat64(desk.metrics.retries)
	waitUntil(t, "Consider waits again", func() bool { return testutil.ToFloat64(desk.metrics.retries) > before })
	cancel() // the service stops while the server is down
	for range 2 {
		if err := <-done; err != nil {
			_, _ = log.Write([]byte(err.Error()))
		}
	}
	if !strings.Contains(log.String(), "consider incident i3") {
		t.Error("an incident that could not be considered before the stop is no error")
	}
	check(t, desk.Close())
	if strings.Contains(log.String(), postgresqlPassword) {
		t.Error("the password stands in the log")
	}
}

func testRefusals(t *testing.T, p *postgresql) {
	good := p.url(t)
	for name, test := range map[string]struct{ url, want string }{
		"password": {strings.Replace(good, postgresqlPassword, postgresqlPassword+"-wrong", 1), "password authentication failed"},
		"database": {strings.Replace(good, "/rewardwatch?", "/nothing?", 1), `database "nothing" does not exist`},
	} {
		t.Setenv("REWARDWATCH_TEST_LEDGER_URL", test.url)
		cfg := testConfig(t, func(*testing.T) LedgerConfig { return LedgerConfig{PostgresURLEnv: "REWARDWATCH_TEST_LEDGER_URL"} })
		_, err := Open(t.Context(), cfg, testRecipes(t), zerolog.Nop(), prometheus.NewRegistry())
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), postgresqlPassword) {
			t.Errorf("%s: %v, want %q without the password", name, err, test.want)
		}
	}
}

func testCommitsAreSynced(t *testing.T, p *postgresql) {
	for configured, want := range map[string]string{"off": "on", "remote_apply": "remote_apply"} {
		p.run(t, "ALTER DATABASE rewardwatch SET synchronous_commit = "+configured)
		l, err := openQuietly(t, p.storage(t))
		check(t, err)
		var got string
		check(t, l.db.QueryRowContext(t.Context(), "SHOW synchronous_commit").Scan(&got))
		if got != want {
			t.Errorf("where %s is configured it is %s, want %s", configured, got, want)
		}
		check(t, l.close())
	}
	p.run(t, "ALTER DATABASE rewardwatch RESET synchronous_commit")
}

// lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// delivered counts the delivered requests, none while the server cannot be reached.
func delivered(t *testing.T, d *Desk) (n int) {
	all, err := d.Requests(t.Context(), 10)
	if err != nil {
		return 0
	}
	for _, q := range all {
		if q.State == StateDelivered {
			n++
		}
	}
	return n
}

func waitUntil(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(time.Minute); !holds(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within a minute: %s", what)
		}
	}
}
