package retrain

import (
	"context"
	"crypto/tls"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
)

// aloneOnPostgreSQL waits for the lock of the ledger's writers, which goes with the end of the transaction. One lock for
// all gives PostgreSQL the one writer that SQLite has, so that the rules need no thought of what runs beside them. A
// transaction takes milliseconds, and there are few. The number has no meaning but that every instance has the same.
const aloneOnPostgreSQL = `SELECT pg_advisory_xact_lock(7239161180124673)`

// onConnect has the server end a transaction whose instance has vanished without a word, or its lock would stay; and
// sync every commit where it is configured not to.
const onConnect = `
	SELECT set_config('idle_in_transaction_session_timeout', '30s', false);
	SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'`

const matchesOnPostgreSQL = `id IN (SELECT request FROM intents WHERE words @@ plainto_tsquery('simple', ?))`

const maxConnections = 4 // of an instance

func jobsOnPostgreSQL(db *sql.DB) riverdriver.Driver[*sql.Tx] { return riverdatabasesql.New(db) }

func openPostgreSQL(cfg LedgerConfig) (*sql.DB, dialect, error) {
	d := dialect{name: "postgres", place: "on PostgreSQL", shared: true, alone: aloneOnPostgreSQL, outage: isOutage, jobs: jobsOnPostgreSQL, matches: matchesOnPostgreSQL}
	text, err := cfg.postgresURL()
	if err != nil {
		return nil, d, err
	}
	parsed, err := parsePostgresURL(text)
	if err != nil {
		return nil, d, err
	}
	dial := parsed.DialFunc
	parsed.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &boundedConn{Conn: conn, most: tryTimeout}, nil
	}
	db := stdlib.OpenDB(*parsed, stdlib.OptionAfterConnect(func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, onConnect)
		return err
	}))
	db.SetMaxOpenConns(maxConnections)
	return db, d, nil
}

// boundedConn gives up a server that does not answer: the queue asks without a deadline of its own. Nothing is read from a
// connection but answers.
type boundedConn struct {
	net.Conn
	most time.Duration // that an answer may take

	mu       sync.Mutex
	deadline time.Time // that was asked for, the zero time where none was
}

// Read implements net.Conn.
func (c *boundedConn) Read(b []byte) (int, error) {
	c.mu.Lock()
	end := time.Now().Add(c.most)
	if !c.deadline.IsZero() && c.deadline.Before(end) {
		end = c.deadline
	}
	err := c.Conn.SetReadDeadline(end)
	c.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

// SetDeadline implements net.Conn.
func (c *boundedConn) SetDeadline(at time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = at
	return c.Conn.SetDeadline(at)
}

// SetReadDeadline implements net.Conn.
func (c *boundedConn) SetReadDeadline(at time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = at
	return c.Conn.SetReadDeadline(at)
}

// postgresURL reads the connection URL from where the configuration says.
func (c LedgerConfig) postgresURL() (string, error) {
	if c.PostgresURLEnv != "" {
		text := strings.TrimSpace(os.Getenv(c.PostgresURLEnv))
		if text == "" {
			return "", fmt.Errorf("the environment variable %s, which is to hold the URL of PostgreSQL, is empty", c.PostgresURLEnv)
		}
		return text, nil
	}
	text, err := os.ReadFile(c.PostgresURLFile)
	if err != nil {
		return "", fmt.Errorf("read the URL of PostgreSQL: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// parsePostgresURL drops the errors of the parsers, which may repeat a password.
func parsePostgresURL(text string) (*pgx.ConnConfig, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return nil, errors.New("the URL of PostgreSQL must be of the form postgres://user:password@host:port/database?sslmode=verify-full, with special characters of the password escaped as %XX")
	}
	parsed, err := pgx.ParseConfig(text)
	if err != nil {
		return nil, errors.New("the URL of PostgreSQL has a port, an option such as sslmode, or a certificate that cannot be used")
	}
	if parsed.RuntimeParams["application_name"] == "" {
		parsed.RuntimeParams["application_name"] = "rewardwatch"
	}
	return parsed, nil
}

// outageCodes are the SQLSTATEs, beside those of class 08 (connection exception), with which a server says that it
// cannot serve now but may soon: it shuts down or starts, has no connection free, or is a standby; or has ended a session
// that was idle for too long, or one of two that waited for each other.
var outageCodes = []string{"40P01", "57P01", "57P02", "57P03", "57P05", "53300", "25006", "25P03"}

// isOutage tells a server that cannot be reached from one that refuses.
func isOutage(err error) bool {
	if said, ok := errors.AsType[*pgconn.PgError](err); ok {
		return strings.HasPrefix(said.Code, "08") || slices.Contains(outageCodes, said.Code)
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return false
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	return slices.ContainsFunc([]error{
		driver.ErrBadConn, pgconn.ErrConnClosed, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, context.DeadlineExceeded,
	}, func(of error) bool { return errors.Is(err, of) })
}

// plain leaves out what PostgreSQL cannot keep as text: the character NUL.
func plain(text string) string { return strings.ReplaceAll(text, "\x00", "�") }
