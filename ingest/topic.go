package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/segmentio/kafka-go"
)

// TopicConfig says how a topic is read as a recording.
type TopicConfig struct {
	Kafka  KafkaConfig // where the topic is; its group is not joined
	Newest int64       // messages to read over all partitions, the newest; 0 for all there are
	// Refuse is told of every refused record, with its bytes, which are valid until it returns. It may be nil.
	Refuse func(e *RecordError, raw []byte)
	// Accepted is told of every accepted record, with its text, valid until it returns as the event is. It is called
	// before the event is processed, and may be nil.
	Accepted func(e *Event, record []byte)
	// Progress is told after every answer of a broker how many messages have been read or passed over, and their total.
	// It may be nil.
	Progress func(messages, total int64)
}

// ErrNoTopic says that the cluster has no topic of that name.
var ErrNoTopic = errors.New("there is no such topic")

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
	sectionReader
	cfg       TopicConfig
	processor Processor
	decoder   *Decoder
	batch     []Event
	counts    Counts
}

func newTopicReader(cfg TopicConfig, network *network, p Processor) *topicReader {
	r := &topicReader{
		cfg: cfg, processor: p, decoder: NewDecoder(int(cfg.Kafka.MaxMessage)), counts: Counts{Refused: map[Reason]int64{}},
	}
	r.decoder.accepted = cfg.Accepted
	r.sectionReader = sectionReader{kafka: cfg.Kafka, network: network, progress: cfg.Progress, message: r.decode}
	return r
}

// sections settles what is read of each partition.
func (r *topicReader) sections(ctx context.Context) ([]section, error) {
	k := r.cfg.Kafka
	count, err := r.partitions(ctx)
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

// partitions counts the partitions of the topic.
func (r *topicReader) partitions(ctx context.Context) (int, error) {
	asking, cancel := context.WithTimeout(ctx, operationTimeout)
	defer cancel()
	k := r.cfg.Kafka
	count, err := partitionCount(asking, r.network.client(k.Brokers), k.Topic)
	if errors.Is(err, kafka.UnknownTopicOrPartition) {
		return 0, fmt.Errorf("%w: %s", ErrNoTopic, k.Topic)
	}
	return count, err
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

// section reads one section, and hands on all its events.
func (r *topicReader) section(ctx context.Context, s *section) error {
	return errors.Join(r.read(ctx, s), r.flush(ctx))
}

func (r *topicReader) decode(ctx context.Context, partition int, m kafka.Message) error {
	pos := Position{Partition: int32(partition), Offset: m.Offset}
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
	if len(r.batch) < flushEvents {
		return nil
	}
	return r.flush(ctx)
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
