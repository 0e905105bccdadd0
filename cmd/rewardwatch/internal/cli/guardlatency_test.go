package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
)

// The settings of TestTripReachesAgents; by default, it only checks that trips arrive.
var (
	guardTrips = flag.Int("guard-trips", 3, "how many guards trip, one after another")
	guardLoad  = flag.Int("guard-load", 0, "decisions per second that are posted meanwhile")
)

// TestTripReachesAgents measures the time from the telemetry that trips a guard to the response of a long poll. The
// telemetry arrives over HTTP at a service without Kafka that also judges other policies.
func TestTripReachesAgents(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a service")
	}
	t.Parallel()
	cfgFile, _ := localConfig(t)
	guard := "\n    guards: {limits: [{name: never, actions: [drop], then: fallback}]}\nhttp:"
	if err := os.WriteFile(cfgFile, []byte(strings.Replace(testkit.Read(t, cfgFile), "\nhttp:", guard, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startService(t, cfgFile)
	ctx, cancel := context.WithCancel(t.Context())
	var loading sync.WaitGroup
	posted := 0
	begun := time.Now()
	loading.Go(func() { posted = p.load(ctx, t, *guardLoad) })
	rng := rand.New(rand.NewPCG(5, 300))
	var sent, accepted []time.Duration
	for i := range *guardTrips {
		s, a := p.trip(t, fmt.Sprint("ranker-", i), time.Duration(rng.Int64N(int64(500*time.Millisecond))))
		sent, accepted = append(sent, s), append(accepted, a)
	}
	cancel()
	loading.Wait()
	t.Logf("%d trips beside %.0f decisions/s", *guardTrips, float64(posted)/time.Since(begun).Seconds())
	for _, from := range []struct {
		what string
		took []time.Duration
	}{{"sent", sent}, {"accepted", accepted}} {
		slices.Sort(from.took)
		at := func(q float64) time.Duration {
			return from.took[int(q*float64(len(from.took)-1)+.5)].Round(time.Millisecond)
		}
		t.Logf("from telemetry %s to the answer: p50 %s, p99 %s, most %s", from.what, at(.5), at(.99), at(1))
	}
	p.interrupt(t)
}

// decidedNow returns a decision of a policy as telemetry.
func decidedNow(policy, agent, episode, action string, reward float64) []byte {
	return fmt.Appendf(nil, `{"ts":%q,"policy":%q,"agent_id":%q,"episode_id":%q,"step":0,"action":%q,"reward":%g,"terminated":true}`+"\n",
		time.Now().UTC().Format(time.RFC3339Nano), policy, agent, episode, action, reward)
}

// trip trips the guard of a new policy some time after an agent has begun to wait. It returns the times from sending
// the telemetry, and from its acceptance, until the agent has the state.
func (p *process) trip(t *testing.T, policy string, wait time.Duration) (sent, accepted time.Duration) {
	t.Helper()
	for i := range 10 {
		if code, answer := p.send(t, "", string(decidedNow(policy, "a", fmt.Sprint(i), "keep", 1))); code != http.StatusOK {
			t.Fatal(code, answer)
		}
	}
	testkit.Eventually(t, "the first decisions", func() bool {
		var g wire.Guards
		return p.get("/api/v1/guards/"+policy, &g) && g.Guards[0].Values == 10
	})
	state := p.poll(t, policy)
	<-time.After(wait) // so that the telemetry arrives at any time between two checks of the long poll
	begun := time.Now()
	if code, answer := p.send(t, "", string(decidedNow(policy, "a", "last", "drop", 1))); code != http.StatusOK {
		t.Fatal(code, answer)
	}
	taken := time.Now()
	at, open := <-state
	if !open {
		t.Fatal("the agent has another state, or none")
	}
	return at.Sub(begun), at.Sub(taken)
}

// poll requests the guards of a policy, and again with a wait. It returns once the second request has been sent. The
// channel receives when the response arrives, if its state is fallback, and is then closed.
func (p *process) poll(t *testing.T, policy string) <-chan time.Time {
	t.Helper()
	url := "http://" + p.address + "/api/v1/guards/" + policy
	first, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	_ = first.Body.Close() // only its header is needed
	written, state := make(chan struct{}), make(chan time.Time, 1)
	trace := &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { close(written) }}
	r, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodGet, url+"?wait=25s", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("If-None-Match", first.Header.Get("ETag"))
	go func() {
		defer close(state)
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Error(err)
			return
		}
		defer answer.Body.Close()
		var g wire.Guards
		if err := json.NewDecoder(answer.Body).Decode(&g); err != nil || g.State != "fallback" {
			t.Errorf("%d, state %q: %v", answer.StatusCode, g.State, err)
			return
		}
		state <- time.Now()
	}()
	<-written
	return state
}

// load posts decisions of other policies at a rate per second until ctx is done, and returns their number.
func (p *process) load(ctx context.Context, t *testing.T, rate int) (posted int) {
	const pulses, policies, agents = 20, 20, 5
	if rate < pulses {
		return 0
	}
	rng := rand.New(rand.NewPCG(6, 300))
	pulse := time.NewTicker(time.Second / pulses)
	defer pulse.Stop()
	var to address
	to.set(p)
	var body bytes.Buffer
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return posted
		case <-pulse.C:
		}
		body.Reset()
		for range rate / pulses {
			body.Write(decidedNow(fmt.Sprint("other-", posted%policies), fmt.Sprint("a-", posted/policies%agents), fmt.Sprint(posted),
				[]string{"a", "b", "c"}[rng.IntN(3)], rng.NormFloat64()))
			posted++
		}
		if !to.insist(t, fmt.Sprint("load-", n), body.Bytes()) {
			return posted
		}
	}
}
