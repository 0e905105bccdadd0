package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"
	"github.com/segmentio/kafka-go"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
	"github.com/rewardwatch/rewardwatch/ingest/kafkalog"
)

func TestTopic(t *testing.T) {
	broker, err := ingesttest.Start(0, "")
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	testTopic(t, broker.Addrs())
}

// cluster is a Kafka cluster with a telemetry topic.
type cluster struct{ cfg ingest.KafkaConfig }

func newCluster(t testing.TB, brokers []string, partitions int) *cluster {
	t.Helper()
	cfg := ingest.DefaultKafkaConfig()
	cfg.Brokers = brokers
	c := &cluster{cfg}
	c.make(t, cfg.Topic, partitions, nil)
	return c
}

func (c *cluster) make(t testing.TB, topic string, partitions int, settings map[string]string) {
	t.Helper()
	l := c.log(t, topic)
	if err := l.Make(t.Context(), partitions, settings); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) log(t testing.TB, topic string) *kafkalog.Log {
	t.Helper()
	l, err := kafkalog.Open(c.cfg, topic, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// instance returns an instance of the service.
func (c *cluster) instance(t testing.TB, topic string) *Topic {
	t.Helper()
	instance, err := OpenTopic(c.cfg, topic, zerolog.Nop(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = instance.Close() })
	return instance
}

func isOwner() error { return nil }

// take opens the checkpoints of a partition.
func (t *Topic) take(tb testing.TB, partition int32) assignment {
	tb.Helper()
	s, err := t.Open(tb.Context(), t.cfg.Topic, partition, isOwner)
	if err != nil {
		tb.Fatal(err)
	}
	return s.(assignment)
}

// testTopic contains the tests that must pass on any broker.
func testTopic(t *testing.T, brokers []string) {
	c := newCluster(t, brokers, 3)
	t.Run("IsMade", func(t *testing.T) { testTopicIsMade(t, c) })
	t.Run("ChangesHands", func(t *testing.T) { testTopicChangesHands(t, c) })
	t.Run("Foreign", func(t *testing.T) { testTopicForeign(t, c) })
	t.Run("Widened", func(t *testing.T) { testTopicWidened(t, c) })
	t.Run("Unfit", func(t *testing.T) { testTopicUnfit(t, c) })
	t.Run("SavesAtTheSameTime", func(t *testing.T) { testTopicSavesAtTheSameTime(t, c) })
}

func testTopicIsMade(t *testing.T, c *cluster) {
	var all sync.WaitGroup
	for range 3 { // instances that start at the same time
		instance := c.instance(t, "made")
		all.Go(func() {
			if _, err := instance.Open(t.Context(), c.cfg.Topic, 2, isOwner); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	l := c.log(t, "made")
	if n, err := l.Partitions(t.Context()); n != 3 || err != nil {
		t.Errorf("%d partitions, %v", n, err)
	}
	for name, want := range settings() {
		if got, err := l.Setting(t.Context(), name); got != want || err != nil {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	lost := errors.New("another generation has begun")
	if _, err := c.instance(t, "made").Open(t.Context(), c.cfg.Topic, 2, func() error { return lost }); !errors.Is(err, lost) {
		t.Errorf("without an owner: %v", err)
	}
}

func testTopicChangesHands(t *testing.T, c *cluster) {
	large := string(randomBytes(2*kafkalog.MaxRecord + 1000))
	first, second := c.instance(t, "changing"), c.instance(t, "changing")
	want, notes := parts("large", large, "turn", "-1"), map[string]string{}
	s := first.take(t, 1)
	mustSave(t, s.Store, "bank-a", want)
	other := first.take(t, 4) // in the same partition of the topic
	for turn := range 4 {
		old := s
		s = []*Topic{second, first}[turn%2].take(t, 1)
		wantLoad(t, s.Store, "bank-a", want)
		got := map[string]string{}
		s.Read(func(key string, value []byte) { got[key] = string(value) })
		if !maps.Equal(got, notes) {
			t.Errorf("turn %d: notes %q, want %q", turn, got, notes)
		}
		if some, err := s.LoadParts("bank-a", []string{"large"}); err != nil || string(some["large"]) != large {
			t.Errorf("turn %d: a part alone has %d bytes, %v", turn, len(some["large"]), err)
		}
		if err := old.Save("bank-a", parts("turn", "lost"), nil); !errors.Is(err, ingest.ErrFenced) {
			t.Errorf("turn %d: the owner of old gets %v", turn, err)
		}
		if err := old.Append(t.Context(), "turn", []byte("lost")); !errors.Is(err, ingest.ErrFenced) {
			t.Errorf("turn %d: the owner of old gets %v", turn, err)
		}
		for range 3 {
			want["turn"] = fmt.Append(nil, turn)
			mustSave(t, s.Store, "bank-a", ingest.Parts{"turn": want["turn"]})
			mustSave(t, other.Store, "bank-a", parts("x", "1"))
		}
		notes["turn"] = fmt.Sprint(turn)
		if err := s.Append(t.Context(), "turn", fmt.Append(nil, turn)); err != nil {
			t.Fatal(err)
		}
	}
	if names, err := s.Names("bank-"); err != nil || len(names) != 1 {
		t.Errorf("names %q, %v", names, err)
	}
}

// Records of other writers in the topic are reported, and have no effect.
func testTopicForeign(t *testing.T, c *cluster) {
	reg := prometheus.NewRegistry()
	first, err := OpenTopic(c.cfg, "shared", zerolog.Nop(), reg)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	s := first.take(t, 0)
	mustSave(t, s.Store, "bank-a", parts("x", "1"))
	l := c.log(t, "shared")
	damaged := record{epoch: 9, number: 1, kind: kindChunk}.key("agent-telemetry/0")
	damaged[3] ^= 1
	written := 0.
	for _, key := range [][]byte{nil, []byte("a person's"), damaged} {
		err := l.Append(t.Context(), 0, kafkalog.Record{Key: key, Value: []byte("v")})
		if key == nil && err != nil {
			continue // a real broker does not accept records without a key in a compacted topic
		}
		if err != nil {
			t.Fatal(err)
		}
		written++
	}
	mustSave(t, s.Store, "bank-a", parts("x", "2"))
	if got := testutil.ToFloat64(first.metrics.failures.WithLabelValues(kindOther)); got != written {
		t.Errorf("%v records are counted, want %v", got, written)
	}
	again := c.instance(t, "shared").take(t, 0)
	wantLoad(t, again.Store, "bank-a", parts("x", "2"))
	if len(again.held.damaged) != 1 || len(again.held.dead) > 0 {
		t.Errorf("damaged %q, to be given up %q", again.held.damaged, again.held.dead)
	}
}

// A topic whose number of partitions has increased is refused, regardless of the partition.
func testTopicWidened(t *testing.T, c *cluster) {
	c.instance(t, "widened").take(t, 2)
	c.instance(t, "widened").take(t, 1)
	client := kafka.Client{Addr: kafka.TCP(c.cfg.Brokers...)}
	answer, err := client.CreatePartitions(t.Context(), &kafka.CreatePartitionsRequest{
		Topics: []kafka.TopicPartitionsConfig{{Name: "widened", Count: 5}},
	})
	if err != nil || answer.Errors["widened"] != nil {
		t.Fatal(err, answer)
	}
	known := func() bool { // brokers of a cluster learn about new partitions from the controller
		meta, err := client.Metadata(t.Context(), &kafka.MetadataRequest{Topics: []string{"widened"}})
		return err == nil && len(meta.Topics) == 1 && len(meta.Topics[0].Partitions) == 5
	}
	for begun := time.Now(); !known(); time.Sleep(20 * time.Millisecond) {
		if time.Since(begun) > 30*time.Second {
			t.Fatal("the broker does not know of the new partitions")
		}
	}
	for partition := range int32(5) {
		_, err := c.instance(t, "widened").Open(t.Context(), c.cfg.Topic, partition, isOwner)
		if !errors.Is(err, errUnfit) || !strings.Contains(err.Error(), "now has 5 partitions instead of 3") {
			t.Errorf("partition %d: %v", partition, err)
		}
	}
}

func testTopicUnfit(t *testing.T, c *cluster) {
	for topic, settings := range map[string]map[string]string{
		"deleting":   {"cleanup.policy": "delete"},
		"both":       {"cleanup.policy": "compact,delete"},
		"forgetting": {"cleanup.policy": "compact", "delete.retention.ms": "1000"},
	} {
		c.make(t, topic, 1, settings)
		_, err := c.instance(t, topic).Open(t.Context(), c.cfg.Topic, 0, isOwner)
		if !errors.Is(err, errUnfit) || !strings.Contains(err.Error(), "--entity-name "+topic+" --add-config ") {
			t.Errorf("%s: %v", topic, err)
		}
	}
	cfg := c.cfg
	cfg.Topic = "no-telemetry"
	instance, err := OpenTopic(cfg, "unmade", zerolog.Nop(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	defer instance.Close()
	if _, err := instance.Open(t.Context(), cfg.Topic, 0, isOwner); !errors.Is(err, ingest.ErrNoTopic) {
		t.Errorf("without telemetry: %v", err)
	}
}

// Many names are saved concurrently while others write to the same partition of the topic.
func testTopicSavesAtTheSameTime(t *testing.T, c *cluster) {
	instance := c.instance(t, "busy")
	s := instance.take(t, 0)
	stranger := instance.take(t, 3)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for round := range 5 {
				mustSave(t, stranger.Store, fmt.Sprint("bank-", i), parts("x", "stranger"))
				mustSave(t, s.Store, fmt.Sprint("bank-", i), ingest.Parts{"x": bytes.Repeat([]byte{byte(round)}, 1000*i)})
				if err := s.Append(t.Context(), fmt.Sprint(i), fmt.Append(nil, round)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	again := c.instance(t, "busy").take(t, 0)
	for i := range 8 {
		wantLoad(t, again.Store, fmt.Sprint("bank-", i), ingest.Parts{"x": bytes.Repeat([]byte{4}, 1000*i)})
	}
	again.Read(func(key string, value []byte) {
		if string(value) != "4" {
			t.Errorf("the note of %s is %q", key, value)
		}
	})
}

// Saves wait while a broker is unavailable, and a write whose response was lost is not lost.
func TestTopicOverOutages(t *testing.T) {
	broker, err := ingesttest.Start(0, "")
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	c := newCluster(t, broker.Addrs(), 1)
	s := c.instance(t, "state").take(t, 0)
	want := ingest.Parts{}
	for i := range 12 {
		broker.CutAfter(int64(i) * 1700 % 9000) // of the bytes that the broker sends, at any position
		changed := parts(fmt.Sprint("part-", i%4), strings.Repeat(fmt.Sprint(i, " "), 2000))
		mustSave(t, s.Store, "bank-a", changed)
		maps.Copy(want, changed)
		broker.CutConnections()
	}
	if !s.held.doubt {
		t.Error("no answer was missed")
	}
	wantLoad(t, c.instance(t, "state").take(t, 0).Store, "bank-a", want)
}
