//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/compress"
	"github.com/segmentio/kafka-go/compress/snappy"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/rewardwatch/rewardwatch/detectors/metrics"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

const (
	// transactionRounds is how often the producers of the transactions start again.
	transactionRounds = 20
	episodeSteps      = 3
)

// committed writes in transactions, and computes what a service must have seen in the end.
type committed struct {
	topic            string
	partitions       int32
	now              int64
	episodes, events int // numbers that count: committed, or written outside of transactions
	rewards          float64
	aborted          int // number of aborted events
	transactions     int // number of transactions begun
}

// step returns the events of one step of an episode, one per partition, none of which counts yet.
func (c *committed) step(policy string, episode, step int, reward float64) []*kgo.Record {
	var records []*kgo.Record
	for p := range c.partitions {
		c.now += int64(time.Millisecond)
		agent := fmt.Sprintf("%s/%d", policy, p)
		value, _ := json.Marshal(loadEvent{ // strings and finite numbers: it cannot fail
			TS: c.now, Policy: policy, Env: "arena", EnvVersion: "1", Agent: agent, Episode: fmt.Sprintf("%s/%d", agent, episode),
			Step: step, Action: "stay", Reward: reward, Terminated: step == episodeSteps-1,
		})
		records = append(records, &kgo.Record{Partition: p, Value: value})
	}
	return records
}

// wrong is a reward that occurs only in events that do not count.
const wrong = 1000

// counts adds a step of every partition to what counts.
func (c *committed) counts(records []*kgo.Record, step int, reward float64) []*kgo.Record {
	c.events += len(records)
	c.rewards += reward * float64(len(records))
	if step == episodeSteps-1 {
		c.episodes += len(records)
	}
	return records
}

// producer connects to the broker, with a transactional ID unless transactional is empty.
func (b *broker) producer(t *testing.T, topic, transactional string) *kgo.Client {
	t.Helper()
	options := []kgo.Opt{
		kgo.SeedBrokers(b.address), kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(0),
	}
	if transactional != "" {
		options = append(options, kgo.TransactionalID(transactional))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func produce(t *testing.T, client *kgo.Client, records []*kgo.Record) {
	t.Helper()
	if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatalf("produce: %v", err)
	}
}

func (c *committed) begin(t *testing.T, client *kgo.Client) {
	t.Helper()
	if err := client.BeginTransaction(); err != nil {
		t.Fatalf("begin a transaction: %v", err)
	}
	c.transactions++
}

func end(t *testing.T, client *kgo.Client, how kgo.TransactionEndTry) {
	t.Helper()
	if err := client.EndTransaction(t.Context(), how); err != nil {
		t.Fatalf("end a transaction: %v", err)
	}
}

// attempt writes an episode in a transaction that is aborted.
func (c *committed) attempt(t *testing.T, client *kgo.Client, policy string, episode int) {
	t.Helper()
	c.begin(t, client)
	for step := range episodeSteps {
		records := c.step(policy, episode, step, wrong)
		c.aborted += len(records)
		produce(t, client, records)
	}
	end(t, client, kgo.TryAbort)
}

// round writes an episode that its producer has attempted before, in pieces interleaved with those of another producer,
// which aborts before or after the first one commits, and an episode outside of transactions.
func (c *committed) round(t *testing.T, n int, steady, ghost, plain *kgo.Client) {
	t.Helper()
	c.attempt(t, steady, "watched", n)
	c.begin(t, steady)
	c.begin(t, ghost)
	for step := range episodeSteps {
		reward := float64(n*episodeSteps+step) / 1024
		produce(t, steady, c.counts(c.step("watched", n, step, reward), step, reward))
		records := c.step("ghost", n, step, wrong)
		c.aborted += len(records)
		produce(t, ghost, records)
		produce(t, plain, c.counts(c.step("watched-plain", n, step, reward), step, reward))
	}
	if n%2 == 0 {
		end(t, ghost, kgo.TryAbort)
		end(t, steady, kgo.TryCommit)
		return
	}
	end(t, steady, kgo.TryCommit)
	end(t, ghost, kgo.TryAbort)
}

// readCommitted writes in transactions, some of which are aborted. Exactly the others are judged, the last one once it
// is committed, even though the service is killed while it is open.
func (s setting) readCommitted(t *testing.T) {
	c := &committed{topic: "transactions", partitions: 2, now: time.Now().Add(-time.Minute).UnixNano()}
	s.broker.createTopic(t, c.topic, int(c.partitions))
	service := newService(t, s.binary, s.broker.address, c.topic, c.topic, startReceiver(t), nil)
	service.start(t)
	steady, ghost := s.broker.producer(t, c.topic, "steady"), s.broker.producer(t, c.topic, "ghost")
	plain := s.broker.producer(t, c.topic, "")
	for n := range transactionRounds {
		c.round(t, n, steady, ghost, plain)
	}
	c.judged(t, service)
	c.counted(t, service)

	held := *c
	c.begin(t, steady)
	for step := range episodeSteps {
		produce(t, steady, c.counts(c.step("watched", transactionRounds, step, 1), step, 1))
	}
	waiting := func() error {
		lags, err := service.samples(ingest.MetricLagRecords, nil)
		if err == nil && !slices.Equal(lags, []float64{episodeSteps, episodeSteps}) {
			err = fmt.Errorf("of the partitions these records are left: %v", lags)
		}
		return err
	}
	eventually(t, "the open transaction is waited for", waiting)
	service.kill(t)
	s.broker.bury(t, c.topic)
	service.start(t)
	eventually(t, "the open transaction is waited for again", waiting)
	held.judged(t, service)
	end(t, steady, kgo.TryCommit)
	c.judged(t, service)
	service.stop(t)
}

// counted checks the counters of what was read.
func (c *committed) counted(t *testing.T, s *service) {
	t.Helper()
	for _, want := range []struct {
		metric, label, value string
		n                    int
	}{
		{ingest.MetricMessagesSkipped, "reason", "control", c.transactions * int(c.partitions)},
		{ingest.MetricMessagesSkipped, "reason", "aborted", c.aborted},
		{ingest.MetricEvents, "result", "accepted", c.events},
		{ingest.MetricEvents, "result", "refused", 0},
	} {
		eventually(t, want.metric+" of "+want.value, func() error { // the broker writes the last markers after its answer
			return exactly(float64(want.n))(s.largest(want.metric, map[string]string{want.label: want.value}))
		})
	}
}

// judged checks that the service has judged what counts and nothing else, and has missed nothing.
func (c *committed) judged(t *testing.T, s *service) {
	t.Helper()
	sum := func(metric string) (float64, error) {
		values, err := s.samples(metric, map[string]string{"env": "arena"})
		total := 0.0
		for _, x := range values {
			total += x
		}
		return total, err
	}
	eventually(t, "every episode that counts is judged", func() error {
		return exactly(float64(c.episodes))(sum(metrics.MetricUnits))
	})
	for metric, want := range map[string]float64{
		metrics.MetricRewardObservations: float64(c.events), metrics.MetricRewardPositive: c.rewards, metrics.MetricRewardNegative: 0,
	} {
		if err := exactly(want)(sum(metric)); err != nil {
			t.Errorf("%s: %v", metric, err)
		}
	}
	if _, err := s.samples(metrics.MetricUnits, map[string]string{"policy": "ghost"}); err == nil {
		t.Error("a policy is shown that has aborted all that it did")
	}
	gaps, err := s.samples(ingest.MetricOffsetGap, nil)
	if err != nil || len(gaps) != int(c.partitions) || slices.Max(gaps) != 0 {
		t.Errorf("%v records of the partitions are missing, want none: %v", gaps, err)
	}
}

const (
	bombSize = 256 << 20
	wideSize = 96 << 20 // more than may be decompressed at once, and not too much for the broker
	// bombMemory is the maximum growth of the service: 32 MiB were measured, and decompression may take 64.
	bombMemory = 96 << 20
)

// bomb is a record batch of three records, the second of which is too large.
type bomb struct {
	name   string
	codec  compress.Compression
	packed []byte
	whole  bool // whether the batch can only be decompressed as a whole
}

func bombs(t *testing.T, c *committed) []bomb {
	t.Helper()
	value := func(step int) []byte { return c.step("watched", 0, step, 1)[0].Value }
	around := func(size int) []ingesttest.Piece {
		large := ingesttest.Record(1, ingesttest.Zeros(size))
		return slices.Concat(ingesttest.Whole(0, value(0)), large, ingesttest.Whole(2, value(1)))
	}
	pack := func(codec compress.Codec) []byte {
		packed, err := ingesttest.Pack(codec, around(bombSize))
		if err != nil {
			t.Fatal(err)
		}
		return packed
	}
	return []bomb{
		{"gzip", compress.Gzip, pack(compress.Gzip.Codec()), false},
		{"snappy", compress.Snappy, pack(&snappy.Codec{Framing: snappy.Framed}), false},
		{"lz4", compress.Lz4, pack(compress.Lz4.Codec()), false},
		{"zstd", compress.Zstd, pack(compress.Zstd.Codec()), false},
		{"zstd in one segment", compress.Zstd, ingesttest.PackZstd(around(wideSize), true), true},
		{"snappy without framing", compress.Snappy, ingesttest.PackSnappy(around(wideSize)), true},
	}
}

// bombed writes record batches that decompress to much more than allowed. Each becomes a dead letter, the records after
// it are read, and the memory of the service does not grow with them.
func (s setting) bombed(t *testing.T) {
	c := &committed{topic: "bombs", partitions: 1, now: time.Now().UnixNano()}
	s.broker.createTopic(t, c.topic, 1, kafka.ConfigEntry{ConfigName: "max.message.bytes", ConfigValue: strconv.Itoa(16 << 20)})
	service := newService(t, s.binary, s.broker.address, c.topic, c.topic, startReceiver(t), nil)
	service.start(t)
	before := service.peakMemory(t)
	accepted, next := 0, 0
	for i, bomb := range bombs(t, c) {
		s.broker.produceRaw(t, c.topic, ingesttest.Batch(bomb.codec, 3, bomb.packed))
		next += 3
		if !bomb.whole {
			accepted += 2
		}
		eventually(t, bomb.name+" is read", func() error {
			return exactly(float64(next))(service.largest(ingest.MetricNextOffset, nil))
		})
		letters := map[string]string{"reason": string(ingest.ReasonTooLarge)}
		if err := exactly(float64(i + 1))(service.largest(ingest.MetricDeadLetters, letters)); err != nil {
			t.Errorf("%s: dead letters: %v", bomb.name, err)
		}
		if err := service.accepted(accepted); err != nil {
			t.Errorf("%s: events: %v", bomb.name, err)
		}
		grown := service.peakMemory(t) - before
		t.Logf("%s: %d bytes; the memory has grown by %d MiB so far", bomb.name, len(bomb.packed), grown>>20)
		if grown > bombMemory {
			t.Errorf("%s: the memory has grown by %d MiB, want at most %d", bomb.name, grown>>20, bombMemory>>20)
		}
	}
	produce(t, s.broker.producer(t, c.topic, ""), c.step("watched", 0, 2, 1))
	eventually(t, "what is behind the bombs is read", func() error { return service.accepted(accepted + 1) })
	service.stop(t)
	service.keptLetters(t, next/3)
}

// accepted checks the number of events that were read.
func (s *service) accepted(want int) error {
	return exactly(float64(want))(s.largest(ingest.MetricEvents, map[string]string{"result": "accepted"}))
}

// keptLetters checks the number of dead letters that are kept in files.
func (s *service) keptLetters(t *testing.T, want int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(filepath.Dir(s.config), "dead-letters", "*.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	kept := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		kept += strings.Count(string(text), "\n")
	}
	if kept != want {
		t.Errorf("%d dead letters are kept in %v, want %d", kept, files, want)
	}
}

// peakMemory returns the peak memory of the service, in bytes.
func (s *service) peakMemory(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.process.Process.Pid), "status"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		var kib int
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	t.Fatalf("no VmHWM in %s", status)
	return 0
}

// produceRaw writes a record batch to partition 0 unchanged.
func (b *broker) produceRaw(t *testing.T, topic string, batch []byte) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.address), kgo.MaxVersions(kversion.V2_8_0())) // these versions name the topic
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	part := kmsg.NewProduceRequestTopicPartition()
	part.Records = batch
	to := kmsg.NewProduceRequestTopic()
	to.Topic, to.Partitions = topic, []kmsg.ProduceRequestTopicPartition{part}
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis, req.Topics = -1, int32(patience.Milliseconds()), []kmsg.ProduceRequestTopic{to}
	resp, err := req.RequestWith(t.Context(), client.Broker(1)) // the number of the broker in deploy/local/kafka
	if err == nil {
		err = kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
	}
	if err != nil {
		t.Fatalf("write a record batch: %v", err)
	}
}

// compactedRefused starts the service on a compacted topic, which it refuses, and again after the topic was changed as
// the message says.
func (s setting) compactedRefused(t *testing.T) {
	const topic = "compacted"
	s.broker.createTopic(t, topic, 1, kafka.ConfigEntry{ConfigName: "cleanup.policy", ConfigValue: "compact"})
	service := newService(t, s.binary, s.broker.address, topic, topic, startReceiver(t), nil)
	service.launch(t)
	said := service.refused(t)
	want := fmt.Sprintf("cleanup.policy of topic %s is compact; to fix this, run: kafka-configs.sh --bootstrap-server %s --alter "+
		"--entity-type topics --entity-name %[1]s --add-config cleanup.policy=delete", topic, s.broker.address)
	if !strings.Contains(said, want) {
		t.Errorf("the service said %s\nand not %s", said, want)
	}
	admin, done := s.broker.admin()
	defer done()
	_, err := admin.IncrementalAlterConfigs(t.Context(), &kafka.IncrementalAlterConfigsRequest{
		Resources: []kafka.IncrementalAlterConfigsRequestResource{{
			ResourceType: kafka.ResourceTypeTopic, ResourceName: topic,
			Configs: []kafka.IncrementalAlterConfigsRequestConfig{{Name: "cleanup.policy", Value: "delete"}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	service.start(t)
	service.stop(t)
}

// refused returns the output of the service once it has ended by itself with an error.
func (s *service) refused(t *testing.T) (said string) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- s.process.Wait() }()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the service ended without an error")
		}
		s.ended()
	case <-time.After(patience):
		t.Fatalf("the service still runs after %s", patience)
	}
	text, err := os.ReadFile(s.log.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
