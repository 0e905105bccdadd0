package ledger

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

// aloneOnPostgreSQL waits for the lock of the ledger's writers, which ends with the transaction. One lock for all makes
// PostgreSQL a single writer like SQLite, so that the rules need not consider concurrency. A transaction takes
// milliseconds, and there are few. The number is arbitrary, but the same in every instance.
const aloneOnPostgreSQL = `SELECT pg_advisory_xact_lock(7239161180124673)`

// onConnect makes the server end a transaction whose instance has vanished silently, because its lock would stay
// otherwise. It also syncs every commit, even if the server is configured otherwise. Limits of the role on
// statements and locks are for its other users: a writer waits for the writers before it.
const onConnect = `
	SELECT set_config('idle_in_transaction_session_timeout', '30s', false);
	SELECT set_config('statement_timeout', '0', false);
	SELECT set_config('lock_timeout', '0', false);
	SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'`

// onConnectToRead makes a connection read-only, and makes the server end a statement whose reader has given up.
var onConnectToRead = fmt.Sprintf(`
	SELECT set_config('default_transaction_read_only', 'on', false);
	SELECT set_config('statement_timeout', '%d', false)`, readTimeout.Milliseconds())

const matchesOnPostgreSQL = `id IN (SELECT request FROM intents WHERE words @@ plainto_tsquery('simple', ?))`

const maxConnections = 4 // of an instance, for writes

func jobsOnPostgreSQL(db *sql.DB) riverdriver.Driver[*sql.Tx] { return riverdatabasesql.New(db) }

func openPostgreSQL(cfg Config) (*Ledger, error) {
	l := &Ledger{Reader: Reader{rest: newSuspension(), matches: matchesOnPostgreSQL}, dialect: dialect{name: "postgres", place: "on PostgreSQL", shared: true, alone: aloneOnPostgreSQL, outage: isOutage, broken: serverBroken, why: whyServer, jobs: jobsOnPostgreSQL}}
	text, err := cfg.postgresURL()
	if err != nil {
		return l, err
	}
	parsed, err := parsePostgresURL(text)
	if err != nil {
		return l, err
	}
	dial := parsed.DialFunc
	parsed.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &boundedConn{Conn: conn, most: tryTimeout}, nil
	}
	pool := func(first string) *sql.DB {
		return stdlib.OpenDB(*parsed, stdlib.OptionAfterConnect(func(ctx context.Context, c *pgx.Conn) error {
			_, err := c.Exec(ctx, first)
			return err
		}))
	}
	l.db, l.reads, l.scrapes = pool(onConnect), pool(onConnectToRead), pool(onConnectToRead)
	l.db.SetMaxOpenConns(maxConnections)
	return l, nil
}

// boundedConn gives up on a server that does not answer: the queue sends queries without a deadline. Only answers are
// read from the connection.
type boundedConn struct {
	net.Conn
	most time.Duration // longest wait for an answer

	mu       sync.Mutex
	deadline time.Time // as set by the caller, the zero time if none
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

// parsePostgresURL parses the URL. It hides the errors of the parsers, which may contain a password.
func parsePostgresURL(text string) (*pgx.ConnConfig, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return nil, errors.New("the PostgreSQL URL must have the form postgres://user:password@host:port/database?sslmode=verify-full, with special characters of the password escaped as %XX")
	}
	parsed, err := pgx.ParseConfig(text)
	if err != nil {
		return nil, errors.New("the PostgreSQL URL has a port, an option such as sslmode, or a certificate that cannot be used")
	}
	if parsed.RuntimeParams["application_name"] == "" {
		parsed.RuntimeParams["application_name"] = "rewardwatch"
	}
	return parsed, nil
}

// outageCodes are the SQLSTATEs, besides those of class 08 (connection exception), of a server that cannot serve now
// but may soon. It shuts down or starts, has no free connection, or is a standby. Or it has ended an idle session or
// one side of a deadlock, or canceled a slow statement.
var outageCodes = []string{"40P01", "55P03", "57014", "57P01", "57P02", "57P03", "57P05", "53300", "25006", "25P03"}

// isOutage distinguishes an unavailable server from one that refuses.
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

// refusalClasses are the classes of SQLSTATE with which a working server refuses a request.
var refusalClasses = []string{"21", "22", "23", "44", "54", "P0"}

// serverBroken reports whether an error means that the server or its content does not work for the service. A canceled
// query means nothing.
func serverBroken(err error) bool {
	if said, ok := errors.AsType[*pgconn.PgError](err); ok {
		return said.Code != "57014" && !slices.ContainsFunc(refusalClasses, func(class string) bool { return strings.HasPrefix(said.Code, class) })
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	return ok
}

// whyServer describes what is wrong with the server.
func whyServer(err error) string {
	said, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case ok && (said.Code == "XX001" || said.Code == "XX002"):
		return "its database is damaged"
	case ok && said.Code == "53100":
		return "the disk of PostgreSQL is full"
	case ok && (said.Code == "42P01" || said.Code == "3F000" || said.Code == "3D000"):
		return "its tables are missing in PostgreSQL"
	case ok && (strings.HasPrefix(said.Code, "28") || said.Code == "42501"):
		return "PostgreSQL refused the connection"
	case ok && (said.Code == "57014" || said.Code == "55P03"):
		return "PostgreSQL canceled a statement"
	case isOutage(err):
		return "PostgreSQL cannot be reached"
	}
	return whyNot(err)
}

// Plain replaces the character NUL, which PostgreSQL cannot store as text.
func Plain(text string) string { return strings.ReplaceAll(text, "\x00", "�") }
