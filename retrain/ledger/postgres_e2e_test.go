//go:build e2e

package ledger

import (
	"testing"

	"github.com/rewardwatch/rewardwatch/retrain/ledgertest"
)

// onServer keeps ledgers on a server.
func onServer(p *ledgertest.PostgreSQL) storage {
	return func(t *testing.T) Config { return Config{PostgresURLFile: p.Schema(t)} }
}

// TestE2EStoreOnPostgreSQL runs the tests that only need a ledger on PostgreSQL, and those that need a server.
func TestE2EStoreOnPostgreSQL(t *testing.T) {
	p := ledgertest.StartPostgreSQL(t)
	testStore(t, onServer(p))
	t.Run("CommitsAreSynced", func(t *testing.T) { testCommitsAreSynced(t, p) })
	t.Run("WritersAreNotCalledOff", func(t *testing.T) { testWritersAreNotCalledOff(t, p) })
}

func testCommitsAreSynced(t *testing.T, p *ledgertest.PostgreSQL) {
	for configured, want := range map[string]string{"off": "on", "remote_apply": "remote_apply"} {
		p.Run(t, "ALTER DATABASE rewardwatch SET synchronous_commit = "+configured)
		l, err := openQuietly(t, onServer(p)(t))
		check(t, err)
		var got string
		check(t, l.db.QueryRowContext(t.Context(), "SHOW synchronous_commit").Scan(&got))
		if got != want {
			t.Errorf("where %s is configured it is %s, want %s", configured, got, want)
		}
		check(t, l.Close())
	}
	p.Run(t, "ALTER DATABASE rewardwatch RESET synchronous_commit")
}

// Limits that an administrator sets on other users' statements and locks do not end writers, which wait for one
// another.
func testWritersAreNotCalledOff(t *testing.T, p *ledgertest.PostgreSQL) {
	for _, limit := range []string{"statement_timeout", "lock_timeout"} {
		p.Run(t, "ALTER DATABASE rewardwatch SET "+limit+" = '1s'")
		l, err := openQuietly(t, onServer(p)(t))
		check(t, err)
		var got string
		check(t, l.db.QueryRowContext(t.Context(), "SHOW "+limit).Scan(&got))
		if got != "0" {
			t.Errorf("%s of a writer is %s, want 0", limit, got)
		}
		check(t, l.Close())
		p.Run(t, "ALTER DATABASE rewardwatch RESET "+limit)
	}
}
