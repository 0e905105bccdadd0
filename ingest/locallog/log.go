// Package locallog stores records in a log on this machine. The log consists of segments, which are files in a
// directory, in append order. A record is durable before its append returns. It is not removed before the reader has
// committed it twice.
package locallog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rewardwatch/rewardwatch/ingest/datadir"
	"github.com/rs/zerolog"
)

const (
	// MaxAppend is the maximum number of bytes in one append, including a few bytes per record.
	MaxAppend = 20 << 20
	// groupBytes is the maximum number of bytes in appends that are written together.
	groupBytes = 4 << 20
	// maxQueued is the maximum number of bytes that wait to be written.
	maxQueued = 64 << 20
	// tidyEvery is the interval between searches for segments that are too old.
	tidyEvery = time.Minute
	// segmentAge is the maximum time for which a segment is written to. It ensures that a log with few records also has
	// segments that become too old.
	segmentAge = 24 * time.Hour
)

// The errors of Append, for errors.Is.
var (
	ErrFull     = errors.New("the log is full of unjudged records")
	ErrQueue    = errors.New("too many records are waiting to be written to the log")
	ErrTooLarge = errors.New("the records exceed the size limit of one append")
	ErrClosed   = errors.New("the log is closed")
)

// Options configures a log. Name is the value of the label log of its metrics.
type Options struct {
	Name        string
	Directory   string        // created if missing; must not be open in another process
	MaxSize     int64         // maximum size of all segments in bytes
	SegmentSize int64         // size in bytes at which the next segment is started; a single write may exceed it
	MaxAge      time.Duration // time after the last record of a segment when the segment is removed; 0 for no limit
	Log         zerolog.Logger
	Registerer  prometheus.Registerer

	disk disk             // replaced in tests
	now  func() time.Time // replaced in tests
}

// Log is a log that this process appends to. Its methods are safe for concurrent use.
type Log struct {
	o       Options
	lock    *os.File
	metrics *metrics

	mu        sync.Mutex
	segments  []segment // oldest first; the last one is written to
	size      int64     // of all segments in bytes
	next      int64     // offset of the next record; all earlier ones are durable
	released  int64     // earlier offsets may be removed, because the last two commits include them
	committed int64     // negative before the first commit
	grown     chan struct{}
	queue     []*request
	queued    int64 // bytes
	closed    bool

	committing sync.Mutex // held while the commit file is written

	wake chan struct{} // signals that the queue has requests, that records were released, or that the log was closed
	done chan struct{} // closed when run has returned
	writer
}

// request is one append.
type request struct {
	records int
	body    []byte
	done    chan result // receives one result
}

type result struct {
	first int64
	err   error
}

// Open opens a log. It creates the log if the directory has none. It removes an incomplete write at the end, which no
// append has confirmed. The error is ErrDamaged if intact records follow a damaged one, and datadir.ErrLocked while
// another process has the log open.
func Open(o Options) (*Log, error) {
	if o.disk == nil {
		o.disk = osDisk{}
	}
	if o.now == nil {
		o.now = time.Now
	}
	if err := os.MkdirAll(o.Directory, 0o750); err != nil {
		return nil, fmt.Errorf("create the local log directory: %w", err)
	}
	held, err := datadir.Lock(o.Directory)
	if err != nil {
		return nil, fmt.Errorf("open the local log: %w", err)
	}
	l := &Log{
		o: o, lock: held,
		grown: make(chan struct{}), wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	if err := l.restore(); err != nil {
		return nil, errors.Join(fmt.Errorf("open the local log: %w", err), l.close(), held.Close())
	}
	l.metrics = newMetrics(l)
	go l.run()
	return l, nil
}

// restore finds the end of the log, and removes an incomplete write.
func (l *Log) restore() (err error) {
	if l.committed, err = loadCommit(l.CommitFile()); err != nil {
		return err
	}
	if l.segments, err = list(l.o.Directory); err != nil {
		return err
	}
	for _, s := range l.segments {
		l.size += s.size
	}
	if len(l.segments) == 0 {
		return nil // the first append starts the first segment
	}
	l.released = l.segments[0].first
	last := &l.segments[len(l.segments)-1]
	found, err := last.scan()
	if err != nil {
		return err
	}
	if found.torn != nil {
		if err := l.cut(last, found); err != nil {
			return err
		}
	}
	l.next, l.time, l.begun = found.next, found.time, found.begun
	// Data that was written but not confirmed must be durable before it is read.
	if l.active, err = l.o.disk.open(last.path); err != nil {
		return err
	}
	return errors.Join(l.active.Sync(), datadir.Sync(l.o.Directory))
}

// cut removes the incomplete write at the end of a segment.
func (l *Log) cut(last *segment, found scanned) error {
	if err := last.unfinished(found); err != nil {
		return err
	}
	l.o.Log.Warn().Str("file", last.path).Int64("byte", found.end).Int64("bytes", last.size-found.end).Int64("next", found.next).
		AnErr("why", found.torn).Msg("removed an unfinished write from the log")
	if err := os.Truncate(last.path, found.end); err != nil {
		return err
	}
	l.size -= last.size - found.end
	last.size = found.end
	return nil
}

// Append appends records, in order and without others between them, and returns the offset of the first. The records
// are durable when it returns. After a disk error or ErrFull, none of them are in the log. If ctx ends, they may be in
// the log.
func (l *Log) Append(ctx context.Context, records ...Record) (first int64, err error) {
	r := &request{records: len(records), done: make(chan result, 1)}
	for i := range records {
		r.body = records[i].append(r.body)
	}
	if len(r.body) > MaxAppend {
		return 0, fmt.Errorf("%w: %d bytes exceed the limit of %d", ErrTooLarge, len(r.body), MaxAppend)
	}
	if err := l.enqueue(r); err != nil {
		return 0, err
	}
	select {
	case got := <-r.done:
		return got.first, got.err
	case <-ctx.Done():
		return 0, fmt.Errorf("append to the log: %w", ctx.Err())
	}
}

func (l *Log) enqueue(r *request) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return ErrClosed
	case l.queued+int64(len(r.body)) > maxQueued:
		l.metrics.queue.Inc()
		return ErrQueue
	case r.records == 0:
		r.done <- result{first: l.next}
		return nil
	}
	l.queue, l.queued = append(l.queue, r), l.queued+int64(len(r.body))
	l.poke()
	return nil
}

// poke wakes run.
func (l *Log) poke() {
	select {
	case l.wake <- struct{}{}:
	default: // run is about to wake anyway
	}
}

// take removes the appends from the queue that are written together: the first one, and more up to groupBytes.
func (l *Log) take() (group []*request, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, bytes := 0, 0
	for n < len(l.queue) && (n == 0 || bytes+len(l.queue[n].body) <= groupBytes) {
		bytes += len(l.queue[n].body)
		n++
	}
	group = l.queue[:n:n]
	if l.queue = l.queue[n:]; len(l.queue) == 0 {
		l.queue = nil
	}
	l.queued -= int64(bytes)
	return group, l.closed
}

// Ends returns the offset of the first record, and the offset of the next record to be appended.
func (l *Log) Ends() (first, next int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first(), l.next
}

func (l *Log) first() int64 {
	if len(l.segments) == 0 {
		return l.next
	}
	return l.segments[0].first
}

// Grown returns a channel that is closed once the log contains the record with the given offset.
func (l *Log) Grown(offset int64) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next > offset {
		there := make(chan struct{})
		close(there)
		return there
	}
	return l.grown
}

// Close writes all pending appends, and lets another process open the log.
func (l *Log) Close() error {
	l.mu.Lock()
	again := l.closed
	l.closed = true
	l.poke()
	l.mu.Unlock()
	<-l.done
	if again {
		return ErrClosed
	}
	if err := errors.Join(l.close(), l.lock.Close()); err != nil {
		return fmt.Errorf("close the log: %w", err)
	}
	return nil
}
