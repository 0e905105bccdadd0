package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/assemble"
)

// rangeReader gives the events of a range of a recording to a processor.
type rangeReader func(ctx context.Context, of ingest.Range, p ingest.Processor) error

// topicRanges reads ranges of offsets of the topic, without touching the offsets of the group.
func topicRanges(cfg ingest.KafkaConfig) rangeReader {
	return func(ctx context.Context, of ingest.Range, p ingest.Processor) error {
		_, err := ingest.ReadRanges(ctx, ingest.TopicConfig{Kafka: cfg}, []ingest.Range{of}, p)
		return err
	}
}

// fileRanges reads ranges of records of files that are read as one input.
func fileRanges(cfg ingest.FilesConfig, files []string) rangeReader {
	return func(ctx context.Context, of ingest.Range, p ingest.Processor) error {
		switch {
		case slices.Contains(files, "-"):
			return errors.New("pinned records of the standard input would have to be read twice")
		case of.Partition != 0:
			return fmt.Errorf("files have no partition %d, only 0", of.Partition)
		}
		counts, err := ingest.ReadFiles(ctx, ingest.FilesConfig{Policy: cfg.Policy}, files, within{p, of})
		if err == nil && counts.Read <= of.Last {
			err = fmt.Errorf("the input has %d records, and records %d to %d are pinned", counts.Read, of.First, of.Last)
		}
		return err
	}
}

// within is a processor that hands on the events of a range.
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

// excerpt is a processor that hands on the units of a range that are whole.
type excerpt struct {
	collector
	seen   *assemble.Excerpt
	wanted func(*ingest.Unit)
}

func newExcerpt(cfg *Config, wanted func(*ingest.Unit)) *excerpt {
	x := &excerpt{seen: assemble.NewExcerpt(), wanted: wanted}
	x.collector = newCollector(cfg, x.hand)
	return x
}

// Process implements ingest.Processor.
func (x *excerpt) Process(ctx context.Context, batch []ingest.Event) error {
	for i := range batch {
		x.seen.Read(&batch[i])
		if err := x.collector.Process(ctx, batch[i:i+1]); err != nil {
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
