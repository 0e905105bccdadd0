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

// ErrRangeGone means that a topic no longer or not yet contains a complete range of offsets: retention has removed its
// beginning, or its end has not been written.
var ErrRangeGone = errors.New("the topic does not contain these offsets")

// CheckRanges checks that a topic contains all ranges of offsets completely. Its error names all ranges that are
// incomplete, each with ErrRangeGone.
func CheckRanges(ctx context.Context, of Place, ranges []ingest.Range) error {
	r, err := newTopicReader(TopicConfig{Place: of}, nil)
	if err != nil {
		return err
	}
	defer r.from.close()
	var gone []error
	for _, wanted := range ranges {
		err := r.holds(ctx, wanted)
		if err != nil {
			err = fmt.Errorf("offsets %s of topic %s: %w", wanted, of.Kafka.Topic, err)
		}
		if err != nil && !errors.Is(err, ErrRangeGone) {
			return err
		}
		gone = append(gone, err)
	}
	return errors.Join(gone...)
}

// ReadRanges reads ranges of offsets of a topic in order, and passes the events to p in batches. Each batch is from one
// range. ReadRanges neither joins a consumer group nor commits. If a range is incomplete before or after the read, the
// error is ErrRangeGone. Offsets that compaction has removed are skipped. ReadRanges ignores cfg.Newest and does not
// call p.Idle.
func ReadRanges(ctx context.Context, cfg TopicConfig, ranges []ingest.Range, p ingest.Processor) (Counts, error) {
	r, err := newTopicReader(cfg, p)
	if err != nil {
		return Counts{}, err
	}
	defer r.from.close()
	sections := make([]fetch.Section, len(ranges))
	for i, of := range ranges {
		sections[i] = fetch.Section{Partition: int(of.Partition.Number()), Next: of.First, End: of.Last + 1}
	}
	r.from.expect(sections)
	for i, of := range ranges {
		if err := r.readRange(ctx, of, &sections[i]); err != nil {
			return r.counts, fmt.Errorf("read offsets %d to %d of partition %s of topic %s: %w", of.First, of.Last, of.Partition, cfg.Kafka.Topic, err)
		}
	}
	return r.counts, nil
}

// readRange reads one range. It checks the range again afterwards, because retention may have overtaken the reader.
func (r *topicReader) readRange(ctx context.Context, of ingest.Range, s *fetch.Section) error {
	count, err := r.from.count(ctx)
	if err != nil {
		return err
	}
	if int(of.Partition.Number()) >= count {
		return fmt.Errorf("%w: expected 1 partition, found %d", ErrRangeGone, count)
	}
	if err := r.holds(ctx, of); err != nil {
		return err
	}
	if err := r.section(ctx, s); err != nil {
		return err
	}
	return r.holds(ctx, of)
}

// holds returns ErrRangeGone if a partition does not contain a complete range.
func (r *topicReader) holds(ctx context.Context, of ingest.Range) error {
	first, end, err := r.from.ends(ctx, int(of.Partition.Number()), time.Time{})
	switch {
	case err != nil:
		return err
	case of.First < first || of.Last >= end:
		return fmt.Errorf("%w, only %d to %d", ErrRangeGone, first, end-1)
	}
	return nil
}

// ExtendRanges returns the ranges extended to the newest message of their partitions or, if until is not zero, to the
// last message before until by message timestamps. Ranges are never shortened.
func ExtendRanges(ctx context.Context, of Place, ranges []ingest.Range, until time.Time) ([]ingest.Range, error) {
	r, err := newTopicReader(TopicConfig{Place: of}, nil)
	if err != nil {
		return nil, err
	}
	defer r.from.close()
	out := slices.Clone(ranges)
	for i := range out {
		_, end, err := r.from.ends(ctx, int(out[i].Partition.Number()), until)
		if err != nil {
			return nil, err
		}
		out[i].Last = max(out[i].Last, end-1)
	}
	return out, nil
}
