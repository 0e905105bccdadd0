package retrain

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/retraintest"
	"github.com/rewardwatch/rewardwatch/retrain/target"
)

// The amount of work in TestCrashes. `make test-faults` increases it.
var (
	crashRequests = flag.Int("crash-requests", 150, "requests that are opened")
	crashes       = flag.Int("crashes", 5, "times that the process is killed meanwhile")
)

// The environment of the process that is killed: the directory of ledger and secret, the receiver, and, if the
// ledger is on PostgreSQL, the file with its URL.
const (
	crashDirectory = "REWARDWATCH_TEST_CRASH_DIRECTORY"
	crashReceiver  = "REWARDWATCH_TEST_CRASH_RECEIVER"
	crashURLFile   = "REWARDWATCH_TEST_CRASH_URL_FILE"
)

// crashTargets is the number of targets, which share the work and receive one delivery at a time each.
const crashTargets = 4

// onceTrainer acts once on each id, like receivers of Standard Webhooks.
type onceTrainer struct {
	mu      sync.Mutex
	bodies  map[string][]byte // by id
	repeats int
	wrong   error
}

func (o *onceTrainer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the sender was killed: a partial request is not an order
	}
	id := req.Header.Get("webhook-id")
	o.mu.Lock()
	defer o.mu.Unlock()
	if before, known := o.bodies[id]; known {
		o.repeats++
		if !bytes.Equal(before, body) {
			o.wrong = fmt.Errorf("%s came with two bodies", id)
		}
	}
	o.bodies[id] = body
	w.WriteHeader(http.StatusAccepted)
}

// acted returns the number of orders that it has acted on.
func (o *onceTrainer) acted() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.bodies)
}

// received returns what it has received so far: the bodies by id, the number of repetitions, and the first error.
func (o *onceTrainer) received() (bodies map[string][]byte, repeats int, wrong error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.bodies), o.repeats, o.wrong
}

// A process that orders and delivers retrainings is killed at random moments and started again. Each order is acted
// on exactly once.
func TestCrashes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	if directory := os.Getenv(crashDirectory); directory != "" {
		orderUntilKilled(t, crashConfig(directory, os.Getenv(crashReceiver), os.Getenv(crashURLFile)))
		return
	}
	testCrashes(t, "")
}

// testCrashes takes the file with the URL of PostgreSQL, "" for a ledger on SQLite.
func testCrashes(t *testing.T, urlFile string) {
	trainer := &onceTrainer{bodies: map[string][]byte{}}
	server := httptest.NewServer(trainer)
	defer server.Close()
	directory := t.TempDir()
	check(t, os.WriteFile(filepath.Join(directory, "secret"), []byte(retraintest.Secret+"\n"), 0o600))
	begun, random := time.Now(), rand.New(rand.NewPCG(1, 2))
	for crash := 1; crash <= *crashes; crash++ {
		child := startOrdering(t, directory, server.URL, urlFile)
		waitForOrders(t, trainer, *crashRequests*crash/(*crashes+2)) // the rest is received after the last kill
		time.Sleep(time.Duration(random.Int64N(int64(20 * time.Millisecond))))
		check(t, child.Process.Kill())
		_ = child.Wait() // it was killed on purpose
	}
	child := startOrdering(t, directory, server.URL, urlFile)
	defer func() {
		check(t, child.Process.Kill())
		_ = child.Wait()
	}()
	waitForOrders(t, trainer, *crashRequests)
	cfg := crashConfig(directory, server.URL, urlFile)
	if urlFile == "" {
		check(t, os.Remove(cfg.Ledger.SQLite+".lock")) // to read it while the child has it open
	}
	ledger, err := Open(t.Context(), cfg, testRecipes(t), zerolog.Nop(), prometheus.NewRegistry())
	check(t, err)
	defer func() { check(t, ledger.Close()) }()
	checkCrashed(t, ledger, trainer)
	_, repeats, _ := trainer.received()
	t.Logf("%d requests, %d crashes, %d deliveries repeated, in %s", *crashRequests, *crashes, repeats, time.Since(begun).Round(time.Second))
}

// checkCrashed checks that ledger and trainer have the same orders, once all claims of dead processes have ended.
func checkCrashed(t *testing.T, d *Desk, trainer *onceTrainer) {
	t.Helper()
	var all []ledger.Request
	for deadline := time.Now().Add(10 * time.Minute); ; time.Sleep(time.Second) {
		var err error
		all, err = d.Requests(t.Context(), 2**crashRequests)
		check(t, err)
		open := 0
		for _, q := range all {
			if q.State != ledger.StateDelivered {
				open++
			}
		}
		if open == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d requests are not delivered", open, len(all))
		}
	}
	bodies, _, wrong := trainer.received()
	origins := map[string]bool{}
	for _, q := range all {
		if bodies[q.ID] == nil || origins[q.Origin] {
			t.Errorf("request %s of %s: the trainer has not got it, or it is the second one", q.ID, q.Origin)
		}
		origins[q.Origin] = true
	}
	if len(all) != *crashRequests || len(bodies) != len(all) || wrong != nil {
		t.Errorf("%d requests, %d were acted on, want %d: %v", len(all), len(bodies), *crashRequests, wrong)
	}
}

func startOrdering(t *testing.T, directory, receiver, urlFile string) *exec.Cmd {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestCrashes$", "-crash-requests", fmt.Sprint(*crashRequests))
	child.Env = append(os.Environ(), crashDirectory+"="+directory, crashReceiver+"="+receiver, crashURLFile+"="+urlFile)
	child.Stdout, child.Stderr = os.Stderr, os.Stderr
	check(t, child.Start())
	return child
}

func waitForOrders(t *testing.T, trainer *onceTrainer, n int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Minute); trainer.acted() < n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d orders arrived, want %d", trainer.acted(), n)
		}
	}
}

// crashConfig returns the configuration of both processes.
func crashConfig(directory, receiver, urlFile string) Config {
	cfg := Config{Ledger: ledger.Config{SQLite: filepath.Join(directory, "ledger.db")}}
	if urlFile != "" {
		cfg.Ledger = ledger.Config{PostgresURLFile: urlFile}
	}
	for i := range crashTargets {
		name := fmt.Sprint("trainer-", i)
		cfg.Targets = append(cfg.Targets, target.Target{
			Name: name, Webhook: receiver, SecretFile: filepath.Join(directory, "secret"), Timeout: seconds(1), CompletesWithin: target.DefaultCompletesWithin, AllowPrivate: true,
		})
		cfg.Triggers = append(cfg.Triggers, Trigger{On: OnIncident, Signals: []string{name}, Recipe: "ranker", Target: name})
	}
	return cfg
}

// orderUntilKilled opens the requests that are not in the ledger yet, and delivers all.
func orderUntilKilled(t *testing.T, cfg Config) {
	desk, err := Open(t.Context(), cfg, testRecipes(t), zerolog.New(os.Stderr).Level(zerolog.ErrorLevel), prometheus.NewRegistry())
	check(t, err)
	var delivering sync.WaitGroup
	delivering.Go(func() { check(t, desk.Run(t.Context())) })
	opened, err := desk.Requests(t.Context(), *crashRequests)
	check(t, err)
	for i := len(opened); i < *crashRequests; i++ {
		inc := retraintest.Incident(fmt.Sprint("i", i), fmt.Sprint("policy-", i))
		inc.Alarms[0].Signal = fmt.Sprint("trainer-", i%crashTargets)
		if decision, err := desk.Consider(context.WithoutCancel(t.Context()), inc, time.Time{}); err != nil || decision.Reason != ledger.Opened {
			t.Fatalf("%s: %+v, %v", inc.ID, decision, err)
		}
	}
	delivering.Wait() // until it is killed
}
