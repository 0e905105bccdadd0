package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"github.com/segmentio/kafka-go"
)

const (
	// flushEvents is how many events are gathered for the processor.
	flushEvents = 256
	// keptEvents is how many events are kept for reuse: one message may hold many thousand, and the next ones hold one.
	keptEvents = 4096
	// firstBuffer is the memory for a message to begin with. It grows to the largest message seen.
	firstBuffer = 64 << 10
	// fetchMessages is how many messages of the largest size one answer of the broker may hold.
	fetchMessages = 4
	// pastEndLooks is how often the end must be seen before the next offset: a leader just elected may be behind for a
	// moment.
	pastEndLooks = 3
	// maxBarren is how many answers in a row may hold nothing new before an offset is passed over. Each asks for twice
	// as much as the one before.
	maxBarren = 5
	// maxFetch is the most to ask for.
	maxFetch = 1 << 30
)

// disconnection says why a connection to a partition ended. It is the label `reason` of the metric.
type disconnection string

const (
	lostDial       disconnection = "dial"                // no connection could be made
	lostNotLeader  disconnection = "not_leader"          // the leader is another broker now
	lostOutOfRange disconnection = "offset_out_of_range" // retention has overtaken, or the end is before the next offset
	lostConnection disconnection = "connection"          // it broke
	lostTimeout    disconnection = "timeout"             // no answer in time
	lostPanic      disconnection = "panic"               // kafka-go panicked, as on a damaged record batch
	lostStalled    disconnection = "stalled"             // the watchdog cut it
	lostBroker     disconnection = "broker_error"        // the broker refused for another reason
	lostMalformed  disconnection = "malformed"           // an answer that could not be read
)

func disconnections() []disconnection {
	return []disconnection{
		lostDial, lostNotLeader, lostOutOfRange, lostConnection, lostTimeout, lostPanic, lostStalled, lostBroker, lostMalformed,
	}
}

var (
	errDial     = errors.New("connecting failed")
	errPanicked = errors.New("kafka-go panicked")
)

func disconnectionOf(err error) disconnection {
	var broker kafka.Error
	var network net.Error
	switch {
	case errors.Is(err, errDial):
		return lostDial
	case errors.Is(err, errPanicked):
		return lostPanic
	case errors.Is(err, kafka.OffsetOutOfRange):
		return lostOutOfRange
	case errors.Is(err, kafka.NotLeaderForPartition), errors.Is(err, kafka.LeaderNotAvailable), errors.Is(err, kafka.FencedLeaderEpoch):
		return lostNotLeader
	case errors.As(err, &broker):
		return lostBroker
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return lostTimeout
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), errors.As(err, &network):
		return lostConnection
	}
	return lostMalformed
}

// partition reads one partition during one generation. Everything but progress, conn and stalled belongs to the
// goroutine of run.
type partition struct {
	c          *Consumer
	generation *kafka.Generation
	id         int32
	name       string // of the checkpoint
	log        zerolog.Logger
	store      CheckpointStore
	processor  Processor
	decoder    *Decoder
	progress   *progress
	conn       atomic.Pointer[kafka.Conn] // nil while there is none
	stalled    atomic.Bool                // the watchdog cut the connection

	next      int64 // everything before it is in the processor; negative before the log's start is known
	read      int64 // everything before it is in the processor or in batch
	mark      mark  // the message before read
	committed int64 // next offset that the group knows
	saved     int64 // next offset of the last checkpoint
	tried     time.Time
	failures  int // connections, or openings of the store, in a row that came to nothing
	pastEnd   int // looks in a row that found the end before next

	barrenFetches int // in a row

	batch  []Event
	buffer []byte       // of one message
	whole  bool         // the next message must be read as a whole, as it did not fit the buffer
	image  bytes.Buffer // of the checkpoint
	refuse func(*RecordError, []byte)
}

func newPartition(c *Consumer, g *kafka.Generation, a kafka.PartitionAssignment) *partition {
	now := c.board.now()
	p := &partition{
		c: c, generation: g, id: int32(a.ID), name: PartitionCheckpoint(c.cfg.Topic, int32(a.ID)),
		log:     c.opts.Log.With().Str("topic", c.cfg.Topic).Int("partition", a.ID).Logger(),
		decoder: NewDecoder(int(c.cfg.MaxMessage)), progress: newProgress(now),
		next: unknown, mark: mark{offset: unknown}, committed: a.Offset, saved: unknown, tried: now,
		buffer: make([]byte, min(firstBuffer, int(c.cfg.MaxMessage))),
	}
	p.refuse = p.refused
	return p
}

// run reads the partition until ctx ends, over as many connections as it takes.
func (p *partition) run(ctx context.Context) {
	defer p.c.board.remove(p.id)
	if ctx.Err() != nil {
		return
	}
	if err := p.consume(ctx); err != nil {
		p.c.fail(fmt.Errorf("partition %d of %s: %w", p.id, p.c.cfg.Topic, err))
	}
}

// open gets the store, however long that takes, unless ctx ends before.
func (p *partition) open(ctx context.Context) {
	for ctx.Err() == nil {
		store, err := p.c.opts.Stores.Open(ctx, p.c.cfg.Topic, p.id, func() error { return p.own(ctx) })
		if err == nil {
			p.store, p.failures = store, 0
			return
		}
		p.failures++
		p.c.board.leave(fmt.Sprintf("opening the checkpoints of partition %d: %v", p.id, err))
		p.c.outages.Warn().Err(err).Str("topic", p.c.cfg.Topic).Int32("partition", p.id).
			Msg("Opening the checkpoints of a partition failed, trying again")
		sleep(ctx, p.backoff())
	}
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
	processor, ok := state.(Processor)
	if err == nil && !ok {
		err = fmt.Errorf("its state takes no events: %T", state)
	}
	if err != nil {
		return fmt.Errorf("partition %d of %s: %w: assigning it: %w", p.id, p.c.cfg.Topic, ErrProcessor, err)
	}
	p.processor = processor
	return nil
}

// consume feeds the processor. Its errors are those that end the consumer.
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
			sleep(ctx, p.backoff())
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

// backoff gives the time before the next connection. Its spread keeps the partitions of a broker that comes back from
// knocking all at once.
func (p *partition) backoff() time.Duration {
	d := p.c.timing.minBackoff << min(p.failures-1, 20)
	d = min(max(d, p.c.timing.minBackoff), p.c.timing.maxBackoff)
	return d/2 + rand.N(d)
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
	if p.saved == unknown {
		// From here on a partition without a checkpoint is one whose checkpoint was moved away.
		if err := p.checkpoint(); err != nil {
			return &fatalError{err}
		}
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

// fetch reads one answer of the broker to its end. Whatever ends it, the messages read whole before have been processed
// when it returns.
func (p *partition) fetch(ctx context.Context, conn *kafka.Conn, from int64) error {
	if err := p.extend(conn); err != nil {
		return err
	}
	asked := time.Now()
	batch, err := ask(conn, from, p.c.cfg.MaxMessage, p.barrenFetches, p.c.timing.maxWait)
	if err != nil {
		return err
	}
	end := batch.HighWaterMark()
	p.progress.raise(end)
	seen, err := p.drain(ctx, conn, batch)
	var f *fatalError
	if errors.As(err, &f) {
		return err
	}
	if err := p.flush(ctx, conn); err != nil {
		return err
	}
	if err != nil {
		return err // without closing the batch: after a panic its lock may be held
	}
	if err := shielded(batch.Close); err != nil && !harmless(err) {
		return fmt.Errorf("reading up to offset %d: %w", p.read, err)
	}
	switch {
	case p.next >= end: // also where there was something: a busy partition is read to its end time and again
		p.barrenFetches = 0
		return p.idle(ctx, asked)
	case seen > 0 && !p.whole && from == p.next && from < end:
		p.barren()
	default:
		p.barrenFetches = 0
	}
	return nil
}

// barren takes in an answer of which all messages stand before the next offset. Either the broker has cut it short, and
// a larger one is asked for, or compaction has removed what stood at the next offset, and it is passed over: kafka-go
// does that by itself only where the record batch is not compressed.
func (p *partition) barren() {
	if p.barrenFetches++; p.barrenFetches < maxBarren {
		return
	}
	p.barrenFetches = 0
	p.c.metrics.gap.WithLabelValues(strconv.Itoa(int(p.id))).Inc()
	p.c.outages.Warn().Str("topic", p.c.cfg.Topic).Int32("partition", p.id).Int64("next", p.next).
		Msg("Compaction has removed a record before it was read")
	p.setNext(p.next + 1)
}

// harmless tells the errors of a batch that are not errors of the connection.
func harmless(err error) bool {
	return errors.Is(err, kafka.RequestTimedOut) || errors.Is(err, io.ErrShortBuffer)
}

// extend gives the broker time for its answer. kafka-go would wait no longer than MaxWait by itself.
func (p *partition) extend(conn *kafka.Conn) error {
	return conn.SetDeadline(time.Now().Add(p.c.timing.maxWait + operationTimeout))
}

// ask sends a request for what there is from an offset on. After answers that held nothing new it asks for more.
func ask(conn *kafka.Conn, from int64, maxMessage ByteSize, barren int, maxWait time.Duration) (batch *kafka.Batch, err error) {
	defer recovered(&err)
	if _, err := conn.Seek(from, kafka.SeekAbsolute|kafka.SeekDontCheck); err != nil {
		return nil, fmt.Errorf("seeking offset %d: %w", from, err)
	}
	batch = conn.ReadBatchWith(kafka.ReadBatchConfig{
		MinBytes: 1, MaxBytes: min(fetchMessages*int(maxMessage)<<barren, maxFetch), MaxWait: maxWait,
	})
	if err := batch.Err(); err != nil {
		batch.Close() // it gives the same error
		return nil, fmt.Errorf("fetching from offset %d: %w", from, err)
	}
	return batch, nil
}

// drain takes the messages of an answer, and counts them, those before next included.
func (p *partition) drain(ctx context.Context, conn *kafka.Conn, batch *kafka.Batch) (seen int, err error) {
	for ctx.Err() == nil {
		value, offset, err := p.take(batch)
		switch {
		case errors.Is(err, io.EOF):
			p.read = max(p.read, batch.Offset()) // compaction may have removed the messages at the end of a record batch
			return seen, nil
		case errors.Is(err, kafka.RequestTimedOut):
			return seen, nil
		case errors.Is(err, io.ErrShortBuffer):
			p.whole = true
			return seen, nil
		case err != nil:
			return seen, fmt.Errorf("reading offset %d: %w", p.read, err)
		}
		seen++
		if err := p.message(value, offset); err != nil {
			return seen, err
		}
		if len(p.batch) >= flushEvents {
			if err := p.flush(ctx, conn); err != nil {
				return seen, err
			}
		}
	}
	return seen, ctx.Err()
}

// take gives the value of the next message. It is valid until the next call.
func (p *partition) take(batch *kafka.Batch) (value []byte, offset int64, err error) {
	defer recovered(&err)
	if !p.whole {
		n, err := batch.Read(p.buffer)
		return p.buffer[:n], batch.Offset() - 1, err
	}
	m, err := batch.ReadMessage()
	if err != nil {
		return nil, 0, err
	}
	p.whole = false
	if size := len(m.Value); size > len(p.buffer) && size <= int(p.c.cfg.MaxMessage) {
		p.buffer = make([]byte, size)
	}
	return m.Value, m.Offset, nil
}

// message takes in one message. A record batch is read from its head, so that some stand before the one asked for.
func (p *partition) message(value []byte, offset int64) error {
	if offset < p.read {
		if offset == p.mark.offset && castagnoli(value) != p.mark.sum {
			return &fatalError{fmt.Errorf("%w: at offset %d; move the checkpoint %s away and reset the offset of the group %s "+
				"to read the partition from there on", ErrTopicRecreated, offset, p.name, p.c.cfg.Group)}
		}
		return nil
	}
	switch classify(value, int(p.c.cfg.MaxMessage)) {
	case messageTombstone:
		p.c.metrics.tombstone.Inc()
	case messageControl:
		p.c.metrics.control.Inc()
	case messageTooLarge:
		p.refuse(&RecordError{
			Pos: Position{Partition: p.id, Offset: offset}, Reason: ReasonTooLarge, Size: int64(len(value)),
			Msg: "the message is longer than the limit of " + p.c.cfg.MaxMessage.String(),
		}, value)
	case messageTelemetry:
		p.batch = p.decoder.Decode(p.batch, value, Position{Partition: p.id, Offset: offset}, p.refuse)
	}
	p.read = offset + 1
	p.mark = mark{offset: offset, sum: castagnoli(value)}
	return nil
}

type messageKind uint8

const (
	messageTelemetry messageKind = iota
	messageTombstone
	messageControl
	messageTooLarge
)

// classify tells telemetry from the rest. The marker of a transaction has a value of version 0 and the coordinator's
// epoch, six bytes, of which no JSON begins with the first; its key, which would say so plainly, is not seen.
func classify(value []byte, limit int) messageKind {
	switch {
	case len(value) == 0:
		return messageTombstone
	case len(value) == 6 && value[0] == 0 && value[1] == 0:
		return messageControl
	case len(value) > limit:
		return messageTooLarge
	}
	return messageTelemetry
}

// refused counts a record that is no telemetry and keeps it as a dead letter.
func (p *partition) refused(e *RecordError, raw []byte) {
	m := p.c.metrics
	m.refused.Inc()
	m.deadLetters.WithLabelValues(string(e.Reason)).Inc()
	p.c.refusals.Warn().Err(e).Str("topic", p.c.cfg.Topic).Msg("Refused a record")
	letter := NewDeadLetter(p.c.cfg.Topic, e, raw, p.c.board.now())
	if err := p.c.opts.DeadLetters.Keep(context.Background(), letter); err != nil {
		p.c.lost.Add(1)
		p.c.refusals.Error().Err(err).Str("topic", p.c.cfg.Topic).Msg("Lost a dead letter")
	}
}

// flush hands the gathered events to the processor. What it returns ends the consumer.
func (p *partition) flush(ctx context.Context, conn *kafka.Conn) error {
	if len(p.batch) > 0 {
		if err := p.process(ctx); err != nil {
			return err
		}
		p.extend(conn) //nolint:errcheck // only a closed connection fails, which the next read notices
	}
	p.next = p.read
	p.progress.next.Store(max(p.next, unknown))
	return nil
}

func (p *partition) process(ctx context.Context) error {
	p.progress.busy.Store(true)
	defer p.progress.busy.Store(false)
	// A batch is finished even when the generation ends meanwhile: half of it could not be taken back.
	ctx = context.WithoutCancel(ctx)
	if err := p.guarded(func() error { return p.processor.Process(ctx, p.batch) }); err != nil {
		return &fatalError{fmt.Errorf("%w: offsets %d to %d: %w", ErrProcessor, p.next, p.read-1, err)}
	}
	p.c.metrics.accepted.Add(float64(len(p.batch)))
	if ts := lastTime(p.batch); ts != 0 {
		p.progress.eventTS.Store(ts)
	}
	p.decoder.Reset()
	if p.batch = p.batch[:0]; cap(p.batch) > keptEvents {
		p.batch = nil
	}
	return nil
}

func lastTime(batch []Event) int64 {
	for i := len(batch) - 1; i >= 0; i-- {
		if batch[i].TS != 0 {
			return batch[i].TS
		}
	}
	return 0
}

// idle says that the partition has been read to its end of when the broker was asked. Since then much may have been
// written: the process may have been stopped meanwhile, or the processor busy.
func (p *partition) idle(ctx context.Context, asked time.Time) error {
	ctx = context.WithoutCancel(ctx)
	if err := p.guarded(func() error { return p.processor.Idle(ctx, asked) }); err != nil {
		return &fatalError{fmt.Errorf("%w: idle: %w", ErrProcessor, err)}
	}
	return nil
}

// guarded makes a panic of the processor an error, which ends the consumer in order: other partitions are told, the
// trace is logged, nothing is saved.
func (p *partition) guarded(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			p.log.Error().Any("panic", r).Str("stack", string(debug.Stack())).Msg("The processor panicked")
			err = fmt.Errorf("%w: panic: %v", ErrProcessor, r)
		}
	}()
	return f()
}

// shielded makes a panic of kafka-go an error of the connection.
func shielded(f func() error) (err error) {
	defer recovered(&err)
	return f()
}

// recovered is deferred around calls of kafka-go, which panics on some damaged record batches.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%w: %v", errPanicked, r)
	}
}
