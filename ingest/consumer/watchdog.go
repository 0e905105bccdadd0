package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest/fetch"
	"github.com/segmentio/kafka-go"
)

// stallWatch detects a partition that has records to read but makes no progress. Its own connection cannot detect this,
// because a broker that has not noticed the loss of its leadership keeps responding that there is nothing new.
type stallWatch struct {
	next  int64
	since time.Time // when next last changed, or when there was last no reason for it to change
	cut   bool      // whether the connection was already closed because of this stall
}

// stallVerdict says how to handle a partition.
type stallVerdict string

const (
	stallNone stallVerdict = "none"
	stallCut  stallVerdict = "cut"  // close the connection
	stallEnd  stallVerdict = "end"  // end the generation, because a new connection did not help
	stallWait stallVerdict = "wait" // wait longer before acting
)

// look updates the watch with the partition's progress. connected is false while the partition reconnects.
func (w *stallWatch) look(now time.Time, p *progress, connected bool, limit time.Duration) stallVerdict {
	next := p.next.Load()
	if lag, known := p.lag(); next != w.next || !known || lag == 0 || !connected || p.busy.Load() {
		moved := next != w.next || lag == 0
		*w = stallWatch{next: next, since: now, cut: w.cut && !moved}
		return stallNone
	}
	switch {
	case now.Sub(w.since) < limit:
		return stallWait
	case w.cut:
		return stallEnd
	}
	w.cut, w.since = true, now
	return stallCut
}

// clockWatch detects when the machine's clock is changed. Cooldowns, mutes and the order of partitions depend on the
// clock.
type clockWatch struct {
	started time.Time
	off     time.Duration // difference between the clock and the time elapsed since started, at the last look
}

// clockTolerance is the maximum step by which a time synchronization daemon normally corrects the clock.
const clockTolerance = 2 * time.Second

func newClockWatch(now time.Time) *clockWatch { return &clockWatch{started: now} }

// look returns by how much the clock was changed since the last look, or 0. now must have a monotonic reading.
func (w *clockWatch) look(now time.Time) time.Duration {
	return w.compare(now.Round(0).Sub(w.started.Round(0)), now.Sub(w.started))
}

// compare updates the watch with the elapsed time by the clock and by the monotonic reading.
func (w *clockWatch) compare(clock, passed time.Duration) time.Duration {
	jump := clock - passed - w.off
	w.off += jump
	if jump.Abs() < clockTolerance {
		return 0
	}
	return jump
}

// watch tracks the ends of the partitions until ctx ends. It returns earlier, which ends the generation, if a partition
// is stalled and a new connection did not help.
func (c *Consumer) watch(ctx context.Context, partitions []*partition) {
	defer c.left("the group is rebalancing")
	var readers []*reader
	for _, p := range partitions {
		readers = append(readers, p.readers...)
	}
	for _, t := range c.topics {
		defer t.metrics.assigned.Set(0)
	}
	watches := make([]stallWatch, len(readers))
	for i := range watches {
		watches[i] = stallWatch{next: unknown, since: time.Now()}
	}
	clock := newClockWatch(time.Now())
	for looks := 1; ; looks++ {
		if looks%compactionLooks == 0 {
			c.source.check(ctx)
		}
		if jump := clock.look(time.Now()); jump != 0 {
			c.topics[0].metrics.clockJumps.Inc()
			c.opts.Log.Warn().Stringer("by", jump).Msg("the system clock changed: cooldowns and mutes end earlier or later by the same amount")
		}
		if err := c.survey(ctx, readers); err != nil && ctx.Err() == nil {
			c.opts.Log.Debug().Err(err).Msg("failed to read the end offsets of the partitions")
		}
		for i, p := range readers {
			switch watches[i].look(time.Now(), p.progress, p.conn.Load() != nil, c.timing.stall) {
			case stallCut:
				p.cut()
			case stallEnd:
				p.log.Error().Int64("next", p.progress.next.Load()).Msg("a partition is stalled, rejoining the consumer group")
				return
			}
		}
		if !fetch.Sleep(ctx, c.timing.stall/3) {
			return
		}
	}
}

// compactionLooks is the number of partition checks between two checks of the topic's cleanup policy.
const compactionLooks = 6

// check implements source. It logs an error if the topic has become compacted. Records that are read soon after they
// are written are not lost to compaction, so stopping the consumer would only increase the loss.
func (c *brokers) check(ctx context.Context) {
	if err := c.compacted(ctx); errors.Is(err, ErrCompacted) {
		c.opts.Log.Error().Err(err).Msg("the topic settings cause telemetry loss; the service will not start again until they are changed")
	}
}

// survey queries the numbers of partitions and the ends of the assigned partitions.
func (c *Consumer) survey(ctx context.Context, readers []*reader) error {
	_, err := c.source.existing(ctx)
	errs := []error{err}
	for _, t := range c.topics {
		byID := map[int]*reader{}
		var assigned []*reader
		for _, r := range readers {
			if r.topic == t {
				byID[int(r.id)] = r
				assigned = append(assigned, r)
			}
		}
		if len(assigned) == 0 {
			continue
		}
		ends, err := c.source.ends(ctx, assigned...)
		errs = append(errs, err)
		for _, o := range ends {
			r := byID[o.Partition]
			r.progress.first.Store(o.FirstOffset)
			r.progress.raise(o.LastOffset)
		}
	}
	return errors.Join(errs...)
}

// ends queries the ends of partitions of one topic. It returns those that the brokers report, even if there is an
// error.
func (c *brokers) ends(ctx context.Context, readers ...*reader) (known []kafka.PartitionOffsets, err error) {
	var requests []kafka.OffsetRequest
	topic := readers[0].topic.Name
	for _, p := range readers {
		requests = append(requests, kafka.FirstOffsetOf(int(p.id)), kafka.LastOffsetOf(int(p.id)))
	}
	answer, err := c.client.ListOffsets(ctx, &kafka.ListOffsetsRequest{
		IsolationLevel: kafka.ReadCommitted, // records that are not readable yet do not indicate a stalled connection
		Topics:         map[string][]kafka.OffsetRequest{topic: requests},
	})
	if err != nil {
		return nil, fmt.Errorf("list offsets: %w", err)
	}
	var errs []error
	for _, o := range answer.Topics[topic] {
		if o.Error != nil {
			errs = append(errs, fmt.Errorf("list offsets of partition %d: %w", o.Partition, o.Error))
			continue
		}
		known = append(known, o)
	}
	return known, errors.Join(errs...)
}
