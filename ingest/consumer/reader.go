package consumer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest/fetch"
	"github.com/rs/zerolog"
	"github.com/segmentio/kafka-go"
)

// pastEndLooks is the number of times in a row that the end must be before the next offset. A newly elected leader may
// be behind for a short time.
const pastEndLooks = 3

// reader reads one partition of a topic into a state that it shares with the partitions with the same number in other
// topics. Only the goroutine of run may access its fields, except progress, conn, stalled and those that partition.turn
// guards.
type reader struct {
	*partition
	topic    *topic
	log      zerolog.Logger
	intake   intake
	progress *progress
	conn     atomic.Pointer[connection] // nil while disconnected
	stalled  atomic.Bool                // whether the watchdog closed the connection

	read     int64 // next offset to read; everything before it is in the state or in the intake
	last     mark  // last message of the last record batch before read
	failures int   // consecutive failed connections
	pastEnd  int   // consecutive observations of an end before next
	larger   int   // how often the size of a response was doubled
	head     int64 // largest Kafka timestamp up to the first message of the batch, in Unix nanoseconds
	reached  int64 // largest Kafka timestamp up to the last message read

	// Guarded by the partition's turn:
	next      int64 // everything before this offset is in the state; negative until the start of the log is known
	mark      mark  // last message of the last record batch before next
	committed int64 // next offset as committed to the group
	saved     int64 // next offset of the last checkpoint
	course    course
	ended     time.Time // time up to which the partition was read to its end; valid while resting
}

func newReader(p *partition, t *topic, committed int64) *reader {
	t.metrics.gap.WithLabelValues(strconv.Itoa(int(p.id))) // start at 0, so that alerts on increases also notice the first gap
	return &reader{
		partition: p, topic: t, log: p.c.opts.Log.With().Str("topic", t.Name).Int32("partition", p.id).Logger(),
		progress: newProgress(p.c.now()), next: unknown, last: mark{offset: unknown}, mark: mark{offset: unknown},
		committed: committed, saved: unknown,
	}
}

// logStart asks the brokers for the start of the partition's log.
func (p *reader) logStart(ctx context.Context) (int64, error) {
	ends, err := p.c.source.ends(ctx, p)
	if err == nil && (len(ends) == 0 || ends[0].FirstOffset < 0) {
		err = errors.New("the brokers do not report the start of the partition")
	}
	if err != nil {
		return 0, err
	}
	return ends[0].FirstOffset, nil
}

// run reads until ctx ends. After an error, nothing may be processed or saved.
func (p *reader) run(ctx context.Context) error {
	defer p.leave()
	for ctx.Err() == nil {
		err := p.session(ctx)
		var f *fatalError
		if errors.As(err, &f) {
			p.turn.Lock()
			defer p.turn.Unlock()
			p.broken = true
			return f.err
		}
		if ctx.Err() == nil {
			p.leave()
			p.disconnected(err)
			fetch.Sleep(ctx, p.c.timing.backoff(p.failures))
		}
	}
	return nil
}

func (p *reader) disconnected(err error) {
	reason := disconnectionOf(err)
	if p.stalled.Swap(false) {
		reason = lostStalled
	}
	p.failures++
	p.topic.metrics.reconnects.WithLabelValues(string(reason)).Inc()
	msg := "lost the connection to a partition, reconnecting"
	if reason == lostPrepare {
		msg = "the schema of a record is not available yet, retrying"
	}
	p.c.outages.Warn().Err(err).Str("topic", p.topic.Name).Int32("partition", p.id).Str("reason", string(reason)).
		Int64("next", p.next).Msg(msg)
}

// cut closes the current connection, for the watchdog.
func (p *reader) cut() {
	if conn := p.conn.Load(); conn != nil {
		p.stalled.Store(true)
		(*conn).Close() // the reader gets an error
	}
}

// session reads through one connection until the connection or ctx ends.
func (p *reader) session(ctx context.Context) error {
	conn, err := p.c.source.connect(ctx, p.topic.Name, p.id)
	if err != nil {
		return fmt.Errorf("%w: %w", errDial, err)
	}
	defer conn.Close() // everything that was read remains valid
	// Otherwise, stopping would have to wait for a response of the broker.
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err := p.position(conn); err != nil {
		return err
	}
	if err := p.begin(ctx); err != nil {
		return err
	}
	p.conn.Store(&conn)
	defer p.conn.Store(nil)
	p.turn.Lock()
	p.move(course{fetching, p.reached})
	p.turn.Unlock()
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

// checkpointInTime saves a checkpoint if its interval has passed.
func (p *reader) checkpointInTime() error {
	if !p.due() {
		return nil
	}
	p.progress.busy.Store(true)
	defer p.progress.busy.Store(false)
	if err := p.checkpoint(); err != nil {
		return &fatalError{err}
	}
	return nil
}

// begin saves the first checkpoint that contains the position of the reader, and retries until this succeeds. From then
// on, a missing checkpoint means that an operator has moved it away. Reading without a checkpoint would count records
// twice after a crash.
func (p *reader) begin(ctx context.Context) error {
	for !p.isSaved() {
		if err := p.checkpoint(); err != nil {
			return &fatalError{err}
		}
		if p.isSaved() {
			break
		}
		p.leave()
		p.failures++
		if !fetch.Sleep(ctx, p.c.timing.backoff(p.failures)) {
			return ctx.Err()
		}
	}
	return nil
}

// isSaved reports whether a checkpoint contains the position of the reader.
func (p *reader) isSaved() bool {
	p.turn.Lock()
	defer p.turn.Unlock()
	return p.saved != unknown
}

// start returns the first offset of a session. It is that of the last message read, to check that the message is still
// the same.
func (p *reader) start() int64 {
	if p.mark.offset != unknown {
		return p.mark.offset
	}
	return p.next
}

// position compares the next offset with the start and end of the partition.
func (p *reader) position(conn connection) error {
	if err := conn.SetDeadline(time.Now().Add(fetch.OperationTimeout)); err != nil {
		return err
	}
	var first, end int64
	err := fetch.Shielded(func() (err error) {
		first, end, err = conn.ReadOffsets()
		return err
	})
	if err != nil {
		return fmt.Errorf("query the offsets of the partition: %w", err)
	}
	p.progress.first.Store(first)
	p.progress.highWater.Store(end)
	p.progress.end.Store(unknown) // until the first response reports the readable end
	if p.next > end {
		return p.beyond(first, end)
	}
	p.pastEnd = 0
	p.turn.Lock()
	defer p.turn.Unlock()
	switch {
	case p.next < 0:
		p.setNext(first)
	case p.next < first:
		p.overtaken(first)
	}
	if p.mark.offset < first {
		p.mark.offset = unknown // the message was removed, so it cannot be compared
	}
	p.last = p.mark
	return nil
}

// beyond returns an error for a next offset past the end. Once this has been observed often enough, the error stops the
// consumer.
func (p *reader) beyond(first, end int64) error {
	p.pastEnd++
	err := fmt.Errorf("%w: the next offset is %d, but the partition has offsets %d to %d (%w); %s",
		ErrOffsetPastEnd, p.next, first, end, kafka.OffsetOutOfRange, p.c.source.startOver(p.name))
	if p.pastEnd < pastEndLooks {
		return err
	}
	return &fatalError{err}
}

// overtaken continues at the start of the log after retention has removed unread records.
func (p *reader) overtaken(first int64) {
	gap := first - p.next
	p.missed(gap)
	p.log.Error().Int64("next", p.next).Int64("log_start", first).Int64("records", gap).
		Msg("retention has removed records before they were read")
	p.setNext(first)
}

// missed counts records that were removed before they were read.
func (p *reader) missed(records int64) {
	p.topic.metrics.gap.WithLabelValues(strconv.Itoa(int(p.id))).Add(float64(records))
}

func (p *reader) setNext(next int64) {
	p.next, p.read = next, next
	p.progress.next.Store(max(next, unknown))
}
