package consumer_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/consumer"
	"github.com/rewardwatch/rewardwatch/ingest/deadletter"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
	"github.com/rewardwatch/rewardwatch/ingest/telemetry"
)

// patience is the timeout of every wait in these tests. Only events that never happen take this long.
const patience = 2 * time.Minute

func waitContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// bench is a cluster with the state that its consumers share.
type bench struct {
	t       testing.TB
	broker  *ingesttest.Broker
	cfg     ingest.KafkaConfig
	store   *ingesttest.Store
	stores  ingest.Stores // of joining consumers; the store unless a test sets it
	letters *ingesttest.Letters
	format  ingest.Format
	topics  []ingest.Topic // of joining consumers, if there are several
	joined  bool
	merged  bool

	producing sync.Mutex
	produced  map[int32]int // number of messages in each partition
}

func newBench(t testing.TB, partitions int32, options ...kfake.Opt) *bench {
	t.Helper()
	broker, err := ingesttest.Start(partitions, "telemetry", options...)
	if err != nil {
		t.Fatal(err)
	}
	return benchOn(t, broker)
}

func benchOn(t testing.TB, broker *ingesttest.Broker) *bench {
	t.Cleanup(broker.Close)
	cfg := ingest.DefaultKafkaConfig()
	cfg.Brokers, cfg.Topic, cfg.Group = broker.Addrs(), broker.Topic, "watchers"
	store := ingesttest.NewStore()
	return &bench{
		t: t, broker: broker, cfg: cfg, store: store, stores: store, letters: &ingesttest.Letters{}, format: telemetry.V1{},
		produced: map[int32]int{},
	}
}

// value returns the telemetry at an offset.
func value(offset int) []byte {
	return fmt.Appendf(nil, `{"policy":"p","ts":%d,"reward":%d}`, 1_700_000_000+offset, offset)
}

// produce writes the next messages of a partition, as one record batch.
func (b *bench) produce(partition int32, messages int) {
	b.t.Helper()
	if err := b.tryProduce(partition, messages); err != nil {
		b.t.Fatalf("producing: %v", err)
	}
}

func (b *bench) tryProduce(partition int32, messages int) error {
	b.producing.Lock()
	defer b.producing.Unlock()
	values := make([][]byte, messages)
	for i := range values {
		values[i] = value(b.produced[partition] + i)
	}
	b.produced[partition] += messages
	return b.broker.Produce(waitContext(b.t), partition, values...)
}

func (b *bench) produceValues(partition int32, values ...[]byte) {
	b.t.Helper()
	if err := b.broker.Produce(waitContext(b.t), partition, values...); err != nil {
		b.t.Fatalf("producing: %v", err)
	}
	b.produced[partition] += len(values)
}

// produceOn writes messages one by one until stop is called.
func (b *bench) produceOn(partition int32) (stop func()) {
	stopped, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stopped:
				return
			case <-tick.C:
				if err := b.tryProduce(partition, 1); err != nil {
					b.t.Errorf("producing: %v", err)
					return
				}
			}
		}
	}()
	return func() {
		close(stopped)
		<-done
	}
}

// member is a running consumer.
type member struct {
	*ingesttest.Recorder
	b        *bench
	consumer *consumer.Consumer
	registry *prometheus.Registry
	cancel   context.CancelFunc
	ended    chan error
}

// join starts a consumer of events.
func (b *bench) join(adjust ...func(*consumer.Consumer)) *member {
	b.t.Helper()
	return b.joinAs(ingesttest.NewRecorder(), b.letters, prometheus.NewPedanticRegistry(), adjust...)
}

// joinAs starts a consumer with the given Recorder.
func (b *bench) joinAs(r *ingesttest.Recorder, letters deadletter.Keeper, reg *prometheus.Registry, adjust ...func(*consumer.Consumer)) *member {
	b.t.Helper()
	m := &member{Recorder: r, b: b, registry: reg, ended: make(chan error, 1)}
	var err error
	m.consumer, err = consumer.New(b.cfg, consumer.Options{
		Stores: b.stores, CheckpointEvery: 10 * time.Millisecond, Format: b.format, Topics: b.topics, Joined: b.joined, Merged: b.merged, DeadLetters: letters, Handler: m,
		Log: zerolog.New(zerolog.NewTestWriter(b.t)).Level(zerolog.InfoLevel), Registerer: m.registry,
	})
	if err != nil {
		b.t.Fatal(err)
	}
	m.consumer.Hurry()
	for _, f := range adjust {
		f(m.consumer)
	}
	ctx, cancel := context.WithCancel(context.Background())
	m.cancel = cancel
	go func() { m.ended <- m.consumer.Run(ctx) }()
	b.t.Cleanup(cancel)
	return m
}

// end waits until the consumer has ended.
func (m *member) end() error {
	m.b.t.Helper()
	select {
	case err := <-m.ended:
		m.ended <- err
		return err
	case <-waitContext(m.b.t).Done():
		m.b.t.Fatal("the consumer did not end")
		return nil
	}
}

// stop stops the consumer in order.
func (m *member) stop() {
	m.b.t.Helper()
	m.cancel()
	if err := m.end(); err != nil {
		m.b.t.Fatalf("Run: %v", err)
	}
	if left := m.Assigned(); len(left) > 0 {
		m.b.t.Errorf("still assigned after the end: %v", left)
	}
	checkCalls(m.b.t, m.Calls())
}

// kill stops the consumer without a last checkpoint.
func (m *member) kill() {
	m.b.t.Helper()
	m.b.store.Fill()
	m.stop()
	m.b.store.Free()
}

// await waits until a condition on the processed events holds.
func (m *member) await(what string, condition func() bool) {
	m.b.t.Helper()
	if err := m.Await(waitContext(m.b.t), condition); err != nil {
		m.b.t.Fatalf("waiting for %s: %v; %d events, assigned %v", what, err, m.Count(), m.Assigned())
	}
}

// awaitAll waits until the state of a partition contains everything that was produced, and checks that it contains each
// message once and in order.
func (m *member) awaitAll(partitions ...int32) {
	m.b.t.Helper()
	for _, p := range partitions {
		want := m.b.produced[p]
		m.await(fmt.Sprintf("%d events of partition %d", want, p), func() bool { return len(m.Events(p)) >= want })
		m.check(p, 0, want)
	}
}

// check checks that the state of a partition contains the messages from first to end, each once and in order.
func (m *member) check(partition int32, first, end int) {
	m.b.t.Helper()
	events := m.Events(partition)
	for i, e := range events {
		want := int64(first + i)
		if e.Pos.Partition != ingest.Partition(partition) || e.Pos.Offset != want || e.Reward != float64(want) {
			m.b.t.Fatalf("event %d of partition %d is %+v, want offset %d", i, partition, e, want)
		}
	}
	if len(events) != end-first {
		m.b.t.Fatalf("partition %d: %d events, want %d", partition, len(events), end-first)
	}
}

// awaitSaved waits until the checkpoint of a partition includes everything before an offset.
func (b *bench) awaitSaved(partition int32, next int64) {
	b.t.Helper()
	if err := b.store.Await(waitContext(b.t), func() bool { return b.saved(partition) >= next }); err != nil {
		b.t.Fatalf("waiting for checkpoint %d: %v; it is at %d", next, err, b.saved(partition))
	}
}

func (b *bench) saved(partition int32) int64 {
	snapshot, err := b.store.Load(consumer.PartitionCheckpoint(b.cfg.Topic, partition))
	if err != nil {
		return -1
	}
	next, err := consumer.PartitionNext(snapshot)
	if err != nil {
		b.t.Fatal(err)
	}
	return next
}

func (b *bench) committed(partition int32) int64 {
	b.t.Helper()
	next, err := b.broker.Committed(waitContext(b.t), b.cfg.Group, partition)
	if err != nil {
		b.t.Fatal(err)
	}
	return next
}

func TestEveryPartitionIsReadOnceInOrder(t *testing.T) {
	b := newBench(t, 3)
	for p := range int32(3) {
		b.produce(p, 300)
	}
	m := b.join()
	m.awaitAll(0, 1, 2)
	for range 20 {
		for p := range int32(3) {
			b.produce(p, 7)
		}
	}
	m.awaitAll(0, 1, 2)
	m.stop()
	for p := range int32(3) {
		if got, want := b.saved(p), int64(440); got != want {
			t.Errorf("partition %d: checkpoint at %d, want %d", p, got, want)
		}
		if got, want := b.committed(p), int64(440); got != want {
			t.Errorf("partition %d: committed %d, want %d", p, got, want)
		}
	}
}

func TestResumesFromTheCheckpointNotFromTheGroup(t *testing.T) {
	for _, committed := range []int64{0, 30, 100} {
		b := newBench(t, 1)
		b.produce(0, 50)
		m := b.join()
		m.awaitAll(0)
		m.stop()
		b.produce(0, 50)
		commit(t, b, 0, committed)
		m = b.join()
		m.awaitAll(0)
		m.stop()
	}
}

func TestResumesFromTheGroupWithoutACheckpoint(t *testing.T) {
	b := newBench(t, 1)
	b.produce(0, 50)
	commit(t, b, 0, 30)
	m := b.join()
	m.await("20 events", func() bool { return len(m.Events(0)) >= 20 })
	m.check(0, 30, 50)
	m.stop()
}

func TestTheFirstPositionIsCommittedBeforeAnyMessage(t *testing.T) {
	b := newBench(t, 1)
	m := b.join()
	b.awaitSaved(0, 0)
	m.stop()
	if got := b.committed(0); got != 0 {
		t.Errorf("committed %d, want 0", got)
	}
	b.produce(0, 10)
	m = b.join()
	m.awaitAll(0)
	m.stop()
}

func TestARecordBatchIsReadFromTheOffsetNotFromItsHead(t *testing.T) {
	b := newBench(t, 1)
	b.produce(0, 20) // one record batch
	b.store.Put(consumer.PartitionCheckpoint(b.cfg.Topic, 0), consumer.PartitionState(b.cfg.Topic, 0, 15, 14, value(14), []byte("[]")))
	m := b.join()
	m.await("5 events", func() bool { return len(m.Events(0)) >= 5 })
	m.await("idle", func() bool { return m.Idle(0) > 0 })
	m.check(0, 15, 20)
	m.stop()
}

func TestKilledAndStartedAgain(t *testing.T) {
	b := newBench(t, 1)
	b.produce(0, 100)
	m := b.join()
	m.awaitAll(0)
	b.awaitSaved(0, 100)
	b.store.Fill()
	b.produce(0, 100)
	m.awaitAll(0)
	m.kill()
	if saved, committed := b.saved(0), b.committed(0); saved != 100 || committed > saved {
		t.Fatalf("checkpoint at %d, committed %d: a commit must not be ahead of its checkpoint", saved, committed)
	}
	b.produce(0, 100)
	m = b.join()
	m.awaitAll(0)
	m.stop()
}

func TestAFullDiskDelaysCheckpointsAndCommits(t *testing.T) {
	b := newBench(t, 1)
	m := b.join()
	b.awaitSaved(0, 0)
	b.store.Fill()
	b.produce(0, 100)
	m.awaitAll(0)
	tries := 0
	if err := b.store.Await(waitContext(t), func() bool { tries++; return tries > 3 }); err != nil {
		t.Fatal(err)
	}
	if got := b.committed(0); got > 0 {
		t.Errorf("committed %d without a checkpoint", got)
	}
	b.store.Free()
	b.awaitSaved(0, 100)
	m.stop()
	if got := b.committed(0); got != 100 {
		t.Errorf("committed %d, want 100", got)
	}
}

// Records of a partition that are read before its first checkpoint would be counted again after a crash.
func TestNothingIsReadBeforeTheFirstCheckpoint(t *testing.T) {
	b := newBench(t, 1)
	b.store.Fill()
	b.produce(0, 100)
	m := b.join()
	tries := 0
	if err := b.store.Await(waitContext(t), func() bool { tries++; return tries > 4 }); err != nil {
		t.Fatal(err)
	}
	if m.Count() > 0 || m.Idle(0) > 0 {
		t.Errorf("%d events were read without a checkpoint", m.Count())
	}
	if got := b.committed(0); got != -1 {
		t.Errorf("committed %d without a checkpoint", got)
	}
	began := time.Now()
	m.stop() // it does not wait for the store either
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("stopping took %v", took)
	}
	m = b.join()
	b.store.Free()
	m.awaitAll(0)
	m.stop()
	if got := reconnects(m, "connection"); got > 0 {
		t.Errorf("%g connections were lost", got)
	}
}

func TestMembersShareThePartitionsAndHandThemOver(t *testing.T) {
	b := newBench(t, 4)
	all := func(n int) {
		for p := range int32(4) {
			b.produce(p, n)
		}
	}
	all(50)
	first := b.join()
	first.awaitAll(0, 1, 2, 3)
	second := b.join()
	second.await("two partitions", func() bool { return len(second.Assigned()) == 2 })
	first.await("two partitions", func() bool { return len(first.Assigned()) == 2 })
	for _, m := range []*member{first, second} {
		if got := m.Partitions(); got != 4 {
			t.Errorf("a member was told of %d partitions, and the topic has 4", got)
		}
	}
	all(50)
	for _, m := range []*member{first, second} {
		for p := range maps.Keys(m.Assigned()) {
			m.awaitAll(p)
		}
	}
	first.stop()
	all(50)
	second.awaitAll(0, 1, 2, 3)
	second.stop()
}

// All partitions wait inside Process, for example for room on a full disk, and none continues by itself. A rebalance
// must end this, and so must a stop.
func TestAHandlerThatWaitsLearnsThatTheGenerationEnds(t *testing.T) {
	b := newBench(t, 2)
	m := b.join()
	m.await("both partitions", func() bool { return len(m.Assigned()) == 2 })
	wait := func() {
		t.Helper()
		resting := m.PauseUntilEnding()
		for p := range m.Assigned() {
			b.produce(p, 1)
			<-resting
		}
	}
	wait()
	second := b.join()
	for _, m := range []*member{m, second} {
		m.await("one partition", func() bool { return len(m.Assigned()) == 1 })
	}
	wait()
	m.stop()
	second.awaitAll(0, 1)
	second.stop()
}

// checkCalls checks that a Handler was called as documented: a generation begins, its partitions are assigned, its end
// is announced, and each partition is revoked.
func checkCalls(t testing.TB, calls []string) {
	t.Helper()
	stage, assigned := "ending", map[string]bool{}
	for i, call := range calls {
		verb, of, _ := strings.Cut(call, " ")
		ok := false
		switch verb {
		case "begin":
			ok, stage = stage == "ending" && len(assigned) == 0, verb
		case "assign":
			ok = stage == "begin" && !assigned[of]
			assigned[of] = true
		case "ending":
			ok, stage = stage == "begin", verb
		case "revoke":
			ok = stage == "ending" && assigned[of]
			delete(assigned, of)
		}
		if !ok {
			t.Errorf("call %d is out of place: %q", i, calls)
			return
		}
	}
	if stage != "ending" || len(assigned) > 0 {
		t.Errorf("the last generation was not ended: %q", calls)
	}
}

func TestAPartitionAddedWhileRunningIsRead(t *testing.T) {
	b := newBench(t, 1)
	b.produce(0, 10)
	m := b.join()
	m.awaitAll(0)
	grown := time.Now()
	if err := m.Await(waitContext(t), func() bool { return m.Confirmed().After(grown) }); err != nil {
		t.Fatal("the partitions are not confirmed: ", err)
	}
	if err := b.broker.Grow(waitContext(t), 2); err != nil {
		t.Fatal(err)
	}
	grown = time.Now()
	b.produce(1, 10)
	m.awaitAll(0, 1)
	if n := m.Partitions(); n != 2 {
		t.Errorf("a generation on %d partitions", n)
	}
	if err := m.Await(waitContext(t), func() bool { return m.Confirmed().After(grown) }); err != nil {
		t.Fatal("the new partition is not confirmed: ", err)
	}
	m.stop()
}

func TestATopicThatDoesNotExistYetIsWaitedFor(t *testing.T) {
	b := newBench(t, 0)
	m := b.join()
	if err := m.consumer.Ready(); err == nil {
		t.Error("ready without a topic")
	}
	if err := b.broker.Cluster().CreateTopic(b.cfg.Topic, 1, nil); err != nil {
		t.Fatal(err)
	}
	b.produce(0, 10)
	m.awaitAll(0)
	m.stop()
}

func TestATopicDeletedWhileRunningAsksTheOperator(t *testing.T) {
	b := newBench(t, 1)
	b.produce(0, 10)
	m := b.join()
	m.awaitAll(0)
	b.awaitSaved(0, 10)
	if err := b.broker.Recreate(1); err != nil {
		t.Fatal(err)
	}
	wantEnd(t, m, consumer.ErrOffsetPastEnd)
}
