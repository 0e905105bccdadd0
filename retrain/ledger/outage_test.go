package ledger

import (
	"context"
	"crypto/tls"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestWhatIsAnOutage(t *testing.T) {
	said := func(code string) error { return fmt.Errorf("begin: %w", &pgconn.PgError{Code: code}) }
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"shutting down":             {said("57P01"), true},
		"starting":                  {said("57P03"), true},
		"connection failure":        {said("08006"), true},
		"no connection free":        {said("53300"), true},
		"a standby":                 {said("25006"), true},
		"called off":                {said("57014"), true},
		"a lock is not to be had":   {said("55P03"), true},
		"broken off":                {fmt.Errorf("receive: %w", io.ErrUnexpectedEOF), true},
		"a stale connection":        {driver.ErrBadConn, true},
		"no answer":                 {context.DeadlineExceeded, true},
		"reset":                     {fmt.Errorf("receive: %w", &net.OpError{Op: "read", Err: errors.New("reset")}), true},
		"wrong password":            {said("28P01"), false},
		"no such database":          {said("3D000"), false},
		"a rule broken":             {said("23505"), false},
		"no space":                  {said("53100"), false},
		"of another certificate":    {fmt.Errorf("dial: %w", &tls.CertificateVerificationError{Err: errors.New("x")}), false},
		"stopped":                   {context.Canceled, false},
		"nothing of the connection": {errors.New("write webhook body"), false},
	} {
		if got := isOutage(test.err); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestOutagesAreWaitedFor(t *testing.T) {
	down := errors.New("down")
	for name, test := range map[string]struct {
		errs        []error // of consecutive tries, the last one repeated
		stop        string  // what ends after a minute
		want        error
		tries       int
		least, most time.Duration
	}{
		"up":                  {[]error{nil}, "", nil, 1, 0, 0},
		"a short one":         {[]error{down, down, down, nil}, "", nil, 4, 700 * time.Millisecond, 700 * time.Millisecond},
		"longer than allowed": {[]error{down}, "", down, 65, startPatience - longestWait, startPatience},
		"another error":       {[]error{down, io.ErrShortWrite}, "", io.ErrShortWrite, 2, firstWait, firstWait},
		"the caller stops":    {[]error{down}, "caller", down, 17, time.Minute, time.Minute},
		"the service stops":   {[]error{down}, "service", down, 17, time.Minute, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				minute, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				caller, service := t.Context(), t.Context()
				switch test.stop {
				case "caller":
					caller = minute
				case "service":
					service = minute
				}
				l, err := Open(service, onSQLite(t), quiet)
				check(t, err)
				l.outage = func(err error) bool { return errors.Is(err, down) }
				start, tries := time.Now(), 0
				err = l.Update(caller, func(*Tx) error {
					tries++
					return test.errs[min(tries, len(test.errs))-1]
				})
				if !errors.Is(err, test.want) {
					t.Errorf("error %v, want %v", err, test.want)
				}
				if took := time.Since(start); took < test.least || took > test.most {
					t.Errorf("took %s, want %s to %s", took, test.least, test.most)
				}
				if tries != test.tries {
					t.Errorf("%d tries, want %d", tries, test.tries)
				}
				check(t, l.Close())
			})
		})
	}
}

func TestURLOfPostgreSQL(t *testing.T) {
	file := func(text string) Config {
		name := filepath.Join(t.TempDir(), "ledger.url")
		check(t, os.WriteFile(name, []byte(text), 0o600))
		return Config{PostgresURLFile: name}
	}
	t.Setenv("REWARDWATCH_TEST_LEDGER_URL", "postgresql://me:hunter2@[::1]:5433/ledger?sslmode=require")
	for name, test := range map[string]struct {
		cfg  Config
		want string // "" if the URL is valid
	}{
		"in a file":          {file("postgres://me:hunter%202@db.example/ledger\n"), ""},
		"in the environment": {Config{PostgresURLEnv: "REWARDWATCH_TEST_LEDGER_URL"}, ""},
		"no file":            {Config{PostgresURLFile: "/nonexistent/url"}, "read the PostgreSQL URL"},
		"no variable":        {Config{PostgresURLEnv: "REWARDWATCH_TEST_NO_SUCH"}, "REWARDWATCH_TEST_NO_SUCH"},
		"empty":              {file("\n"), "have the form"},
		"another scheme":     {file("mysql://me:hunter2@db.example/ledger"), "have the form"},
		"key and value":      {file("host=db.example password=hunter2"), "have the form"},
		"bad escape":         {file("postgres://me:hunter2%zz@db.example/ledger"), "have the form"},
		"bad port":           {file("postgres://me:hunter2@db.example:0x/ledger"), "have the form"},
		"unescaped slash":    {file("postgres://me:hunter2/hunter2@db.example/ledger"), "have the form"},
		"bad mode":           {file("postgres://me:hunter2@db.example/ledger?sslmode=hunter2"), "sslmode"},
		"no such authority":  {file("postgres://me:hunter2@db.example/ledger?sslmode=verify-full&sslrootcert=/nonexistent"), "certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := openPostgreSQL(test.cfg)
			if err == nil {
				check(t, l.Close())
			}
			if (err == nil) != (test.want == "") {
				t.Fatalf("error %v", err)
			}
			if err != nil && (!strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hunter2")) {
				t.Errorf("error %q, want %q without the password", err, test.want)
			}
		})
	}
}

// TestFullDiskIsWaitedOut expects the ledger to be written once there is room again.
func TestFullDiskIsWaitedOut(t *testing.T) {
	var l *Ledger
	var waited error
	limit := func(pages int) {
		_, err := l.db.ExecContext(t.Context(), fmt.Sprintf("PRAGMA max_page_count = %d", pages))
		check(t, err)
	}
	tell := quiet
	tell.Waits = func(err error, _ time.Duration) {
		waited = err
		limit(1 << 20)
	}
	l, err := Open(t.Context(), onSQLite(t), tell)
	check(t, err)
	t.Cleanup(func() { check(t, l.Close()) })
	limit(1) // at least the existing pages
	check(t, l.Update(t.Context(), func(tx *Tx) error {
		_, err := tx.ExecContext(t.Context(), "CREATE TABLE more (value TEXT)")
		return err
	}))
	if waited == nil {
		t.Error("the disk was not full")
	}
	if _, err := l.db.ExecContext(t.Context(), "INSERT INTO more VALUES ('it is there')"); err != nil {
		t.Error(err)
	}
}
