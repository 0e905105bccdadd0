package consumer

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/fetch"
	"github.com/rs/zerolog"
	"github.com/segmentio/kafka-go"
)

// pastEndLooks is how often the end must be seen before the next offset: a newly elected leader may be behind briefly.
const pastEndLooks = 3

// partition reads one partition during one generation. Everything but progress, conn and stalled belongs to the
// goroutine of run.
//
// It is large because one goroutine owns all that is known of the partition, so that nothing of it needs a lock.
type partition struct {
	c          *Consumer
	generation *kafka.Generation
	id         int32
	name       string // of the checkpoint
	log        zerolog.Logger
	store      ingest.CheckpointStore
	state      ingest.State
	intake     intake
	progress   *progress
	conn       atomic.Pointer[fetch.Leader] // nil without a connection
	stalled    atomic.Bool                  // the watchdog cut the connection

	next      int64 // everything before it is in the state; negative before the log's start is known
	read      int64 // everything before it is in the state or in the intake
	mark      mark  // the message before read
	committed int64 // next offset as committed to the group
	saved     int64 // next offset of the last checkpoint
	tried     time.Time
	failures  int // failed connections, or openings of the store, in a row
	pastEnd   int // observations in a row of an end before next

	larger int // how often the size of an answer was doubled

	parts int // of the checkpoint
}

func newPartition(c *Consumer, g *kafka.Generation, a kafka.PartitionAssignment) *partition {
	now := c.board.now()
	c.metrics.gap.WithLabelValues(strconv.Itoa(a.ID)) // from 0, else an alert on its increase would miss the first gap
	return &partition{
		c: c, generation: g, id: int32(a.ID), name: PartitionCheckpoint(c.cfg.Topic, int32(a.ID)),
		log:      c.opts.Log.With().Str("topic", c.cfg.Topic).Int("partition", a.ID).Logger(),
		progress: newProgress(now), next: unknown, mark: mark{offset: unknown}, committed: a.Offset, saved: unknown, tried: now,
	}
}

// run reads the partition until ctx ends, over as many connections as it takes. After an error it must not be read on.
func (p *partition) run(ctx context.Context) error {
	defer p.c.board.remove(p.id)
	if ctx.Err() != nil {
		return nil
	}
	return p.consume(ctx)
}

// open opens the store, however long that takes, unless ctx ends first. The only error is ErrFenced.
func (p *partition) open(ctx context.Context) error {
	for ctx.Err() == nil {
		store, err := p.c.opts.Stores.Open(ctx, p.c.cfg.Topic, p.id, func() error { return p.own(ctx) })
		switch {
		case err == nil:
			p.store, p.failures = store, 0
			return nil
		case errors.Is(err, ingest.ErrFenced):
			return err
		}
		p.failures++
		p.c.board.leave(fmt.Sprintf("opening the checkpoints of partition %d: %v", p.id, err))
		p.c.outages.Warn().Err(err).Str("topic", p.c.cfg.Topic).Int32("partition", p.id).
			Msg("opening the checkpoints of a partition failed, trying again")
		fetch.Sleep(ctx, p.c.timing.backoff(p.failures))
	}
	return nil
}

// own proves that the partition is still this member's: brokers refuse commits of a generation once the next one has
// begun.
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

// logStart asks the brokers for the start of the partition's log.
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

// assign creates the state.
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

// consume reads records into the state.
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
			fetch.Sleep(ctx, p.c.timing.backoff(p.failures))
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
		Int64("next", p.next).Msg("lost the connection to a partition, connecting again")
}

// cut closes the current connection. The watchdog calls it.
func (p *partition) cut() {
	if conn := p.conn.Load(); conn != nil {
		p.stalled.Store(true)
		conn.Close() // the reader sees that it is closed
	}
}

// session reads over one connection until it or ctx ends.
func (p *partition) session(ctx context.Context) error {
	conn, err := p.c.network.Leader(ctx, p.c.cfg.Brokers, p.c.cfg.Topic, int(p.id))
	if err != nil {
		return fmt.Errorf("%w: %w", errDial, err)
	}
	defer conn.Close() // an error on close loses nothing that was read
	// Otherwise stopping would have to wait until the broker answers that there is nothing new.
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
		if err := p.checkpointInTime(); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// checkpointInTime saves a checkpoint if one is due by its interval.
func (p *partition) checkpointInTime() error {
	if p.c.board.now().Sub(p.tried) < p.c.opts.CheckpointEvery {
		return nil
	}
	if err := p.checkpoint(); err != nil {
		return &fatalError{err}
	}
	return nil
}

// begin saves the first checkpoint of a partition, and retries until that succeeds. From then on, a missing checkpoint
// means that an operator has moved it away. Reading without
// one would count records again after a crash.
func (p *partition) begin(ctx context.Context) error {
	for p.saved == unknown {
		if err := p.checkpoint(); err != nil {
			return &fatalError{err}
		}
		if p.saved != unknown {
			break
		}
		p.failures++
		if !fetch.Sleep(ctx, p.c.timing.backoff(p.failures)) {
			return ctx.Err()
		}
	}
	return nil
}

// start returns the offset at which a session begins: that of the last message read, to check that it is still the
// same.
func (p *partition) start() int64 {
	if p.mark.offset != unknown {
		return p.mark.offset
	}
	return p.next
}

// position compares the next offset with the bounds of the partition.
func (p *partition) position(conn *fetch.Leader) error {
	if err := conn.SetDeadline(time.Now().Add(fetch.OperationTimeout)); err != nil {
		return err
	}
	var first, end int64
	err := fetch.Shielded(func() (err error) {
		first, end, err = conn.ReadOffsets()
		return err
	})
	if err != nil {
		return fmt.Errorf("asking for the ends of the partition: %w", err)
	}
	p.progress.first.Store(first)
	p.progress.highWater.Store(end)
	p.progress.end.Store(unknown) // until the first answer says how much can be read
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

// beyond returns the error for a next offset past the end. Once that is certain, it stops the consumer.
func (p *partition) beyond(first, end int64) error {
	p.pastEnd++
	err := fmt.Errorf("%w: next is %d, and the partition holds %d to %d (%w); move its checkpoint %s away and reset the "+
		"offset of the group %s to read it from there on", ErrOffsetPastEnd, p.next, first, end, kafka.OffsetOutOfRange, p.name, p.c.cfg.Group)
	if p.pastEnd < pastEndLooks {
		return err
	}
	return &fatalError{err}
}

// overtaken continues at the start of the log, after retention has removed unread records.
func (p *partition) overtaken(first int64) {
	gap := first - p.next
	p.missed(gap)
	p.log.Error().Int64("next", p.next).Int64("log_start", first).Int64("records", gap).
		Msg("retention has removed records before they were read")
	p.setNext(first)
}

// missed counts records that were removed before they were read.
func (p *partition) missed(records int64) {
	p.c.metrics.gap.WithLabelValues(strconv.Itoa(int(p.id))).Add(float64(records))
}

func (p *partition) setNext(next int64) {
	p.next, p.read = next, next
	p.progress.next.Store(max(next, unknown))
}

// guarded turns a panic of the state into an error that stops the consumer in order: other partitions stop, the stack
// trace is logged, and nothing is saved.
func (p *partition) guarded(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			p.log.Error().Any("panic", r).Str("stack", string(debug.Stack())).Msg("the processor panicked")
			err = fmt.Errorf("%w: panic: %v", ErrProcessor, r)
		}
	}()
	return f()
}
