package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/segmentio/kafka-go"
)

// A SectionReader gives up on a partition after topicAttempts consecutive connections without progress.
const (
	topicAttempts = 5
	topicBackoff  = 200 * time.Millisecond
)

// SectionReader reads sections of a topic's partitions without a consumer group.
type SectionReader struct {
	Kafka    ingest.KafkaConfig
	Network  *Network
	Message  func(ctx context.Context, partition int, f *Found) error // called for every record, even refused ones; an error ends the reading
	Progress func(messages, total int64)                              // may be nil

	// Functions to reuse connections between sections. Both may be nil.
	Kept func(partition int) *Leader       // returns nil if there is no connection
	Keep func(partition int, conn *Leader) // takes a connection without an open request

	messages, Total int64
}

// Section is the part of a partition to read: the offsets from Next up to, but not including, End.
type Section struct {
	Partition int
	Next, End int64
	Follow    bool // read up to the end of the partition as of the last response, but at least up to End
	larger    int  // how many times the size of a response was doubled
}

// visitError is an error from SectionReader.Message. It ends the reading.
type visitError struct{ err error }

// Error returns the error.
func (e *visitError) Error() string { return e.err.Error() }

// Patiently repeats a session with a partition until it succeeds, or has failed topicAttempts times in a row without
// progress.
func (r *SectionReader) Patiently(ctx context.Context, s *Section, session func(context.Context, *Leader, *Section) error) error {
	for failures := 0; ; {
		before := s.Next
		err := r.connected(ctx, s, session)
		var failed *visitError
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &failed):
			return failed.err
		}
		if failures++; s.Next > before {
			failures = 1
		}
		if failures == topicAttempts {
			return err
		}
		Sleep(ctx, topicBackoff)
	}
}

func (r *SectionReader) connected(ctx context.Context, s *Section, session func(context.Context, *Leader, *Section) error) error {
	conn, err := r.connect(ctx, s.Partition)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	err = conn.SetDeadline(time.Now().Add(OperationTimeout))
	if err == nil {
		err = session(ctx, conn, s)
	}
	if stop() && err == nil && r.Keep != nil {
		r.Keep(s.Partition, conn)
		return nil
	}
	conn.Close() // everything that was read remains valid
	return err
}

func (r *SectionReader) connect(ctx context.Context, partition int) (*Leader, error) {
	if r.Kept != nil {
		if conn := r.Kept(partition); conn != nil {
			return conn, nil
		}
	}
	return r.Network.Leader(ctx, r.Kafka.Brokers, r.Kafka.Topic, partition)
}

// ErrBehind means that a broker lacks records that other brokers have confirmed, which may happen for a short time
// after a leader election.
var ErrBehind = errors.New("the partition ends before the last offset written to it")

// errOpenTransaction means that the records cannot be read before a transaction has ended.
var errOpenTransaction = errors.New("a transaction is open: records written since it began can be read only after it ends")

// Measure sets the section to all offsets of its partition.
func (r *SectionReader) Measure(_ context.Context, conn *Leader, s *Section) error {
	return Shielded(func() (err error) {
		s.Next, s.End, err = conn.ReadOffsets()
		return err
	})
}

// Read reads one section.
func (r *SectionReader) Read(ctx context.Context, s *Section) error {
	if s.Next == s.End && !s.Follow {
		return nil
	}
	return r.Patiently(ctx, s, r.session)
}

// session reads through one connection.
func (r *SectionReader) session(ctx context.Context, conn *Leader, s *Section) error {
	for asked := false; s.Next < s.End || s.Follow && !asked; asked = true {
		if err := conn.SetDeadline(time.Now().Add(OperationTimeout)); err != nil {
			return err
		}
		err := r.answer(ctx, conn, s)
		if errors.Is(err, kafka.OffsetOutOfRange) {
			err = r.overtaken(ctx, conn, s, err)
		}
		if err != nil {
			return err
		}
		if r.Progress != nil {
			r.Progress(r.messages, r.Total)
		}
	}
	return nil
}

// overtaken continues at the start of the log if retention has removed the records before it. Otherwise, it returns
// err.
func (r *SectionReader) overtaken(ctx context.Context, conn *Leader, s *Section, err error) error {
	now := *s
	if err := r.Measure(ctx, conn, &now); err != nil {
		return err
	}
	if now.Next <= s.Next {
		return err
	}
	r.advance(s, min(now.Next, s.End))
	return nil
}

func (r *SectionReader) advance(s *Section, next int64) {
	r.messages += next - s.Next
	s.Next = next
}

// answer reads one response of the broker.
func (r *SectionReader) answer(ctx context.Context, conn *Leader, s *Section) error {
	wait := MaxWait
	if s.Follow {
		wait = time.Millisecond // do not wait for new records
	}
	a, err := conn.Fetch(s.Next, Size(r.Kafka.MaxMessage, s.larger), r.Kafka.MaxMessage, wait)
	if err != nil {
		return err
	}
	if s.Follow {
		s.End = max(s.End, a.End)
	}
	before, behind := s.Next, a.HighWater <= s.Next
	err = r.drain(ctx, a, s)
	if err == nil {
		err = conn.set.close()
	}
	switch {
	case errors.Is(err, ErrCut) && s.larger < MaxLarger:
		s.larger++
		return nil
	case err != nil:
		return err
	case s.Next > before, s.Next == s.End:
		s.larger = 0
	case behind:
		return ErrBehind
	case a.End <= s.Next && !s.Follow:
		return errOpenTransaction
	}
	return nil
}

func (r *SectionReader) drain(ctx context.Context, a *Answer, s *Section) error {
	for s.Next < s.End {
		f, err := a.Step()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read offset %d: %w", s.Next, err)
		case f.Next <= s.Next: // a record batch is read from its start
			continue
		case f.Offset >= s.End:
			r.advance(s, s.End)
			continue
		}
		if f.Kind == KindRecord || f.Kind == KindRefused {
			if err := r.Message(ctx, s.Partition, f); err != nil {
				return &visitError{err}
			}
		}
		r.advance(s, min(f.Next, s.End))
	}
	return nil
}
