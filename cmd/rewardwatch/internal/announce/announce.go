// Package announce sends the state of guards to receivers, which forward it to agents: the same document that the API
// returns, as signed webhooks and as messages in a compacted topic.
package announce

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/names"
	"github.com/rewardwatch/rewardwatch/detectors/guard"
	"github.com/rewardwatch/rewardwatch/ingest/kafkalog"
	"github.com/rewardwatch/rewardwatch/retrain/target"
)

const (
	event      = "guards" // type of the messages
	lookEvery  = time.Second
	perTarget  = 4 // maximum number of concurrent attempts per target; each is for a different policy, so that a policy's documents keep their order
	firstPause = time.Second
	maxPause   = 30 * time.Second
)

// Bell wakes goroutines that wait for a change of a guard. The zero value is ready for use.
type Bell struct {
	mu   sync.Mutex
	next chan struct{}
}

// Next returns a channel that the next Ring closes.
func (b *Bell) Next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == nil {
		b.next = make(chan struct{})
	}
	return b.next
}

// Ring wakes all waiting goroutines.
func (b *Bell) Ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next != nil {
		close(b.next)
		b.next = nil
	}
}

// Announcer sends the guards of each policy to every target when their state changes, and again before the last sent
// document becomes too old for agents. If a target does not accept a document, the next attempt sends the newest one,
// so documents never accumulate.
type Announcer struct {
	guards   func() []*guard.Summary
	bell     *Bell
	targets  []*receiver
	attempts *prometheus.CounterVec
	log      zerolog.Logger
}

// New returns an Announcer for the guards that a function returns. It reads the secrets of the targets, but does not
// connect. The configuration must have passed Check.
func New(cfg Config, guards func() []*guard.Summary, bell *Bell, log zerolog.Logger, reg prometheus.Registerer) (*Announcer, error) {
	a := &Announcer{
		guards: guards, bell: bell, log: log, attempts: prometheus.NewCounterVec(
			prometheus.CounterOpts{Name: names.MetricGuardDeliveries, Help: "Attempts to send guard states to targets, by result."}, []string{"target", "result"}),
	}
	var targets []target.Target
	for _, t := range cfg.Targets {
		targets = append(targets, t.asTarget())
	}
	adapters, err := target.NewAdapters(targets, target.Means{
		Check: func([]byte) error { return nil }, Transport: target.NewTransport,
	})
	if err != nil {
		return nil, fmt.Errorf("guards: %w", err)
	}
	for _, t := range cfg.Targets {
		a.targets = append(a.targets, &receiver{Announcer: a, Target: t, adapter: adapters[t.Name], sent: map[string]*sent{}, done: make(chan done, perTarget)})
		a.attempts.WithLabelValues(t.Name, string(target.ResultDelivered))
	}
	reg.MustRegister(a.attempts, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: names.MetricGuardsUndelivered, Help: "Current guard states that a target has not received, or that have expired at the target.",
	}, a.undelivered))
	return a, nil
}

// Run sends until ctx ends, and then waits for the attempts in flight.
func (a *Announcer) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, r := range a.targets {
		running.Go(func() { r.run(ctx) })
	}
	running.Wait()
}

func (a *Announcer) undelivered() (n float64) {
	for _, r := range a.targets {
		r.mu.Lock()
		n += float64(r.behind)
		r.mu.Unlock()
	}
	return n
}

// receiver is one target. Its goroutine owns all fields except behind.
type receiver struct {
	*Announcer
	Target
	adapter  target.Adapter
	sent     map[string]*sent // by policy
	inFlight int
	gone     bool // it answered 410
	done     chan done

	mu     sync.Mutex
	behind int
}

// sent is the state of a policy at a target.
type sent struct {
	tag      string // of the document that the target accepted last, "" before the first
	at       time.Time
	tried    string // tag of the document that was last tried
	retry    time.Time
	pause    time.Duration
	inFlight bool
}

// done is the result of an attempt.
type done struct {
	policy, tag string
	at          time.Time
	attempt     target.Attempt
}

func (r *receiver) run(ctx context.Context) {
	if r.Kafka.Topic != "" {
		r.makeTopic(ctx)
	}
	var attempts sync.WaitGroup
	defer attempts.Wait()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for ctx.Err() == nil && !r.gone {
		changed := r.bell.Next() // before the state is read, so that no change is missed
		for _, s := range r.due(time.Now()) {
			if r.inFlight == perTarget {
				break
			}
			r.begin(ctx, &attempts, s)
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-look.C:
		case d := <-r.done:
			r.ended(&d)
		}
	}
}

// makeTopic creates the topic if it does not exist, and warns if it is not compacted.
func (r *receiver) makeTopic(ctx context.Context) {
	topic, err := kafkalog.Open(r.Kafka.Config(), r.Kafka.Topic, r.log)
	if err != nil {
		r.log.Error().Err(err).Str("target", r.Name).Msg("failed to inspect the guard state topic")
		return
	}
	defer func() { _ = topic.Close() }()
	ctx, cancel := context.WithTimeout(ctx, time.Duration(r.Timeout))
	defer cancel()
	if _, err = topic.Partitions(ctx); err != nil {
		err = topic.Make(ctx, 1, map[string]string{"cleanup.policy": "compact"})
	}
	policy := ""
	if err == nil {
		policy, err = topic.Setting(ctx, "cleanup.policy")
	}
	switch {
	case err != nil:
		r.log.Warn().Err(err).Str("target", r.Name).Msg("failed to create or read the guard state topic: create it with cleanup.policy=compact")
	case !strings.Contains(policy, "compact"):
		r.log.Warn().Str("target", r.Name).Str("topic", r.Kafka.Topic).Str("cleanup_policy", policy).
			Msg("the guard state topic is not compacted: agents that start later may not find the state of their policy")
	}
}

// due returns the documents to send now: changes before documents that are about to expire, and of either kind first
// the one that was sent longest ago.
func (r *receiver) due(now time.Time) (out []*guard.Summary) {
	behind := 0
	present := map[string]bool{}
	for _, g := range r.guards() {
		present[g.Policy] = true
		of := r.of(g.Policy)
		tag := wire.GuardsTag(g)
		if tag != of.tag || now.Sub(of.at) >= g.MaxAge { // agents have a different state, or no valid one
			behind++
		}
		switch {
		case of.inFlight, tag == of.tried && now.Before(of.retry):
		case tag != of.tag, now.Sub(of.at) >= g.MaxAge/3:
			out = append(out, g)
		}
	}
	for policy, of := range r.sent {
		if !present[policy] && !of.inFlight { // forgotten, or judged by another instance
			delete(r.sent, policy)
		}
	}
	r.mu.Lock()
	r.behind = behind
	r.mu.Unlock()
	slices.SortStableFunc(out, func(a, b *guard.Summary) int {
		x, y := r.of(a.Policy), r.of(b.Policy)
		if old, other := x.tag == wire.GuardsTag(a), y.tag == wire.GuardsTag(b); old != other {
			if other {
				return -1
			}
			return 1
		}
		return x.at.Compare(y.at)
	})
	return out
}

func (r *receiver) of(policy string) *sent {
	if r.sent[policy] == nil {
		r.sent[policy] = &sent{}
	}
	return r.sent[policy]
}

// begin makes one attempt in the background. Shutdown does not interrupt it; the timeout of the target bounds it.
func (r *receiver) begin(ctx context.Context, attempts *sync.WaitGroup, g *guard.Summary) {
	now, of := time.Now(), r.of(g.Policy)
	tag := wire.GuardsTag(g)
	of.inFlight, of.tried = true, tag
	r.inFlight++
	body, err := json.Marshal(wire.GuardsOf(g, now))
	m := target.Message{ID: messageID(g, now), Policy: g.Policy, Target: r.Name, Event: event, Body: body, Opened: now, Expires: now.Add(g.MaxAge)}
	attempts.Go(func() {
		d := done{policy: g.Policy, tag: tag, at: now, attempt: target.Attempt{Result: target.ResultInvalid}}
		if err != nil {
			d.attempt.Err = err.Error()
		} else {
			d.attempt = r.adapter.Send(context.WithoutCancel(ctx), m)
		}
		r.done <- d // has enough capacity for all attempts
	})
}

// ended records the result of an attempt.
func (r *receiver) ended(d *done) {
	of := r.of(d.policy)
	of.inFlight = false
	r.inFlight--
	r.attempts.WithLabelValues(r.Name, string(d.attempt.Result)).Inc()
	if d.attempt.Result == target.ResultDelivered {
		*of = sent{tag: d.tag, at: d.at}
		return
	}
	of.pause = min(maxPause, max(firstPause, 2*of.pause))
	of.retry = d.at.Add(max(of.pause, min(maxPause, d.attempt.RetryAfter)))
	log := r.log.Warn()
	if r.gone = d.attempt.Result == target.ResultGone; r.gone {
		log = r.log.Error()
	}
	log.Str("target", r.Name).Str("policy", d.policy).Str("result", string(d.attempt.Result)).Int("status", d.attempt.Status).
		Str("error", d.attempt.Err).Bool("disabled", r.gone).Msg("failed to deliver a guard state")
}

// messageID identifies a document. The same state at another time is a different document.
func messageID(g *guard.Summary, at time.Time) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(g.Policy)) // a hash takes everything
	return fmt.Sprintf("guards_%x_%d_%d", h.Sum64(), g.Seq, at.UnixNano())
}
