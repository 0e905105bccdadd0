package kafkalog

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Limits of a Queue: the number of bytes that may wait, the time for which a batch collects records, and its size.
const (
	queueBytes  = 4 << 20
	queueLinger = 5 * time.Millisecond
	queueBatch  = MaxRecord
)

// ErrNotWritten means that records could not be written in time.
var ErrNotWritten = errors.New("not all records have been written to the topic")

// Queue writes records to one partition of a topic, one batch after the other, in the order of Put. The topic therefore
// always contains all records up to some number. It is safe for concurrent use.
type Queue struct {
	mu      sync.Mutex
	waiting []Record
	bytes   int
	total   int64         // number of records put so far
	written int64         // number of these that all in-sync replicas have
	moved   chan struct{} // closed and replaced when written increases
	wake    chan struct{} // receives when a record waits
}

// NewQueue returns an empty queue. It writes nothing before Run is called.
func NewQueue() *Queue {
	return &Queue{moved: make(chan struct{}), wake: make(chan struct{}, 1)}
}

// Put adds a record, and returns its number. If there is no room, it waits until stop is closed, and then returns
// ErrNotWritten.
func (q *Queue) Put(ctx context.Context, stop <-chan struct{}, r Record) (number int64, err error) {
	for {
		q.mu.Lock()
		if q.bytes < queueBytes {
			q.waiting = append(q.waiting, r)
			q.bytes += r.size()
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
			return 0, ErrNotWritten
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// Await returns once a record has been written. After stop is closed, it waits for at most patience, and then returns
// ErrNotWritten.
func (q *Queue) Await(ctx context.Context, stop <-chan struct{}, patience time.Duration, number int64) error {
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
			return ErrNotWritten
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Run writes records until ctx ends. It returns an error if the brokers permanently refuse a record.
func (q *Queue) Run(ctx context.Context, write func(context.Context, ...Record) error) error {
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

// next returns copies of the records to write next, because the writer sets their offsets. The records remain in the
// queue until they have been written.
func (q *Queue) next() []Record {
	q.mu.Lock()
	defer q.mu.Unlock()
	size, n := 0, 0
	for n < len(q.waiting) && (n == 0 || size+q.waiting[n].size() <= queueBatch) {
		size += q.waiting[n].size()
		n++
	}
	return slices.Clone(q.waiting[:n])
}

func (q *Queue) advance(batch []Record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range batch {
		q.bytes -= r.size()
	}
	q.written += int64(len(batch))
	if q.waiting = q.waiting[len(batch):]; len(q.waiting) == 0 {
		q.waiting = nil
	}
	close(q.moved)
	q.moved = make(chan struct{})
}
