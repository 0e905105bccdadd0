package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/rewardwatch/rewardwatch/ingest"
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

// excerpt is a processor that hands on the units of a range, but for those of which it may hold only the end: such as
// began before the first end of their agent, unless their first record shows it (a step of 0 or 1, or a summary alone).
type excerpt struct {
	collector
	ended  map[agentKey]ingest.Position // the first end of an agent
	begun  map[ingest.Position]bool     // records that begin an episode, of agents without an end
	wanted func(*ingest.Unit)
}

type agentKey struct{ policy, agent string }

func newExcerpt(cfg *Config, wanted func(*ingest.Unit)) *excerpt {
	x := &excerpt{ended: map[agentKey]ingest.Position{}, begun: map[ingest.Position]bool{}, wanted: wanted}
	x.collector = newCollector(cfg, x.hand)
	return x
}

// Process implements ingest.Processor.
func (x *excerpt) Process(ctx context.Context, batch []ingest.Event) error {
	for i := range batch {
		e := &batch[i]
		if _, ended := x.ended[agentKey{e.Policy, e.AgentID}]; !ended && begins(e) {
			x.begun[e.Pos] = true
		}
		if err := x.collector.Process(ctx, batch[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

func begins(e *ingest.Event) bool {
	return e.Step == 0 || e.Step == 1 || e.Step < 0 && e.HasEpisode
}

func (x *excerpt) hand(u *ingest.Unit) {
	key := agentKey{u.Group.Policy, u.Agent}
	first, ended := x.ended[key]
	if !ended {
		first = u.Pos
		x.ended[key] = first
	}
	if first.Before(u.First) || x.begun[u.First] {
		x.wanted(u)
	}
}
