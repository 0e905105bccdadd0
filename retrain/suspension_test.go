package retrain

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/retraintest"
)

// copyLedger returns the whole ledger as a single file, which the ledger then consists of.
func (r *rig) copyLedger() []byte {
	r.t.Helper()
	copied := filepath.Join(r.t.TempDir(), "copy.db")
	put(r.t, r.cfg.Ledger, `VACUUM INTO '`+copied+`'`)
	put(r.t, r.cfg.Ledger, `PRAGMA wal_checkpoint(TRUNCATE)`)
	content, err := os.ReadFile(copied)
	check(r.t, err)
	return content
}

// garble overwrites the file, and drops what connections have in memory.
func (r *rig) garble() {
	r.t.Helper()
	info, err := os.Stat(r.cfg.Ledger.SQLite)
	check(r.t, err)
	r.ledger.LetGo()
	check(r.t, os.WriteFile(r.cfg.Ledger.SQLite, bytes.Repeat([]byte("garbage"), int(info.Size())/7), 0o600))
}

// putBack replaces the file by a copy, as an operator would.
func (r *rig) putBack(content []byte) {
	r.t.Helper()
	file := r.cfg.Ledger.SQLite
	for _, beside := range []string{"-wal", "-shm"} {
		if err := os.Remove(file + beside); err != nil && !errors.Is(err, os.ErrNotExist) {
			r.t.Fatal(err)
		}
	}
	check(r.t, os.WriteFile(file+".copy", content, 0o644))
	check(r.t, os.Rename(file+".copy", file))
}

// If a file is damaged while the service runs, the ledger is suspended. Restoring a copy makes it available again.
func TestDamagedLedgerIsSuspended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, onSQLite)
		r.run()
		first := r.consider(retraintest.Incident("i1", "ranker"))
		r.pass(soon)
		if state := r.request().State; state != ledger.StateDelivered {
			t.Fatalf("the first request is %s", state)
		}
		whole := r.copyLedger()
		r.garble()

		start := time.Now()
		_, err := r.Consider(t.Context(), retraintest.Incident("i2", "other"), time.Time{})
		if !errors.Is(err, ledger.ErrSuspended) || time.Since(start) != 0 {
			t.Fatalf("after %s: %v", time.Since(start), err)
		}
		if err := r.Suspended(); err == nil || !strings.HasSuffix(err.Error(), ": its file is damaged") {
			t.Errorf("suspended: %v", err)
		}
		if _, err := r.Report(t.Context(), first.Request, Report{State: JobStarted, By: "trainer"}); !errors.Is(err, ledger.ErrSuspended) {
			t.Errorf("report: %v", err)
		}
		if _, err := r.Requests(t.Context(), 10); !errors.Is(err, ledger.ErrSuspended) {
			t.Errorf("requests: %v", err)
		}
		if _, err := r.Request(t.Context(), first.Request); !errors.Is(err, ledger.ErrSuspended) {
			t.Errorf("request: %v", err)
		}
		if _, _, err := r.Search(t.Context(), ledger.Filter{Limit: 1}); !errors.Is(err, ledger.ErrSuspended) {
			t.Errorf("search: %v", err)
		}
		const out = `# HELP rewardwatch_retrain_ledger_suspended 1 if the ledger is unavailable, 0 otherwise.
# TYPE rewardwatch_retrain_ledger_suspended gauge
rewardwatch_retrain_ledger_suspended `
		check(t, testutil.GatherAndCompare(r.reg, strings.NewReader(out+"1\n"), MetricLedgerSuspended, MetricRequests))
		r.pass(2 * time.Minute)
		if r.Suspended() == nil {
			t.Fatal("a damaged ledger is in use again")
		}

		r.putBack(nil) // as a full disk may leave it
		r.pass(2 * ledger.LongestProbe)
		if err := r.Suspended(); err == nil || !strings.Contains(err.Error(), "tables are missing") {
			t.Errorf("suspended with an empty file: %v", err)
		}
		check(t, os.Remove(r.cfg.Ledger.SQLite))
		r.pass(2 * ledger.LongestProbe)
		if err := r.Suspended(); err == nil || !strings.Contains(err.Error(), "missing") {
			t.Errorf("suspended without a file: %v", err)
		}

		r.putBack(whole)
		r.pass(2 * ledger.LongestProbe)
		check(t, r.Suspended())
		if n := r.Revivals(); n != 1 {
			t.Errorf("it came back %d times", n)
		}
		check(t, testutil.GatherAndCompare(r.reg, strings.NewReader(out+"0\n"), MetricLedgerSuspended))
		if info, err := os.Stat(r.cfg.Ledger.SQLite); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode %s: %v", info.Mode(), err)
		}
		for range 2 {
			r.consider(retraintest.Incident("i2", "other"))
		}
		r.pass(soon)
		all, err := r.Requests(t.Context(), 10)
		check(t, err)
		for _, q := range all {
			if q.State != ledger.StateDelivered || q.Attempts != 1 {
				t.Errorf("request %s of %s is %s after %d attempts", q.ID, q.Policy, q.State, q.Attempts)
			}
		}
		if seen := r.receiver.seen(); len(all) != 2 || len(seen) != 2 || seen[0].id == seen[1].id {
			t.Errorf("%d requests, arrivals %v", len(all), seen)
		}
	})
}

// An answer of the receiver during a suspension is kept, so that it gets the order once; waiting requests are
// delivered afterwards. The queue queries the ledger all the time.
func TestAnswerDuringASuspension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *rig
		var whole []byte
		r = newRig(t, onSQLite, func(w http.ResponseWriter, _ *http.Request) {
			whole = r.copyLedger()
			r.garble()
			time.Sleep(2 * time.Second)
			w.WriteHeader(http.StatusOK)
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		r.consider(retraintest.Incident("i1", "ranker"))
		r.consider(retraintest.Incident("i2", "other")) // both are in the restored ledger
		go func() { done <- r.Run(ctx) }()
		r.pass(5 * time.Minute)
		if err := r.Suspended(); err == nil || len(r.receiver.seen()) != 1 {
			t.Fatalf("suspended: %v after %d deliveries", err, len(r.receiver.seen()))
		}
		r.putBack(whole)
		r.pass(3 * time.Minute)
		check(t, r.Suspended())
		all, err := r.Requests(t.Context(), 10)
		check(t, err)
		for _, q := range all {
			if q.State != ledger.StateDelivered || q.Attempts != 1 {
				t.Errorf("request %s of %s is %s after %d attempts", q.ID, q.Policy, q.State, q.Attempts)
			}
		}
		if seen := r.receiver.seen(); len(all) != 2 || len(seen) != 2 || seen[0].id == seen[1].id {
			t.Errorf("%d requests, arrivals %v", len(all), seen)
		}
		cancel()
		check(t, <-done)
	})
}

// The service stops cleanly while its ledger is suspended, even if an answer waits for it.
func TestStopDuringASuspension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, stop := context.WithCancel(t.Context())
		var r *rig
		r = newRig(t, onSQLite, func(w http.ResponseWriter, _ *http.Request) {
			r.garble()
			w.WriteHeader(http.StatusOK)
		})
		r.service = service
		r.reopen()
		done := make(chan error, 1)
		go func() { done <- r.Run(service) }()
		r.consider(retraintest.Incident("i1", "ranker"))
		r.pass(time.Minute)
		if r.Suspended() == nil {
			t.Fatal("the ledger is in use")
		}
		start := time.Now()
		stop()
		check(t, <-done)
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("the stop took %s", took)
		}
	})
}

// A missing table suspends the ledger until the table is back, not only until the next change needs it.
func TestMissingTableSuspends(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, onSQLite)
		r.run()
		rename := func(from, to string) {
			put(t, r.cfg.Ledger, `ALTER TABLE `+from+` RENAME TO `+to)
		}
		rename("decisions", "elsewhere")
		if _, err := r.Consider(t.Context(), retraintest.Incident("i1", "ranker"), time.Time{}); !errors.Is(err, ledger.ErrSuspended) {
			t.Fatal(err)
		}
		r.pass(2 * time.Minute)
		if err := r.Suspended(); err == nil || !strings.HasSuffix(err.Error(), "its tables are missing") {
			t.Errorf("suspended: %v", err)
		}
		rename("elsewhere", "decisions")
		r.pass(2 * ledger.LongestProbe)
		check(t, r.Suspended())
		if d := r.consider(retraintest.Incident("i1", "ranker")); d.Reason != ledger.Opened {
			t.Errorf("decided %+v", d)
		}
	})
}
