//go:build e2e && throughput

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/rewardwatch/rewardwatch/ingest/protobuf/telemetrypb"
)

// trafficPartitions is the default number of partitions of a telemetry topic.
const trafficPartitions = 4

// trafficRate is the number of events of all groups together per second of event time.
const trafficRate = 50_000

// traffic is a kind of telemetry.
type traffic struct {
	name    string
	steps   int    // per unit
	unit    int    // events per unit, if more than steps
	message int    // events per message
	topic   string // additional configuration of the topic
	config  string // additional configuration of the service
	encode  func(to []byte, e *moment) []byte
}

// moment is a step of an agent, or the summary of one of its episodes.
type moment struct {
	ts            int64 // Unix milliseconds
	world         int   // the version of the environment
	policy, env   string
	agent         string
	episode, step int
	last          bool
	action        string
	reward        float64
	clicked       bool
}

// largestBlock is the maximum number of fast decisions that are judged together.
const largestBlock = 64

var traffics = []traffic{
	{name: "episodes of 50 steps", steps: 50, message: 1, encode: encodeStep},
	{name: "the same, 64 in a message", steps: 50, message: 64, encode: encodeStep},
	{name: "the same in Protobuf", steps: 50, message: 1, topic: "format: protobuf", encode: encodeProtobuf},
	{name: "the same, mapped", steps: 50, message: 1, topic: mappingOfNested, encode: encodeNested},
	{name: "one-step decisions", steps: 1, message: 1, encode: encodeStep},
	{name: "one-step decisions in blocks", steps: 1, unit: largestBlock, message: 1, config: "policies: [{match: '*', baseline: {blocks: true}}]", encode: encodeStep},
	{name: "steps without episodes", steps: 100, message: 1, encode: encodeUnending},
	{name: "summaries of episodes", steps: 1, message: 1, encode: encodeSummary},
}

func encodeStep(to []byte, e *moment) []byte {
	return fmt.Appendf(encodeSource(to, e), `"episode_id":"%s/%d","step":%d,"action":"%s","reward":%.4f,"terminated":%t,"truncated":false,"outcomes":{"conversion":%d}}`,
		e.agent, e.episode, e.step, e.action, e.reward, e.last, bit(e.clicked))
}

func encodeUnending(to []byte, e *moment) []byte {
	return fmt.Appendf(encodeSource(to, e), `"step":%d,"action":"%s","reward":%.4f,"outcomes":{"conversion":%d}}`,
		e.episode*100+e.step, e.action, e.reward, bit(e.clicked))
}

func encodeSummary(to []byte, e *moment) []byte {
	return fmt.Appendf(encodeSource(to, e), `"episode_id":"%s/%d","episode":{"r":%.4f,"l":%d},"outcomes":{"conversion":%d}}`,
		e.agent, e.episode, e.reward, 40+e.step, bit(e.clicked))
}

// encodeSource writes the common beginning of all records of telemetry v1 in JSON.
func encodeSource(to []byte, e *moment) []byte {
	to = append(to, `{"ts":"`...)
	to = time.UnixMilli(e.ts).UTC().AppendFormat(to, "2006-01-02T15:04:05.000Z")
	return fmt.Appendf(to, `","policy":"%s","policy_version":"2026-11-01.3","env":"%s","env_version":"%d","agent_id":"%s",`, e.policy, e.env, e.world, e.agent)
}

// mappingOfNested is a mapping for the output of encodeNested.
const mappingOfNested = `mapping:
          fields:
            ts: {path: meta.time_ms, unit: ms}
            policy: meta.model
            policy_version: meta.build
            env: meta.region
            agent_id: user.id
            episode_id: user.session
            step: event.number
            action: event.choice
            reward: event.gain
            terminated: event.done
            outcomes.conversion: event.clicks`

func encodeNested(to []byte, e *moment) []byte {
	return fmt.Appendf(to, `{"meta":{"time_ms":%d,"model":"%s","build":"2026-11-01.3","region":"%s"},"user":{"id":"%s","session":"%s/%d"},`+
		`"event":{"number":%d,"choice":"%s","gain":%.4f,"clicks":%d,"done":%t}}`,
		e.ts, e.policy, e.env, e.agent, e.agent, e.episode, e.step, e.action, e.reward, bit(e.clicked), e.last)
}

func encodeProtobuf(to []byte, e *moment) []byte {
	to, err := proto.MarshalOptions{}.MarshalAppend(to, &telemetrypb.Event{
		Policy: e.policy, PolicyVersion: "2026-11-01.3", Env: e.env, EnvVersion: "41", AgentId: e.agent,
		EpisodeId: fmt.Sprintf("%s/%d", e.agent, e.episode), Ts: e.ts * int64(time.Millisecond), Step: proto.Int64(int64(e.step)),
		Action: &telemetrypb.Event_ActionCategory{ActionCategory: e.action}, Reward: proto.Float64(e.reward), Terminated: e.last,
		Outcomes: map[string]float64{"conversion": float64(bit(e.clicked))},
	})
	if err != nil {
		panic(err)
	}
	return to
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// population is a number of groups; each policy of a fleet has equally many.
type population struct {
	policies, envs int // envs per policy
	partitions     int
}

// mostPolicies is the number of policies of a large fleet.
const mostPolicies = 1000

// newPopulation returns a population of at least the given number of groups.
func newPopulation(groups int) population {
	policies := min(groups, mostPolicies)
	return population{policies: policies, envs: (groups + policies - 1) / policies, partitions: trafficPartitions}
}

func (f population) groups() int { return f.policies * f.envs }

// fewest returns the first policies of the fleet that have twenty groups together.
func (f population) fewest() population {
	f.policies = min(f.policies, (20+f.envs-1)/f.envs)
	return f
}

// policyName returns the name of a policy. All names have the same length.
func policyName(i int) string { return fmt.Sprintf("policy-%03d", i) }

// actors are the agents of a fleet that generate one kind of traffic, and their progress.
type actors struct {
	traffic
	population
	rng   *rand.Rand
	all   []actor
	made  int          // number of events so far
	rate  float64      // events per second of event time
	now   float64      // event time in Unix milliseconds
	clock func() int64 // Unix milliseconds; nil to follow the rate
}

type actor struct {
	policy, env, name string
	partition         int
	episode, step     int
}

// fewestActors is the minimum number of actors, even with fewer groups.
const fewestActors = 400

func newActors(kind traffic, f population) *actors {
	groups := f.groups()
	a := &actors{
		traffic: kind, population: f, rng: rand.New(rand.NewPCG(uint64(groups), 1)), rate: trafficRate,
		now: float64(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC).UnixMilli()),
	}
	for i := range max(groups, fewestActors) {
		a.all = append(a.all, actor{
			policy: policyName(i % f.policies), env: "prod-" + strconv.Itoa(i/f.policies%f.envs), name: "agent-" + strconv.Itoa(i),
			partition: (i + i/groups) % f.partitions,
		})
	}
	return a
}

// eventsOf returns the number of events for the given number of units of each group.
func (a *actors) eventsOf(units int) int {
	steps := (units*a.groups() + len(a.all) - 1) / len(a.all) * cmp.Or(a.unit, a.steps)
	return steps * len(a.all)
}

// next returns the next step of the actor whose turn it is, and its partition.
func (a *actors) next() (e moment, partition int) {
	of := &a.all[a.made%len(a.all)]
	e = moment{
		ts: int64(a.now), world: 41,
		policy: of.policy, env: of.env, agent: of.name, episode: of.episode, step: of.step, last: of.step == a.steps-1,
		action: [...]string{"offer_a", "offer_b", "offer_c", "none"}[a.rng.IntN(4)], reward: a.rng.NormFloat64(), clicked: a.rng.Float64() < .2,
	}
	if a.clock != nil {
		e.ts = a.clock()
	}
	a.made++
	a.now += 1000 / a.rate
	if of.step++; e.last {
		of.episode, of.step = of.episode+1, 0
	}
	return e, of.partition
}

// produce writes the next events to a topic, those of one agent to one partition.
func (a *actors) produce(t *testing.T, b *broker, topic string, events int) {
	t.Helper()
	client := b.writer(t, topic)
	defer client.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	a.send(ctx, cancel, client, events)
	if err := client.Flush(ctx); err != nil {
		t.Fatalf("write to %s: %v", topic, cmp.Or(context.Cause(ctx), err))
	}
}

// writer returns a client that writes to explicit partitions of a topic.
func (b *broker) writer(t *testing.T, topic string) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.address), kgo.DefaultProduceTopic(topic), kgo.ProducerLinger(5*time.Millisecond),
		kgo.ProducerBatchCompression(kgo.Lz4Compression()), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MaxBufferedRecords(50_000))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// send passes the next events to a client. An error of one of them cancels the context.
func (a *actors) send(ctx context.Context, cancel context.CancelCauseFunc, client *kgo.Client, events int) {
	open, held := make([][]byte, a.partitions), make([]int, a.partitions)
	send := func(p int) {
		if held[p] == 0 {
			return
		}
		client.Produce(ctx, &kgo.Record{Partition: int32(p), Value: open[p]}, func(_ *kgo.Record, err error) {
			if err != nil {
				cancel(err)
			}
		})
		open[p], held[p] = nil, 0
	}
	for range events {
		e, p := a.next()
		if held[p] > 0 {
			open[p] = append(open[p], '\n')
		}
		open[p] = a.encode(open[p], &e)
		if held[p]++; held[p] == a.message {
			send(p)
		}
	}
	for p := range open {
		send(p)
	}
}

// load writes events evenly at a rate, until the context ends. Events that a pulse misses are written with the next
// one.
func (a *actors) load(ctx context.Context, cancel context.CancelCauseFunc, client *kgo.Client, perSecond float64) {
	pulse := time.NewTicker(10 * time.Millisecond)
	defer pulse.Stop()
	began, sent := time.Now(), 0
	for {
		select {
		case <-pulse.C:
			due := int(perSecond*time.Since(began).Seconds()) - sent
			a.send(ctx, cancel, client, due)
			sent += due
		case <-ctx.Done():
			return
		}
	}
}
