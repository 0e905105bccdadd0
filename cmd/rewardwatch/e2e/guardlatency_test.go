//go:build e2e && throughput

package e2e

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
)

var guardedPolicies = flag.Int("guarded", 100, "policies whose guards trip in TestGuardLatency, one after another")

// configOfGuarded sets a limit that a single step violates, so that this step is the proof.
const configOfGuarded = `policies:
  - {match: "guarded-*", guards: {limits: [{name: never, actions: [refund_all], then: fallback}]}}
  - match: "*"`

// TestGuardLatency measures the time from the step that proves a violation to the response that its agent waits for,
// while the service reads half of what it can.
func TestGuardLatency(t *testing.T) {
	m := newMeasured(t, startBroker(t, ""), build(t), trafficNamed("one-step decisions"), newPopulation(20), configOfGuarded)
	m.clock = func() int64 { return time.Now().UnixMilli() }
	m.read(t, m.eventsOf(baselineUnits), m.calibrated)
	rate := m.read(t, *throughputEvents/4, nil).rate() / 2

	client := m.writer(t, m.topic)
	defer client.Close()
	process := m.run(t)
	process.until(t, "the topic is read", m.ready)
	ctx, cancel := context.WithCancelCause(t.Context())
	loaded := make(chan struct{})
	go func() { defer close(loaded); m.load(ctx, cancel, client, rate) }()
	rng := rand.New(rand.NewPCG(5, 300))
	var took []time.Duration
	for i := range *guardedPolicies {
		wait := time.Duration(rng.Int64N(int64(500 * time.Millisecond))) // so that the step arrives at any time between two checks of the long poll
		took = append(took, m.trip(ctx, t, client, i, wait))
	}
	cancel(nil)
	<-loaded
	process.stop(t)
	slices.Sort(took)
	at := func(q float64) time.Duration {
		return took[int(q*float64(len(took)-1))].Round(time.Millisecond)
	}
	fmt.Fprintf(os.Stderr, "%d trips while %.0f events/s are read:\n\n| from | to | median | 90%% | 99%% | most |\n| --- | --- | --- | --- | --- | --- |\n", len(took), rate)
	fmt.Fprintf(os.Stderr, "| step produced | agent has the state | %s | %s | %s | %s |\n", at(.5), at(.9), at(.99), at(1))
}

// trip has a new policy violate its limit some time after its agent has begun to wait, and returns how long the agent
// did not know.
func (m *measured) trip(ctx context.Context, t *testing.T, client *kgo.Client, i int, wait time.Duration) time.Duration {
	t.Helper()
	policy := fmt.Sprintf("guarded-%d", i)
	decide := func(episode int, action string) {
		t.Helper()
		e := moment{ts: time.Now().UnixMilli(), world: 41, policy: policy, env: "prod-0", agent: "agent", episode: episode, last: true, action: action}
		written := client.ProduceSync(ctx, &kgo.Record{Partition: int32(i % m.partitions), Value: m.encode(nil, &e)})
		if err := written.FirstErr(); err != nil {
			t.Fatalf("write to %s: %v", m.topic, context.Cause(ctx))
		}
	}
	decide(0, "none")
	var tag string
	eventually(t, "the first decision of "+policy, func() (err error) {
		_, tag, err = m.guards(ctx, policy, "")
		return err
	})
	type answer struct {
		state string
		at    time.Time
		err   error
	}
	answered := make(chan answer, 1)
	go func() {
		state, _, err := m.guards(ctx, policy, tag)
		answered <- answer{state, time.Now(), err}
	}()
	<-time.After(wait)
	begun := time.Now()
	decide(1, "refund_all")
	a := <-answered
	if a.state == "" && a.err == nil {
		t.Fatalf("%s has not tripped after 25 seconds: the machine is too busy to read half of what it read before", policy)
	}
	if a.err != nil || a.state != "fallback" {
		t.Fatalf("the agent of %s has the state %q: %v", policy, a.state, a.err)
	}
	return a.at.Sub(begun)
}

// guards returns the state of the guards of a policy as an agent reads it. Given the tag of a state, it waits for
// another state, and returns none if there is none within 25 seconds.
func (m *measured) guards(ctx context.Context, policy, tag string) (state, newTag string, err error) {
	url := "http://" + m.address + "/api/v1/guards/" + policy
	if tag != "" {
		url += "?wait=25s"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", "", err
	}
	r.Header.Set("If-None-Match", tag)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", "", err
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusNotModified:
		return "", tag, nil
	default:
		return "", "", fmt.Errorf("GET %s: %s", url, response.Status)
	}
	var g wire.Guards
	err = json.NewDecoder(response.Body).Decode(&g)
	return g.State, response.Header.Get("ETag"), err
}
