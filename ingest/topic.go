package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"
)

// TopicConfig says how a topic is read as a recording.
type TopicConfig struct {
	Kafka  KafkaConfig // where the topic is; its group is not joined
	Newest int64       // messages to read over all partitions, the newest; 0 for all there are
	// Refuse is told of every refused record, with its bytes, which are valid until it returns. It may be nil.
	Refuse func(e *RecordError, raw []byte)
	// Progress is told after every answer of a broker how many messages have been read or passed over, and their total.
	// It may be nil.
	Progress func(messages, total int64)
}

// ErrNoTopic says that the cluster has no topic of that name.
var ErrNoTopic = errors.New("there is no such topic")

// How patient ReadTopic is with a partition that cannot be read: it gives up after so many connections in a row that
// brought nothing.
const (
	topicAttempts = 5
	topicBackoff  = 200 * time.Millisecond
)

// ReadTopic reads what a topic holds when it begins, one partition after the other, each in offset order, and gives the
// events to p in batches. It neither joins a consumer group nor commits anything, and never makes the topic. With fewer
// messages wanted than there are, each partition gives an equal number, or all it has where that is less.
//
// A partition that cannot be read is an error, after everything before it has been processed. Messages that are no
// telemetry, such as tombstones, are no records. ReadTopic does not call p.Idle.
func ReadTopic(ctx context.Context, cfg TopicConfig, p Processor) (Counts, error) {
	network, err := newNetwork(cfg.Kafka)
	if err != nil {
		return Counts{}, err
	}
	defer network.cut()
	r := newTopicReader(cfg, network, p)
	sections, err := r.sections(ctx)
	if err != nil {
		return r.counts, err
	}
	for i := range sections {
		if err := r.section(ctx, &sections[i]); err != nil {
			return r.counts, fmt.Errorf("reading partition %d of the topic %s: %w", sections[i].partition, cfg.Kafka.Topic, err)
		}
	}
	return r.counts, nil
}

// topicReader is the state of one ReadTopic, or of one ReadRanges.
type topicReader struct {
	cfg       TopicConfig
	network   *network
	processor Processor
	decoder   *Decoder
	batch     []Event
	counts    Counts

	messages, total int64
}

func newTopicReader(cfg TopicConfig, network *network, p Processor) *topicReader {
	return &topicReader{
		cfg: cfg, network: network, processor: p, decoder: NewDecoder(int(cfg.Kafka.MaxMessage)),
		counts: Counts{Refused: map[Reason]int64{}},
	}
}

// section is the part of a partition that is read: the offsets from next up to, and without, end.
type section struct {
	partition int
	next, end int64
	barren    int // answers in a row that held nothing new
}

// sections settles what is read of each partition.
func (r *topicReader) sections(ctx context.Context) ([]section, error) {
	k := r.cfg.Kafka
	asking, cancel := context.WithTimeout(ctx, operationTimeout)
	defer cancel()
	count, err := partitionCount(asking, r.network.client(k.Brokers), k.Topic)
	if errors.Is(err, kafka.UnknownTopicOrPartition) {
		return nil, fmt.Errorf("%w: %s", ErrNoTopic, k.Topic)
	}
	if err != nil {
		return nil, err
	}
	sections, sizes := make([]section, count), make([]int64, count)
	for i := range sections {
		s := &sections[i]
		s.partition = i
		if err := r.patiently(ctx, s, r.measure); err != nil {
			return nil, fmt.Errorf("asking for the ends of partition %d of the topic %s: %w", i, k.Topic, err)
		}
		sizes[i] = s.end - s.next
	}
	for i, n := range share(r.cfg.Newest, sizes) {
		sections[i].next = sections[i].end - n
		r.total += n
	}
	return sections, nil
}

// share divides n messages over partitions of the given sizes as evenly as these allow; 0 is all of them.
func share(n int64, sizes []int64) []int64 {
	out := slices.Clone(sizes)
	if n == 0 {
		return out
	}
	order := make([]int, len(sizes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sizes[a], sizes[b]) })
	for done, i := range order {
		out[i] = min(sizes[i], n/int64(len(order)-done))
		n -= out[i]
	}
	return out
}

// patiently repeats a session with a partition until it succeeds, or fails too often without getting on.
func (r *topicReader) patiently(ctx context.Context, s *section, session func(context.Context, *kafka.Conn, *section) error) error {
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

func (r *topicReader) connected(ctx context.Context, s *section, session func(context.Context, *kafka.Conn, *section) error) error {
	conn, err := r.network.partition(ctx, r.cfg.Kafka.Brokers, r.cfg.Kafka.Topic, s.partition)
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
func (r *topicReader) measure(_ context.Context, conn *kafka.Conn, s *section) error {
	return shielded(func() (err error) {
		s.next, s.end, err = conn.ReadOffsets()
		return err
	})
}

// section reads its part of a partition.
func (r *topicReader) section(ctx context.Context, s *section) error {
	if s.next == s.end {
		return nil
	}
	err := r.patiently(ctx, s, r.session)
	return errors.Join(err, r.flush(ctx))
}

// session reads over one connection. Retention may have removed the beginning meanwhile.
func (r *topicReader) session(ctx context.Context, conn *kafka.Conn, s *section) error {
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
		if r.cfg.Progress != nil {
			r.cfg.Progress(r.messages, r.total)
		}
	}
	return nil
}

func (r *topicReader) advance(s *section, next int64) {
	r.messages += next - s.next
	s.next = next
}

// answer reads one answer of the broker. As in the service, one that holds nothing new makes the next one larger, and
// what compaction has removed of a compressed record batch is passed over.
func (r *topicReader) answer(ctx context.Context, conn *kafka.Conn, s *section) error {
	batch, err := ask(conn, s.next, r.cfg.Kafka.MaxMessage, s.barren, defaultTiming().maxWait)
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

func (r *topicReader) drain(ctx context.Context, batch *kafka.Batch, s *section) error {
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
		r.message(s, m)
		r.advance(s, m.Offset+1)
		if len(r.batch) >= flushEvents {
			if err := r.flush(ctx); err != nil {
				return &fatalError{err}
			}
		}
	}
	return nil
}

func nextMessage(batch *kafka.Batch) (m kafka.Message, err error) {
	defer recovered(&err)
	return batch.ReadMessage()
}

func (r *topicReader) message(s *section, m kafka.Message) {
	pos := Position{Partition: int32(s.partition), Offset: m.Offset}
	limit := int(r.cfg.Kafka.MaxMessage)
	switch classify(m.Value, limit) {
	case messageTooLarge:
		r.refuse(tooLarge(pos, int64(len(m.Value)), limit), m.Value)
	case messageTelemetry:
		before := len(r.batch)
		r.batch = r.decoder.Decode(r.batch, m.Value, pos, r.refuse)
		accepted := int64(len(r.batch) - before)
		r.counts.Read += accepted
		r.counts.Accepted += accepted
	}
}

func (r *topicReader) refuse(e *RecordError, raw []byte) {
	r.counts.Read++
	r.counts.Refused[e.Reason]++
	if r.cfg.Refuse != nil {
		r.cfg.Refuse(e, raw)
	}
}

func (r *topicReader) flush(ctx context.Context) error {
	if len(r.batch) == 0 {
		return nil
	}
	if err := r.processor.Process(ctx, r.batch); err != nil {
		return fmt.Errorf("processing the record at %s and those before it: %w", r.batch[len(r.batch)-1].Pos, err)
	}
	if r.batch = r.batch[:0]; cap(r.batch) > keptEvents {
		r.batch = nil
	}
	r.decoder.Reset()
	return nil
}
