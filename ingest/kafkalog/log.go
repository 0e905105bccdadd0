// Package kafkalog stores the service's own records in topics, and sends messages to topics that others read.
package kafkalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/fetch"
	"github.com/rs/zerolog"
	"github.com/segmentio/kafka-go"
)

const (
	// MaxRecord is the maximum size of the value of a Record, in bytes. Brokers refuse batches above 1 MiB by default.
	MaxRecord = 512 << 10
	// MaxBatch is the maximum batch size that a topic must accept. Brokers accept it by default.
	MaxBatch = 2 * MaxRecord
	// logBackoff is the initial delay between the attempts of Append, and maxLogBackoff is the maximum delay.
	logBackoff, maxLogBackoff = 100 * time.Millisecond, 5 * time.Second
)

// Record is a record of a Log. An empty Value is a tombstone, which makes compaction remove the records with the same
// key.
type Record struct {
	Key, Value []byte
	Headers    []ingest.Header // only for records to write; not set when a record is read
	Offset     int64           // set when a record is read or written
}

// framing is the approximate overhead of a record in a batch, in bytes.
const framing = 16

// size returns the approximate size of the record in a batch, in bytes.
func (r *Record) size() int {
	n := framing + len(r.Key) + len(r.Value)
	for i := range r.Headers {
		n += len(r.Headers[i].Key) + len(r.Headers[i].Value)
	}
	return n
}

// Log is a topic that contains the service's own records. Its methods are safe for concurrent use.
type Log struct {
	cfg     ingest.KafkaConfig // with the topic of the log
	network *fetch.Network
	client  *kafka.Client
	outages zerolog.Logger // logs a few messages per minute

	mu   sync.Mutex
	idle map[int]*fetch.Leader // connection of the last Read of each partition, for the next one; nil once closed
}

// Open returns a Log. It reads the certificates and secrets named in the configuration, but does not connect.
func Open(cfg ingest.KafkaConfig, topic string, log zerolog.Logger) (*Log, error) {
	cfg.Topic, cfg.MaxMessage = topic, MaxBatch
	network, err := fetch.NewNetwork(cfg)
	if err != nil {
		return nil, err
	}
	return &Log{
		cfg: cfg, network: network, client: network.Client(cfg.Brokers), idle: map[int]*fetch.Leader{},
		outages: log.Sample(&zerolog.BurstSampler{Burst: 5, Period: time.Minute}),
	}, nil
}

// Close closes all connections.
func (l *Log) Close() error {
	l.mu.Lock()
	l.idle = nil
	l.mu.Unlock()
	l.network.Cut()
	return nil
}

// Topic returns the name of the topic.
func (l *Log) Topic() string { return l.cfg.Topic }

// Partitions returns the number of partitions of the topic. The error wraps ingest.ErrNoTopic if the topic does not
// exist.
func (l *Log) Partitions(ctx context.Context) (int, error) {
	n, err := fetch.PartitionCount(ctx, l.client, l.cfg.Topic)
	if errors.Is(err, kafka.UnknownTopicOrPartition) {
		return 0, fmt.Errorf("%w: %s", ingest.ErrNoTopic, l.cfg.Topic)
	}
	return n, err
}

// Committed reports whether a group has committed an offset of the topic.
func (l *Log) Committed(ctx context.Context, group string) (bool, error) {
	n, err := l.Partitions(ctx)
	if err != nil {
		return false, err
	}
	partitions := make([]int, n)
	for i := range partitions {
		partitions[i] = i
	}
	answer, err := l.client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: group, Topics: map[string][]int{l.cfg.Topic: partitions}})
	if err == nil {
		err = answer.Error
	}
	if errors.Is(err, kafka.GroupIdNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("query the offsets of group %s: %w", group, err)
	}
	for _, p := range answer.Topics[l.cfg.Topic] {
		if p.Error != nil {
			return false, fmt.Errorf("query the offsets of group %s: %w", group, p.Error)
		}
		if p.CommittedOffset >= 0 {
			return true, nil
		}
	}
	return false, nil
}

// Make creates the topic with the given settings, such as cleanup.policy, and the brokers' default number of replicas.
// It returns once the topic exists. It does not change an existing topic.
func (l *Log) Make(ctx context.Context, partitions int, settings map[string]string) error {
	topic := kafka.TopicConfig{Topic: l.cfg.Topic, NumPartitions: partitions, ReplicationFactor: -1}
	for name, value := range settings {
		topic.ConfigEntries = append(topic.ConfigEntries, kafka.ConfigEntry{ConfigName: name, ConfigValue: value})
	}
	answer, err := l.client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{topic}})
	if err == nil {
		err = answer.Errors[l.cfg.Topic]
	}
	if err != nil && !errors.Is(err, kafka.TopicAlreadyExists) {
		return fmt.Errorf("create topic %s: %w", l.cfg.Topic, err)
	}
	for {
		_, err := l.Partitions(ctx)
		if !errors.Is(err, ingest.ErrNoTopic) {
			return err
		}
		if !fetch.Sleep(ctx, logBackoff) {
			return fmt.Errorf("create topic %s: %w", l.cfg.Topic, ctx.Err())
		}
	}
}

// Setting returns the effective value of a setting of the topic, such as cleanup.policy.
func (l *Log) Setting(ctx context.Context, name string) (string, error) {
	return fetch.TopicSetting(ctx, l.client, l.cfg.Topic, name)
}

// Number returns the value of a numeric setting of the topic.
func (l *Log) Number(ctx context.Context, name string) (int64, error) {
	text, err := l.Setting(ctx, name)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read %s of topic %s: %w", name, l.cfg.Topic, err)
	}
	return n, nil
}

// Read calls visit with the existing records of a partition from one offset up to, but not including, another, in
// offset order. visit may retain them. The connection is kept for the next Read of the partition.
func (l *Log) Read(ctx context.Context, partition int, from, to int64, visit func(Record) error) error {
	return l.read(ctx, &fetch.Section{Partition: partition, Next: from, End: to}, visit)
}

// ReadOn calls visit with the records of a partition starting at the offset from, up to the end of the partition as of
// the broker's last response. It returns this end. If the end is before least, it returns an error. Because it reads to
// the end, it misses no record that compaction removes in the meantime, except those superseded by a record that it
// visits.
func (l *Log) ReadOn(ctx context.Context, partition int, from, least int64, visit func(Record) error) (end int64, err error) {
	s := fetch.Section{Partition: partition, Next: from, End: max(from, least), Follow: true}
	err = l.read(ctx, &s, visit)
	return s.End, err
}

// End returns the offset after the last record of a partition.
func (l *Log) End(ctx context.Context, partition int) (int64, error) {
	s := fetch.Section{Partition: partition}
	r := l.reader(nil)
	if err := r.Patiently(ctx, &s, r.Measure); err != nil {
		return 0, fmt.Errorf("query the end of partition %d of topic %s: %w", partition, l.cfg.Topic, err)
	}
	return s.End, nil
}

func (l *Log) read(ctx context.Context, s *fetch.Section, visit func(Record) error) error {
	if err := l.reader(visit).Read(ctx, s); err != nil {
		return fmt.Errorf("read partition %d of topic %s: %w", s.Partition, l.cfg.Topic, err)
	}
	return nil
}

func (l *Log) reader(visit func(Record) error) *fetch.SectionReader {
	return &fetch.SectionReader{
		Kafka: l.cfg, Network: l.network, Kept: l.kept, Keep: l.keep,
		Message: func(_ context.Context, _ int, f *fetch.Found) error {
			if f.Why != nil || f.Size > int64(len(f.Value)) {
				return fmt.Errorf("the record at offset %d is too large to come from this service: another program writes to the topic", f.Offset)
			}
			return visit(Record{Key: bytes.Clone(f.Key), Value: bytes.Clone(f.Value), Offset: f.Offset})
		},
	}
}

// kept returns the kept connection of a partition, or nil.
func (l *Log) kept(partition int) *fetch.Leader {
	l.mu.Lock()
	defer l.mu.Unlock()
	conn := l.idle[partition]
	delete(l.idle, partition)
	return conn
}

// keep keeps a connection. It closes the connection if another one is already kept.
func (l *Log) keep(partition int, conn *fetch.Leader) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.idle == nil || l.idle[partition] != nil {
		conn.Close() // everything that was read remains valid
		return
	}
	l.idle[partition] = conn
}

// Append writes records to a partition in order, sets their offsets, and returns once all in-sync replicas have them.
// It retries until ctx ends. So a record may be written twice, but never after the first write of a later record.
func (l *Log) Append(ctx context.Context, partition int, records ...Record) error {
	for len(records) > 0 {
		n := batchSize(records)
		if _, err := l.AppendFresh(ctx, partition, func() []Record { return records[:n] }); err != nil {
			return err
		}
		records = records[n:]
	}
	return nil
}

// batchSize returns how many of the records fit in one request.
func batchSize(records []Record) int {
	size := 0
	for i := range records {
		if size += records[i].size(); size > MaxRecord && i > 0 {
			return i
		}
	}
	return len(records)
}

// AppendFresh writes the records that fresh returns to a partition in one request. It returns them with their offsets
// once all in-sync replicas have them. It retries until ctx ends, and calls fresh for each attempt. An attempt without
// a response may also have written its records, or may still write them later. Therefore, if ctx has a deadline,
// AppendFresh makes no attempt whose response could arrive after it. A request must not contain more than one large
// record and some small ones.
func (l *Log) AppendFresh(ctx context.Context, partition int, fresh func() []Record) ([]Record, error) {
	for wait := logBackoff; ; wait = min(2*wait, maxLogBackoff) {
		records := fresh()
		err := l.produce(ctx, partition, records)
		if err == nil {
			return records, nil
		}
		if !Passes(err) || endsWithin(ctx, wait+fetch.OperationTimeout) {
			return nil, fmt.Errorf("write to partition %d of topic %s: %w", partition, l.cfg.Topic, err)
		}
		l.outages.Warn().Err(err).Str("topic", l.cfg.Topic).Int("partition", partition).Stringer("retry_in", wait).
			Msg("failed to write to a topic, retrying")
		if !fetch.Sleep(ctx, wait) {
			return nil, fmt.Errorf("write to partition %d of topic %s: %w", partition, l.cfg.Topic, errors.Join(err, ctx.Err()))
		}
	}
}

// endsWithin reports whether ctx has a deadline within d.
func endsWithin(ctx context.Context, d time.Duration) bool {
	deadline, any := ctx.Deadline()
	return any && time.Until(deadline) < d
}

// Passes reports whether a request that failed with err may succeed later. It returns false if the broker refuses the
// request itself.
func Passes(err error) bool {
	var refused kafka.Error
	if !errors.As(err, &refused) || refused.Temporary() {
		return true
	}
	switch refused {
	case kafka.Unknown, kafka.BrokerNotAvailable, kafka.ReplicaNotAvailable, kafka.UnknownTopicOrPartition:
		return true
	}
	return false
}

func (l *Log) produce(ctx context.Context, partition int, records []Record) error {
	batch := make([]kafka.Record, len(records))
	now := time.Now()
	for i, r := range records {
		batch[i] = kafka.Record{Key: kafka.NewBytes(r.Key), Time: now}
		if len(r.Value) > 0 {
			batch[i].Value = kafka.NewBytes(r.Value)
		}
		batch[i].Headers = headersOf(r.Headers)
	}
	answer, err := l.client.Produce(ctx, &kafka.ProduceRequest{
		Topic: l.cfg.Topic, Partition: partition, RequiredAcks: kafka.RequireAll, Records: kafka.NewRecordReader(batch...),
	})
	if err == nil {
		err = answer.Error
	}
	if err != nil {
		return err
	}
	for i := range records {
		records[i].Offset = answer.BaseOffset + int64(i)
	}
	return nil
}
