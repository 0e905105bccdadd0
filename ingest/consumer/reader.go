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

// pastEndLooks is how often the end must be seen before the next offset: a newly elected leader may be behind briefly.
const pastEndLooks = 3

// reader reads one partition of a topic into the state that it shares with the partitions of the other topics of the
// same number. Everything but progress, conn, stalled and what partition.turn guards belongs to the goroutine of run.
type reader struct {
	*partition
	topic    *topic
	log      zerolog.Logger
	intake   intake
	progress *progress
	conn     atomic.Pointer[connection] // nil without a connection
	stalled  atomic.Bool                // the watchdog cut the connection

	read     int64 // everything before it is in the state or in the intake
	last     mark  // the message before read
	failures int   // failed connections in a row
	pastEnd  int   // observations in a row of an end before next
	larger   int   // how often the size of an answer was doubled
	head     int64 // largest Kafka time up to the first message of the batch, in Unix nanoseconds
	reached  int64 // largest Kafka time up to the last message read

	// Guarded by the turn of the partition:
	next      int64 // everything before it is in the state; negative before the log's start is known
	mark      mark  // the message before next
	committed int64 // next offset as committed to the group
	saved     int64 // next offset of the last checkpoint
	course    course
	ended     time.Time // up to when it was read to its end; valid while it rests
}

func newReader(p *partition, t *topic, committed int64) *reader {
	t.metrics.gap.WithLabelValues(strconv.Itoa(int(p.id))) // from 0, else an alert on its increase would miss the first gap
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

// run reads until ctx ends. Nothing may be processed or saved after an error.
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

// cut closes the current connection. The watchdog calls it.
func (p *reader) cut() {
	if conn := p.conn.Load(); conn != nil {
		p.stalled.Store(true)
		(*conn).Close() // the reader sees that it is closed
	}
}

// session reads over one connection until it or ctx ends.
func (p *reader) session(ctx context.Context) error {
	conn, err := p.c.source.connect(ctx, p.topic.Name, p.id)
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

// checkpointInTime saves a checkpoint if one is due by its interval.
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

// begin saves the first checkpoint that holds the position of the reader, and retries until that succeeds. From then
// on, a missing checkpoint means that an operator has moved it away. Reading without one would count records again
// after a crash.
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

// isSaved reports whether a checkpoint holds the position of the reader.
func (p *reader) isSaved() bool {
	p.turn.Lock()
	defer p.turn.Unlock()
	return p.saved != unknown
}

// start returns the offset at which a session begins: that of the last message read, to check that it is still the
// same.
func (p *reader) start() int64 {
	if p.mark.offset != unknown {
		return p.mark.offset
	}
	return p.next
}

// position compares the next offset with the bounds of the partition.
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
		return fmt.Errorf("querying the offsets of the partition: %w", err)
	}
	p.progress.first.Store(first)
	p.progress.highWater.Store(end)
	p.progress.end.Store(unknown) // until the first answer says how much can be read
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
		p.mark.offset = unknown // it is gone, and cannot be compared
	}
	p.last = p.mark
	return nil
}

// beyond returns the error for a next offset past the end. Once that is certain, it stops the consumer.
func (p *reader) beyond(first, end int64) error {
	p.pastEnd++
	err := fmt.Errorf("%w: the next offset is %d, but the partition has offsets %d to %d (%w); %s",
		ErrOffsetPastEnd, p.next, first, end, kafka.OffsetOutOfRange, p.c.source.startOver(p.name))
	if p.pastEnd < pastEndLooks {
		return err
	}
	return &fatalError{err}
}

// overtaken continues at the start of the log, after retention has removed unread records.
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
