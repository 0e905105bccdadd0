package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
)

const (
	// MaxLogRecord is the largest value of a LogRecord, in bytes. Brokers refuse batches above 1 MiB by default.
	MaxLogRecord = 512 << 10
	// logBackoff is how long Append waits before it tries again, at first and at most.
	logBackoff, maxLogBackoff = 100 * time.Millisecond, 5 * time.Second
)

// LogRecord is a record of a Log. An empty Value is a tombstone: compaction removes the records of its key.
type LogRecord struct {
	Key, Value []byte
	Offset     int64 // of a record that was read
}

func (r *LogRecord) size() int { return len(r.Key) + len(r.Value) }

// Log is a topic in which the service keeps records of its own, for the backend of checkpoints in a topic. Its methods may be called by several goroutines.
type Log struct {
	cfg     KafkaConfig // with the topic of the log
	network *network
	client  *kafka.Client
}

// OpenLog reads the certificates and secrets that the configuration names. It does not connect.
func OpenLog(cfg KafkaConfig, topic string) (*Log, error) {
	cfg.Topic, cfg.MaxMessage = topic, 2*MaxLogRecord
	network, err := newNetwork(cfg)
	if err != nil {
		return nil, err
	}
	return &Log{cfg: cfg, network: network, client: network.client(cfg.Brokers)}, nil
}

// Close ends all connections.
func (l *Log) Close() error {
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

// Read gives the records that a partition holds when it begins, in offset order. Their memory is the receiver's.
func (l *Log) Read(ctx context.Context, partition int, visit func(LogRecord) error) error {
	r := sectionReader{kafka: l.cfg, network: l.network, message: func(_ context.Context, _ int, m kafka.Message) error {
		return visit(LogRecord{Key: m.Key, Value: m.Value, Offset: m.Offset})
	}}
	s := section{partition: partition}
	err := r.patiently(ctx, &s, r.measure)
	if err == nil {
		err = r.read(ctx, &s)
	}
	if err != nil {
		return fmt.Errorf("reading partition %d of the topic %s: %w", partition, l.cfg.Topic, err)
	}
	return nil
}

// Append writes records to a partition in their order, and returns when all in-sync replicas have them. It tries again
// until ctx ends; so a record may be written twice, but never after one that follows it for the first time.
func (l *Log) Append(ctx context.Context, partition int, records ...LogRecord) error {
	for len(records) > 0 {
		n := batchSize(records)
		if err := l.produce(ctx, partition, records[:n]); err != nil {
			return fmt.Errorf("writing to partition %d of the topic %s: %w", partition, l.cfg.Topic, err)
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

func (l *Log) produce(ctx context.Context, partition int, records []LogRecord) error {
	for wait := logBackoff; ; wait = min(2*wait, maxLogBackoff) {
		err := l.produceOnce(ctx, partition, records)
		if err == nil || !passes(err) {
			return err
		}
		if !sleep(ctx, wait) {
			return errors.Join(err, ctx.Err())
		}
	}
}

// passes reports whether an error of a request may be gone the next time: all but those by which the broker refuses the
// request itself.
func passes(err error) bool {
	var refused kafka.Error
	return !errors.As(err, &refused) || refused.Temporary() || errors.Is(err, kafka.UnknownTopicOrPartition)
}

func (l *Log) produceOnce(ctx context.Context, partition int, records []LogRecord) error {
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
	if err != nil {
		return err
	}
	return answer.Error
}
