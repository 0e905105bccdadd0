package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// How records are written to a partition of the units topic: how many bytes may wait, for how long more are gathered for a
// batch, and how large that may be.
const (
	queueBytes  = 4 << 20
	queueLinger = 5 * time.Millisecond
	queueBatch  = ingest.MaxLogRecord
)

// errNotWritten says that records could not be handed to the units topic in the time that there was.
var errNotWritten = errors.New("not all units have been written to the units topic")

// unitQueue writes records to one partition of the units topic, in the order in which they were put, one batch after the
// other. What is in the topic is always all up to some record. Its methods may be called by several goroutines.
type unitQueue struct {
	mu      sync.Mutex
	waiting []ingest.LogRecord
	bytes   int
	total   int64         // records put so far
	written int64         // of them, those that all in-sync replicas have
	moved   chan struct{} // closed, and made anew, when written grows
	wake    chan struct{} // receives when something waits
}

func newUnitQueue() *unitQueue {
	return &unitQueue{moved: make(chan struct{}), wake: make(chan struct{}, 1)}
}

// put adds a record and gives its number. It waits for room until stop is closed: then it fails with errNotWritten.
func (q *unitQueue) put(ctx context.Context, stop <-chan struct{}, r ingest.LogRecord) (number int64, err error) {
	for {
		q.mu.Lock()
		if q.bytes < queueBytes {
			q.waiting = append(q.waiting, r)
			q.bytes += len(r.Value)
			q.total++
			number = q.total
			q.mu.Unlock()
			select {
			case q.wake <- struct{}{}:
			default:
			}
			return number, nil
		}
		moved := q.moved
		q.mu.Unlock()
		select {
		case <-moved:
		case <-stop:
			return 0, errNotWritten
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// await returns when a record is written. Once stop is closed it waits for some more seconds, then it fails with
// errNotWritten.
func (q *unitQueue) await(ctx context.Context, stop <-chan struct{}, patience time.Duration, number int64) error {
	var late <-chan time.Time
	for {
		q.mu.Lock()
		written, moved := q.written, q.moved
		q.mu.Unlock()
		if written >= number {
			return nil
		}
		select {
		case <-moved:
		case <-stop:
			stop, late = nil, time.After(patience)
		case <-late:
			return errNotWritten
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// run writes until ctx ends. What it returns is why the brokers refuse a record for good.
func (q *unitQueue) run(ctx context.Context, write func(context.Context, ...ingest.LogRecord) error) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-q.wake:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(queueLinger):
		}
		for batch := q.next(); len(batch) > 0; batch = q.next() {
			if err := write(ctx, batch...); err != nil {
				if ctx.Err() != nil {
					return nil
				}
				return err
			}
			q.advance(batch)
		}
	}
}

// next gives the records that are written next. They stay in the queue until they are; these are copies, as the writer sets
// their offsets.
func (q *unitQueue) next() []ingest.LogRecord {
	q.mu.Lock()
	defer q.mu.Unlock()
	size, n := 0, 0
	for n < len(q.waiting) && (n == 0 || size+len(q.waiting[n].Value) <= queueBatch) {
		size += len(q.waiting[n].Value)
		n++
	}
	return slices.Clone(q.waiting[:n])
}

func (q *unitQueue) advance(batch []ingest.LogRecord) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range batch {
		q.bytes -= len(r.Value)
	}
	q.written += int64(len(batch))
	if q.waiting = q.waiting[len(batch):]; len(q.waiting) == 0 {
		q.waiting = nil
	}
	close(q.moved)
	q.moved = make(chan struct{})
}
