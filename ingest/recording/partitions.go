package recording

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/fetch"
	"github.com/rewardwatch/rewardwatch/ingest/locallog"
	"github.com/segmentio/kafka-go"
)

// partitions provides the partitions of a Place.
type partitions interface {
	// count returns the number of partitions.
	count(ctx context.Context) (int, error)
	// ends returns the offset of the first message of a partition, and the offset after the last one. If until is not
	// zero, messages from then on do not count.
	ends(ctx context.Context, partition int, until time.Time) (first, end int64, err error)
	// expect announces the sections that will be read, for the progress.
	expect(sections []fetch.Section)
	// read passes on the messages of a section. It skips missing messages.
	read(ctx context.Context, s *fetch.Section) error
	close()
}

// message processes a message of a partition.
type message func(ctx context.Context, partition int, f *fetch.Found) error

// partitions returns the partitions of the place. Their messages are passed to take.
func (c TopicConfig) partitions(take message) (partitions, error) {
	if c.Log != "" {
		view, err := locallog.OpenView(c.Log)
		if err != nil {
			return nil, err
		}
		return &localPartition{view: view, cfg: c, take: take}, nil
	}
	network, err := fetch.NewNetwork(c.Kafka)
	if err != nil {
		return nil, err
	}
	return &brokerPartitions{fetch.SectionReader{Kafka: c.Kafka, Network: network, Progress: c.Progress, Message: take}}, nil
}

// brokerPartitions are the partitions of a topic.
type brokerPartitions struct{ fetch.SectionReader }

func (b *brokerPartitions) count(ctx context.Context) (int, error) {
	asking, cancel := context.WithTimeout(ctx, fetch.OperationTimeout)
	defer cancel()
	count, err := fetch.PartitionCount(asking, b.Network.Client(b.Kafka.Brokers), b.Kafka.Topic)
	if errors.Is(err, kafka.UnknownTopicOrPartition) {
		return 0, fmt.Errorf("%w: %s", ingest.ErrNoTopic, b.Kafka.Topic)
	}
	return count, err
}

func (b *brokerPartitions) ends(ctx context.Context, partition int, until time.Time) (first, end int64, err error) {
	s := fetch.Section{Partition: partition}
	find := b.Measure
	if !until.IsZero() {
		find = func(ctx context.Context, conn *fetch.Leader, s *fetch.Section) error {
			return b.measureUntil(ctx, conn, s, until)
		}
	}
	if err := b.Patiently(ctx, &s, find); err != nil {
		return 0, 0, fmt.Errorf("query the offsets of partition %d of topic %s: %w", partition, b.Kafka.Topic, err)
	}
	return s.Next, s.End, nil
}

// measureUntil sets the first offset of a partition, and the end of the messages before a time.
func (b *brokerPartitions) measureUntil(ctx context.Context, conn *fetch.Leader, s *fetch.Section, until time.Time) error {
	if err := b.Measure(ctx, conn, s); err != nil {
		return err
	}
	return fetch.Shielded(func() error {
		at, err := conn.ReadOffset(until)
		if err == nil && at >= 0 { // -1 if no message is that new
			s.End = min(s.End, at)
		}
		return err
	})
}

func (b *brokerPartitions) expect(sections []fetch.Section) {
	for _, s := range sections {
		b.Total += s.End - s.Next
	}
}

func (b *brokerPartitions) read(ctx context.Context, s *fetch.Section) error { return b.Read(ctx, s) }
func (b *brokerPartitions) close()                                           { b.Network.Cut() }

// localPartition provides a local log as partition 0.
type localPartition struct {
	view            *locallog.View
	cfg             TopicConfig
	take            message
	messages, total int64
}

func (*localPartition) count(context.Context) (int, error) { return 1, nil }

func (l *localPartition) ends(_ context.Context, partition int, until time.Time) (first, end int64, err error) {
	if partition != 0 {
		return 0, 0, fmt.Errorf("the local log has only partition 0, not %d", partition)
	}
	first, end = l.view.Ends()
	if !until.IsZero() {
		end, err = l.view.Until(until)
	}
	return first, end, err
}

func (l *localPartition) expect(sections []fetch.Section) {
	for _, s := range sections {
		l.total += s.End - s.Next
	}
}

func (l *localPartition) read(ctx context.Context, s *fetch.Section) error {
	r := l.view.NewReader(s.Next)
	defer r.Close() // it was only read
	for s.Next < s.End && ctx.Err() == nil {
		records, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, fs.ErrNotExist): // removed since the log was opened
			return fmt.Errorf("%w: %w", ErrRangeGone, err)
		case err != nil:
			return err
		}
		for i := range records {
			if err := l.record(ctx, s, &records[i]); err != nil {
				return err
			}
		}
		if l.cfg.Progress != nil {
			l.cfg.Progress(l.messages, l.total)
		}
	}
	return ctx.Err()
}

// record processes a record that belongs to a section.
func (l *localPartition) record(ctx context.Context, s *fetch.Section, r *locallog.Record) error {
	if r.Offset >= s.End {
		s.Next = s.End
		return nil
	}
	f := fetch.FoundRecord(r.Offset, r.Time, r.Key, r.Headers, r.Value)
	if err := l.take(ctx, 0, &f); err != nil {
		return err
	}
	l.messages += f.Next - s.Next
	s.Next = f.Next
	return nil
}

func (*localPartition) close() {}
