package consumer_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/consumer"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

// joinMessages starts a consumer of whole messages.
func (b *bench) joinMessages() *member {
	b.t.Helper()
	return b.joinAs(ingesttest.NewMessageRecorder(), nil, prometheus.NewPedanticRegistry())
}

// raw returns a message that is not telemetry, with about size bytes.
func raw(offset, size int) []byte {
	return append(bytes.Repeat([]byte{byte(offset % 100)}, size), fmt.Sprint(offset)...)
}

func TestWholeMessages(t *testing.T) {
	b := newBench(t, 1)
	b.cfg.MaxMessage = 128 << 10
	var want []ingesttest.Seen
	add := func(value []byte) {
		want = append(want, ingesttest.Seen{Pos: ingest.Position{Offset: int64(b.produced[0])}, Value: string(value)})
		b.produceValues(0, value)
	}
	for i := range 40 {
		add(raw(i, 100))
	}
	add(raw(40, 100_000)) // more than the first buffer holds
	b.produceValues(0, nil)
	if err := b.broker.ProduceWith(waitContext(t), 0, true, [][]byte{raw(42, 1)}, kgo.TransactionalID("x")); err != nil {
		t.Fatal(err) // it takes offset 42, and its marker 43
	}
	want = append(want, ingesttest.Seen{Pos: ingest.Position{Offset: 42}, Value: string(raw(42, 1))})
	b.produced[0] += 2
	for i := range 1000 {
		add(raw(44+i, 4))
		if i == 500 {
			m := b.joinMessages() // the next one continues where this one was stopped
			m.await("what was written so far", func() bool { return m.Count() == len(want) })
			m.stop()
		}
	}
	m := b.joinMessages()
	m.await("all messages", func() bool { return m.Count() >= len(want) })
	m.stop()
	got := m.Events(0)
	if len(got) != len(want) {
		t.Fatalf("%d messages, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("message %d is of %v with %d bytes, want %v and %d", i, got[i].Pos, len(got[i].Value), want[i].Pos, len(want[i].Value))
		}
	}
	if got, want := b.saved(0), int64(b.produced[0]); got != want {
		t.Errorf("checkpoint at %d, want %d", got, want)
	}
}

func TestAMessageAboveTheLimitIsAnError(t *testing.T) {
	b := newBench(t, 1)
	b.cfg.MaxMessage = 64 << 10
	b.produceValues(0, raw(0, 10), raw(1, 64<<10))
	m := b.joinMessages()
	wantEnd(t, m, consumer.ErrProcessor)
	if got := b.saved(0); got > 1 {
		t.Errorf("the checkpoint is at %d, behind the message", got)
	}
}

func TestEventsNeedDeadLetters(t *testing.T) {
	b := newBench(t, 1)
	wantEnd(t, b.joinAs(ingesttest.NewRecorder(), nil, prometheus.NewRegistry()), consumer.ErrProcessor)
}

func TestAStateThatFailsOnMessagesEndsTheConsumer(t *testing.T) {
	b := newBench(t, 1)
	m := b.joinMessages()
	broken := errors.New("broken")
	m.Fail(broken)
	b.produceValues(0, raw(0, 1))
	wantEnd(t, m, broken)
}

// Two consumers in one process export their metrics with the names of their topics, and the event metrics once.
func TestConsumersShareARegistry(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	telemetry := newBench(t, 1)
	units := newBench(t, 1)
	units.cfg.Topic, units.broker.Topic = "units", "units"
	if err := units.broker.Cluster().CreateTopic("units", 1, nil); err != nil {
		t.Fatal(err)
	}
	telemetry.produce(0, 3)
	units.produceValues(0, raw(0, 1), nil)
	events := telemetry.joinAs(ingesttest.NewRecorder(), telemetry.letters, reg)
	messages := units.joinAs(ingesttest.NewMessageRecorder(), nil, reg)
	events.awaitAll(0)
	messages.await("the message", func() bool { return messages.Count() == 1 })
	units.awaitSaved(0, 2)
	wantMetrics(t, events, `
# HELP rewardwatch_events_total Records read from Kafka, by result.
# TYPE rewardwatch_events_total counter
rewardwatch_events_total{result="accepted"} 3
rewardwatch_events_total{result="refused"} 0
# HELP rewardwatch_messages_skipped_total Records that are not telemetry: null values, transaction markers, records of aborted transactions, retransmitted messages, and records that a mapping skips.
# TYPE rewardwatch_messages_skipped_total counter
rewardwatch_messages_skipped_total{reason="aborted"} 0
rewardwatch_messages_skipped_total{reason="control"} 0
rewardwatch_messages_skipped_total{reason="not_taken"} 0
rewardwatch_messages_skipped_total{reason="repeated"} 0
rewardwatch_messages_skipped_total{reason="tombstone"} 0
# HELP rewardwatch_next_offset Next offset to read, or -1 if it is not known yet.
# TYPE rewardwatch_next_offset gauge
rewardwatch_next_offset{partition="0",topic="telemetry"} 3
rewardwatch_next_offset{partition="0",topic="units"} 2
# HELP rewardwatch_partitions Partitions of the topic: assigned to this process, and in total.
# TYPE rewardwatch_partitions gauge
rewardwatch_partitions{kind="assigned",topic="telemetry"} 1
rewardwatch_partitions{kind="assigned",topic="units"} 1
rewardwatch_partitions{kind="existing",topic="telemetry"} 1
rewardwatch_partitions{kind="existing",topic="units"} 1
`, ingest.MetricEvents, ingest.MetricMessagesSkipped, ingest.MetricNextOffset, ingest.MetricPartitions)
	for name, want := range map[string]int{
		ingest.MetricLagRecords: 2, ingest.MetricHeadroom: 2, ingest.MetricCheckpointAge: 2, ingest.MetricClockJumps: 2,
		ingest.MetricLagSeconds: 1, ingest.MetricLastEvent: 1, ingest.MetricDeadLettersLost: 1, // messages have no event time
		ingest.MetricDeadLetters: len(ingest.Reasons()),
	} {
		if got, err := testutil.GatherAndCount(reg, name); err != nil || got != want {
			t.Errorf("%s has %d series, want %d: %v", name, got, want, err)
		}
	}
	events.stop()
	messages.stop()
}
