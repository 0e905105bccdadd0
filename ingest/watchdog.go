package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
)

// stallWatch notices when a partition that has something to read does not get on. Its own connection cannot tell: a
// broker that has lost its leadership unnoticed goes on to answer that there is nothing new.
type stallWatch struct {
	next  int64
	since time.Time // next was seen to change, or had no need to
	cut   bool      // the connection was cut for it already
}

// stallVerdict says what to do about a partition.
type stallVerdict string

const (
	stallNone stallVerdict = "none"
	stallCut  stallVerdict = "cut"  // the connection
	stallEnd  stallVerdict = "end"  // the generation, as a new connection was no help
	stallWait stallVerdict = "wait" // not for long enough yet
)

// look takes in how far the partition is. connected is false while it is without a connection and tries to get one.
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

// clockWatch notices when the machine's clock is set: cooldowns, mutes and the order of partitions go by it.
type clockWatch struct {
	started time.Time
	off     time.Duration // of the clock against the time that has passed since started, when last looked at
}

// clockTolerance is how far a clock may be moved in one step and still count as kept by its daemon.
const clockTolerance = 2 * time.Second

func newClockWatch(now time.Time) *clockWatch { return &clockWatch{started: now} }

// look gives by how much the clock was set since the last look, 0 where it was not. now must hold a monotonic reading.
func (w *clockWatch) look(now time.Time) time.Duration {
	return w.compare(now.Round(0).Sub(w.started.Round(0)), now.Sub(w.started))
}

// compare takes in how much time has passed by the clock, and in truth.
func (w *clockWatch) compare(clock, passed time.Duration) time.Duration {
	jump := clock - passed - w.off
	w.off += jump
	if jump.Abs() < clockTolerance {
		return 0
	}
	return jump
}

// watch follows the ends of the partitions until ctx ends. It returns earlier, and with it the generation ends, where a
// partition is stalled and a new connection did not help.
func (c *Consumer) watch(ctx context.Context, partitions []*partition) {
	defer c.board.leave("the group is rebalancing")
	defer c.metrics.assigned.Set(0)
	watches := make([]stallWatch, len(partitions))
	for i := range watches {
		watches[i] = stallWatch{next: unknown, since: time.Now()}
	}
	clock := newClockWatch(time.Now())
	for {
		if jump := clock.look(time.Now()); jump != 0 {
			c.metrics.clockJumps.Inc()
			c.opts.Log.Warn().Dur("by", jump).Msg("The machine's clock was set: what waits for a time comes early or late by as much")
		}
		if err := c.survey(ctx, partitions); err != nil && ctx.Err() == nil {
			c.opts.Log.Debug().Err(err).Msg("Looking for the ends of the partitions failed")
		}
		for i, p := range partitions {
			switch watches[i].look(time.Now(), p.progress, p.conn.Load() != nil, c.timing.stall) {
			case stallCut:
				p.cut()
			case stallEnd:
				p.log.Error().Int64("next", p.progress.next.Load()).Msg("A partition is stalled, joining the group anew")
				return
			}
		}
		if !sleep(ctx, c.timing.stall/3) {
			return
		}
	}
}

// survey asks for the number of partitions and the ends of those that are assigned.
func (c *Consumer) survey(ctx context.Context, partitions []*partition) error {
	if n, err := c.existing(ctx); err == nil {
		c.metrics.existing.Set(float64(n))
	}
	if len(partitions) == 0 {
		return nil
	}
	ends, err := c.ends(ctx, partitions...)
	byID := make(map[int]*partition, len(partitions))
	for _, p := range partitions {
		byID[int(p.id)] = p
	}
	for _, o := range ends {
		p := byID[o.Partition]
		p.progress.first.Store(o.FirstOffset)
		p.progress.raise(o.LastOffset)
	}
	return err
}

// ends asks for the ends of partitions, and gives those that could be found out.
func (c *Consumer) ends(ctx context.Context, partitions ...*partition) (known []kafka.PartitionOffsets, err error) {
	var requests []kafka.OffsetRequest
	for _, p := range partitions {
		requests = append(requests, kafka.FirstOffsetOf(int(p.id)), kafka.LastOffsetOf(int(p.id)))
	}
	answer, err := c.client.ListOffsets(ctx, &kafka.ListOffsetsRequest{
		Topics: map[string][]kafka.OffsetRequest{c.cfg.Topic: requests},
	})
	if err != nil {
		return nil, fmt.Errorf("listing offsets: %w", err)
	}
	var errs []error
	for _, o := range answer.Topics[c.cfg.Topic] {
		if o.Error != nil {
			errs = append(errs, fmt.Errorf("listing offsets of partition %d: %w", o.Partition, o.Error))
			continue
		}
		known = append(known, o)
	}
	return known, errors.Join(errs...)
}
