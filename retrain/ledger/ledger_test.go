package ledger

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// storage creates an empty ledger for a test, and returns its configuration.
type storage func(t *testing.T) Config

func onSQLite(t *testing.T) Config {
	return Config{SQLite: filepath.Join(t.TempDir(), "new", "ledger.db")}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestStoreOnSQLite(t *testing.T) { testStore(t, onSQLite) }

// testStore runs every test that only needs a ledger; TestE2EStoreOnPostgreSQL runs the same ones.
func testStore(t *testing.T, on storage) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, storage)
	}{
		{"LedgerIsAppendOnly", testLedgerIsAppendOnly},
		{"LedgerKeepsTheRulesItself", testLedgerKeepsTheRulesItself},
		{"LedgerOfANewerBuildIsRefused", testLedgerOfANewerBuildIsRefused},
		{"AddressesAreNotKept", testAddressesAreNotKept},
		{"StartsAtOnce", testStartsAtOnce},
		{"SearchOfAnEarlierLedger", testSearchOfAnEarlierLedger},
		{"JudgingWaitsForNoReader", testJudgingWaitsForNoReader},
		{"ReadersOnlyRead", testReadersOnlyRead},
		{"ReadIsCutShort", testReadIsCutShort},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, on) })
	}
}

// openQuietly opens a ledger that must not have to wait.
func openQuietly(t *testing.T, cfg Config) (*Ledger, error) {
	tell := quiet
	tell.Waits = func(err error, _ time.Duration) { t.Errorf("the ledger waits: %v", err) }
	return Open(t.Context(), cfg, tell)
}

// quiet ignores all events.
var quiet = Listener{Waits: func(error, time.Duration) {}, Suspended: func(error, *SuspendedError) {}, Revived: func(time.Time) {}}

// Stored entries can be neither changed nor removed by anyone who writes to the ledger.
func testLedgerIsAppendOnly(t *testing.T, on storage) {
	l, err := openQuietly(t, on(t))
	check(t, err)
	check(t, l.Update(t.Context(), func(tx *Tx) error {
		return tx.Insert(t.Context(), Entry{Id: "rr_1", State: StateOpen, Origin: "i1", Policy: "p", Body: []byte("{}"), Opened: time.Now(), Due: time.Now()})
	}))
	for _, statement := range []string{
		`INSERT INTO decisions (incident, reason, at, policy, request, detail) VALUES ('i1', 'opened', 1, 'p', 'rr_1', '')`,
		`INSERT INTO deliveries (request, attempt, target, started_at, finished_at, result, status, error, response)
			VALUES ('rr_1', 1, 't', 1, 2, 'rejected', 500, 'no', ''), ('rr_1', 2, 't', 3, 4, 'interrupted', 0, '', ''), ('rr_1', 3, 't', 5, NULL, 'in_flight', 0, '', '')`,
		`UPDATE deliveries SET finished_at = 2, result = 'rejected', status = 500, error = 'no', response = '' WHERE attempt = 1`, // finished a second time
		`UPDATE deliveries SET finished_at = 5, result = 'delivered', status = 200 WHERE attempt = 2`,                             // arrived later after all
		`UPDATE deliveries SET finished_at = 6, result = 'delivered', status = 200 WHERE attempt = 3`,
		`UPDATE requests SET state = 'awaiting_approval'`,
		`INSERT INTO cuts (request, at, body) VALUES ('rr_1', 1, (SELECT body FROM requests WHERE id = 'rr_1'))`,
		`UPDATE cuts SET at = 2`,
		`UPDATE requests SET state = 'delivered', reason = 'x', new_version = 'v3', attempts = 3, due_at = 9, next_attempt_at = 9, log = 'x'`,
	} {
		if _, err := l.db.ExecContext(t.Context(), statement); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
	refused := []string{
		`UPDATE history SET reason = 'x'`, `DELETE FROM history`, `UPDATE decisions SET detail = 'x'`, `DELETE FROM decisions`, `DELETE FROM requests`,
		`DELETE FROM deliveries`, `UPDATE deliveries SET status = 200 WHERE attempt = 1`, `UPDATE deliveries SET finished_at = NULL WHERE attempt = 3`,
		`UPDATE deliveries SET response = 'x' WHERE attempt = 2`, `UPDATE cuts SET at = 2`, `DELETE FROM cuts`,
	}
	for table, columns := range map[string]string{
		"requests": "id kind origin_kind origin parent policy trigger_key recipe target body opened_at", "deliveries": "request attempt target started_at",
	} {
		for column := range strings.FieldsSeq(columns) {
			refused = append(refused, fmt.Sprintf(`UPDATE %s SET %s = %[2]s`, table, column))
		}
	}
	if l.shared {
		refused = append(refused, `TRUNCATE history`, `TRUNCATE decisions`, `TRUNCATE deliveries`, `TRUNCATE requests CASCADE`)
	}
	for _, statement := range refused {
		if _, err := l.db.ExecContext(t.Context(), statement); err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: %v, want a refusal", statement, err)
		}
	}
	check(t, l.Close())
}

func testLedgerKeepsTheRulesItself(t *testing.T, on storage) {
	l, err := openQuietly(t, on(t))
	check(t, err)
	put := func(id, incident, policy string) error {
		return l.Update(t.Context(), func(tx *Tx) error {
			return tx.Insert(t.Context(), Entry{Id: id, State: StateOpen, Origin: incident, Policy: policy, Body: []byte("{}"), Opened: time.Now(), Due: time.Now()})
		})
	}
	check(t, put("rr_1", "i1", "p"))
	if put("rr_2", "i1", "q") == nil {
		t.Error("a second request of an incident was taken")
	}
	if put("rr_3", "i2", "p") == nil {
		t.Error("a second open request of a policy was taken")
	}
	check(t, l.Close())
}

func TestLedgerIsDurable(t *testing.T) {
	l, err := openQuietly(t, onSQLite(t))
	check(t, err)
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1"} {
		var got string
		check(t, l.db.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got))
		if got != want {
			t.Errorf("%s is %s, want %s", pragma, got, want)
		}
	}
	check(t, l.Close())
}

func testLedgerOfANewerBuildIsRefused(t *testing.T, on storage) {
	cfg := on(t)
	l, err := openQuietly(t, cfg)
	check(t, err)
	_, err = l.db.ExecContext(t.Context(), `INSERT INTO migrations (version, name, applied_at) VALUES (99, 'later', 0)`)
	check(t, err)
	check(t, l.Close())
	if _, err := openQuietly(t, cfg); err == nil || !strings.Contains(err.Error(), "newer build") {
		t.Errorf("Open: %v, want a refusal", err)
	}
}

func TestLedgerPathWithOddCharacters(t *testing.T) {
	dir := t.TempDir()
	l, err := openQuietly(t, Config{SQLite: dir + "/a ?b#c%20/led ger.db"})
	check(t, err)
	check(t, l.Close())
	again, err := openQuietly(t, Config{SQLite: dir + "/a ?b#c%20/led ger.db"})
	check(t, err)
	check(t, again.Close())
}

func testStartsAtOnce(t *testing.T, on storage) {
	cfg := on(t)
	var wg sync.WaitGroup
	ledgers := make([]*Ledger, 6)
	for i := range ledgers {
		wg.Go(func() {
			var err error
			if ledgers[i], err = Open(t.Context(), cfg, quiet); err != nil { // one may have to wait
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	files, err := migrations.ReadDir("migrations/" + ledgers[0].name)
	check(t, err)
	var applied int
	check(t, ledgers[0].db.QueryRowContext(t.Context(), `SELECT count(*) FROM migrations`).Scan(&applied))
	if applied != len(files) {
		t.Errorf("%d migrations were applied, want %d", applied, len(files))
	}
	for _, l := range ledgers {
		check(t, l.Close())
	}
}

func TestBothLedgersHaveTheSameMigrations(t *testing.T) {
	var names []string
	for _, dialect := range []string{"sqlite", "postgres"} {
		files, err := migrations.ReadDir("migrations/" + dialect)
		check(t, err)
		var own []string
		for _, f := range files {
			own = append(own, f.Name())
		}
		names = append(names, strings.Join(own, " "))
	}
	if names[0] != names[1] || names[0] == "" {
		t.Errorf("SQLite has %s, PostgreSQL %s", names[0], names[1])
	}
}

// Entries that an earlier build has written are found as well.
func testSearchOfAnEarlierLedger(t *testing.T, on storage) {
	cfg := on(t)
	open := openSQLite
	if cfg.OnPostgreSQL() {
		open = openPostgreSQL
	}
	l, err := open(cfg)
	check(t, err)
	l.tell = quiet
	dir := path.Join("migrations", l.name)
	files, err := migrations.ReadDir(dir)
	check(t, err)
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	check(t, l.Update(t.Context(), func(tx *Tx) error {
		if _, err := schemaVersion(t.Context(), tx); err != nil {
			return err
		}
		for _, f := range files {
			if strings.HasSuffix(f.Name(), "_search.sql") {
				break
			}
			if err := apply(t.Context(), tx, dir, f.Name()); err != nil {
				return err
			}
		}
		for id, body := range map[string]string{
			"rr_1": `{"data":{"cause":"policy","contract":{"objective":"sells \u0000 as much \\u0000"},"evidence":["one","two"]}}`,
			"rr_2": `{"data":{"incident":"i2"}}`,
		} {
			e := Entry{Id: id, State: StateOpen, Origin: id, Policy: id, Body: []byte(body), Opened: now, Due: now.Add(time.Hour), By: "alice", Why: "for a reason"}
			if err := tx.Insert(t.Context(), e); err != nil {
				return err
			}
		}
		return settle(t.Context(), tx, now, StateRejected, "unwanted", `id = $4`, "rr_1")
	}))
	check(t, l.Close())
	l, err = openQuietly(t, cfg)
	check(t, err)
	desk := l
	for text, want := range map[string]string{
		"sells as much": "rr_1", "two unwanted alice": "rr_1", "reason": "rr_1 rr_2", "three": "",
	} {
		var got []string
		found, _, err := desk.Search(t.Context(), Filter{Text: text, Limit: 10})
		check(t, err)
		for _, q := range found {
			got = append(got, q.ID)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %v, want %s", text, got, want)
		}
	}
	check(t, settleOne(t.Context(), l, "rr_2"))
	found, _, err := desk.Search(t.Context(), Filter{Text: "later alice", Limit: 10})
	check(t, err)
	if len(found) != 1 || found[0].ID != "rr_2" {
		t.Errorf("what came later: %+v", found)
	}
	check(t, l.Close())
}

func settleOne(ctx context.Context, l *Ledger, id string) error {
	return l.Update(ctx, func(tx *Tx) error {
		return settle(ctx, tx, time.Now(), StateRejected, "said later", `id = $4`, id)
	})
}

// However many readers there are, and however slow they are, judging continues, because it has its own connections.
func testJudgingWaitsForNoReader(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		l, err := openQuietly(t, on(t))
		check(t, err)
		defer func() { check(t, l.Close()) }()
		for range readConnections {
			conn, err := l.reads.Conn(t.Context())
			check(t, err)
			defer func() { check(t, conn.Close()) }()
			rows, err := conn.QueryContext(t.Context(), `SELECT id FROM requests`)
			check(t, err)
			defer func() { check(t, errors.Join(rows.Err(), rows.Close())) }()
		}
		now := time.Now()
		check(t, l.Update(t.Context(), func(tx *Tx) error {
			return tx.Insert(t.Context(), Entry{Id: "rr_1", State: StateOpen, Origin: "i1", Policy: "p", Body: []byte("{}"), Opened: now, Due: now.Add(time.Hour)})
		}))
		check(t, l.Update(t.Context(), func(tx *Tx) error {
			_, err := Move{Id: "rr_1", From: []State{StateOpen}, To: StateRejected, By: "bob", At: now}.Apply(t.Context(), tx)
			return err
		}))
		if counts, err := l.CountRequests(t.Context()); err != nil || counts[Pair{"p", "rejected"}] != 1 {
			t.Errorf("requests %v: %v", counts, err)
		}
		// A reader's wait ends at its deadline.
		start := time.Now()
		if _, err := l.Request(t.Context(), "rr_1"); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != readTimeout {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
		if _, _, err := l.Search(t.Context(), Filter{Limit: 1}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("search: %v", err)
		}
	})
}

// Queries for people cannot write.
func testReadersOnlyRead(t *testing.T, on storage) {
	l, err := openQuietly(t, on(t))
	check(t, err)
	defer func() { check(t, l.Close()) }()
	if _, err := l.reads.ExecContext(t.Context(), `DELETE FROM decisions`); err == nil || !strings.Contains(err.Error(), "read") {
		t.Errorf("a reader has written: %v", err)
	}
}

// A running statement is canceled at its deadline, not only one that waits.
func testReadIsCutShort(t *testing.T, on storage) {
	l, err := openQuietly(t, on(t))
	check(t, err)
	defer func() { check(t, l.Close()) }()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err = l.reads.ExecContext(ctx, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000000000) SELECT max(i) FROM n`)
	if err == nil || time.Since(start) > 10*time.Second {
		t.Errorf("after %s: %v", time.Since(start), err)
	}
}

// During an outage, callers wait for a short time; later callers are not delayed any more. Callers that are waiting
// stop with the first one.
func TestLongOutageSuspends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := openQuietly(t, onSQLite(t))
		check(t, err)
		l.tell = quiet
		l.Arm()
		down := errors.New("down")
		var tries int
		l.outage = func(err error) bool { return errors.Is(err, down) }
		away := func(*Tx) error { tries++; return down }
		done := make(chan error, 1)
		start := time.Now()
		go func() { done <- l.Update(t.Context(), away) }()
		time.Sleep(patience - firstWait)
		go func() { done <- l.Update(t.Context(), away) }()
		for range 2 {
			if err := <-done; !errors.Is(err, ErrSuspended) || time.Since(start) > patience {
				t.Errorf("after %s: %v", time.Since(start), err)
			}
		}
		tries = 0
		if err := l.Update(t.Context(), away); !errors.Is(err, ErrSuspended) || tries != 0 {
			t.Errorf("%d tries: %v", tries, err)
		}
		trying, cancel := context.WithCancel(t.Context())
		tried := make(chan struct{})
		go func() { l.Revive(trying); close(tried) }()
		time.Sleep(2 * firstProbe)
		check(t, l.Suspended())
		check(t, l.Update(t.Context(), func(*Tx) error { return nil }))
		cancel()
		<-tried
		check(t, l.Close())
	})
}

// An error due to a rule of the ledger is not a failure of the ledger.
func TestRefusalsDoNotSuspend(t *testing.T) {
	l, err := openQuietly(t, onSQLite(t))
	check(t, err)
	l.Arm()
	for name, statement := range map[string]string{
		"a rule": `INSERT INTO migrations (version, name, applied_at) SELECT version, name, applied_at FROM migrations`,
		"a null": `INSERT INTO migrations (version, name, applied_at) VALUES (1000, NULL, 0)`,
	} {
		if err := l.Update(t.Context(), func(tx *Tx) error { _, err := tx.ExecContext(t.Context(), statement); return err }); err == nil || errors.Is(err, ErrSuspended) || l.Suspended() != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	check(t, l.Close())
}
