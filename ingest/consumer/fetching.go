package consumer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/fetch"
	"github.com/rewardwatch/rewardwatch/ingest/locallog"
)

// fetch reads one response of the broker to its end. All messages that were read completely have been processed when
// fetch returns, even on errors.
func (p *reader) fetch(ctx context.Context, conn connection, from int64) error {
	asked := time.Now()
	a, err := conn.Fetch(from, fetch.Size(p.c.cfg.MaxMessage, p.larger), p.c.cfg.MaxMessage, p.c.timing.maxWait)
	if err != nil {
		return err
	}
	p.progress.raise(a.End)
	p.progress.highWater.Store(a.HighWater)
	err = p.drain(ctx, a)
	if errors.Is(err, locallog.ErrDamaged) {
		err = &fatalError{err}
	}
	var f *fatalError
	if errors.As(err, &f) {
		return err
	}
	if err := p.Flush(ctx); err != nil {
		return err
	}
	switch {
	case errors.Is(err, fetch.ErrCut) && p.larger < fetch.MaxLarger:
		p.larger++ // since Kafka 0.10.1, brokers send the first record batch completely, regardless of its size
		return nil
	case err != nil:
		return err
	}
	p.larger = 0
	if p.next >= a.End { // also after records, so that a busy partition reports when it has been read to its end
		return p.idle(ctx, asked)
	}
	return nil
}

// drain reads the records of a response.
func (p *reader) drain(ctx context.Context, a *fetch.Answer) error {
	for ctx.Err() == nil {
		f, err := a.Step()
		// Skipping an oversized record may make the next step slow. That is not a stall.
		if large := err == nil && f.Size > int64(p.c.cfg.MaxMessage); large != p.progress.busy.Load() {
			p.progress.busy.Store(large)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read offset %d: %w", p.read, err)
		}
		if err := p.prepare(ctx, f); err != nil {
			return err
		}
		if p.splits(max(p.reached, f.Time())) {
			if err := p.Flush(ctx); err != nil {
				return err
			}
		}
		if err := p.take(f); err != nil {
			return &fatalError{err}
		}
		if p.intake.full() {
			if err := p.Flush(ctx); err != nil {
				return err
			}
			if err := p.checkpointInTime(); err != nil { // one response may take a long time, and the process may stop meanwhile
				return err
			}
		}
	}
	return ctx.Err()
}

// errPrepare means that something that a record needs, such as its schema, is unavailable. The partition is then read
// again from that record, so that the record is neither lost nor refused.
var errPrepare = errors.New("a record cannot be decoded until its schema is available")

// prepare makes sure that a record can be decoded.
func (p *reader) prepare(ctx context.Context, f *fetch.Found) error {
	if f.Next <= p.read || f.Kind == fetch.KindNothing {
		return nil
	}
	if err := p.intake.prepare(ctx, f, ingest.Position{Partition: p.topic.at(p.id), Offset: f.Offset}); err != nil {
		return fmt.Errorf("%w: offset %d: %w", errPrepare, f.Offset, err)
	}
	return nil
}

// take processes one step. A record batch is read from its start, so it may contain records before the requested one.
func (p *reader) take(f *fetch.Found) error {
	marks := f.Kind == fetch.KindRecord && f.Size == int64(len(f.Value)) // otherwise, the mark would cover only part of a message
	if f.Next <= p.read {
		if marks && f.Offset == p.last.offset && ingest.Checksum(f.Value) != p.last.sum {
			return fmt.Errorf("%w: at offset %d; %s", ErrTopicRecreated, f.Offset, p.c.source.startOver(p.name))
		}
		return nil
	}
	p.compacted(f)
	p.read = f.Next
	if f.Kind == fetch.KindNothing {
		return nil
	}
	if marks && f.Final { // one message of a record batch is enough, as the batch is written and removed as a whole
		p.last = mark{offset: f.Offset, sum: ingest.Checksum(f.Value)}
	}
	p.reached = max(p.reached, f.Time())
	if p.intake.empty() {
		p.head = p.reached
	}
	return p.intake.add(f, ingest.Position{Partition: p.topic.at(p.id), Offset: f.Offset})
}

// compacted counts the offsets that are missing before the next step. Every offset has a record or a transaction marker
// until compaction removes it.
func (p *reader) compacted(f *fetch.Found) {
	gap := f.Offset - p.read
	if f.Kind == fetch.KindNothing {
		gap = f.Next - p.read
	}
	if gap <= 0 {
		return
	}
	p.missed(gap)
	p.c.outages.Error().Str("topic", p.topic.Name).Int32("partition", p.id).Int64("next", p.read).Int64("records", gap).
		Msg("records were removed before they were read: a telemetry topic requires cleanup.policy=delete")
}

// Flush passes the batch to the state. After an error, the partition must not be read any further.
func (p *reader) Flush(ctx context.Context) error {
	p.progress.busy.Store(true)
	defer p.progress.busy.Store(false)
	if p.intake.empty() {
		p.turn.Lock()
	} else if !p.await(ctx) {
		return ctx.Err()
	}
	defer p.turn.Unlock()
	if !p.intake.empty() {
		if err := p.process(ctx); err != nil {
			return err
		}
		p.move(course{fetching, p.reached})
	}
	p.next, p.mark = p.read, p.last
	p.progress.next.Store(max(p.next, unknown))
	return nil
}

func (p *reader) process(ctx context.Context) error {
	// A batch is finished even if the generation ends meanwhile, because a partly processed batch cannot be undone.
	ctx = context.WithoutCancel(ctx)
	if err := p.guarded(func() error { return p.intake.Flush(ctx) }); err != nil {
		p.broken = true
		return &fatalError{fmt.Errorf("%w: offsets %d to %d: %w", ErrProcessor, p.next, p.read-1, err)}
	}
	return nil
}

// idle reports to the state that the partition has been read to its end as of asked, the time of the request. More may
// have been written since then, because the process may have been suspended or the processor busy.
func (p *reader) idle(ctx context.Context, asked time.Time) error {
	p.progress.busy.Store(true)
	defer p.progress.busy.Store(false)
	p.turn.Lock()
	defer p.turn.Unlock()
	p.ended = asked
	p.move(course{resting, p.reached})
	if p.broken {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	if err := p.guarded(func() error { return p.reportIdle(ctx) }); err != nil {
		p.broken = true
		return &fatalError{fmt.Errorf("%w: idle: %w", ErrProcessor, err)}
	}
	return nil
}

// reportIdle reports to the state how far this reader has come. If the state does not distinguish topics, it reports
// how far all readers have come.
func (p *reader) reportIdle(ctx context.Context) error {
	if s, ok := p.state.(ingest.Several); ok && len(p.readers) > 1 {
		return s.Reached(ctx, p.topic.index, p.ended)
	}
	at := p.ended
	for _, o := range p.readers {
		if o.course.phase != resting {
			return nil
		}
		if o.ended.Before(at) {
			at = o.ended
		}
	}
	return p.state.Idle(ctx, at)
}
