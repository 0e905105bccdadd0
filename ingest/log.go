package ingest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/segmentio/kafka-go"
)

const (
	// MaxLogRecord is the largest value of a LogRecord, in bytes. Brokers refuse batches above 1 MiB by default.
	MaxLogRecord = 512 << 10
	// MaxLogBatch is what a topic must take at once: brokers do by default.
	MaxLogBatch = 2 * MaxLogRecord
	// logBackoff is how long Append waits before it tries again, at first and at most.
	logBackoff, maxLogBackoff = 100 * time.Millisecond, 5 * time.Second
)

// LogRecord is a record of a Log. An empty Value is a tombstone: compaction removes the records of its key.
type LogRecord struct {
	Key, Value []byte
	Offset     int64 // of a record that was read or written
}

func (r *LogRecord) size() int { return len(r.Key) + len(r.Value) }

// Log is a topic in which the service keeps records of its own. Its methods may be called by several goroutines.
type Log struct {
	cfg     KafkaConfig // with the topic of the log
	network *network
	client  *kafka.Client
	outages zerolog.Logger // a few times a minute

	mu   sync.Mutex
	idle map[int]*kafka.Conn // by partition, the connection of the last Read, for the next one; nil once closed
}

// OpenLog reads the certificates and secrets that the configuration names. It does not connect.
func OpenLog(cfg KafkaConfig, topic string, log zerolog.Logger) (*Log, error) {
	cfg.Topic, cfg.MaxMessage = topic, MaxLogBatch
	network, err := newNetwork(cfg)
	if err != nil {
		return nil, err
	}
	return &Log{
		cfg: cfg, network: network, client: network.client(cfg.Brokers), idle: map[int]*kafka.Conn{},
		outages: log.Sample(&zerolog.BurstSampler{Burst: 5, Period: time.Minute}),
	}, nil
}

// Close ends all connections.
func (l *Log) Close() error {
	l.mu.Lock()
	l.idle = nil
	l.mu.Unlock()
	l.network.cut()
	return nil
}

// Partitions counts the partitions of the topic. The error is ErrNoTopic where there is none.
func (l *Log) Partitions(ctx context.Context) (int, error) {
	n, err := partitionCount(ctx, l.client, l.cfg.Topic)
	if errors.Is(err, kafka.UnknownTopicOrPartition) {
		return 0, fmt.Errorf("%w: %s", ErrNoTopic, l.cfg.Topic)
	}
	return n, err
}

// Make makes the topic with settings such as cleanup.policy, as many replicas as the brokers give by default, and returns
// when it is there. One that is there already stays as it is.
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
		return fmt.Errorf("making the topic %s: %w", l.cfg.Topic, err)
	}
	for {
		_, err := l.Partitions(ctx)
		if !errors.Is(err, ErrNoTopic) {
			return err
		}
		if !sleep(ctx, logBackoff) {
			return fmt.Errorf("making the topic %s: %w", l.cfg.Topic, ctx.Err())
		}
	}
}

// Setting gives a setting of the topic, such as cleanup.policy, as it holds.
func (l *Log) Setting(ctx context.Context, name string) (string, error) {
	answer, err := l.client.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{Resources: []kafka.DescribeConfigRequestResource{
		{ResourceType: kafka.ResourceTypeTopic, ResourceName: l.cfg.Topic, ConfigNames: []string{name}},
	}})
	if err != nil {
		return "", fmt.Errorf("asking for %s of the topic %s: %w", name, l.cfg.Topic, err)
	}
	for _, r := range answer.Resources {
		if r.Error != nil {
			return "", fmt.Errorf("asking for %s of the topic %s: %w", name, l.cfg.Topic, r.Error)
		}
		for _, e := range r.ConfigEntries {
			if e.ConfigName == name {
				return e.ConfigValue, nil
			}
		}
	}
	return "", fmt.Errorf("the brokers do not say what %s of the topic %s is", name, l.cfg.Topic)
}

// Number gives a setting of the topic that is a number.
func (l *Log) Number(ctx context.Context, name string) (int64, error) {
	text, err := l.Setting(ctx, name)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s of the topic %s: %w", name, l.cfg.Topic, err)
	}
	return n, nil
}

// Read gives the records of a partition from one offset up to, and without, another, in offset order: those that are still
// there. Their memory is the receiver's. The connection is kept for the next Read of the partition.
func (l *Log) Read(ctx context.Context, partition int, from, to int64, visit func(LogRecord) error) error {
	return l.read(ctx, &section{partition: partition, next: from, end: to}, visit)
}

// ReadOn gives the records of a partition from an offset on, up to where the partition ends by the broker's last answer, and
// gives that offset; it is an error if that comes before least. So no record is missed that compaction removes while it
// reads, but those that it removes for the sake of one that is given.
func (l *Log) ReadOn(ctx context.Context, partition int, from, least int64, visit func(LogRecord) error) (end int64, err error) {
	s := section{partition: partition, next: from, end: max(from, least), follow: true}
	err = l.read(ctx, &s, visit)
	return s.end, err
}

// End gives the offset behind the last record of a partition.
func (l *Log) End(ctx context.Context, partition int) (int64, error) {
	s := section{partition: partition}
	r := l.reader(nil)
	if err := r.patiently(ctx, &s, r.measure); err != nil {
		return 0, fmt.Errorf("asking for the end of partition %d of the topic %s: %w", partition, l.cfg.Topic, err)
	}
	return s.end, nil
}

func (l *Log) read(ctx context.Context, s *section, visit func(LogRecord) error) error {
	if err := l.reader(visit).read(ctx, s); err != nil {
		return fmt.Errorf("reading partition %d of the topic %s: %w", s.partition, l.cfg.Topic, err)
	}
	return nil
}

func (l *Log) reader(visit func(LogRecord) error) *sectionReader {
	return &sectionReader{
		kafka: l.cfg, network: l.network, kept: l.kept, keep: l.keep,
		message: func(_ context.Context, _ int, m kafka.Message) error {
			return visit(LogRecord{Key: m.Key, Value: m.Value, Offset: m.Offset})
		},
	}
}

// kept takes the connection that is kept for a partition, nil where there is none.
func (l *Log) kept(partition int) *kafka.Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	conn := l.idle[partition]
	delete(l.idle, partition)
	return conn
}

// keep keeps a connection, or closes it where another one is kept already.
func (l *Log) keep(partition int, conn *kafka.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.idle == nil || l.idle[partition] != nil {
		conn.Close() // what was read of it is all that matters
		return
	}
	l.idle[partition] = conn
}

// Append writes records to a partition in their order, and returns when all in-sync replicas have them. It sets their
// offsets. It tries again until ctx ends; so a record may be written twice, but never after one that follows it for the
// first time.
func (l *Log) Append(ctx context.Context, partition int, records ...LogRecord) error {
	for len(records) > 0 {
		n := batchSize(records)
		if _, err := l.AppendFresh(ctx, partition, func() []LogRecord { return records[:n] }); err != nil {
			return err
		}
		records = records[n:]
	}
	return nil
}

// batchSize is how many of the records one request carries.
func batchSize(records []LogRecord) int {
	size := 0
	for i := range records {
		if size += records[i].size(); size > MaxLogRecord && i > 0 {
			return i
		}
	}
	return len(records)
}

// AppendFresh writes what fresh gives to a partition, all of it in one request, and returns it with its offsets when all
// in-sync replicas have it. It tries again until ctx ends, each time with what fresh gives then: what an attempt wrote of
// which no answer came may be there too, or come to be there later. So where ctx has a deadline it begins no further attempt
// that could not wait for its answer. Of large records it takes one and some small ones.
func (l *Log) AppendFresh(ctx context.Context, partition int, fresh func() []LogRecord) ([]LogRecord, error) {
	for wait := logBackoff; ; wait = min(2*wait, maxLogBackoff) {
		records := fresh()
		err := l.produce(ctx, partition, records)
		if err == nil {
			return records, nil
		}
		if !passes(err) || endsWithin(ctx, wait+operationTimeout) {
			return nil, fmt.Errorf("writing to partition %d of the topic %s: %w", partition, l.cfg.Topic, err)
		}
		l.outages.Warn().Err(err).Str("topic", l.cfg.Topic).Int("partition", partition).Dur("retry_in", wait).
			Msg("Writing to a topic of the service's own failed, trying again")
		if !sleep(ctx, wait) {
			return nil, fmt.Errorf("writing to partition %d of the topic %s: %w", partition, l.cfg.Topic, errors.Join(err, ctx.Err()))
		}
	}
}

// endsWithin reports whether ctx has a deadline that comes so soon.
func endsWithin(ctx context.Context, d time.Duration) bool {
	deadline, any := ctx.Deadline()
	return any && time.Until(deadline) < d
}

// passes reports whether an error of a request may be gone the next time: all but those by which the broker refuses the
// request itself.
func passes(err error) bool {
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

func (l *Log) produce(ctx context.Context, partition int, records []LogRecord) error {
	batch := make([]kafka.Record, len(records))
	now := time.Now()
	for i, r := range records {
		batch[i] = kafka.Record{Key: kafka.NewBytes(r.Key), Time: now}
		if len(r.Value) > 0 {
			batch[i].Value = kafka.NewBytes(r.Value)
		}
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
