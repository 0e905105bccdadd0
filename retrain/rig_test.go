package retrain

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/rs/zerolog"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/recipe"
	"github.com/rewardwatch/rewardwatch/retrain/retraintest"
	"github.com/rewardwatch/rewardwatch/retrain/target"
)

// arrival is one request as the receiver saw it.
type arrival struct {
	at     time.Duration // since the rig was created
	id     string
	body   []byte
	verify error // result of the official library's check of its signature
}

// receiver is a webhook endpoint that answers by a script, one handler per request, and with 200 after its end.
type receiver struct {
	start  time.Time
	script []http.HandlerFunc

	mu       sync.Mutex
	arrivals []arrival
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err == nil {
		var hook *standardwebhooks.Webhook
		if hook, err = standardwebhooks.NewWebhook(retraintest.Secret); err == nil {
			err = hook.Verify(body, req.Header)
		}
	}
	r.mu.Lock()
	n := len(r.arrivals)
	r.arrivals = append(r.arrivals, arrival{time.Since(r.start), req.Header.Get("webhook-id"), body, err})
	r.mu.Unlock()
	if n < len(r.script) {
		r.script[n](w, req)
	}
}

func (r *receiver) seen() []arrival {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]arrival(nil), r.arrivals...)
}

// rig is a desk in a bubble with its receiver. Its desk can be closed and opened again on the same ledger.
type rig struct {
	*Desk
	t         *testing.T
	cfg       Config
	receiver  *receiver
	transport http.RoundTripper
	reg       *prometheus.Registry
	service   context.Context // with which the desk is opened
	stop      func()          // ends Run and passes its error to the test; nil while it does not run
}

// newRig creates a rig. It must be called in a bubble.
func newRig(t *testing.T, on storage, script ...http.HandlerFunc) *rig {
	t.Helper()
	network := retraintest.NewNetwork()
	rc := &receiver{start: time.Now(), script: script}
	server := &http.Server{Handler: rc}
	served := make(chan error, 1)
	go func() { served <- server.Serve(network) }()
	transport := &http.Transport{DialContext: network.Dial, DisableKeepAlives: true}
	r := &rig{t: t, service: t.Context(), cfg: testConfig(t, on), receiver: rc, transport: transport}
	r.reopen()
	t.Cleanup(func() {
		r.close()
		check(t, server.Close())
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("receiver: %v", err)
		}
	})
	return r
}

func testConfig(t *testing.T, on storage) Config {
	t.Helper()
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	check(t, os.WriteFile(secret, []byte(retraintest.Secret+"\n"), 0o600))
	return Config{
		Ledger:   on(t),
		Targets:  []target.Target{{Name: "trainer", Webhook: "http://trainer.test/retrain", SecretFile: secret, Timeout: target.DefaultTimeout, CompletesWithin: target.DefaultCompletesWithin}},
		Recipes:  "recipe/testdata/recipes",
		Triggers: []Trigger{{On: OnIncident, Signals: []string{"return", "reward*"}, Recipe: "ranker", Target: "trainer", Cooldown: defaultCooldown}},
	}
}

// testRecipes returns the recipes of testConfig.
func testRecipes(t testing.TB) recipe.Recipes {
	t.Helper()
	recipes, err := recipe.Load("recipe/testdata/recipes", []string{"env"})
	check(t, err)
	return recipes
}

func (r *rig) reopen() {
	r.t.Helper()
	r.close()
	r.Desk, r.reg = r.another()
}

// another opens another desk on the same ledger, like another instance. The caller closes it.
func (r *rig) another() (*Desk, *prometheus.Registry) {
	r.t.Helper()
	reg := prometheus.NewRegistry()
	desk, err := open(r.service, r.cfg, testRecipes(r.t), zerolog.Nop(), reg, func(target.Target) (http.RoundTripper, error) { return r.transport, nil })
	check(r.t, err)
	return desk, reg
}

func (r *rig) close() {
	if r.stop != nil {
		r.stop()
	}
	if r.Desk != nil {
		check(r.t, r.Close())
		r.Desk = nil
	}
}

// run starts the delivery loop.
func (r *rig) run() {
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan error, 1)
	go func() { done <- runSeldom(ctx, r.t, r.Desk) }()
	r.stop = func() {
		cancel()
		check(r.t, <-done)
		r.stop = nil
	}
}

// soon is the time within which a desk that runs seldom delivers an order.
const soon = 10 * time.Second

// runSeldom is Run for bubbles in which many hours pass. It stops the queue while no job is due, because the queue
// would otherwise poll the ledger twice a second.
func runSeldom(ctx context.Context, t testing.TB, d *Desk) error {
	db := database(t, d.cfg.Ledger) // opening it takes far longer than querying it
	defer db.Close()
	queue := &jobs{db: db, server: d.cfg.Ledger.OnPostgreSQL()}
	return d.runWith(ctx, func(ctx context.Context) error {
		for ctx.Err() == nil {
			busy, cancel := context.WithCancel(ctx)
			ended := make(chan error, 1)
			go func() { ended <- d.dispatcher.run(busy) }()
			for again := true; again; again = queue.due(ctx, 15*time.Second) { // a queue that is stopped at once may leave the lease of a leader behind
				select {
				case err := <-ended:
					cancel()
					return err
				case <-ctx.Done():
				case <-time.After(5 * time.Second):
				}
			}
			cancel()
			if err := <-ended; err != nil {
				return err
			}
			for wait := time.Second; ctx.Err() == nil && !queue.due(ctx, wait+3*time.Second); wait = min(2*wait, soon/2) {
				select {
				case <-ctx.Done():
				case <-time.After(wait):
				}
			}
		}
		return nil
	})
}

// jobs queries a ledger for the jobs of its queue. It does so every few seconds over many hours, so the statement
// is prepared once.
type jobs struct {
	db     *sql.DB
	server bool // on PostgreSQL
	asked  *sql.Stmt
}

// due reports whether a job is being worked on, or is due within the given time.
func (j *jobs) due(ctx context.Context, in time.Duration) bool {
	if ctx.Err() != nil {
		return false
	}
	if j.asked == nil {
		var err error
		j.asked, err = j.db.PrepareContext(ctx, `SELECT EXISTS (
			SELECT 1 FROM river_job WHERE state = 'running' OR state IN ('available', 'scheduled', 'retryable') AND scheduled_at <= $1)`)
		if err != nil {
			return true // the queue reports a missing ledger
		}
	}
	var found bool
	at := any(time.Now().Add(in).UTC())
	if !j.server {
		at = time.Now().Add(in).UTC().Format("2006-01-02 15:04:05.000")
	}
	err := j.asked.QueryRowContext(ctx, at).Scan(&found)
	return err != nil || found // the queue reports a missing ledger
}

// pass lets time pass on the bubble's clock.
func (r *rig) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (r *rig) consider(inc alerts.Incident) ledger.Decision {
	r.t.Helper()
	d, err := r.Consider(r.t.Context(), inc, time.Time{})
	check(r.t, err)
	return d
}

// request returns the ledger's only request.
func (r *rig) request() ledger.Request {
	r.t.Helper()
	all, err := r.Requests(r.t.Context(), 10)
	check(r.t, err)
	if len(all) != 1 {
		r.t.Fatalf("%d requests, want 1: %+v", len(all), all)
	}
	return all[0]
}

// onlyStatement is a change of the ledger.
func onlyStatement(statement string, args ...any) func(*ledger.Tx) error {
	return func(tx *ledger.Tx) error {
		_, err := tx.Exec(statement, args...)
		return err
	}
}

// failJobs reports the failure of all jobs that have their order, so that only undelivered requests are unfinished.
func (r *rig) failJobs() {
	r.t.Helper()
	all, err := r.Requests(r.t.Context(), 1000)
	check(r.t, err)
	for _, q := range all {
		if q.State == ledger.StateDelivered {
			_, err := r.Report(r.t.Context(), q.ID, Report{State: JobFailed, Error: "out of memory", By: "trainer"})
			check(r.t, err)
		}
	}
}

// results returns the results of all attempts, oldest first.
func (r *rig) results() []target.Result {
	r.t.Helper()
	all, err := r.Deliveries(r.t.Context(), "", 100)
	check(r.t, err)
	results := make([]target.Result, len(all))
	for i, d := range all {
		results[len(all)-1-i] = d.Result
	}
	return results
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func seconds(n int) model.Duration { return model.Duration(time.Duration(n) * time.Second) }

// gaugeOf returns the value of a metric of one policy.
func gaugeOf(t *testing.T, reg prometheus.Gatherer, name, policy string) float64 {
	t.Helper()
	families, err := reg.Gather()
	check(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && m.GetLabel()[0].GetValue() == policy {
				return m.GetGauge().GetValue()
			}
		}
	}
	t.Fatalf("there is no %s of %s", name, policy)
	return 0
}
