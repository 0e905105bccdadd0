//go:build e2e

package retrain

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/ledgertest"
	"github.com/rewardwatch/rewardwatch/retrain/retraintest"
)

// TestE2EPostgreSQL runs the tests of the ledger on PostgreSQL, and those that need a server.
func TestE2EPostgreSQL(t *testing.T) {
	p := ledgertest.StartPostgreSQL(t)
	t.Run("Ledger", func(t *testing.T) { testLedger(t, onServer(p)) })
	t.Run("BrokenConnections", func(t *testing.T) { testBrokenConnections(t, p) })
	t.Run("Refusals", func(t *testing.T) { testRefusals(t, p) })
	t.Run("Crashes", func(t *testing.T) { testCrashes(t, p.Schema(t)) })
	t.Run("GoesDown", func(t *testing.T) { testGoesDown(t, p) }) // and stays down
}

// The server ends connections at any point of a transaction, also during a commit.
func testBrokenConnections(t *testing.T, p *ledgertest.PostgreSQL) {
	breakOne := `SELECT pg_terminate_backend(pid)::text || pg_sleep(.02)::text FROM pg_stat_activity
		WHERE application_name = 'rewardwatch' ORDER BY random() LIMIT 1`
	synctest.Test(t, func(t *testing.T) {
		broken := 0
		opened, requests := severalInstances(t, onServer(p), func() {
			for range 40 {
				if p.Query(t, breakOne) == "true" {
					broken++
				}
			}
		})
		if broken < 50 {
			t.Errorf("%d connections were broken, want 50 at least", broken)
		}
		// If a connection broke while a request was committed, the next try finds it already requested.
		if opened > requests {
			t.Errorf("%d decisions opened a request, and there are %d", opened, requests)
		}
	})
	if out := p.Query(t, `SELECT count(*) FROM pg_stat_activity WHERE application_name = 'rewardwatch'`); out != "0" {
		t.Errorf("%s connections are left", out)
	}
}

// The server is down when the service starts, goes down again while nothing happens, and again during the delivery
// of a webhook. Nothing is lost, and the password is not logged.
func testGoesDown(t *testing.T, p *ledgertest.PostgreSQL) {
	cfg := testConfig(t, onServer(p))
	var log lockedBuffer
	var arrivals atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if arrivals.Add(1) == 2 {
			p.Stop(t)
		}
	}))
	defer server.Close()
	cfg.Targets[0].Webhook, cfg.Targets[0].AllowPrivate = server.URL, true
	ctx, cancel := contextWithCancel(t)

	p.Stop(t)
	opened, recipes := make(chan *Desk, 1), testRecipes(t)
	go func() {
		desk, err := Open(ctx, cfg, recipes, zerolog.New(&log), prometheus.NewRegistry())
		if err != nil {
			t.Error(err)
		}
		opened <- desk
	}()
	waitUntil(t, "Open says that it waits", func() bool { return strings.Contains(log.String(), "the ledger cannot be reached") })
	p.Start(t)
	desk := <-opened
	if desk == nil {
		return
	}
	p.Stop(t)
	done := make(chan error, 1)
	go func() { done <- desk.Run(ctx) }()
	decided := make(chan ledger.Decision, 1)
	go func() {
		d, err := desk.Consider(ctx, retraintest.Incident("i1", "ranker"), time.Time{})
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
	p.Start(t)
	if d := <-decided; d.Reason != ledger.Opened {
		t.Errorf("decision %+v, want opened", d)
	}
	waitUntil(t, "the first request is delivered", func() bool { return delivered(t, desk) == 1 })

	second, err := desk.Consider(ctx, retraintest.Incident("i2", "bidder"), time.Time{})
	check(t, err)
	before = testutil.ToFloat64(desk.metrics.retries)
	waitUntil(t, "the courier waits to record the second delivery", func() bool { return testutil.ToFloat64(desk.metrics.retries) > before })
	p.Start(t)
	waitUntil(t, "the second request is delivered", func() bool { return delivered(t, desk) == 2 })
	attempts, err := desk.Deliveries(ctx, second.Request, 10)
	check(t, err)
	if n := arrivals.Load(); n != 2 || len(attempts) != 1 {
		t.Errorf("%d arrivals and attempts %+v, want 2 arrivals, one of them of the second request", n, attempts)
	}

	p.Stop(t)
	go func() {
		_, err := desk.Consider(context.WithoutCancel(ctx), retraintest.Incident("i3", "pricer"), time.Time{})
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
	if !strings.Contains(log.String(), "decide whether incident i3") {
		t.Error("an incident that could not be considered before the stop is no error")
	}
	check(t, desk.Close())
	if strings.Contains(log.String(), ledgertest.Password) {
		t.Error("the password stands in the log")
	}
}

func testRefusals(t *testing.T, p *ledgertest.PostgreSQL) {
	good := p.URL(t)
	for name, test := range map[string]struct{ url, want string }{
		"password": {strings.Replace(good, ledgertest.Password, ledgertest.Password+"-wrong", 1), "password authentication failed"},
		"database": {strings.Replace(good, "/rewardwatch?", "/nothing?", 1), `database "nothing" does not exist`},
	} {
		t.Setenv("REWARDWATCH_TEST_LEDGER_URL", test.url)
		cfg := testConfig(t, func(*testing.T) ledger.Config { return ledger.Config{PostgresURLEnv: "REWARDWATCH_TEST_LEDGER_URL"} })
		_, err := Open(t.Context(), cfg, testRecipes(t), zerolog.Nop(), prometheus.NewRegistry())
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), ledgertest.Password) {
			t.Errorf("%s: %v, want %q without the password", name, err, test.want)
		}
	}
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

// delivered counts the delivered requests, 0 while the server cannot be reached.
func delivered(t *testing.T, d *Desk) (n int) {
	all, err := d.Requests(t.Context(), 10)
	if err != nil {
		return 0
	}
	for _, q := range all {
		if q.State == ledger.StateDelivered {
			n++
		}
	}
	return n
}

func waitUntil(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(3 * time.Minute); !holds(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within a minute: %s", what)
		}
	}
}
