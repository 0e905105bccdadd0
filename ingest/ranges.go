package ingest

import (
	"context"
	"errors"
	"fmt"
)

// ErrRangeGone says that a topic does not hold all of a range of offsets: retention has removed its beginning, or its
// end has not been written.
var ErrRangeGone = errors.New("the topic does not hold these offsets")

// CheckRanges gives an error that names all ranges of offsets that a topic does not wholly hold, each as ErrRangeGone.
func CheckRanges(ctx context.Context, cfg KafkaConfig, ranges []Range) error {
	network, err := newNetwork(cfg)
	if err != nil {
		return err
	}
	defer network.cut()
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

// ReadRanges reads ranges of offsets of a topic, one after the other, and gives the events to p in batches; a batch is of
// one range. It neither joins a consumer group nor commits anything. A range that is not wholly there, before and after
// it was read, is ErrRangeGone; what compaction has removed of it is passed over. cfg.Newest has no use here. ReadRanges
// does not call p.Idle.
func ReadRanges(ctx context.Context, cfg TopicConfig, ranges []Range, p Processor) (Counts, error) {
	network, err := newNetwork(cfg.Kafka)
	if err != nil {
		return Counts{}, err
	}
	defer network.cut()
	r := newTopicReader(cfg, network, p)
	for _, of := range ranges {
		r.total += of.Last - of.First + 1
	}
	for _, of := range ranges {
		if err := r.readRange(ctx, of); err != nil {
			return r.counts, fmt.Errorf("reading offsets %d to %d of partition %d of the topic %s: %w", of.First, of.Last, of.Partition, cfg.Kafka.Topic, err)
		}
	}
	return r.counts, nil
}

// readRange reads one range. Retention is looked at again afterwards: it may have been faster than the reader.
func (r *topicReader) readRange(ctx context.Context, of Range) error {
	count, err := r.partitions(ctx)
	if err != nil {
		return err
	}
	if int(of.Partition) >= count {
		return fmt.Errorf("%w: it has %d partitions", ErrRangeGone, count)
	}
	if err := r.holds(ctx, of); err != nil {
		return err
	}
	if err := r.section(ctx, &section{partition: int(of.Partition), next: of.First, end: of.Last + 1}); err != nil {
		return err
	}
	return r.holds(ctx, of)
}

// holds gives ErrRangeGone where a partition does not hold a range.
func (r *topicReader) holds(ctx context.Context, of Range) error {
	there := section{partition: int(of.Partition)}
	err := r.patiently(ctx, &there, r.measure)
	switch {
	case err != nil:
		return err
	case of.First < there.next || of.Last >= there.end:
		return fmt.Errorf("%w, but %d up to %d", ErrRangeGone, there.next, there.end-1)
	}
	return nil
}
