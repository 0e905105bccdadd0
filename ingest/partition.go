package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"github.com/segmentio/kafka-go"
)

// pastEndLooks is how often the end must be seen before the next offset: a leader just elected may be behind for a moment.
const pastEndLooks = 3

// partition reads one partition during one generation. Everything but progress, conn and stalled belongs to the
// goroutine of run.
type partition struct {
	c          *Consumer
	generation *kafka.Generation
	id         int32
	name       string // of the checkpoint
	log        zerolog.Logger
	store      CheckpointStore
	state      State
	intake     intake
	progress   *progress
	conn       atomic.Pointer[kafka.Conn] // nil while there is none
	stalled    atomic.Bool                // the watchdog cut the connection

	next      int64 // everything before it is in the state; negative before the log's start is known
	read      int64 // everything before it is in the state or in the intake
	mark      mark  // the message before read
	committed int64 // next offset that the group knows
	saved     int64 // next offset of the last checkpoint
	tried     time.Time
	failures  int // connections, or openings of the store, in a row that came to nothing
	pastEnd   int // looks in a row that found the end before next

	barrenFetches int // in a row

	buffer []byte       // of one message
	whole  bool         // the next message must be read as a whole, as it did not fit the buffer
	image  bytes.Buffer // of the checkpoint
}

func newPartition(c *Consumer, g *kafka.Generation, a kafka.PartitionAssignment) *partition {
	now := c.board.now()
	c.metrics.gap.WithLabelValues(strconv.Itoa(a.ID)) // from 0 on, or an alert on its increase would miss the first gap
	return &partition{
		c: c, generation: g, id: int32(a.ID), name: PartitionCheckpoint(c.cfg.Topic, int32(a.ID)),
		log:      c.opts.Log.With().Str("topic", c.cfg.Topic).Int("partition", a.ID).Logger(),
		progress: newProgress(now), next: unknown, mark: mark{offset: unknown}, committed: a.Offset, saved: unknown, tried: now,
		buffer: make([]byte, min(firstBuffer, int(c.cfg.MaxMessage))),
	}
}

// run reads the partition until ctx ends, over as many connections as it takes. Its errors are those for which it may not
// go on.
func (p *partition) run(ctx context.Context) error {
	defer p.c.board.remove(p.id)
	if ctx.Err() != nil {
		return nil
	}
	return p.consume(ctx)
}

// open gets the store, however long that takes, unless ctx ends before. The only error is ErrFenced.
func (p *partition) open(ctx context.Context) error {
	for ctx.Err() == nil {
		store, err := p.c.opts.Stores.Open(ctx, p.c.cfg.Topic, p.id, func() error { return p.own(ctx) })
		switch {
		case err == nil:
			p.store, p.failures = store, 0
			return nil
		case errors.Is(err, ErrFenced):
			return err
		}
		p.failures++
		p.c.board.leave(fmt.Sprintf("opening the checkpoints of partition %d: %v", p.id, err))
		p.c.outages.Warn().Err(err).Str("topic", p.c.cfg.Topic).Int32("partition", p.id).
			Msg("Opening the checkpoints of a partition failed, trying again")
		sleep(ctx, p.c.timing.backoff(p.failures))
	}
	return nil
}

// own proves that the partition is this member's: brokers refuse to commit in a generation once another one has begun.
func (p *partition) own(ctx context.Context) error {
	next := p.committed
	if next < 0 {
		start, err := p.logStart(ctx)
		if err != nil {
			return err
		}
		next = start
	}
	err := p.generation.CommitOffsets(map[string]map[int]int64{p.c.cfg.Topic: {int(p.id): next}})
	if err != nil {
		return fmt.Errorf("committing, to prove that the partition is still assigned: %w", err)
	}
	return nil
}

// logStart asks where the log of the partition begins.
func (p *partition) logStart(ctx context.Context) (int64, error) {
	ends, err := p.c.ends(ctx, p)
	if err == nil && (len(ends) == 0 || ends[0].FirstOffset < 0) {
		err = errors.New("the brokers do not say where the partition begins")
	}
	if err != nil {
		return 0, err
	}
	return ends[0].FirstOffset, nil
}

// assign makes the state.
func (p *partition) assign() error {
	state, err := p.c.opts.Handler.Assign(p.id, p.store)
	if err == nil {
		p.state = state
		p.intake, err = newIntake(p)
	}
	if err != nil {
		return fmt.Errorf("%w: assigning the partition: %w", ErrProcessor, err)
	}
	return nil
}

// consume feeds the state.
func (p *partition) consume(ctx context.Context) error {
	if err := p.restore(); err != nil {
		return err
	}
	for ctx.Err() == nil {
		err := p.session(ctx)
		var f *fatalError
		if errors.As(err, &f) {
			return f.err
		}
		if ctx.Err() == nil {
			p.disconnected(err)
			sleep(ctx, p.c.timing.backoff(p.failures))
		}
	}
	if p.c.failed.Load() {
		return nil
	}
	return p.checkpoint()
}

func (p *partition) disconnected(err error) {
	reason := disconnectionOf(err)
	if p.stalled.Swap(false) {
		reason = lostStalled
	}
	p.failures++
	p.c.metrics.reconnects.WithLabelValues(string(reason)).Inc()
	p.c.outages.Warn().Err(err).Str("topic", p.c.cfg.Topic).Int32("partition", p.id).Str("reason", string(reason)).
		Int64("next", p.next).Msg("Lost the connection to a partition, connecting again")
}

// cut ends the connection there is. It is called by the watchdog.
func (p *partition) cut() {
	if conn := p.conn.Load(); conn != nil {
		p.stalled.Store(true)
		conn.Close() // the reader sees that it is closed
	}
}

// session reads over one connection until it ends or ctx does.
func (p *partition) session(ctx context.Context) error {
	conn, err := p.c.network.partition(ctx, p.c.cfg.Brokers, p.c.cfg.Topic, int(p.id))
	if err != nil {
		return fmt.Errorf("%w: %w", errDial, err)
	}
	defer conn.Close() // what was read of it is all that matters
	// Without it, stopping would have to wait until the broker answers that there is nothing new.
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err := p.position(conn); err != nil {
		return err
	}
	if err := p.begin(ctx); err != nil {
		return err
	}
	p.conn.Store(conn)
	defer p.conn.Store(nil)
	for from := p.start(); ; from = p.next {
		if err := p.fetch(ctx, conn, from); err != nil {
			return err
		}
		p.failures = 0
		if p.c.board.now().Sub(p.tried) >= p.c.opts.CheckpointEvery {
			if err := p.checkpoint(); err != nil {
				return &fatalError{err}
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// begin saves a partition that has no checkpoint, and tries until that works: from then on a partition without one is one
// whose checkpoint was moved away, and what is counted of one that is read is counted again after a crash.
func (p *partition) begin(ctx context.Context) error {
	for p.saved == unknown {
		if err := p.checkpoint(); err != nil {
			return &fatalError{err}
		}
		if p.saved != unknown {
			break
		}
		p.failures++
		if !sleep(ctx, p.c.timing.backoff(p.failures)) {
			return ctx.Err()
		}
	}
	return nil
}

// start gives the offset to begin a session with: that of the last message read, to see whether it is still the same.
func (p *partition) start() int64 {
	if p.mark.offset != unknown {
		return p.mark.offset
	}
	return p.next
}

// position holds the next offset against what there is of the partition.
func (p *partition) position(conn *kafka.Conn) error {
	if err := conn.SetDeadline(time.Now().Add(operationTimeout)); err != nil {
		return err
	}
	var first, end int64
	err := shielded(func() (err error) {
		first, end, err = conn.ReadOffsets()
		return err
	})
	if err != nil {
		return fmt.Errorf("asking for the ends of the partition: %w", err)
	}
	p.progress.first.Store(first)
	p.progress.end.Store(end)
	if p.next > end {
		return p.beyond(first, end)
	}
	p.pastEnd = 0
	switch {
	case p.next < 0:
		p.setNext(first)
	case p.next < first:
		p.overtaken(first)
	}
	if p.mark.offset < first {
		p.mark.offset = unknown // it is gone, and cannot be compared
	}
	return nil
}

// beyond gives the error for a next offset that is behind the end, which ends the consumer once it is certain.
func (p *partition) beyond(first, end int64) error {
	p.pastEnd++
	err := fmt.Errorf("%w: next is %d, and the partition holds %d to %d (%w); move its checkpoint %s away and reset the "+
		"offset of the group %s to read it from there on", ErrOffsetPastEnd, p.next, first, end, kafka.OffsetOutOfRange, p.name, p.c.cfg.Group)
	if p.pastEnd < pastEndLooks {
		return err
	}
	return &fatalError{err}
}

// overtaken goes on at the start of the log, where retention has removed records that were not read.
func (p *partition) overtaken(first int64) {
	gap := first - p.next
	p.c.metrics.gap.WithLabelValues(strconv.Itoa(int(p.id))).Add(float64(gap))
	p.log.Error().Int64("next", p.next).Int64("log_start", first).Int64("records", gap).
		Msg("Retention has removed records before they were read")
	p.setNext(first)
}

func (p *partition) setNext(next int64) {
	p.next, p.read = next, next
	p.progress.next.Store(max(next, unknown))
}

// guarded makes a panic of the state an error, which ends the consumer in order: other partitions are told, the trace is
// logged, nothing is saved.
func (p *partition) guarded(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			p.log.Error().Any("panic", r).Str("stack", string(debug.Stack())).Msg("The processor panicked")
			err = fmt.Errorf("%w: panic: %v", ErrProcessor, r)
		}
	}()
	return f()
}
