//go:build e2e && throughput

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var latencyPolicies = flag.Int("drifting", 100, "policies that drift in TestLatency, one after another")

// configOfDrifting watches the policies that drift with a small baseline, and orders a retraining for each.
const configOfDrifting = `policies:
  - {match: "drifting-*", baseline: {units: 100}, false_alarms: {budget: 1, per: "2000 episodes"}}
  - match: "*"
retrain:
  ledger: {sqlite: %q}
  recipes: %q
  targets: [{name: trainer, webhook: %q, secret_file: %q, allow_private: true}]
  triggers: [{on: incident, signals: [return, reward], recipe: again, target: trainer}]
`

const recipeOfDrifting = `contract:
  objective: "{{ policy }} earns what it did"
  hypothesis: a policy that has learned from the data since then does
  expected: mean return > 0 over 200 episodes within 24h
  owner: agents@shop.example
config: {}
`

// place is the position of a record.
type place struct {
	partition int
	offset    int64
}

// arrival is a webhook: the last drifted record that its order names, and its time of arrival.
type arrival struct {
	policy   string
	last     place
	opened   time.Time // according to the body, by the clock of the service
	received time.Time
}

// latency is a service that reads half of what it can, together with policies that drift.
type latency struct {
	*measured
	client   *kgo.Client
	arrivals chan arrival
	sent     map[place]time.Time // when records of drifts were passed to the client
}

// TestLatency measures the time from an event to the webhook of the drift that it proves. A new environment makes one
// policy after another lose reward until its retraining is ordered.
func TestLatency(t *testing.T) {
	l := newLatency(t)
	defer l.client.Close()
	l.read(t, 110*len(l.all), l.calibrated) // many more decisions of a policy than of the load
	l.all = l.all[:fewestActors]
	rate := l.read(t, *throughputEvents/4, nil).rate() / 2

	process := l.run(t)
	process.until(t, "the topic is read", l.ready)
	ctx, cancel := context.WithCancelCause(t.Context())
	loaded := make(chan struct{})
	go func() { defer close(loaded); l.load(ctx, cancel, l.client, rate) }()
	var whole, opening, delivering []time.Duration
	without := 0
	for i := range *latencyPolicies {
		a, ordered := l.drift(ctx, t, fmt.Sprintf("drifting-%d", i), i%trafficPartitions)
		if !ordered {
			without++
			continue
		}
		produced, known := l.sent[a.last]
		if !known {
			t.Fatalf("the order of %s ends at %+v, where nothing drifted", a.policy, a.last)
		}
		whole = append(whole, a.received.Sub(produced))
		opening = append(opening, a.opened.Sub(produced))
		delivering = append(delivering, a.received.Sub(a.opened))
	}
	cancel(nil)
	<-loaded
	process.stop(t)
	if without > *latencyPolicies/10 {
		t.Errorf("no retraining of %d policies was ordered", without)
	}
	fmt.Fprintf(os.Stderr, "%d drifts while %.0f events/s are read, and %d of policies that still collected their baselines:\n\n| from | to | median | 90%% | 99%% |\n| --- | --- | --- | --- | --- |\n", len(whole), rate, without)
	for _, part := range []struct {
		from, to string
		took     []time.Duration
	}{{"event produced", "request opened", opening}, {"request opened", "webhook received", delivering}, {"event produced", "webhook received", whole}} {
		slices.Sort(part.took)
		at := func(q float64) time.Duration {
			return part.took[int(q*float64(len(part.took)-1))].Round(time.Millisecond)
		}
		fmt.Fprintf(os.Stderr, "| %s | %s | %s | %s | %s |\n", part.from, part.to, at(.5), at(.9), at(.99))
	}
}

// newLatency sets up 20 groups as the load, and the policies that will drift, which act like the load at first.
func newLatency(t *testing.T) *latency {
	t.Helper()
	l := &latency{arrivals: make(chan arrival, 1), sent: map[place]time.Time{}}
	trainer := httptest.NewServer(http.HandlerFunc(l.receive))
	t.Cleanup(trainer.Close)
	dir := t.TempDir()
	secret := filepath.Join(dir, "trainer.secret")
	err := errors.Join(os.WriteFile(secret, []byte(webhookSecret+"\n"), 0o600), os.Mkdir(filepath.Join(dir, "recipes"), 0o755),
		os.WriteFile(filepath.Join(dir, "recipes", "again.yaml"), []byte(recipeOfDrifting), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	l.measured = newMeasured(t, startBroker(t, ""), build(t), trafficNamed("one-step decisions"), newPopulation(20), fmt.Sprintf(configOfDrifting,
		filepath.Join(dir, "ledger.db"), filepath.Join(dir, "recipes"), trainer.URL, secret))
	l.clock = func() int64 { return time.Now().UnixMilli() }
	for i := range *latencyPolicies {
		l.all = append(l.all, actor{policy: fmt.Sprintf("drifting-%d", i), env: "prod-0", name: "agent", partition: i % trafficPartitions})
	}
	l.policies += *latencyPolicies // these have one group each
	l.client = l.writer(t, l.topic)
	return l
}

// receive handles a webhook.
func (l *latency) receive(w http.ResponseWriter, r *http.Request) {
	a := arrival{received: time.Now()}
	var body struct {
		Timestamp time.Time `json:"timestamp"`
		Data      struct {
			Policy  string `json:"policy"`
			Offsets struct {
				Drifted []struct {
					Partition int   `json:"partition"`
					Last      int64 `json:"last"`
				} `json:"drifted"`
			} `json:"offsets"`
		} `json:"data"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	a.policy, a.opened = body.Data.Policy, body.Timestamp
	for _, drifted := range body.Data.Offsets.Drifted {
		a.last = place{drifted.Partition, drifted.Last}
	}
	l.arrivals <- a
	w.WriteHeader(http.StatusAccepted)
}

// drift makes a policy lose reward in a new environment, with one decision every 20 ms, until its webhook arrives. A
// policy without a baseline causes no webhook, as calibrated does not wait for all.
func (l *latency) drift(ctx context.Context, t *testing.T, policy string, partition int) (a arrival, ordered bool) {
	t.Helper()
	pulse := time.NewTicker(20 * time.Millisecond)
	defer pulse.Stop()
	for step := range 500 {
		e := moment{ts: time.Now().UnixMilli(), world: 42, policy: policy, env: "prod-0", agent: "agent", episode: 1_000_000 + step, last: true, action: "offer_a", reward: -5 + float64(step%7)}
		now := time.Now()
		written := l.client.ProduceSync(ctx, &kgo.Record{Partition: int32(partition), Value: l.encode(nil, &e)})
		if err := written.FirstErr(); err != nil {
			t.Fatalf("write to %s: %v", l.topic, context.Cause(ctx))
		}
		l.sent[place{partition, written[0].Record.Offset}] = now
		select {
		case a := <-l.arrivals:
			if a.policy == policy {
				return a, true
			}
		case <-pulse.C:
		}
	}
	return arrival{}, false
}
