package deadletter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/fetch"
	"github.com/rs/zerolog"
	"github.com/segmentio/kafka-go"
)

const (
	// letterQueue is the maximum number of dead letters that wait to be written. At the maximum size, they take 64 MiB.
	letterQueue = 1024
	// letterBatch is the maximum number of letters that are written at once.
	letterBatch = 100
	// letterWrite is the timeout of each of several attempts. Close waits for an attempt to end.
	letterWrite = 3 * time.Second
	// letterClose is the maximum time for which Close waits for the brokers.
	letterClose = 5 * time.Second
)

var errLettersFull = errors.New("the dead-letter queue is full")

// Topic writes dead letters to a topic in the background. The value of a message is the raw record. Its headers are
// reason, topic, partition, offset, record, message, size and truncated. A crash loses waiting letters. A retry may
// write a letter twice.
type Topic struct {
	writer  *kafka.Writer
	network *fetch.Network
	log     zerolog.Logger
	lost    atomic.Int64

	mu     sync.Mutex
	closed bool
	queue  chan kafka.Message

	abort  context.CancelFunc
	ending chan struct{} // closed when the last letter has been written or lost
}

// NewTopic returns a Topic that writes to the given topic of the configured cluster. The topic must exist.
func NewTopic(cfg ingest.KafkaConfig, topic string, log zerolog.Logger) (*Topic, error) {
	network, err := fetch.NewNetwork(cfg)
	if err != nil {
		return nil, err
	}
	network.Transport.MetadataTopics = []string{topic}
	ctx, abort := context.WithCancel(context.Background())
	k := &Topic{
		network: network,
		log:     log.Sample(&zerolog.BurstSampler{Burst: 5, Period: time.Minute}),
		queue:   make(chan kafka.Message, letterQueue),
		abort:   abort,
		ending:  make(chan struct{}),
		writer: &kafka.Writer{
			Addr: kafka.TCP(cfg.Brokers...), Topic: topic, Transport: network.Transport, RequiredAcks: kafka.RequireAll,
			Balancer: &kafka.RoundRobin{}, BatchSize: letterBatch, BatchTimeout: 10 * time.Millisecond, MaxAttempts: 3,
			WriteTimeout: letterWrite, ReadTimeout: letterWrite,
		},
	}
	go k.run(ctx)
	return k, nil
}

// Lost returns the number of accepted letters that could not be written.
func (k *Topic) Lost() int64 { return k.lost.Load() }

// Keep queues a letter. An error means that the queue is full or closed.
func (k *Topic) Keep(_ context.Context, l Letter) error {
	m := kafka.Message{
		Value: bytes.Clone(l.Raw), // the caller reuses its memory
		Time:  l.Time,
		Headers: []kafka.Header{
			{Key: "reason", Value: []byte(l.Reason)},
			{Key: "topic", Value: []byte(l.Topic)},
			{Key: "partition", Value: strconv.AppendInt(nil, int64(l.Pos.Partition.Number()), 10)},
			{Key: "offset", Value: strconv.AppendInt(nil, l.Pos.Offset, 10)},
			{Key: "record", Value: strconv.AppendInt(nil, int64(l.Pos.Record), 10)},
			{Key: "message", Value: []byte(l.Msg)},
			{Key: "size", Value: strconv.AppendInt(nil, l.Size, 10)},
			{Key: "truncated", Value: strconv.AppendBool(nil, l.Truncated)},
		},
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return errors.New("store a dead letter: already closed")
	}
	select {
	case k.queue <- m:
		return nil
	default:
		return fmt.Errorf("store a dead letter: %w", errLettersFull)
	}
}

// run writes queued letters until the queue is closed.
func (k *Topic) run(ctx context.Context) {
	defer close(k.ending)
	batch := make([]kafka.Message, 0, letterBatch)
	for m := range k.queue {
		batch = k.more(append(batch[:0], m))
		if err := k.writer.WriteMessages(ctx, batch...); err != nil {
			k.lost.Add(int64(failures(err, len(batch))))
			k.log.Error().Err(err).Str("topic", k.writer.Topic).Msg("failed to write dead letters; they are lost")
		}
	}
}

// more adds waiting letters until the batch is full.
func (k *Topic) more(batch []kafka.Message) []kafka.Message {
	for len(batch) < letterBatch {
		select {
		case m, open := <-k.queue:
			if !open {
				return batch
			}
			batch = append(batch, m)
		default:
			return batch
		}
	}
	return batch
}

// failures returns the number of messages in a batch that were not written.
func failures(err error, size int) int {
	var each kafka.WriteErrors
	if errors.As(err, &each) {
		return each.Count()
	}
	return size
}

// Close writes all queued letters, but waits at most a few seconds.
func (k *Topic) Close() error {
	k.mu.Lock()
	if k.closed {
		k.mu.Unlock()
		return nil
	}
	k.closed = true
	close(k.queue)
	k.mu.Unlock()
	timer := time.AfterFunc(letterClose, k.abort)
	defer timer.Stop()
	<-k.ending
	k.abort()
	err := k.writer.Close()
	k.network.Cut()
	if err != nil {
		return fmt.Errorf("close the dead letters: %w", err)
	}
	return nil
}
