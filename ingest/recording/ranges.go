package recording

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/fetch"
)

// ErrRangeGone means that a topic does not hold all of a range of offsets: retention has removed its beginning, or its
// end has not been written.
var ErrRangeGone = errors.New("the topic does not hold these offsets")

// CheckRanges returns an error that names all ranges of offsets that a topic does not hold completely, each as
// ErrRangeGone.
func CheckRanges(ctx context.Context, cfg ingest.KafkaConfig, ranges []ingest.Range) error {
	network, err := fetch.NewNetwork(cfg)
	if err != nil {
		return err
	}
	defer network.Cut()
	r := newTopicReader(TopicConfig{Kafka: cfg}, network, nil)
	var gone []error
	for _, of := range ranges {
		err := r.holds(ctx, of)
		if err != nil {
			err = fmt.Errorf("offsets %s of the topic %s: %w", of, cfg.Topic, err)
		}
		if err != nil && !errors.Is(err, ErrRangeGone) {
			return err
		}
		gone = append(gone, err)
	}
	return errors.Join(gone...)
}

// ReadRanges reads ranges of offsets of a topic in order, and passes the events to p in batches; a batch is of one
// range. It neither joins a consumer group nor commits. A range that is incomplete before or after the read is
// ErrRangeGone; offsets removed by compaction are skipped. ReadRanges ignores cfg.Newest and does not call p.Idle.
func ReadRanges(ctx context.Context, cfg TopicConfig, ranges []ingest.Range, p ingest.Processor) (Counts, error) {
	network, err := fetch.NewNetwork(cfg.Kafka)
	if err != nil {
		return Counts{}, err
	}
	defer network.Cut()
	r := newTopicReader(cfg, network, p)
	for _, of := range ranges {
		r.Total += of.Last - of.First + 1
	}
	for _, of := range ranges {
		if err := r.readRange(ctx, of); err != nil {
			return r.counts, fmt.Errorf("reading offsets %d to %d of partition %s of the topic %s: %w", of.First, of.Last, of.Partition, cfg.Kafka.Topic, err)
		}
	}
	return r.counts, nil
}

// readRange reads one range. It checks the retention again afterwards, which may have overtaken the reader.
func (r *topicReader) readRange(ctx context.Context, of ingest.Range) error {
	count, err := r.partitions(ctx)
	if err != nil {
		return err
	}
	if int(of.Partition.Number()) >= count {
		return fmt.Errorf("%w: it has %d partitions", ErrRangeGone, count)
	}
	if err := r.holds(ctx, of); err != nil {
		return err
	}
	if err := r.section(ctx, &fetch.Section{Partition: int(of.Partition.Number()), Next: of.First, End: of.Last + 1}); err != nil {
		return err
	}
	return r.holds(ctx, of)
}

// holds returns ErrRangeGone if a partition does not hold a range.
func (r *topicReader) holds(ctx context.Context, of ingest.Range) error {
	there := fetch.Section{Partition: int(of.Partition.Number())}
	err := r.Patiently(ctx, &there, r.Measure)
	switch {
	case err != nil:
		return err
	case of.First < there.Next || of.Last >= there.End:
		return fmt.Errorf("%w, but %d up to %d", ErrRangeGone, there.Next, there.End-1)
	}
	return nil
}

// ExtendRanges returns ranges that extend to the newest message of their partitions, or to the last one before until if
// that is not zero, by Kafka's message times. No range becomes shorter.
func ExtendRanges(ctx context.Context, cfg ingest.KafkaConfig, ranges []ingest.Range, until time.Time) ([]ingest.Range, error) {
	network, err := fetch.NewNetwork(cfg)
	if err != nil {
		return nil, err
	}
	defer network.Cut()
	r := newTopicReader(TopicConfig{Kafka: cfg}, network, nil)
	out := slices.Clone(ranges)
	for i := range out {
		of := &out[i]
		reach := fetch.Section{Partition: int(of.Partition.Number())}
		find := r.Measure
		if !until.IsZero() {
			find = func(ctx context.Context, conn *fetch.Leader, s *fetch.Section) error {
				return r.measureUntil(ctx, conn, s, until)
			}
		}
		if err := r.Patiently(ctx, &reach, find); err != nil {
			return nil, fmt.Errorf("asking for the end of partition %s of the topic %s: %w", of.Partition, cfg.Topic, err)
		}
		of.Last = max(of.Last, reach.End-1)
	}
	return out, nil
}

// measureUntil finds the ends of what a partition held before a time.
func (r *topicReader) measureUntil(ctx context.Context, conn *fetch.Leader, s *fetch.Section, until time.Time) error {
	if err := r.Measure(ctx, conn, s); err != nil {
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
