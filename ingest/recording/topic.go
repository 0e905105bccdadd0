package recording

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/fetch"
)

// Place is the location of telemetry: a topic of a cluster, or a local log.
type Place struct {
	Kafka ingest.KafkaConfig // the cluster and the topic; the group is not joined
	Log   string             // directory of a local log to read instead of the cluster; the topic is then only a name
}

// In returns the place of another topic in the same cluster.
func (p Place) In(topic string) Place {
	p.Kafka.Topic = topic
	return p
}

// TopicConfig configures ReadTopic and ReadRanges.
type TopicConfig struct {
	Place
	Format ingest.Format // of the events
	Index  int           // index of the topic in the positions of its events
	Newest int64         // number of newest messages to read from all partitions together; 0 for all
	// AsRecorded makes the decoder set the AsRecorded of events.
	AsRecorded bool
	// Refuse, if not nil, is called for every refused record, with its bytes. They are valid until Refuse returns.
	Refuse func(e *ingest.RecordError, raw []byte)
	// Progress, if not nil, is called after every response of a broker with the number of messages read or skipped, and
	// their total.
	Progress func(messages, total int64)
}

// ReadTopic reads the messages that a topic contains at the start of the call, one partition after the other, each in
// offset order, and passes the events to p in batches. It neither joins a consumer group nor commits, and never creates
// the topic. If cfg.Newest is less than the number of messages, each partition contributes an equal number of messages,
// or all its messages if it has fewer.
//
// If a partition cannot be read, ReadTopic returns an error after it has processed everything before it. Messages that
// are not telemetry, such as tombstones, are not records. ReadTopic does not call p.Idle.
func ReadTopic(ctx context.Context, cfg TopicConfig, p ingest.Processor) (Counts, error) {
	r, err := newTopicReader(cfg, p)
	if err != nil {
		return Counts{}, err
	}
	defer r.from.close()
	sections, err := r.sections(ctx)
	if err != nil {
		return r.counts, err
	}
	for i := range sections {
		if err := r.section(ctx, &sections[i]); err != nil {
			return r.counts, fmt.Errorf("read partition %d of topic %s: %w", sections[i].Partition, cfg.Kafka.Topic, err)
		}
	}
	return r.counts, nil
}

// topicReader is the state of a call of ReadTopic or ReadRanges.
type topicReader struct {
	from      partitions
	cfg       TopicConfig
	processor ingest.Processor
	decoder   ingest.Decoder // nil if only the ends of partitions are needed
	decoding  ingest.Message
	refused   func(*ingest.RecordError, []byte)
	batch     []ingest.Event
	counts    Counts
}

func newTopicReader(cfg TopicConfig, p ingest.Processor) (*topicReader, error) {
	r := &topicReader{cfg: cfg, processor: p, counts: Counts{Refused: map[ingest.Reason]int64{}}}
	r.refused = r.refuse
	if p != nil {
		r.decoder = cfg.Format.NewDecoder(ingest.DecoderOptions{
			MaxRecord: int(cfg.Kafka.MaxMessage), AsRecorded: cfg.AsRecorded, LeftOut: func(ingest.Position) { r.counts.LeftOut++ },
		})
	}
	var err error
	r.from, err = cfg.partitions(r.decode)
	return r, err
}

// sections determines the offsets to read from each partition.
func (r *topicReader) sections(ctx context.Context) ([]fetch.Section, error) {
	count, err := r.from.count(ctx)
	if err != nil {
		return nil, err
	}
	sections, sizes := make([]fetch.Section, count), make([]int64, count)
	for i := range sections {
		s := &sections[i]
		s.Partition = i
		if s.Next, s.End, err = r.from.ends(ctx, i, time.Time{}); err != nil {
			return nil, err
		}
		sizes[i] = s.End - s.Next
	}
	for i, n := range share(r.cfg.Newest, sizes) {
		sections[i].Next = sections[i].End - n
	}
	r.from.expect(sections)
	return sections, nil
}

// share divides n messages over partitions of the given sizes as evenly as possible. 0 means all messages.
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

// section reads one section, and passes on all its events.
func (r *topicReader) section(ctx context.Context, s *fetch.Section) error {
	return errors.Join(r.from.read(ctx, s), r.Flush(ctx))
}

func (r *topicReader) decode(ctx context.Context, partition int, f *fetch.Found) error {
	pos := ingest.Position{Partition: ingest.PartitionOf(r.cfg.Index, int32(partition)), Offset: f.Offset}
	limit := r.cfg.Kafka.MaxMessage
	switch f.Classify(limit) {
	case fetch.TooLarge:
		r.refuse(f.TooLarge(pos, limit), f.Value)
	case fetch.Telemetry:
		before := len(r.batch)
		r.decoding = f.Message(r.cfg.Kafka.Topic, pos)
		if err := r.prepare(ctx); err != nil {
			return err
		}
		r.batch = r.decoder.Decode(r.batch, &r.decoding, r.refused)
		accepted := int64(len(r.batch) - before)
		r.counts.Read += accepted
		r.counts.Accepted += accepted
	}
	if len(r.batch) < readBatch {
		return nil
	}
	return r.Flush(ctx)
}

// prepareAttempts is the number of attempts to get external data that a message needs, such as its schema.
const prepareAttempts = 5

// prepare makes sure that the message can be decoded.
func (r *topicReader) prepare(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		err := ingest.Prepare(ctx, r.decoder, &r.decoding)
		if err == nil {
			return nil
		}
		if attempt == prepareAttempts || !fetch.Sleep(ctx, time.Second) {
			return fmt.Errorf("decode the record at %s: %w", r.decoding.Pos, err)
		}
	}
}

func (r *topicReader) refuse(e *ingest.RecordError, raw []byte) {
	r.counts.Read++
	r.counts.Refused[e.Reason]++
	if r.cfg.Refuse != nil {
		r.cfg.Refuse(e, raw)
	}
}

func (r *topicReader) Flush(ctx context.Context) error {
	if len(r.batch) == 0 {
		return nil
	}
	if err := r.processor.Process(ctx, r.batch); err != nil {
		return fmt.Errorf("process the record at %s and those before it: %w", r.batch[len(r.batch)-1].Pos, err)
	}
	if r.batch = r.batch[:0]; cap(r.batch) > keptEvents {
		r.batch = nil
	}
	r.decoder.Reset()
	return nil
}
