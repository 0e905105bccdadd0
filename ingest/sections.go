package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/segmentio/kafka-go"
)

// How patient a sectionReader is with a partition that cannot be read: it gives up after so many connections in a row that
// brought nothing.
const (
	topicAttempts = 5
	topicBackoff  = 200 * time.Millisecond
)

// sectionReader reads sections of the partitions of a topic, without a consumer group.
type sectionReader struct {
	kafka    KafkaConfig
	network  *network
	message  func(ctx context.Context, partition int, m kafka.Message) error // told of every message; an error ends the reading
	progress func(messages, total int64)                                     // may be nil

	messages, total int64
}

// section is the part of a partition that is read: the offsets from next up to, and without, end.
type section struct {
	partition int
	next, end int64
	barren    int // answers in a row that held nothing new
}

// patiently repeats a session with a partition until it succeeds, or fails too often without getting on.
func (r *sectionReader) patiently(ctx context.Context, s *section, session func(context.Context, *kafka.Conn, *section) error) error {
	for failures := 0; ; {
		before := s.next
		err := r.connected(ctx, s, session)
		var fatal *fatalError
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &fatal):
			return fatal.err
		}
		if failures++; s.next > before {
			failures = 1
		}
		if failures == topicAttempts {
			return err
		}
		sleep(ctx, topicBackoff)
	}
}

func (r *sectionReader) connected(ctx context.Context, s *section, session func(context.Context, *kafka.Conn, *section) error) error {
	conn, err := r.network.partition(ctx, r.kafka.Brokers, r.kafka.Topic, s.partition)
	if err != nil {
		return err
	}
	defer conn.Close() // what was read of it is all that matters
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err := conn.SetDeadline(time.Now().Add(operationTimeout)); err != nil {
		return err
	}
	return session(ctx, conn, s)
}

// measure finds the ends of a partition.
func (r *sectionReader) measure(_ context.Context, conn *kafka.Conn, s *section) error {
	return shielded(func() (err error) {
		s.next, s.end, err = conn.ReadOffsets()
		return err
	})
}

// read reads one section.
func (r *sectionReader) read(ctx context.Context, s *section) error {
	if s.next == s.end {
		return nil
	}
	return r.patiently(ctx, s, r.session)
}

// session reads over one connection. Retention may have removed the beginning meanwhile.
func (r *sectionReader) session(ctx context.Context, conn *kafka.Conn, s *section) error {
	now := *s
	if err := r.measure(ctx, conn, &now); err != nil {
		return err
	}
	r.advance(s, max(s.next, min(now.next, s.end)))
	for s.next < s.end {
		if err := conn.SetDeadline(time.Now().Add(operationTimeout)); err != nil {
			return err
		}
		if err := r.answer(ctx, conn, s); err != nil {
			return err
		}
		if r.progress != nil {
			r.progress(r.messages, r.total)
		}
	}
	return nil
}

func (r *sectionReader) advance(s *section, next int64) {
	r.messages += next - s.next
	s.next = next
}

// answer reads one answer of the broker. As in the service, one that holds nothing new makes the next one larger, and
// what compaction has removed of a compressed record batch is passed over.
func (r *sectionReader) answer(ctx context.Context, conn *kafka.Conn, s *section) error {
	batch, err := ask(conn, s.next, r.kafka.MaxMessage, s.barren, defaultTiming().maxWait)
	if err != nil {
		return err
	}
	before := s.next
	if err := r.drain(ctx, batch, s); err != nil {
		return err // without closing the batch: after a panic its lock may be held
	}
	if err := shielded(batch.Close); err != nil && !harmless(err) {
		return fmt.Errorf("reading up to offset %d: %w", s.next, err)
	}
	if s.next > before {
		s.barren = 0
	} else if s.barren++; s.barren == maxBarren {
		s.barren = 0
		r.advance(s, s.next+1)
	}
	return nil
}

func (r *sectionReader) drain(ctx context.Context, batch *kafka.Batch, s *section) error {
	for s.next < s.end {
		m, err := nextMessage(batch)
		switch {
		case errors.Is(err, io.EOF):
			r.advance(s, min(s.end, max(s.next, batch.Offset())))
			return nil
		case errors.Is(err, kafka.RequestTimedOut):
			return nil
		case err != nil:
			return fmt.Errorf("reading offset %d: %w", s.next, err)
		case m.Offset < s.next: // a record batch is read from its head
			continue
		case m.Offset >= s.end:
			r.advance(s, s.end)
			return nil
		}
		if err := r.message(ctx, s.partition, m); err != nil {
			return &fatalError{err}
		}
		r.advance(s, m.Offset+1)
	}
	return nil
}

func nextMessage(batch *kafka.Batch) (m kafka.Message, err error) {
	defer recovered(&err)
	return batch.ReadMessage()
}
