package consumer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/fetch"
)

// fetch reads one answer of the broker to its end. However it ends, all completely read messages have been processed
// when fetch returns.
func (p *partition) fetch(ctx context.Context, conn *fetch.Leader, from int64) error {
	asked := time.Now()
	a, err := conn.Fetch(from, fetch.Size(p.c.cfg.MaxMessage, p.larger), p.c.cfg.MaxMessage, p.c.timing.maxWait)
	if err != nil {
		return err
	}
	p.progress.raise(a.End)
	p.progress.highWater.Store(a.HighWater)
	err = p.drain(ctx, a)
	var f *fatalError
	if errors.As(err, &f) {
		return err
	}
	if err := p.Flush(ctx); err != nil {
		return err
	}
	switch {
	case errors.Is(err, fetch.ErrCut) && p.larger < fetch.MaxLarger:
		p.larger++ // brokers since Kafka 0.10.1 send the first record batch whole, whatever its size
		return nil
	case err != nil:
		return err
	}
	p.larger = 0
	if p.next >= a.End { // after records too: this is how a busy partition reports that it was read to its end
		return p.idle(ctx, asked)
	}
	return nil
}

// drain reads the records of an answer.
func (p *partition) drain(ctx context.Context, a *fetch.Answer) error {
	var f fetch.Found // one for all steps: intakes take its address
	for ctx.Err() == nil {
		var err error
		f, err = a.Step()
		// Skipping an oversized record may make the next step slow, which is not a stall.
		p.progress.busy.Store(err == nil && f.Size > int64(p.c.cfg.MaxMessage))
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("reading offset %d: %w", p.read, err)
		}
		if err := p.take(&f); err != nil {
			return &fatalError{err}
		}
		if p.intake.full() {
			if err := p.Flush(ctx); err != nil {
				return err
			}
			if err := p.checkpointInTime(); err != nil { // one answer may take long, and the process may stop
				return err
			}
		}
	}
	return ctx.Err()
}

// take processes one step. A record batch is read from its start, so some records precede the one asked for.
func (p *partition) take(f *fetch.Found) error {
	marks := f.Kind == fetch.KindRecord && f.Size == int64(len(f.Value)) // else the mark would cover half a message
	if f.Next <= p.read {
		if marks && f.Offset == p.mark.offset && ingest.Checksum(f.Value) != p.mark.sum {
			return fmt.Errorf("%w: at offset %d; move the checkpoint %s away and reset the offset of the group %s "+
				"to read the partition from there on", ErrTopicRecreated, f.Offset, p.name, p.c.cfg.Group)
		}
		return nil
	}
	p.compacted(f)
	p.read = f.Next
	if f.Kind == fetch.KindNothing {
		return nil
	}
	if marks {
		p.mark = mark{offset: f.Offset, sum: ingest.Checksum(f.Value)}
	}
	return p.intake.add(f, ingest.Position{Partition: ingest.Partition(p.id), Offset: f.Offset})
}

// compacted counts the missing offsets before the next step. Every offset has a record or the marker of a transaction
// until compaction removes it.
func (p *partition) compacted(f *fetch.Found) {
	gap := f.Offset - p.read
	if f.Kind == fetch.KindNothing {
		gap = f.Next - p.read
	}
	if gap <= 0 {
		return
	}
	p.missed(gap)
	p.c.outages.Error().Str("topic", p.c.cfg.Topic).Int32("partition", p.id).Int64("next", p.read).Int64("records", gap).
		Msg("compaction has removed records before they were read: telemetry needs a topic with cleanup.policy=delete")
}

// Flush passes the batch to the state. Its error ends the reading of the partition.
func (p *partition) Flush(ctx context.Context) error {
	if !p.intake.empty() {
		if err := p.process(ctx); err != nil {
			return err
		}
	}
	p.next = p.read
	p.progress.next.Store(max(p.next, unknown))
	return nil
}

func (p *partition) process(ctx context.Context) error {
	p.progress.busy.Store(true)
	defer p.progress.busy.Store(false)
	// A batch is finished even if the generation ends meanwhile: half of it could not be undone.
	ctx = context.WithoutCancel(ctx)
	if err := p.guarded(func() error { return p.intake.Flush(ctx) }); err != nil {
		return &fatalError{fmt.Errorf("%w: offsets %d to %d: %w", ErrProcessor, p.next, p.read-1, err)}
	}
	return nil
}

// idle reports to the state that the partition has been read to its end as of asked, the time of the request. Much may
// have been written since: the process may have been stopped, or the processor busy.
func (p *partition) idle(ctx context.Context, asked time.Time) error {
	ctx = context.WithoutCancel(ctx)
	if err := p.guarded(func() error { return p.state.Idle(ctx, asked) }); err != nil {
		return &fatalError{fmt.Errorf("%w: idle: %w", ErrProcessor, err)}
	}
	return nil
}
