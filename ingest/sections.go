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

	// Connections that outlive a section. Both nil for none.
	kept func(partition int) *kafka.Conn       // nil where there is none
	keep func(partition int, conn *kafka.Conn) // which has no request open

	messages, total int64
}

// section is the part of a partition that is read: the offsets from next up to, and without, end.
type section struct {
	partition int
	next, end int64
	follow    bool // on to where the partition ends by the last answer, at least to end
	barren    int  // answers in a row that held nothing new
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
	conn, err := r.connect(ctx, s.partition)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	err = conn.SetDeadline(time.Now().Add(operationTimeout))
	if err == nil {
		err = session(ctx, conn, s)
	}
	if stop() && err == nil && r.keep != nil {
		r.keep(s.partition, conn)
		return nil
	}
	conn.Close() // what was read of it is all that matters
	return err
}

func (r *sectionReader) connect(ctx context.Context, partition int) (*kafka.Conn, error) {
	if r.kept != nil {
		if conn := r.kept(partition); conn != nil {
			return conn, nil
		}
	}
	return r.network.partition(ctx, r.kafka.Brokers, r.kafka.Topic, partition)
}

// errBehind says that a broker does not have what others have confirmed: a leader that was just elected may not know of it
// for a moment.
var errBehind = errors.New("the partition ends before what was written to it")

// measure finds the ends of a partition.
func (r *sectionReader) measure(_ context.Context, conn *kafka.Conn, s *section) error {
	return shielded(func() (err error) {
		s.next, s.end, err = conn.ReadOffsets()
		return err
	})
}

// read reads one section.
func (r *sectionReader) read(ctx context.Context, s *section) error {
	if s.next == s.end && !s.follow {
		return nil
	}
	return r.patiently(ctx, s, r.session)
}

// session reads over one connection.
func (r *sectionReader) session(ctx context.Context, conn *kafka.Conn, s *section) error {
	for asked := false; s.next < s.end || s.follow && !asked; asked = true {
		if err := conn.SetDeadline(time.Now().Add(operationTimeout)); err != nil {
			return err
		}
		err := r.answer(ctx, conn, s)
		if errors.Is(err, kafka.OffsetOutOfRange) {
			err = r.overtaken(ctx, conn, s, err)
		}
		if err != nil {
			return err
		}
		if r.progress != nil {
			r.progress(r.messages, r.total)
		}
	}
	return nil
}

// overtaken goes on at the start of the log, where retention has removed what stood before. Otherwise it gives the error
// back.
func (r *sectionReader) overtaken(ctx context.Context, conn *kafka.Conn, s *section, err error) error {
	now := *s
	if err := r.measure(ctx, conn, &now); err != nil {
		return err
	}
	if now.next <= s.next {
		return err
	}
	r.advance(s, min(now.next, s.end))
	return nil
}

func (r *sectionReader) advance(s *section, next int64) {
	r.messages += next - s.next
	s.next = next
}

// answer reads one answer of the broker. As in the service, one that holds nothing new makes the next one larger, and
// what compaction has removed of a compressed record batch is passed over.
func (r *sectionReader) answer(ctx context.Context, conn *kafka.Conn, s *section) error {
	wait := defaultTiming().maxWait
	if s.follow {
		wait = time.Millisecond // what is not there yet is not waited for
	}
	batch, err := ask(conn, s.next, r.kafka.MaxMessage, s.barren, wait)
	if err != nil {
		return err
	}
	if s.follow {
		s.end = max(s.end, batch.HighWaterMark())
	}
	before, behind := s.next, batch.HighWaterMark() <= s.next
	if err := r.drain(ctx, batch, s); err != nil {
		return err // without closing the batch: after a panic its lock may be held
	}
	if err := shielded(batch.Close); err != nil && !harmless(err) {
		return fmt.Errorf("reading up to offset %d: %w", s.next, err)
	}
	switch {
	case s.next > before, s.next == s.end:
		s.barren = 0
		return nil
	case behind:
		return errBehind
	}
	if s.barren++; s.barren == maxBarren {
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
