package ingest_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/rewardwatch/rewardwatch/ingest"
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
			b.store.Put(ingest.PartitionCheckpoint(b.cfg.Topic, 0),
				ingest.PartitionState(b.cfg.Topic, 0, 123, 122, value(122), []byte("[]")))
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
	// What is too large stands before the next offset now, in the same record batch.
	b.store.Put(ingest.PartitionCheckpoint(b.cfg.Topic, 0), ingest.PartitionState(b.cfg.Topic, 0, 6, 4, value(4), []byte("[]")))
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
# HELP rewardwatch_consumer_lag_records Records that are in the partition and have not been read.
# TYPE rewardwatch_consumer_lag_records gauge
rewardwatch_consumer_lag_records{partition="0",topic="telemetry"} 0
# HELP rewardwatch_consumer_lag_seconds Age of the last event read, 0 when all has been read; absent for telemetry without ts.
# TYPE rewardwatch_consumer_lag_seconds gauge
rewardwatch_consumer_lag_seconds{partition="0",topic="telemetry"} 0
# HELP rewardwatch_dead_letters_dropped_total Refused records that could not be kept as dead letters.
# TYPE rewardwatch_dead_letters_dropped_total counter
rewardwatch_dead_letters_dropped_total 0
# HELP rewardwatch_dead_letters_total Records refused, by reason.
# TYPE rewardwatch_dead_letters_total counter
rewardwatch_dead_letters_total{reason="bad_header"} 0
rewardwatch_dead_letters_total{reason="bad_timestamp"} 0
rewardwatch_dead_letters_total{reason="empty_record"} 0
rewardwatch_dead_letters_total{reason="invalid_json"} 1
rewardwatch_dead_letters_total{reason="invalid_utf8"} 0
rewardwatch_dead_letters_total{reason="missing_policy"} 1
rewardwatch_dead_letters_total{reason="missing_return"} 0
rewardwatch_dead_letters_total{reason="nul_character"} 0
rewardwatch_dead_letters_total{reason="out_of_range"} 0
rewardwatch_dead_letters_total{reason="string_too_long"} 0
rewardwatch_dead_letters_total{reason="too_deep"} 0
rewardwatch_dead_letters_total{reason="too_large"} 0
rewardwatch_dead_letters_total{reason="too_many_values"} 0
rewardwatch_dead_letters_total{reason="truncated"} 0
rewardwatch_dead_letters_total{reason="wrong_columns"} 0
rewardwatch_dead_letters_total{reason="wrong_type"} 0
# HELP rewardwatch_events_total Records read from Kafka, by result.
# TYPE rewardwatch_events_total counter
rewardwatch_events_total{result="accepted"} 4
rewardwatch_events_total{result="refused"} 2
# HELP rewardwatch_last_event_timestamp_seconds Time of the last event read; absent for telemetry without ts.
# TYPE rewardwatch_last_event_timestamp_seconds gauge
rewardwatch_last_event_timestamp_seconds{partition="0",topic="telemetry"} 1.700000008e+09
# HELP rewardwatch_messages_skipped_total Messages that are not telemetry: null values and transaction markers.
# TYPE rewardwatch_messages_skipped_total counter
rewardwatch_messages_skipped_total{reason="control"} 1
rewardwatch_messages_skipped_total{reason="tombstone"} 2
# HELP rewardwatch_next_offset Next offset to read, -1 before it is known.
# TYPE rewardwatch_next_offset gauge
rewardwatch_next_offset{partition="0",topic="telemetry"} 9
# HELP rewardwatch_partitions Partitions of the topic: assigned to this process, and existing.
# TYPE rewardwatch_partitions gauge
rewardwatch_partitions{kind="assigned",topic="telemetry"} 1
rewardwatch_partitions{kind="existing",topic="telemetry"} 1
# HELP rewardwatch_retention_headroom_records Records that retention has yet to remove before it reaches those that have not been read.
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

// The records of an aborted transaction cannot be told from others: the topic must not be written in transactions.
func TestAbortedRecordsAreDelivered(t *testing.T) {
	b := newBench(t, 1)
	if err := b.broker.ProduceWith(waitContext(t), 0, false, [][]byte{value(0)}, kgo.TransactionalID("x")); err != nil {
		t.Fatal(err)
	}
	m := b.join()
	m.await("the aborted event", func() bool { return m.Count() == 1 })
	b.awaitSaved(0, 2)
	m.stop()
}

func TestLostDeadLettersAreCountedAndStopNothing(t *testing.T) {
	b := newBench(t, 1)
	b.letters.Fail(errors.New("no room"))
	b.produceValues(0, []byte("x"), []byte("y"), value(2))
	m := b.join()
	m.await("the event", func() bool { return m.Count() == 1 })
	wantMetrics(t, m, `
# HELP rewardwatch_dead_letters_dropped_total Refused records that could not be kept as dead letters.
# TYPE rewardwatch_dead_letters_dropped_total counter
rewardwatch_dead_letters_dropped_total 2
`, ingest.MetricDeadLettersLost)
	m.stop()
}

func TestReadinessFollowsTheLag(t *testing.T) {
	b := newBench(t, 1)
	b.cfg.ReadyLag = 0 // the first record that is read may come alone
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
