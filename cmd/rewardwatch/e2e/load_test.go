//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// The behavior of the load: each agent takes one step per pulse, in an environment that is healthy for the first units
// of a policy, and then repeatedly degraded for some units and healthy for others.
const (
	loadPulse  = 50 * time.Millisecond
	loadAgents = 8 // per policy
	soundFirst = 560
	spoiltFor  = 120
	soundAgain = 400
)

// load is a fleet of simulated agents that write to one topic until it is stopped. Their actions depend on the seed,
// and their times on the clock. It also computes what a service must have seen in the end.
type load struct {
	topic    string
	client   *kgo.Client
	rng      *rand.Rand
	policies []*loadPolicy
	events   int
	pulses   int
	slowest  time.Duration // the slowest pulse

	stop context.CancelFunc
	done sync.WaitGroup
}

// loadPolicy is a policy of the load, with what its agents have done.
type loadPolicy struct {
	name   string
	key    func(agent string) string // of the agents' records
	drifts bool
	agents []*loadAgent

	begun, ended int   // number of episodes
	lastEnd      int   // the pulse in which an episode last ended
	total        tally // of the completed episodes
}

// tally sums up rewards. Its sums are exact, as rewards are multiples of 1/1024.
type tally struct{ rewards, positive, negative float64 }

func (a tally) plus(b tally) tally {
	return tally{a.rewards + b.rewards, a.positive + b.positive, a.negative + b.negative}
}

type loadAgent struct {
	id            string
	episode       int
	step, length  int   // the episode ends at that length, or slightly later
	spoilt, whole bool  // the environment of its episode, and whether the episode ends by itself
	total         tally // of its episode
}

// loadEvent is telemetry version 1.
type loadEvent struct {
	TS         int64              `json:"ts"` // Unix nanoseconds
	Policy     string             `json:"policy"`
	Env        string             `json:"env"`
	EnvVersion string             `json:"env_version"`
	Agent      string             `json:"agent_id"`
	Episode    string             `json:"episode_id"`
	Step       int                `json:"step"`
	Action     string             `json:"action"`
	Reward     float64            `json:"reward"`
	Terminated bool               `json:"terminated"`
	Truncated  bool               `json:"truncated"`
	Outcomes   map[string]float64 `json:"outcomes"`
}

// startLoad begins to write to a topic. The agents of one policy share a partition, those of the others are spread, and
// one policy never drifts. In a units topic of loadPartitions, each policy has its own partition. The load writes to
// the broker directly, regardless of where the broker sends other clients.
func startLoad(t *testing.T, b *broker, topic string, seed uint64) *load {
	t.Helper()
	client, err := kgo.NewClient(
		kgo.SeedBrokers(b.address), kgo.DefaultProduceTopic(topic), kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerLinger(0), kgo.AlwaysRetryEOF(), // for a broker that goes down during a connection
		kgo.MetadataMinAge(100*time.Millisecond), kgo.WithLogger(kgo.BasicLogger(t.Output(), kgo.LogLevelError, nil)),
		kgo.Dialer(func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, b.address)
		}))
	if err != nil {
		t.Fatal(err)
	}
	own := func(agent string) string { return agent }
	l := &load{topic: topic, client: client, rng: rand.New(rand.NewPCG(seed, 1))}
	l.policies = []*loadPolicy{
		{name: "together", key: func(string) string { return "together" }, drifts: true},
		{name: "spread", key: own, drifts: true},
		{name: "apart", key: own, drifts: true},
		{name: "sound", key: own},
	}
	for _, p := range l.policies {
		for i := range loadAgents {
			a := &loadAgent{id: fmt.Sprintf("%s/%d", p.name, i)}
			p.agents = append(p.agents, a)
			l.begin(p, a)
			a.step = l.rng.IntN(a.length) // otherwise all would end their first episodes together
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.stop = cancel
	l.done.Go(func() {
		if err := l.run(ctx); err != nil {
			t.Errorf("write the load: %v", err)
		}
	})
	t.Cleanup(l.end)
	return l
}

// end stops the agents within their episodes and returns when the broker has all of their records.
func (l *load) end() {
	l.stop()
	l.done.Wait()
	l.client.Close()
}

// run lets every agent act once per pulse. Unlike real agents, a pulse waits for the acknowledgement of the preceding
// one, so partitions are never more than one pulse apart.
func (l *load) run(ctx context.Context) error {
	pulse := time.NewTicker(loadPulse)
	defer pulse.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-pulse.C:
		}
		began := time.Now()
		// It waits for the end of an outage of the broker: what has been passed to the client is written, and written
		// once.
		if err := l.client.ProduceSync(context.WithoutCancel(ctx), l.act(began)...).FirstErr(); err != nil {
			return err
		}
		l.slowest = max(l.slowest, time.Since(began))
	}
}

// act lets every agent take a step, and returns the records, each slightly later than the preceding one.
func (l *load) act(now time.Time) []*kgo.Record {
	var records []*kgo.Record
	l.pulses++
	for _, p := range l.policies {
		for _, a := range p.agents {
			e := l.step(p, a)
			e.TS = now.UnixNano() + int64(len(records))
			value, _ := json.Marshal(e) // strings and finite numbers: it cannot fail
			records = append(records, &kgo.Record{Key: []byte(p.key(a.id)), Value: value})
		}
	}
	l.events += len(records)
	return records
}

func (l *load) step(p *loadPolicy, a *loadAgent) loadEvent {
	e := loadEvent{
		Policy: p.name, Env: "arena", EnvVersion: "1", Agent: a.id, Episode: fmt.Sprintf("%s/%d", a.id, a.episode), Step: a.step,
		Action: [...]string{"left", "right", "stay"}[l.rng.IntN(3)], Outcomes: map[string]float64{"conversion": float64(l.rng.IntN(2))},
	}
	mean := .25
	if a.spoilt {
		e.EnvVersion, mean = "2", -.05
	}
	e.Reward = float64(int64((mean+.4*l.rng.NormFloat64())*1024)) / 1024
	a.total = a.total.plus(tally{1, max(e.Reward, 0), max(-e.Reward, 0)})
	// At most one episode of a policy ends per pulse, so that the order of the ends does not depend on the duration of
	// a pulse.
	if a.step++; a.step >= a.length && p.lastEnd != l.pulses {
		p.lastEnd = l.pulses
		e.Terminated, e.Truncated = a.whole, !a.whole
		p.ended++
		p.total = p.total.plus(a.total)
		l.begin(p, a)
	}
	return e
}

// begin starts the next episode of an agent.
func (l *load) begin(p *loadPolicy, a *loadAgent) {
	since := p.begun - soundFirst
	spoilt := p.drifts && since >= 0 && since%(spoiltFor+soundAgain) < spoiltFor
	*a = loadAgent{id: a.id, episode: a.episode + 1, length: 7 + l.rng.IntN(7), spoilt: spoilt, whole: l.rng.IntN(4) > 0}
	p.begun++
}
