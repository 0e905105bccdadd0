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

// Place is where telemetry is: in a topic of a cluster, or in a local log.
type Place struct {
	Kafka ingest.KafkaConfig // the cluster and the topic; the group is not joined
	Log   string             // the directory of a local log, which replaces the cluster; the topic is only its name
}

// In returns the place of another topic of the same cluster.
func (p Place) In(topic string) Place {
	p.Kafka.Topic = topic
	return p
}

// TopicConfig configures how a topic is read as a recording.
type TopicConfig struct {
	Place
	Format ingest.Format // of the events
	Index  int           // of the topic, in the positions of its events
	Newest int64         // how many of the newest messages to read, over all partitions; 0 for all
	// AsRecorded makes the decoder set the AsRecorded of events.
	AsRecorded bool
	// Refuse, if not nil, is called for every refused record, with its bytes, which are valid until it returns.
	Refuse func(e *ingest.RecordError, raw []byte)
	// Progress, if not nil, is called after every answer of a broker with the number of messages read or skipped, and
	// their total.
	Progress func(messages, total int64)
}

// ReadTopic reads what a topic holds at the start of the call, one partition after the other, each in offset order, and
// passes the events to p in batches. It neither joins a consumer group nor commits, and never creates the topic. If
// fewer messages are wanted than exist, each partition contributes an equal number, or all it has if that is less.
//
// A partition that cannot be read is an error, after everything before it has been processed. Messages that are not
// telemetry, such as tombstones, are not records. ReadTopic does not call p.Idle.
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
			return r.counts, fmt.Errorf("reading partition %d of topic %s: %w", sections[i].Partition, cfg.Kafka.Topic, err)
		}
	}
	return r.counts, nil
}

// topicReader is the state of one ReadTopic or ReadRanges.
type topicReader struct {
	from      partitions
	cfg       TopicConfig
	processor ingest.Processor
	decoder   ingest.Decoder // nil when only the ends of partitions are wanted
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

// sections decides what is read of each partition.
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

// share divides n messages over partitions of the given sizes as evenly as these allow; 0 means all of them.
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

// section reads one section and passes on all its events.
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

// prepareAttempts is how often a reader asks for what a message needs, such as its schema, before it gives up.
const prepareAttempts = 5

// prepare makes sure that the message can be decoded.
func (r *topicReader) prepare(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		err := ingest.Prepare(ctx, r.decoder, &r.decoding)
		if err == nil {
			return nil
		}
		if attempt == prepareAttempts || !fetch.Sleep(ctx, time.Second) {
			return fmt.Errorf("decoding the record at %s: %w", r.decoding.Pos, err)
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
		return fmt.Errorf("processing the record at %s and those before it: %w", r.batch[len(r.batch)-1].Pos, err)
	}
	if r.batch = r.batch[:0]; cap(r.batch) > keptEvents {
		r.batch = nil
	}
	r.decoder.Reset()
	return nil
}
