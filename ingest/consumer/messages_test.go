package consumer_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/consumer"
)

func TestCompressedRecordBatches(t *testing.T) {
	for name, codec := range map[string]kgo.CompressionCodec{
		"gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 1)
			values := make([][]byte, 500)
			for i := range values {
				values[i] = value(i)
			}
			if err := b.broker.ProduceWith(waitContext(t), 0, false, values, kgo.ProducerBatchCompression(codec)); err != nil {
				t.Fatal(err)
			}
			b.produced[0] = len(values)
			b.store.Put(consumer.PartitionCheckpoint(b.cfg.Topic, 0),
				consumer.PartitionState(b.cfg.Topic, 0, 123, 122, value(122), []byte("[]")))
			m := b.join()
			m.await("all events", func() bool { return m.Count() >= 377 })
			m.check(0, 123, 500)
			m.stop()
		})
	}
}

func TestMessagesOfSeveralEvents(t *testing.T) {
	b := newBench(t, 1)
	var many bytes.Buffer
	for i := range 1000 {
		fmt.Fprintf(&many, "{\"policy\":\"p\",\"reward\":%d}\n", i)
	}
	b.produceValues(0, value(0), many.Bytes(), value(2))
	m := b.join()
	m.await("1002 events", func() bool { return m.Count() >= 1002 })
	for i, e := range m.Events(0) {
		want := ingest.Position{Offset: 1, Record: int32(i - 1)}
		switch i {
		case 0:
			want = ingest.Position{}
		case 1001:
			want = ingest.Position{Offset: 2}
		}
		if e.Pos != want {
			t.Fatalf("event %d stands at %v, want %v", i, e.Pos, want)
		}
	}
	m.stop()
}

func TestMessagesThatDoNotFitTheBuffer(t *testing.T) {
	pad := func(size int) []byte {
		return append(bytes.Repeat([]byte(" "), size-len(value(1))), value(1)...)
	}
	b := newBench(t, 1)
	b.cfg.MaxMessage = 128 * ingest.KiB
	b.produceValues(0, value(0), pad(128<<10), value(2), pad(128<<10+1), value(4), pad(500_000), value(6)) // one batch
	m := b.join()
	m.await("five events", func() bool { return m.Count() >= 5 })
	b.awaitSaved(0, 7)
	m.stop()
	for i, e := range m.Events(0) {
		if want := []int64{0, 1, 2, 4, 6}[i]; e.Pos.Offset != want {
			t.Errorf("event %d stands at %v, want offset %d", i, e.Pos, want)
		}
	}
	kept := b.letters.Kept()
	if len(kept) != 2 {
		t.Fatalf("%d dead letters, want 2", len(kept))
	}
	for i, want := range []struct{ offset, size int64 }{{3, 128<<10 + 1}, {5, 500_000}} {
		l := kept[i]
		if l.Pos.Offset != want.offset || l.Size != want.size || l.Reason != ingest.ReasonTooLarge || !l.Truncated ||
			len(l.Raw) != ingest.MaxDeadLetterRaw || l.Topic != b.cfg.Topic {
			t.Errorf("dead letter of offset %d with %d bytes, %q, want offset %d, %d bytes", l.Pos.Offset, l.Size, l.Reason, want.offset, want.size)
		}
	}
	// The message that is too large is now before the next offset, in the same record batch.
	b.store.Put(consumer.PartitionCheckpoint(b.cfg.Topic, 0), consumer.PartitionState(b.cfg.Topic, 0, 6, 4, value(4), []byte("[]")))
	m = b.join()
	m.await("the last event", func() bool { return m.Count() == 1 })
	m.await("idle", func() bool { return m.Idle(0) > 0 })
	m.check(0, 6, 7)
	m.stop()
}

func TestWhatIsNotTelemetry(t *testing.T) {
	b := newBench(t, 1)
	b.produceValues(0, value(0), nil, []byte(`{"policy"`), []byte("{}"), []byte{}, value(5))
	if err := b.broker.ProduceWith(waitContext(t), 0, true, [][]byte{value(6)}, kgo.TransactionalID("x")); err != nil {
		t.Fatal(err) // it takes offset 6, and its marker 7
	}
	b.produceValues(0, value(8))
	m := b.join()
	m.await("four events", func() bool { return m.Count() >= 4 })
	b.awaitSaved(0, 9)
	m.await("idle", func() bool { return m.Idle(0) > 0 })
	for i, e := range m.Events(0) {
		if want := []int64{0, 5, 6, 8}[i]; e.Pos.Offset != want {
			t.Errorf("event %d stands at %v, want offset %d", i, e.Pos, want)
		}
	}
	wantMetrics(t, m, `
# HELP rewardwatch_consumer_lag_records Unread records in the partition.
# TYPE rewardwatch_consumer_lag_records gauge
rewardwatch_consumer_lag_records{partition="0",topic="telemetry"} 0
# HELP rewardwatch_consumer_lag_seconds Age of the last event read, or 0 if all events have been read. Absent for telemetry without ts.
# TYPE rewardwatch_consumer_lag_seconds gauge
rewardwatch_consumer_lag_seconds{partition="0",topic="telemetry"} 0
# HELP rewardwatch_dead_letters_dropped_total Rejected records that could not be stored as dead letters.
# TYPE rewardwatch_dead_letters_dropped_total counter
rewardwatch_dead_letters_dropped_total 0
# HELP rewardwatch_dead_letters_total Rejected records, by reason.
# TYPE rewardwatch_dead_letters_total counter
rewardwatch_dead_letters_total{reason="bad_encoding"} 0
rewardwatch_dead_letters_total{reason="bad_expression"} 0
rewardwatch_dead_letters_total{reason="bad_header"} 0
rewardwatch_dead_letters_total{reason="bad_timestamp"} 0
rewardwatch_dead_letters_total{reason="empty_record"} 0
rewardwatch_dead_letters_total{reason="invalid_json"} 1
rewardwatch_dead_letters_total{reason="invalid_utf8"} 0
rewardwatch_dead_letters_total{reason="missing_policy"} 1
rewardwatch_dead_letters_total{reason="missing_return"} 0
rewardwatch_dead_letters_total{reason="nul_character"} 0
rewardwatch_dead_letters_total{reason="other_tenant"} 0
rewardwatch_dead_letters_total{reason="out_of_range"} 0
rewardwatch_dead_letters_total{reason="string_too_long"} 0
rewardwatch_dead_letters_total{reason="too_deep"} 0
rewardwatch_dead_letters_total{reason="too_large"} 0
rewardwatch_dead_letters_total{reason="too_many_values"} 0
rewardwatch_dead_letters_total{reason="truncated"} 0
rewardwatch_dead_letters_total{reason="unknown_schema"} 0
rewardwatch_dead_letters_total{reason="wrong_columns"} 0
rewardwatch_dead_letters_total{reason="wrong_type"} 0
# HELP rewardwatch_events_total Records read from Kafka, by result.
# TYPE rewardwatch_events_total counter
rewardwatch_events_total{result="accepted"} 4
rewardwatch_events_total{result="refused"} 2
# HELP rewardwatch_last_event_timestamp_seconds Time of the last event read. Absent for telemetry without ts.
# TYPE rewardwatch_last_event_timestamp_seconds gauge
rewardwatch_last_event_timestamp_seconds{partition="0",topic="telemetry"} 1.700000008e+09
# HELP rewardwatch_messages_skipped_total Records that are not telemetry: null values, transaction markers, records of aborted transactions, retransmitted messages, and records that a mapping skips.
# TYPE rewardwatch_messages_skipped_total counter
rewardwatch_messages_skipped_total{reason="aborted"} 0
rewardwatch_messages_skipped_total{reason="control"} 1
rewardwatch_messages_skipped_total{reason="not_taken"} 0
rewardwatch_messages_skipped_total{reason="repeated"} 0
rewardwatch_messages_skipped_total{reason="tombstone"} 2
# HELP rewardwatch_next_offset Next offset to read, or -1 if it is not known yet.
# TYPE rewardwatch_next_offset gauge
rewardwatch_next_offset{partition="0",topic="telemetry"} 9
# HELP rewardwatch_partitions Partitions of the topic: assigned to this process, and in total.
# TYPE rewardwatch_partitions gauge
rewardwatch_partitions{kind="assigned",topic="telemetry"} 1
rewardwatch_partitions{kind="existing",topic="telemetry"} 1
# HELP rewardwatch_retention_headroom_records Records that have been read, but not yet removed by retention.
# TYPE rewardwatch_retention_headroom_records gauge
rewardwatch_retention_headroom_records{partition="0",topic="telemetry"} 9
`, ingest.MetricLagRecords, ingest.MetricLagSeconds, ingest.MetricDeadLettersLost, ingest.MetricDeadLetters, ingest.MetricEvents,
		ingest.MetricLastEvent, ingest.MetricMessagesSkipped, ingest.MetricNextOffset, ingest.MetricPartitions, ingest.MetricHeadroom)
	if err := m.consumer.Ready(); err != nil {
		t.Errorf("not ready: %v", err)
	}
	m.stop()
	if err := m.consumer.Ready(); err == nil {
		t.Error("ready after the end")
	}
	wantMetrics(t, m, "", ingest.MetricLagRecords, ingest.MetricLagSeconds, ingest.MetricLastEvent, ingest.MetricNextOffset,
		ingest.MetricHeadroom, ingest.MetricCheckpointAge)
}

// Records of aborted transactions are not telemetry, regardless of where reading begins.
func TestAbortedTransactionsAreLeftOut(t *testing.T) {
	b := newBench(t, 1)
	transaction := func(commit bool, offsets ...int) {
		t.Helper()
		var values [][]byte
		for _, o := range offsets {
			values = append(values, value(o))
		}
		if err := b.broker.ProduceWith(waitContext(t), 0, commit, values, kgo.TransactionalID("x")); err != nil {
			t.Fatal(err)
		}
		b.produced[0] += len(offsets) + 1 // the marker
	}
	transaction(false, 0, 1) // and the marker at 2
	b.produce(0, 2)
	transaction(true, 5, 6)
	transaction(false, 8)
	transaction(true, 10)
	b.produce(0, 1) // offset 12
	want := []int64{3, 4, 5, 6, 10, 12}
	m := b.join()
	m.await("the committed events", func() bool { return m.Count() >= len(want) })
	b.awaitSaved(0, 13)
	m.await("idle", func() bool { return m.Idle(0) > 0 })
	m.stop()
	for i, e := range m.Events(0) {
		if i >= len(want) || e.Pos.Offset != want[i] || e.Reward != float64(want[i]) {
			t.Errorf("event %d is %+v, want the offsets %d", i, e, want)
		}
	}
	for reason, want := range map[string]float64{"aborted": 3, "control": 4} {
		if got := gathered(m, ingest.MetricMessagesSkipped, reason); got != want {
			t.Errorf("%g messages skipped as %s, want %g", got, reason, want)
		}
	}
	if got := gathered(m, ingest.MetricOffsetGap, "0"); got != 0 {
		t.Errorf("%g records are missing, want none", got)
	}
	run, err := b.readTopic(0)
	if err != nil || run.counts.Accepted != int64(len(want)) {
		t.Errorf("ReadTopic: %+v, %v, want %d events", run.counts, err, len(want))
	}
	// A member that begins within an aborted transaction recognizes it.
	b.store.Put(consumer.PartitionCheckpoint(b.cfg.Topic, 0), consumer.PartitionState(b.cfg.Topic, 0, 1, -1, nil, []byte("[]")))
	m = b.join()
	m.await("the committed events", func() bool { return m.Count() >= len(want) })
	m.stop()
}

// Records of a transaction are read once it is committed. Until then, the partition is behind, but not stalled.
func TestOpenTransactionsAreWaitedFor(t *testing.T) {
	b := newBench(t, 1)
	b.produce(0, 1)
	client, err := kgo.NewClient(kgo.SeedBrokers(b.broker.Addrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionalID("x"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := client.ProduceSync(waitContext(t), &kgo.Record{Topic: b.cfg.Topic, Value: value(1)}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	m := b.join(func(c *consumer.Consumer) { c.SetStall(100 * time.Millisecond) })
	m.await("the first event", func() bool { return m.Count() == 1 })
	time.Sleep(500 * time.Millisecond) // the watchdog would have acted
	if got := gathered(m, ingest.MetricReconnects, "stalled"); got != 0 {
		t.Errorf("%g connections were cut", got)
	}
	if got := gathered(m, ingest.MetricLagRecords, "0"); got != 1 || m.Count() != 1 {
		t.Errorf("lag of %g records with %d events read, want 1 and 1", got, m.Count())
	}
	if _, err := b.readTopic(0); err == nil || !strings.Contains(err.Error(), "a transaction is open") {
		t.Errorf("ReadTopic gives %v while the transaction is open", err)
	}
	if err := client.EndTransaction(waitContext(t), kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	m.await("the second event", func() bool { return m.Count() == 2 })
	m.stop()
}

func TestLostDeadLettersAreCountedAndStopNothing(t *testing.T) {
	b := newBench(t, 1)
	b.letters.Fail(errors.New("no room"))
	b.produceValues(0, []byte("x"), []byte("y"), value(2))
	m := b.join()
	m.await("the event", func() bool { return m.Count() == 1 })
	wantMetrics(t, m, `
# HELP rewardwatch_dead_letters_dropped_total Rejected records that could not be stored as dead letters.
# TYPE rewardwatch_dead_letters_dropped_total counter
rewardwatch_dead_letters_dropped_total 2
`, ingest.MetricDeadLettersLost)
	m.stop()
}

func TestReadinessFollowsTheLag(t *testing.T) {
	b := newBench(t, 1)
	b.cfg.ReadyLag = 0 // the first record that is read may be alone
	m := b.join()
	m.await("idle", func() bool { return m.Idle(0) > 0 })
	resting, resume := m.Pause()
	b.produce(0, 6)
	<-resting
	if err := m.consumer.Ready(); err == nil {
		t.Error("ready with records left to judge")
	}
	resume()
	m.awaitAll(0)
	m.await("idle", func() bool { return m.Idle(0) > 1 })
	if err := m.consumer.Ready(); err != nil {
		t.Errorf("not ready: %v", err)
	}
	m.stop()
}

// Invalid lines take about as much time as valid ones, regardless of their number per message.
func TestAMessageOfBadLines(t *testing.T) {
	b := newBench(t, 1)
	b.produceValues(0, bytes.Repeat([]byte("x\n"), 200_000), value(1))
	m := b.join()
	m.await("the event behind them", func() bool { return m.Count() >= 1 })
	m.stop()
	wantMetrics(t, m, `
# HELP rewardwatch_dead_letters_not_kept_total Rejected records that were not stored as dead letters because their message contained too many rejected records.
# TYPE rewardwatch_dead_letters_not_kept_total counter
rewardwatch_dead_letters_not_kept_total 199990
# HELP rewardwatch_events_total Records read from Kafka, by result.
# TYPE rewardwatch_events_total counter
rewardwatch_events_total{result="accepted"} 1
rewardwatch_events_total{result="refused"} 200000
`, ingest.MetricDeadLettersCapped, ingest.MetricEvents)
}
