package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
)

// The simulated agents of the demo: their number, and the number of steps that all of them together take per second.
const (
	simulatedAgents = 16
	simulatedRate   = 1200
	simulatedPulse  = 20 * time.Millisecond
)

// simulation is a fleet of agents that make offers to customers and send their telemetry to Kafka. When the world
// drifts, customers stop liking one offer, and the unchanged policy earns less. After the retraining, the policy nearly
// always makes the offer that customers still like best.
type simulation struct {
	network   *kafka.Transport
	writer    *kafka.Writer
	rng       *rand.Rand
	agents    [simulatedAgents]simulatedAgent
	drifted   atomic.Bool
	retrained atomic.Bool
	sent      atomic.Int64 // events
	ended     atomic.Int64 // episodes
}

// The versions of the simulated policy.
const (
	firstVersion     = "2026-11-01.3"
	retrainedVersion = "2026-11-01.4"
)

type simulatedAgent struct {
	episode, step, length int
}

// simulatedEvent is telemetry version 1, as an agent would write it.
type simulatedEvent struct {
	TS            string             `json:"ts"`
	Policy        string             `json:"policy"`
	PolicyVersion string             `json:"policy_version"`
	Env           string             `json:"env"`
	EnvVersion    string             `json:"env_version"`
	RewardVersion string             `json:"reward_version"`
	AgentID       string             `json:"agent_id"`
	EpisodeID     string             `json:"episode_id"`
	Step          int                `json:"step"`
	Action        string             `json:"action"`
	Reward        float64            `json:"reward"`
	Terminated    bool               `json:"terminated"`
	Outcomes      map[string]float64 `json:"outcomes"`
}

func newSimulation(brokers []string, topic string) *simulation {
	network := &kafka.Transport{}
	s := &simulation{
		rng: rand.New(rand.NewPCG(2026, 11)), network: network,
		writer: &kafka.Writer{
			Addr: kafka.TCP(brokers...), Topic: topic, Balancer: &kafka.Hash{}, RequiredAcks: kafka.RequireAll,
			BatchTimeout: simulatedPulse, BatchSize: 500, Transport: network,
		},
	}
	for i := range s.agents {
		s.agents[i] = simulatedAgent{length: s.episodeLength(), step: s.rng.IntN(10)}
	}
	return s
}

// run lets the agents act until ctx ends.
func (s *simulation) run(ctx context.Context) error {
	pulse := time.NewTicker(simulatedPulse)
	defer pulse.Stop()
	defer s.network.CloseIdleConnections()
	defer func() { _ = s.writer.Close() }() // every message has already been acknowledged
	steps := int(simulatedRate * simulatedPulse.Seconds())
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-pulse.C:
		}
		messages := make([]kafka.Message, steps)
		for i := range messages {
			messages[i] = s.step(i % simulatedAgents)
		}
		if err := s.writer.WriteMessages(ctx, messages...); err != nil && ctx.Err() == nil {
			return fmt.Errorf("send simulated telemetry: %w", err)
		}
		s.sent.Add(int64(steps))
	}
}

func (s *simulation) episodeLength() int { return 14 + s.rng.IntN(13) }

// step lets one agent act once.
func (s *simulation) step(i int) kafka.Message {
	a := &s.agents[i]
	e := simulatedEvent{
		TS: time.Now().UTC().Format(time.RFC3339Nano), Policy: "checkout-ranker", PolicyVersion: firstVersion,
		Env: "prod-eu", EnvVersion: "41", RewardVersion: "r7",
		AgentID: fmt.Sprintf("a-%d", i), EpisodeID: fmt.Sprintf("a-%d/%d", i, a.episode), Step: a.step,
		Terminated: a.step >= a.length,
	}
	liked := map[string]float64{"offer_a": .2, "offer_b": .6, "offer_c": .1}
	if s.drifted.Load() {
		e.EnvVersion = "42"
		liked["offer_b"] = .35
	}
	offers := [2]float64{.3, .8} // the shares of offer a, and of a and b
	if s.retrained.Load() {
		e.PolicyVersion, offers = retrainedVersion, [2]float64{.02, .98}
	}
	e.Action = s.offer(offers)
	conversion := 0.0
	if s.rng.Float64() < liked[e.Action] {
		conversion = 1
	}
	e.Outcomes = map[string]float64{"conversion": conversion}
	e.Reward = conversion - .3 + .2*s.rng.NormFloat64() // making an offer has a cost
	if a.step++; e.Terminated {
		*a = simulatedAgent{episode: a.episode + 1, length: s.episodeLength()}
		s.ended.Add(1)
	}
	value, _ := json.Marshal(e) // strings and finite numbers: it cannot fail
	return kafka.Message{Key: []byte(e.AgentID), Value: value}
}

// offer returns an offer: a up to the first share, and b up to the second.
func (s *simulation) offer(shares [2]float64) string {
	switch x := s.rng.Float64(); {
	case x < shares[0]:
		return "offer_a"
	case x < shares[1]:
		return "offer_b"
	}
	return "offer_c"
}
