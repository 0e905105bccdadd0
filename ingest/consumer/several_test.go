package consumer_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/consumer"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
	"github.com/rewardwatch/rewardwatch/ingest/telemetry"
)

// severalBench is a bench whose consumers read several topics.
type severalBench struct {
	*bench
	topics []ingest.Topic

	mu       sync.Mutex
	produced map[ingest.Partition]int
}

// newSeveralBench creates topics with the given numbers of partitions. 0 means that the topic does not exist yet.
func newSeveralBench(t *testing.T, partitions ...int32) *severalBench {
	t.Helper()
	b := &severalBench{bench: newBench(t, partitions[0]), produced: map[ingest.Partition]int{}}
	b.topics = []ingest.Topic{{Name: b.cfg.Topic, Format: telemetry.V1{}}}
	for i, n := range partitions[1:] {
		name := fmt.Sprint("clicks-", i+1)
		b.topics = append(b.topics, ingest.Topic{Name: name, Format: telemetry.V1{}})
		if n > 0 {
			b.create(name, n)
		}
	}
	b.read(b.topics...)
	return b
}

func (b *severalBench) create(topic string, partitions int32) {
	b.t.Helper()
	if err := b.broker.Cluster().CreateTopic(topic, partitions, nil); err != nil {
		b.t.Fatal(err)
	}
}

// read sets the topics for the next consumers.
func (b *severalBench) read(topics ...ingest.Topic) { b.bench.topics = topics }

// write appends messages to a partition of a topic. Their rewards are their offsets. Message i has the Kafka timestamp
// at(i).
func (b *severalBench) write(topic int, partition int32, messages int, at func(i int) time.Time) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	p := ingest.PartitionOf(topic, partition)
	records := make([]*kgo.Record, messages)
	for i := range records {
		records[i] = &kgo.Record{Topic: b.topics[topic].Name, Partition: partition, Value: value(b.produced[p] + i), Timestamp: at(i)}
	}
	if err := b.broker.Client().ProduceSync(waitContext(b.t), records...).FirstErr(); err != nil {
		b.t.Fatalf("producing: %v", err)
	}
	b.produced[p] += messages
}

func now(int) time.Time { return time.Now() }

// awaitAllOf waits until the states contain everything that was written, and checks that they contain each message once
// and in the order of each topic. A state belongs to one of the members.
func (b *severalBench) awaitAllOf(members ...*member) {
	b.t.Helper()
	numbers := map[int32]int{}
	for p, n := range b.produced {
		numbers[p.Number()] += n
	}
	for number, want := range numbers {
		holder := func() *member {
			for _, m := range members {
				if m.Assigned()[number] > 0 && len(m.Events(number)) >= want {
					return m
				}
			}
			return nil
		}
		for _, m := range members {
			if len(members) == 1 {
				m.await(fmt.Sprintf("%d events of partition %d", want, number), func() bool { return holder() != nil })
			}
		}
		for deadline := time.Now().Add(patience); holder() == nil && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		m := holder()
		if m == nil {
			b.t.Fatalf("no member holds the %d events of partition %d", want, number)
		}
		next := map[ingest.Partition]int64{}
		for i, e := range m.Events(number) {
			if p := e.Pos.Partition; p.Number() != number || e.Pos.Offset != next[p] || e.Reward != float64(next[p]) {
				b.t.Fatalf("event %d of state %d is %+v, want offset %d of topic %d", i, number, e, next[p], p.Topic())
			}
			next[e.Pos.Partition]++
		}
		if got := len(m.Events(number)); got != want {
			b.t.Fatalf("state %d holds %d events, want %d", number, got, want)
		}
	}
}

// Each message is in its state exactly once, regardless of members that are killed, stopped or interrupted while two
// topics are written.
func TestSeveralTopicsLoseNothingAndRepeatNothing(t *testing.T) {
	for name, partitions := range map[string][]int32{"as many partitions": {2, 2}, "fewer in the second": {3, 1}, "fewer in the first": {1, 3}, "three topics": {2, 1, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, rng := newSeveralBench(t, partitions...), rand.New(rand.NewPCG(1, uint64(len(name))))
			some := func() {
				for range 5 {
					topic := rng.IntN(len(partitions))
					b.write(topic, rng.Int32N(partitions[topic]), 1+rng.IntN(300), func(int) time.Time { return time.Unix(1_700_000_000+rng.Int64N(600), 0) })
				}
			}
			some()
			m := b.join()
			for range 6 {
				some()
				switch rng.IntN(6) {
				case 0:
					b.broker.CutConnections()
				case 1:
					b.broker.CutAfter(rng.Int64N(20_000))
				case 2:
					b.broker.Fail(kmsg.Fetch, kerr.NotLeaderForPartition, 2)
				case 3:
					b.broker.FailWhole(kmsg.Heartbeat, kerr.IllegalGeneration, 1)
				case 4:
					m.kill()
					m = b.join()
				case 5:
					b.awaitAllOf(m)
					m.stop()
					m = b.join()
				}
			}
			b.awaitAllOf(m)
			m.kill()
			m = b.join()
			b.awaitAllOf(m)
			m.stop()
			m = b.join()
			some()
			b.awaitAllOf(m)
			m.stop()
		})
	}
}

// Old records are read in the order of Kafka timestamps, regardless of how the topics are divided into batches and
// fetches.
func TestHistoryOfSeveralTopicsIsReadSideBySide(t *testing.T) {
	b := newSeveralBench(t, 1, 1, 1)
	start := time.Unix(1_700_000_000, 0)
	const each = 1500
	for i := range 3 {
		b.write(i, 0, each, func(n int) time.Time { return start.Add(time.Duration(3*(n/10*10)+i*10+n%10) * time.Second) })
	}
	m := b.join()
	b.awaitAllOf(m)
	at := func(e ingesttest.Seen) int64 {
		n := e.Pos.Offset
		return 3*(n/10*10) + int64(e.Pos.Partition.Topic())*10 + n%10
	}
	events := m.Events(0)
	if !slices.IsSortedFunc(events, func(x, y ingesttest.Seen) int { return int(at(x) - at(y)) }) {
		t.Error("the events are not in the order of their times")
	}
	m.stop()
}

// All partitions of all topics are merged by Kafka timestamp, by one member at a time.
func TestOneMemberMergesAllPartitions(t *testing.T) {
	b := newSeveralBench(t, 3, 2)
	b.merged, b.joined = true, true
	start := time.Unix(1_700_000_000, 0)
	const each = 400
	at := func(p ingest.Partition, n int64) int64 { // in turns of ten
		turn := 10 * (2*int64(p.Number()) + int64(p.Topic()))
		return 60*(n/10) + turn + n%10
	}
	partitions := []ingest.Partition{0, 1, 2, ingest.PartitionOf(1, 0), ingest.PartitionOf(1, 1)}
	for _, p := range partitions {
		b.write(p.Topic(), p.Number(), each, func(n int) time.Time { return start.Add(time.Duration(at(p, int64(n))) * time.Second) })
	}
	first := b.join()
	b.awaitAllOf(first)
	order := first.Order()
	if len(order) != each*len(partitions) {
		t.Fatalf("%d events", len(order))
	}
	if !slices.IsSortedFunc(order, func(x, y ingest.Position) int { return int(at(x.Partition, x.Offset) - at(y.Partition, y.Offset)) }) {
		t.Error("the events are not in the order of their times")
	}
	second := b.join()
	for _, p := range partitions {
		b.write(p.Topic(), p.Number(), 20, now)
	}
	alone := func() bool { return len(first.Assigned())+len(second.Assigned()) == 3 }
	b.awaitAllOf(first, second)
	if !alone() {
		t.Errorf("the partitions are divided: %v and %v", first.Assigned(), second.Assigned())
	}
	first.stop()
	b.awaitAllOf(second)
	second.stop()
}

// Two members share the partition numbers. The partitions with one number are always assigned to the same member.
func TestPartitionsOfOneNumberAreWithTheSameMember(t *testing.T) {
	b := newSeveralBench(t, 4, 4)
	for topic := range 2 {
		for p := range int32(4) {
			b.write(topic, p, 50, now)
		}
	}
	first := b.join()
	b.awaitAllOf(first)
	second := b.join()
	second.await("half of the numbers", func() bool { return len(second.Assigned()) == 2 && len(first.Assigned()) == 2 })
	for topic := range 2 {
		for p := range int32(4) {
			b.write(topic, p, 50, now)
		}
	}
	b.awaitAllOf(first, second)
	second.kill()
	first.await("all numbers", func() bool { return len(first.Assigned()) == 4 })
	b.awaitAllOf(first)
	first.stop()
}

func TestBalancerKeepsNumbersTogether(t *testing.T) {
	for _, tt := range []struct{ first, second, members int }{{4, 4, 2}, {5, 3, 2}, {3, 7, 4}, {1, 1, 3}, {12, 12, 5}} {
		ranges, owners := consumer.Assigned([]int{tt.first}, tt.members), consumer.Assigned([]int{tt.first, tt.second}, tt.members)
		for number := range max(tt.first, tt.second) {
			a, b := owners[0][number], owners[1][number]
			if number < tt.first && a == "" || number < tt.second && b == "" || a != "" && b != "" && a != b {
				t.Errorf("%+v: number %d is with %q and %q", tt, number, a, b)
			}
		}
		if want := consumer.Ranges(tt.first, tt.members); fmt.Sprint(ranges[0]) != fmt.Sprint(want) {
			t.Errorf("%d partitions and %d members: %v, want %v", tt.first, tt.members, ranges[0], want)
		}
	}
}

// The service waits for a topic that does not exist, and logs its name.
func TestAMissingTopicIsWaitedFor(t *testing.T) {
	b := newSeveralBench(t, 1, 0)
	b.write(0, 0, 20, now)
	m := b.join()
	for deadline := time.Now().Add(patience); !strings.Contains(fmt.Sprint(m.consumer.Ready()), "clicks-1"); {
		if time.Now().After(deadline) {
			t.Fatalf("ready says %v", m.consumer.Ready())
		}
		time.Sleep(time.Millisecond)
	}
	if m.Count() > 0 {
		t.Errorf("%d events were read without the other topic", m.Count())
	}
	b.create("clicks-1", 2)
	b.write(1, 1, 20, now)
	b.awaitAllOf(m)
	m.stop()
}

// If one of its topics is missing, the service reads none, and logs the name of the missing one.
func TestATopicThatIsDeletedIsWaitedFor(t *testing.T) {
	b := newSeveralBench(t, 1, 1)
	b.write(0, 0, 20, now)
	b.write(1, 0, 20, now)
	m := b.join()
	b.awaitAllOf(m)
	if err := b.broker.Cluster().DeleteTopic("clicks-1"); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); !strings.Contains(fmt.Sprint(m.consumer.Ready()), "clicks-1"); {
		if time.Now().After(deadline) {
			t.Fatalf("ready says %v", m.consumer.Ready())
		}
		time.Sleep(time.Millisecond)
	}
	b.awaitSaved(0, 20)
	m.stop()
}

// A topic that grows while it is read adds a state, or feeds another one.
func TestOneOfSeveralTopicsGrows(t *testing.T) {
	b := newSeveralBench(t, 2, 1)
	b.write(0, 1, 20, now)
	b.write(1, 0, 20, now)
	m := b.join()
	b.awaitAllOf(m)
	grow := kmsg.NewPtrCreatePartitionsRequest()
	grow.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: "clicks-1", Count: 3}}
	if _, err := grow.RequestWith(waitContext(t), b.broker.Client()); err != nil {
		t.Fatal(err)
	}
	b.broker.Client().PurgeTopicsFromClient("clicks-1")
	b.write(1, 1, 20, now)
	b.write(1, 2, 20, now)
	b.awaitAllOf(m)
	if got := m.Partitions(); got != 3 {
		t.Errorf("%d partitions, want those of the topic that has the most", got)
	}
	m.stop()
}

// If one topic cannot be read, the other one still is, unless their records are joined.
func TestOneOfSeveralTopicsCannotBeRead(t *testing.T) {
	for _, joined := range []bool{false, true} {
		b := newSeveralBench(t, 1, 1)
		b.joined = joined
		b.write(0, 0, 20, now)
		b.write(1, 0, 20, now)
		refused := b.broker.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: "clicks-1", Err: kerr.NotLeaderForPartition, Count: -1})
		m := b.join()
		if joined {
			hits(t, refused, 5)
			if n := m.Count(); n > 0 {
				t.Errorf("%d events were read without those that they are joined with", n)
			}
		} else {
			m.await("the events of the first topic", func() bool { return m.Count() == 20 })
		}
		refused.Remove()
		b.awaitAllOf(m)
		m.stop()
	}
}

// A checkpoint refers to its topics by index, so other topics may only be added after them.
func TestTopicsOfACheckpoint(t *testing.T) {
	b := newSeveralBench(t, 1, 1, 1)
	a, c, d := b.topics[0], b.topics[1], b.topics[2]
	b.write(0, 0, 20, now)
	b.read(a)
	m := b.join()
	m.await("20 events", func() bool { return m.Count() == 20 })
	m.stop()
	b.read(a, c)
	b.write(1, 0, 20, now)
	m = b.join()
	b.awaitAllOf(m)
	m.stop()
	for _, wrong := range [][]ingest.Topic{{c, a}, {a}, {a, d}, {a, d, c}} {
		b.read(wrong...)
		wantEnd(t, b.join(), consumer.ErrOtherTopics)
	}
	b.read(a, c, d)
	b.write(2, 0, 20, now)
	b.write(0, 0, 20, now)
	m = b.join()
	b.awaitAllOf(m)
	m.stop()
}

// Each topic has its own lag, offsets and checks.
func TestMetricsOfSeveralTopics(t *testing.T) {
	b := newSeveralBench(t, 1, 1)
	b.write(0, 0, 30, now)
	b.write(1, 0, 20, now)
	m := b.joinAs(ingesttest.NewRecorder(), b.letters, prometheus.NewPedanticRegistry())
	b.awaitAllOf(m)
	wantMetrics(t, m, `
		# HELP rewardwatch_next_offset Next offset to read, or -1 if it is not known yet.
		# TYPE rewardwatch_next_offset gauge
		rewardwatch_next_offset{partition="0",topic="clicks-1"} 20
		rewardwatch_next_offset{partition="0",topic="telemetry"} 30
	`, ingest.MetricNextOffset)
	m.stop()
	for topic, want := range map[string]int64{"telemetry": 30, "clicks-1": 20} {
		b.broker.Topic = topic
		if got := b.committed(0); got != want {
			t.Errorf("committed %d of %s, want %d", got, topic, want)
		}
	}
}
