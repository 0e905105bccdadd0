package consumer_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/segmentio/kafka-go/compress"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/consumer"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

// hits waits until a fault has occurred n times.
func hits(t *testing.T, h *kfake.FaultHandle, n int) {
	t.Helper()
	if err := h.Wait(waitContext(t), n); err != nil {
		t.Fatalf("the fault was met %d times: %v", h.Hits(), err)
	}
}

func TestFaultsLoseNothingAndRepeatNothing(t *testing.T) {
	fail := func(key kmsg.Key, err *kerr.Error) func(*testing.T, *bench) {
		return func(t *testing.T, b *bench) { hits(t, b.broker.Fail(key, err, 3), 3) }
	}
	member := func(key kmsg.Key, err *kerr.Error) func(*testing.T, *bench) {
		return func(t *testing.T, b *bench) { hits(t, b.broker.FailWhole(key, err, 1), 1) }
	}
	for name, inject := range map[string]func(*testing.T, *bench){
		"fetch: not leader":           fail(kmsg.Fetch, kerr.NotLeaderForPartition),
		"fetch: leader not available": fail(kmsg.Fetch, kerr.LeaderNotAvailable),
		"fetch: out of range":         fail(kmsg.Fetch, kerr.OffsetOutOfRange),
		"fetch: timed out":            fail(kmsg.Fetch, kerr.RequestTimedOut),
		"fetch: corrupt message":      fail(kmsg.Fetch, kerr.CorruptMessage),
		"fetch: unknown error":        fail(kmsg.Fetch, kerr.UnknownServerError),
		"fetch: no such topic":        fail(kmsg.Fetch, kerr.UnknownTopicOrPartition),
		"commit: not coordinator":     fail(kmsg.OffsetCommit, kerr.NotCoordinator),
		"commit: rebalancing":         fail(kmsg.OffsetCommit, kerr.RebalanceInProgress),
		"heartbeat: rebalancing":      member(kmsg.Heartbeat, kerr.RebalanceInProgress),
		"heartbeat: old generation":   member(kmsg.Heartbeat, kerr.IllegalGeneration),
		"heartbeat: session expired":  member(kmsg.Heartbeat, kerr.UnknownMemberID),
		"heartbeat: not coordinator":  member(kmsg.Heartbeat, kerr.NotCoordinator),
		"leader moved": func(t *testing.T, b *bench) {
			if err := b.broker.MovePartition(0); err != nil {
				t.Fatal(err)
			}
		},
		"coordinator moved": func(_ *testing.T, b *bench) { b.broker.MoveCoordinator() },
		"connections cut":   func(_ *testing.T, b *bench) { b.broker.CutConnections() },
		"connection cut inside a batch": func(t *testing.T, b *bench) {
			b.broker.CutAfter(10_000)
			b.produce(0, 1000)
		},
		"rejoining fails": func(t *testing.T, b *bench) {
			join := b.broker.FailWhole(kmsg.JoinGroup, kerr.CoordinatorNotAvailable, 2)
			sync := b.broker.FailWhole(kmsg.SyncGroup, kerr.RebalanceInProgress, 1)
			b.broker.FailWhole(kmsg.Heartbeat, kerr.IllegalGeneration, 1)
			hits(t, join, 2)
			hits(t, sync, 1)
		},
		"dialing finds no leader": func(t *testing.T, b *bench) {
			h := b.broker.Fail(kmsg.Metadata, kerr.LeaderNotAvailable, 3)
			b.broker.CutConnections()
			hits(t, h, 3)
		},
		"offsets cannot be listed": func(t *testing.T, b *bench) {
			h := b.broker.Fail(kmsg.ListOffsets, kerr.NotLeaderForPartition, 3)
			b.broker.CutConnections()
			hits(t, h, 3)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, 1)
			b.produce(0, 100)
			m := b.join()
			m.awaitAll(0)
			stop := b.produceOn(0) // some faults only occur while there is something to commit
			inject(t, b)
			stop()
			b.produce(0, 100)
			m.awaitAll(0)
			m.stop()
		})
	}
}

func TestBrokersRestarted(t *testing.T) {
	b := newBench(t, 1, kfake.DataDir(t.TempDir()))
	b.produce(0, 100)
	m := b.join()
	m.awaitAll(0)
	again := b.broker.Stop()
	if err := again(); err != nil {
		t.Fatal(err)
	}
	b.produce(0, 100)
	m.awaitAll(0)
	m.stop()
	if got := b.saved(0); got != 200 {
		t.Errorf("checkpoint at %d, want 200", got)
	}
}

// recordBatches returns the broker's response to a fetch from offset 0.
func recordBatches(t *testing.T, b *bench) []byte {
	t.Helper()
	req := kmsg.NewPtrFetchRequest()
	req.MaxBytes, req.MinBytes = 1<<20, 1
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic = b.cfg.Topic
	p := kmsg.NewFetchRequestTopicPartition()
	p.PartitionMaxBytes = 1 << 20
	topic.Partitions = append(topic.Partitions, p)
	req.Topics = append(req.Topics, topic)
	leader := b.broker.Cluster().LeaderFor(b.cfg.Topic, 0)
	res, err := b.broker.Client().Broker(int(leader)).Request(waitContext(t), req)
	if err != nil {
		t.Fatal(err)
	}
	batches := res.(*kmsg.FetchResponse).Topics[0].Partitions[0].RecordBatches
	if len(batches) == 0 {
		t.Fatal("the broker gave no record batches")
	}
	return batches
}

// answerFetches makes the cluster respond to fetches with the result of f for the requested offset, either a number of
// times or until it is stopped. answered is closed at the last of a given number of responses.
func answerFetches(b *bench, times int, f func(offset int64) (batches []byte, end int64)) (answered <-chan struct{}, stop func()) {
	done := make(chan struct{})
	var stopped atomic.Bool
	b.broker.Cluster().ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		b.broker.Cluster().KeepControl()
		if times == 0 || stopped.Load() {
			return nil, nil, false
		}
		if times--; times == 0 {
			close(done)
		}
		req := r.(*kmsg.FetchRequest)
		batches, end := f(req.Topics[0].Partitions[0].FetchOffset)
		return fetchAnswer(req, batches, end), nil, true
	})
	return done, func() { stopped.Store(true) }
}

func TestDamagedAnswers(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"truncated fetch":            func(b []byte) []byte { return b[:len(b)/2] },
		"truncated in the header":    func(b []byte) []byte { return b[:30] },
		"empty fetch below the end":  func([]byte) []byte { return []byte{} },
		"null fetch below the end":   func([]byte) []byte { return nil },
		"more records than promised": func(b []byte) []byte { binary.BigEndian.PutUint32(b[57:], 0); return b },
		"unknown format":             func(b []byte) []byte { b[16] = 9; return b },
		"unknown compression":        func(b []byte) []byte { b[22] |= 7; return b },
		"lengths out of range": func(b []byte) []byte {
			for i := 61; i < len(b); i++ {
				b[i] = 0xff
			}
			return b
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 1)
			b.produce(0, 100)
			good := recordBatches(t, b)
			answered, _ := answerFetches(b, 3, func(int64) ([]byte, int64) { return damage(bytes.Clone(good)), 100 })
			m := b.join()
			select {
			case <-answered:
			case <-waitContext(t).Done():
				t.Fatal("the damaged answers were not asked for")
			}
			m.awaitAll(0)
			m.stop()
		})
	}
}

// Records that compaction has removed at the end of a compressed record batch are skipped.
func TestCompactedRecords(t *testing.T) {
	for name, codec := range map[string]kgo.CompressionCodec{"plain": kgo.NoCompression(), "snappy": kgo.SnappyCompression()} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 1)
			compactTail(t, b, codec)
			m := b.join()
			m.await("the record behind", func() bool { return m.Count() >= 21 })
			if e := m.Events(0); e[19].Pos.Offset != 19 || e[20].Pos.Offset != 22 || len(e) != 21 {
				t.Errorf("%d events, the last at %v, want 21 and offset 22", len(e), e[len(e)-1].Pos)
			}
			if got := gathered(m, ingest.MetricOffsetGap, "0"); got != 2 {
				t.Errorf("%g records are missing, want 2", got)
			}
			m.stop()
		})
	}
}

// Compacted records are counted wherever they were: inside record batches, between them, and before the first one.
func TestCompactedRecordsAreCounted(t *testing.T) {
	b := newBench(t, 1)
	b.produce(0, 20)
	pieces := slices.Concat(ingesttest.Whole(1, value(3)), ingesttest.Whole(4, value(6)), ingesttest.Whole(5, value(7)))
	batch := ingesttest.Batch(compress.Gzip, 3, packed(t, compress.Gzip.Codec(), pieces)) // offsets 2 to 11, of which 3, 6 and 7 remain
	binary.BigEndian.PutUint64(batch, 2)
	binary.BigEndian.PutUint32(batch[23:], 9)
	empty := ingesttest.Batch(0, 0, nil) // offsets 12 to 15
	binary.BigEndian.PutUint64(empty, 12)
	binary.BigEndian.PutUint32(empty[23:], 3)
	answerBelow(b, append(batch, empty...), 16)
	m := b.join()
	m.await("the records left", func() bool { return m.Count() >= 7 })
	b.awaitSaved(0, 20)
	m.stop()
	if got := gathered(m, ingest.MetricOffsetGap, "0"); got != 13 {
		t.Errorf("%g records are missing, want 13", got)
	}
}

// compactTail writes 23 records. The ones at offsets 20 and 21 are then missing, as after compaction.
func compactTail(t *testing.T, b *bench, codec kgo.CompressionCodec) {
	t.Helper()
	var values [][]byte
	for i := range 20 {
		values = append(values, value(i))
	}
	if err := b.broker.ProduceWith(waitContext(t), 0, false, values, kgo.ProducerBatchCompression(codec)); err != nil {
		t.Fatal(err)
	}
	compacted := recordBatches(t, b)
	binary.BigEndian.PutUint32(compacted[23:], 21) // the last offset, as if there had been two more records
	b.produceValues(0, value(20), value(21))
	b.produceValues(0, value(22))
	b.broker.Cluster().ControlKey(int16(kmsg.Fetch), compactedFetch(b, compacted, 22))
}

// compactedFetch responds to all fetches below an offset with the same record batch.
func compactedFetch(b *bench, batch []byte, below int64) func(kmsg.Request) (kmsg.Response, error, bool) {
	return func(r kmsg.Request) (kmsg.Response, error, bool) {
		b.broker.Cluster().KeepControl()
		req := r.(*kmsg.FetchRequest)
		if req.Topics[0].Partitions[0].FetchOffset >= below {
			return nil, nil, false
		}
		return fetchAnswer(req, batch, below+1), nil, true
	}
}

func fetchAnswer(req *kmsg.FetchRequest, batches []byte, end int64) kmsg.Response {
	res := req.ResponseKind().(*kmsg.FetchResponse)
	topic := kmsg.NewFetchResponseTopic()
	topic.Topic = req.Topics[0].Topic
	p := kmsg.NewFetchResponseTopicPartition()
	p.RecordBatches, p.HighWatermark = batches, end
	topic.Partitions = append(topic.Partitions, p)
	res.Topics = append(res.Topics, topic)
	return res
}

// A flipped byte in a record is only noticed when it is decoded, because kafka-go does not verify checksums.
func TestAFlippedByteIsRefusedByTheDecoder(t *testing.T) {
	b := newBench(t, 1)
	b.produce(0, 3)
	flipped := bytes.Replace(recordBatches(t, b), []byte(`"reward":1`), []byte("\"reward\":\x01"), 1)
	answerFetches(b, 1, func(int64) ([]byte, int64) { return flipped, 3 })
	m := b.join()
	m.await("two events", func() bool { return m.Count() == 2 })
	b.awaitSaved(0, 3)
	m.stop()
	kept := b.letters.Kept()
	if len(kept) != 1 || kept[0].Pos.Offset != 1 || kept[0].Reason != ingest.ReasonInvalidJSON {
		t.Errorf("dead letters %+v, want one of offset 1", kept)
	}
}

// A broker that has lost leadership without noticing responds that there is nothing new.
func TestTheWatchdogCutsAStalledPartition(t *testing.T) {
	for name, forever := range map[string]bool{"the connection": false, "then the generation": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 1)
			b.produce(0, 10)
			m := b.join(func(c *consumer.Consumer) { c.SetStall(60 * time.Millisecond) })
			m.awaitAll(0)
			b.awaitSaved(0, 10)
			stale := func(offset int64) ([]byte, int64) { return []byte{}, offset }
			_, heal := answerFetches(b, -1, stale)
			b.produce(0, 10)
			stalled := func() bool { return reconnects(m, "stalled") > 0 }
			if forever {
				join := b.broker.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.JoinGroup}, Observe: true, Count: -1})
				hits(t, join, 1)
			} else {
				m.await("the connection to be cut", stalled)
			}
			if !stalled() {
				t.Error("no connection was cut as stalled")
			}
			heal()
			m.awaitAll(0)
			m.stop()
		})
	}
}

func reconnects(m *member, reason string) float64 {
	return gathered(m, ingest.MetricReconnects, reason)
}

func TestRetentionOvertakesTheConsumer(t *testing.T) {
	b := newBench(t, 1)
	b.produce(0, 10)
	m := b.join()
	m.awaitAll(0)
	if n, err := testutil.GatherAndCount(m.registry, ingest.MetricOffsetGap); n != 1 || err != nil {
		t.Errorf("%d partitions show their gaps before there is one, want 1: %v", n, err)
	}
	m.stop()
	b.produce(0, 90)
	if err := b.broker.DeleteRecords(0, 40); err != nil {
		t.Fatal(err)
	}
	m = b.join()
	m.await("70 events", func() bool { return len(m.Events(0)) >= 70 })
	if e := m.Events(0); e[9].Pos.Offset != 9 || e[10].Pos.Offset != 40 || len(e) != 70 {
		t.Errorf("%d events, with offset %d behind the gap, want 70 and 40", len(e), e[10].Pos.Offset)
	}
	if got := gathered(m, ingest.MetricOffsetGap, "0"); got != 30 {
		t.Errorf("gap of %g records, want 30", got)
	}
	m.stop()
}

func TestRetentionOvertakesARunningConsumer(t *testing.T) {
	b := newBench(t, 1)
	b.produce(0, 10)
	m := b.join()
	m.awaitAll(0)
	resting, resume := m.Pause()
	b.produce(0, 1)
	<-resting
	b.produce(0, 89)
	if err := b.broker.DeleteRecords(0, 60); err != nil {
		t.Fatal(err)
	}
	resume()
	m.await("51 events", func() bool { return len(m.Events(0)) >= 51 })
	if got := gathered(m, ingest.MetricOffsetGap, "0"); got != 49 {
		t.Errorf("gap of %g records, want 49", got)
	}
	m.stop()
}

// The headroom before retention is tracked while a partition is read, even if only the watchdog looks.
func TestRetentionComesNearer(t *testing.T) {
	b := newBench(t, 1)
	b.produce(0, 100)
	m := b.join(func(c *consumer.Consumer) { c.SetStall(300 * time.Millisecond) })
	m.awaitAll(0)
	for _, removed := range []int64{0, 70} {
		if err := b.broker.DeleteRecords(0, removed); err != nil {
			t.Fatal(err)
		}
		want := float64(100 - removed)
		m.await("the headroom", func() bool { return gathered(m, ingest.MetricHeadroom, "0") == want })
	}
	m.stop()
}

func TestOffsetPastTheEndAsksTheOperator(t *testing.T) {
	b := newBench(t, 1)
	b.produce(0, 10)
	state := consumer.PartitionState(b.cfg.Topic, 0, 15, 14, value(14), []byte("[]"))
	b.store.Put(consumer.PartitionCheckpoint(b.cfg.Topic, 0), state)
	m := b.join()
	wantEnd(t, m, consumer.ErrOffsetPastEnd)
	if got := b.saved(0); got != 15 {
		t.Errorf("the checkpoint is at %d now, want 15 as before", got)
	}
}

func TestACommittedOffsetPastTheEndAsksTheOperator(t *testing.T) {
	b := newBench(t, 1)
	b.produce(0, 10)
	commit(t, b, 0, 11)
	wantEnd(t, b.join(), consumer.ErrOffsetPastEnd)
}

func TestARecreatedTopicWithMoreRecordsAsksTheOperator(t *testing.T) {
	b := newBench(t, 1)
	b.produce(0, 10)
	m := b.join()
	m.awaitAll(0)
	m.stop()
	if err := b.broker.Recreate(1); err != nil {
		t.Fatal(err)
	}
	b.produce(0, 100) // other values than before, because they continue counting
	wantEnd(t, b.join(), consumer.ErrTopicRecreated)
	if got := b.saved(0); got != 10 {
		t.Errorf("the checkpoint is at %d now, want 10 as before", got)
	}
}

func TestDamagedCheckpointsAreRefused(t *testing.T) {
	good := consumer.PartitionState("telemetry", 0, 5, 4, value(4), []byte("[]"))[consumer.StatePart]
	states := map[string][]byte{
		"empty":               {},
		"other magic":         append([]byte("x"), good[1:]...),
		"header cut":          good[:30],
		"topic cut":           good[:45],
		"snapshot cut":        good[:len(good)-1],
		"negative next":       consumer.PartitionState("telemetry", 0, -1, -1, nil, []byte("[]"))[consumer.StatePart],
		"last beyond next":    consumer.PartitionState("telemetry", 0, 5, 5, nil, []byte("[]"))[consumer.StatePart],
		"of another topic":    consumer.PartitionState("other", 0, 5, 4, value(4), []byte("[]"))[consumer.StatePart],
		"of another patition": consumer.PartitionState("telemetry", 1, 5, 4, value(4), []byte("[]"))[consumer.StatePart],
	}
	for name, state := range states {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 1)
			b.produce(0, 10)
			b.store.Put(consumer.PartitionCheckpoint(b.cfg.Topic, 0), ingest.Parts{consumer.StatePart: state})
			m := b.join()
			wantEnd(t, m, consumer.ErrCheckpointDamaged)
			if m.Count() > 0 {
				t.Error("events were processed on top of a damaged checkpoint")
			}
			if got, _ := b.store.Load(consumer.PartitionCheckpoint(b.cfg.Topic, 0)); !bytes.Equal(got[consumer.StatePart], state) {
				t.Error("the damaged checkpoint was overwritten")
			}
		})
	}
}

func TestAProcessorThatFailsEndsTheConsumerAndNothingIsSaved(t *testing.T) {
	broken := errors.New("broken")
	for name, breakIt := range map[string]func(*member){
		"error": func(m *member) { m.Fail(broken) },
		"panic": func(m *member) { m.Panic(broken) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 2)
			b.produce(0, 10)
			b.produce(1, 10)
			m := b.join()
			m.awaitAll(0, 1)
			b.awaitSaved(0, 10)
			b.awaitSaved(1, 10)
			breakIt(m)
			b.produce(0, 10)
			wantEnd(t, m, consumer.ErrProcessor)
			if got := b.saved(0); got != 10 {
				t.Errorf("the checkpoint is at %d, want 10 as before", got)
			}
			if got := b.committed(0); got != 10 {
				t.Errorf("committed %d, want 10 as before", got)
			}
		})
	}
}

func TestStopDoesNotWaitForAFetch(t *testing.T) {
	b := newBench(t, 2)
	b.produce(0, 10)
	m := b.join(func(c *consumer.Consumer) { c.SetMaxWait(time.Minute) })
	fetch := b.broker.Cluster().Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Fetch}, Observe: true, Count: -1,
		When: func(r kmsg.Request) bool { return r.(*kmsg.FetchRequest).MaxWaitMillis >= 60_000 },
	})
	m.awaitAll(0)
	hits(t, fetch, 3) // the last one waits for a minute
	began := time.Now()
	m.stop()
	if took := time.Since(began); took > 20*time.Second { // the fetch takes a minute
		t.Errorf("stopping took %v", took)
	}
}

func TestStopDoesNotWaitForTheJoinOfOthers(t *testing.T) {
	b := newBench(t, 1)
	b.produce(0, 10)
	first := b.join()
	first.awaitAll(0)
	resting, resume := first.Pause()
	b.produce(0, 1)
	<-resting // the first member cannot release its partition, so the second one waits in the join
	joins := b.broker.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.JoinGroup}, Observe: true, Count: -1})
	second := b.join()
	hits(t, joins, 1)
	began := time.Now()
	second.stop()
	if took := time.Since(began); took > 4*time.Second { // a rebalance takes up to 5 s
		t.Errorf("stopping took %v", took)
	}
	resume()
	first.awaitAll(0)
	first.stop()
}

func TestStoppingFinishesTheBatchInHand(t *testing.T) {
	b := newBench(t, 1)
	b.produce(0, 10)
	m := b.join()
	m.awaitAll(0)
	resting, resume := m.Pause()
	b.produce(0, 10)
	<-resting
	m.cancel()
	resume()
	m.stop()
	judged := len(m.Events(0)) // timing determines which of the ten messages are in one batch
	if judged <= 10 {
		t.Errorf("%d events, and the batch in hand is not among them", judged)
	}
	m.check(0, 0, judged)
	if saved, committed := b.saved(0), b.committed(0); saved != int64(judged) || committed != int64(judged) {
		t.Errorf("checkpoint at %d, committed %d, want %d both", saved, committed, judged)
	}
}

func TestUnreachableBrokersAreWaitedFor(t *testing.T) {
	b := newBench(t, 1)
	b.cfg.Brokers = []string{"127.0.0.1:1"}
	m := b.join()
	if err := m.consumer.Ready(); err == nil {
		t.Error("ready without brokers")
	}
	m.stop()
	if n := testutil.CollectAndCount(m.registry, ingest.MetricNextOffset); n != 0 {
		t.Errorf("%d partitions are shown", n)
	}
}
