package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/assemble"
	"github.com/rewardwatch/rewardwatch/ingest/locallog"
	"github.com/rewardwatch/rewardwatch/ingest/receive"
	"github.com/rewardwatch/rewardwatch/ingest/recording"
)

// RangeReader passes the events of a range of a recording to a processor.
type RangeReader func(ctx context.Context, of ingest.Range, p ingest.Processor) error

// TopicRanges returns a reader of offset ranges of the topics. It does not change the offsets of the consumer group.
func TopicRanges(at recording.Place, topics []ingest.Topic) RangeReader {
	return func(ctx context.Context, of ingest.Range, p ingest.Processor) error {
		topic, index, err := of.In(topics)
		if err != nil {
			return err
		}
		_, err = recording.ReadRanges(ctx, recording.TopicConfig{Place: at.In(topic.Name), Format: topic.Format, Index: index}, []ingest.Range{of}, p)
		return err
	}
}

// FileRanges returns a reader of record ranges of files that are read as one input.
//
// The offsets of a local log are those of its messages, as in the service.
func FileRanges(cfg recording.FilesConfig, files []string) RangeReader {
	if len(files) == 1 && locallog.IsLog(files[0]) {
		at := recording.Place{Kafka: ingest.DefaultKafkaConfig(), Log: files[0]}
		return TopicRanges(at, []ingest.Topic{{Name: receive.LocalTopic, Format: cfg.Format}})
	}
	return func(ctx context.Context, of ingest.Range, p ingest.Processor) error {
		switch {
		case slices.Contains(files, "-"):
			return errors.New("pinned records are read twice, so they cannot be read from standard input")
		case len(cfg.Topics) > 1:
			return errors.New("pinned records are not supported for files from several topics: use a baseline file instead")
		case of.Partition != 0:
			return fmt.Errorf("files have only partition 0, not %d", of.Partition)
		}
		counts, err := recording.ReadFiles(ctx, recording.FilesConfig{Policy: cfg.Policy, Format: cfg.Format, Topics: cfg.Topics}, files, within{p, of})
		if n := counts.Read + counts.LeftOut; err == nil && n <= of.Last {
			err = fmt.Errorf("the input contains only %d records, but records %d to %d are pinned", n, of.First, of.Last)
		}
		return err
	}
}

// within is a processor that passes on the events of a range.
type within struct {
	ingest.Processor
	of ingest.Range
}

// Process implements ingest.Processor.
func (w within) Process(ctx context.Context, batch []ingest.Event) error {
	from := sort.Search(len(batch), func(i int) bool { return batch[i].Pos.Offset >= w.of.First })
	to := sort.Search(len(batch), func(i int) bool { return batch[i].Pos.Offset > w.of.Last })
	if from >= to {
		return nil
	}
	return w.Processor.Process(ctx, batch[from:to])
}

// excerpt is a processor that passes on the units that lie entirely within a range.
type excerpt struct {
	Collector
	seen   *assemble.Excerpt
	wanted func(*ingest.Unit)
}

func newExcerpt(cfg *Settings, wanted func(*ingest.Unit)) *excerpt {
	x := &excerpt{seen: assemble.NewExcerpt(), wanted: wanted}
	x.Collector = NewCollector(cfg, x.hand)
	return x
}

// Process implements ingest.Processor.
func (x *excerpt) Process(ctx context.Context, batch []ingest.Event) error {
	for i := range batch {
		x.seen.Read(&batch[i])
		if err := x.Collector.Process(ctx, batch[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

func (x *excerpt) hand(u *ingest.Unit) {
	if x.seen.Whole(u) {
		x.wanted(u)
	}
}
