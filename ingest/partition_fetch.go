package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"
)

const (
	// firstBuffer is the memory for a message to begin with. It grows to the largest message seen.
	firstBuffer = 64 << 10
	// fetchMessages is how many messages of the largest size one answer of the broker may hold.
	fetchMessages = 4
	// maxBarren is how many answers in a row may hold nothing new before an offset is passed over. Each asks for twice
	// as much as the one before.
	maxBarren = 5
	// maxFetch is the most to ask for.
	maxFetch = 1 << 30
)

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
		if p.intake.full() {
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
	if err := p.intake.add(value, Position{Partition: p.id, Offset: offset}); err != nil {
		return &fatalError{err}
	}
	p.read = offset + 1
	p.mark = mark{offset: offset, sum: castagnoli(value)}
	return nil
}

// flush hands the batch to the state. What it returns ends the reading of the partition.
func (p *partition) flush(ctx context.Context, conn *kafka.Conn) error {
	if !p.intake.empty() {
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
	if err := p.guarded(func() error { return p.intake.flush(ctx) }); err != nil {
		return &fatalError{fmt.Errorf("%w: offsets %d to %d: %w", ErrProcessor, p.next, p.read-1, err)}
	}
	return nil
}

// idle says that the partition has been read to its end of when the broker was asked. Since then much may have been
// written: the process may have been stopped meanwhile, or the processor busy.
func (p *partition) idle(ctx context.Context, asked time.Time) error {
	ctx = context.WithoutCancel(ctx)
	if err := p.guarded(func() error { return p.state.Idle(ctx, asked) }); err != nil {
		return &fatalError{fmt.Errorf("%w: idle: %w", ErrProcessor, err)}
	}
	return nil
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
