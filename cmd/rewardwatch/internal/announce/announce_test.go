package announce

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/model"
	"github.com/rs/zerolog"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/names"
	"github.com/rewardwatch/rewardwatch/detectors/guard"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
	"github.com/rewardwatch/rewardwatch/retrain/retraintest"
	"github.com/rewardwatch/rewardwatch/retrain/target"
)

// guards are the guards of some policies, as a test sets them.
type guards struct {
	Bell
	mu  sync.Mutex
	all []*guard.Summary
}

func (g *guards) get() []*guard.Summary {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.all
}

// set replaces the guards, and rings.
func (g *guards) set(all ...*guard.Summary) {
	g.mu.Lock()
	g.all = all
	g.mu.Unlock()
	g.Ring()
}

func summary(policy string, seq uint64, state guard.State, age time.Duration) *guard.Summary {
	return &guard.Summary{
		Policy: policy, Seq: seq, State: state, MaxAge: age, OnSilence: "hold",
		Guards: []guard.Verdict{{Name: "unsafe", State: state, Tripped: state > guard.Warn, Limit: "no step with action y", Alpha: .01, Evidence: 1}},
	}
}

// start runs an announcer until the test ends.
func start(t *testing.T, g *guards, targets ...Target) *prometheus.Registry {
	t.Helper()
	reg := prometheus.NewRegistry()
	a, err := New(Config{Targets: targets}, g.get, &g.Bell, zerolog.Nop(), reg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { a.Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait() })
	return reg
}

// receiverOf serves a webhook, checks the signatures, and hands on what was accepted: answer returns the status of the
// nth request, from 1.
func receiverOf(t *testing.T, answer func(n int, of *wire.Guards) int) (Target, <-chan wire.Guards) {
	t.Helper()
	hook, err := standardwebhooks.NewWebhook(retraintest.Secret)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "guards.secret")
	if err := os.WriteFile(file, []byte(retraintest.Secret), 0o600); err != nil {
		t.Fatal(err)
	}
	got := make(chan wire.Guards, 1000)
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = hook.Verify(body, r.Header)
		}
		var g wire.Guards
		if err == nil {
			err = json.Unmarshal(body, &g)
		}
		if err != nil {
			t.Error(err)
		}
		status := answer(int(asked.Add(1)), &g)
		if status == http.StatusOK {
			got <- g
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(s.Close)
	return Target{Name: "hook", Webhook: s.URL, SecretFile: file, Timeout: model.Duration(10 * time.Second), AllowPrivate: true}, got
}

func always(status int) func(int, *wire.Guards) int {
	return func(int, *wire.Guards) int { return status }
}

// next returns the next document.
func next(t *testing.T, got <-chan wire.Guards) wire.Guards {
	t.Helper()
	select {
	case g := <-got:
		return g
	case <-time.After(20 * time.Second):
		t.Fatal("no document has come")
		return wire.Guards{}
	}
}

// Every state arrives signed, and a trip at once.
func TestWebhooksHaveTheState(t *testing.T) {
	to, got := receiverOf(t, always(http.StatusOK))
	g := &guards{}
	g.set(summary("ranker", 1, guard.OK, time.Hour))
	start(t, g, to)
	if first := next(t, got); first.Policy != "ranker" || first.State != "ok" || first.Seq != 1 || !first.Until.Equal(first.At.Add(time.Hour)) {
		t.Errorf("%+v", first)
	}
	changed := time.Now()
	g.set(summary("ranker", 2, guard.Hold, time.Hour))
	if second := next(t, got); second.State != "hold" || second.Seq != 2 {
		t.Errorf("%+v", second)
	}
	if took := time.Since(changed); took > 5*time.Second {
		t.Errorf("the trip took %s", took)
	}
	more := summary("ranker", 2, guard.Hold, time.Hour)
	more.Guards[0].Values = 9
	g.set(more)
	g.set(more, summary("bidder", 1, guard.OK, time.Hour))
	if third := next(t, got); third.Policy != "bidder" {
		t.Errorf("more evidence without another state was sent: %+v", third)
	}
}

// A document that agents would soon take for too old is sent again, with a later end.
func TestDocumentsAreRenewed(t *testing.T) {
	to, got := receiverOf(t, always(http.StatusOK))
	g := &guards{}
	g.set(summary("ranker", 1, guard.OK, 3*time.Second))
	start(t, g, to)
	first := next(t, got)
	if again := next(t, got); !again.Until.After(first.Until) || again.At.After(first.Until) {
		t.Errorf("renewed at %s, until %s, but the first one held until %s", again.At, again.Until, first.Until)
	}
}

// What a target does not take is tried again, but only in its newest form; another state does not wait for the pause.
func TestFailuresAreTriedAgain(t *testing.T) {
	failing := make(chan struct{}, 10)
	to, got := receiverOf(t, func(n int, of *wire.Guards) int {
		if of.Seq < 3 {
			failing <- struct{}{}
			return http.StatusInternalServerError
		}
		return http.StatusOK
	})
	g := &guards{}
	g.set(summary("ranker", 1, guard.OK, time.Hour))
	reg := start(t, g, to)
	<-failing
	g.set(summary("ranker", 2, guard.Fallback, time.Hour))
	<-failing
	<-failing // after a pause
	undelivered := fmt.Sprintf("# HELP %s Current guard states that a target has not received, or that have expired at the target.\n# TYPE %s gauge\n%s 1\n",
		names.MetricGuardsUndelivered, names.MetricGuardsUndelivered, names.MetricGuardsUndelivered)
	if err := testutil.GatherAndCompare(reg, strings.NewReader(undelivered), names.MetricGuardsUndelivered); err != nil {
		t.Error(err)
	}
	g.set(summary("ranker", 3, guard.OK, time.Hour))
	if taken := next(t, got); taken.Seq != 3 {
		t.Errorf("%+v", taken)
	}
}

// A document that a target has accepted counts as undelivered once it has expired and cannot be renewed.
func TestExpiredDocumentsAreUndelivered(t *testing.T) {
	to, got := receiverOf(t, func(n int, _ *wire.Guards) int {
		if n > 1 {
			return http.StatusInternalServerError
		}
		return http.StatusOK
	})
	g := &guards{}
	g.set(summary("ranker", 1, guard.OK, 3*time.Second))
	reg := start(t, g, to)
	until := next(t, got).Until
	for _, want := range []float64{0, 1} { // accepted, expired
		for late := time.Now().Add(20 * time.Second); undelivered(t, reg) != want; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(late) {
				t.Fatalf("%v are undelivered, want %v", undelivered(t, reg), want)
			}
		}
	}
	if now := time.Now(); now.Before(until) {
		t.Errorf("counted %s before it expired", until.Sub(now))
	}
}

// undelivered returns the value of the metric.
func undelivered(t *testing.T, reg *prometheus.Registry) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == names.MetricGuardsUndelivered {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatal("no metric")
	return 0
}

// A receiver that is gone for good is left alone.
func TestATargetThatIsGoneIsLeftAlone(t *testing.T) {
	asked := make(chan uint64, 10)
	to, _ := receiverOf(t, func(_ int, of *wire.Guards) int {
		asked <- of.Seq
		return http.StatusGone
	})
	g := &guards{}
	g.set(summary("ranker", 1, guard.OK, time.Hour))
	a, err := New(Config{Targets: []Target{to}}, g.get, &g.Bell, zerolog.Nop(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	a.Run(t.Context()) // ends by itself
	if len(asked) != 1 {
		t.Errorf("asked %d times, want once", len(asked))
	}
}

// Many policies arrive all, at most so many at the same time, and each in the order of its states.
func TestPoliciesKeepTheirOrder(t *testing.T) {
	var mu sync.Mutex
	newest, now, most := map[string]uint64{}, 0, 0
	to, got := receiverOf(t, func(_ int, of *wire.Guards) int {
		mu.Lock()
		if now++; now > most {
			most = now
		}
		if of.Seq <= newest[of.Policy] {
			t.Errorf("%s: %d after %d", of.Policy, of.Seq, newest[of.Policy])
		}
		newest[of.Policy] = of.Seq
		mu.Unlock()
		time.Sleep(time.Millisecond) // so that attempts overlap
		mu.Lock()
		now--
		mu.Unlock()
		return http.StatusOK
	})
	g := &guards{}
	start(t, g, to)
	const policies, states = 20, 5
	for seq := range uint64(states) {
		var all []*guard.Summary
		for i := range policies {
			all = append(all, summary(fmt.Sprint("p-", i), seq+1, guard.State(seq%4), time.Hour))
		}
		g.set(all...)
	}
	last := map[string]bool{}
	for len(last) < policies {
		if of := next(t, got); of.Seq == states {
			last[of.Policy] = true
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if most > perTarget {
		t.Errorf("%d at the same time, want at most %d", most, perTarget)
	}
}

// A topic is created with compaction, and has the newest state of each policy under its name.
func TestTheTopicIsCompacted(t *testing.T) {
	broker, err := ingesttest.Start(1, "other")
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	g := &guards{}
	g.set(summary("ranker", 1, guard.OK, time.Hour), summary("bidder", 1, guard.OK, time.Hour))
	start(t, g, Target{
		Name: "topic", Timeout: model.Duration(10 * time.Second), AllowPrivate: true, Kafka: target.Kafka{Topic: "guards", Brokers: broker.Addrs()},
	})
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.Addrs()...), kgo.ConsumeTopics("guards"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.MetadataMinAge(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	state := map[string]string{}
	read := func(done func() bool) {
		t.Helper()
		for !done() {
			fetched := client.PollFetches(ctx)
			if ctx.Err() != nil {
				t.Fatalf("only %v has come", state)
			}
			fetched.EachRecord(func(r *kgo.Record) {
				var of wire.Guards
				if err := json.Unmarshal(r.Value, &of); err != nil || of.Policy != string(r.Key) {
					t.Errorf("%s: %s, %v", r.Key, r.Value, err)
				}
				state[of.Policy] = of.State
			})
		}
	}
	read(func() bool { return len(state) == 2 })
	g.set(summary("ranker", 2, guard.Fallback, time.Hour), summary("bidder", 1, guard.OK, time.Hour))
	read(func() bool { return state["ranker"] == "fallback" && state["bidder"] == "ok" })
	if policy := broker.Cluster().TopicInfo("guards").Configs["cleanup.policy"]; policy == nil || *policy != "compact" {
		t.Errorf("cleanup.policy is %v", policy)
	}
}
