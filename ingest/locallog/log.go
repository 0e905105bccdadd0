// Package locallog stores records in a log on this machine: in segments, which are files in a directory, in the order
// in which they are appended. A record is durable before its append returns. What its reader has not committed twice is
// never removed.
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
	// MaxAppend is the most bytes that the records of one append may take, with a few for each record.
	MaxAppend = 20 << 20
	// groupBytes is how many bytes of other appends are written with the first one.
	groupBytes = 4 << 20
	// maxQueued is how many bytes may wait to be written.
	maxQueued = 64 << 20
	// tidyEvery is how often a log looks for segments that are too old.
	tidyEvery = time.Minute
	// segmentAge is how long a segment is written to, so that a log with little in it has old segments too.
	segmentAge = 24 * time.Hour
)

// The errors of Append and Open, for errors.Is.
var (
	ErrFull     = errors.New("the log is full of unjudged records")
	ErrQueue    = errors.New("too many records are waiting to be written to the log")
	ErrTooLarge = errors.New("the records exceed the size limit of one append")
	ErrClosed   = errors.New("the log is closed")
)

// Options configure a log. Name is the label log of its metrics.
type Options struct {
	Name        string
	Directory   string        // of the segments; made if missing. No other process may have it open
	MaxSize     int64         // bytes of all segments
	SegmentSize int64         // bytes from which on a segment is followed by the next one; a single write may exceed it
	MaxAge      time.Duration // since the last record of a segment, after which it is removed; 0 for no limit
	Log         zerolog.Logger
	Registerer  prometheus.Registerer

	disk disk             // of tests
	now  func() time.Time // of tests
}

// Log is a log that this process appends to. Its methods may be called by several goroutines.
type Log struct {
	o       Options
	lock    *os.File
	metrics *metrics

	mu        sync.Mutex
	segments  []segment // the oldest first; the last one is written to
	size      int64     // bytes of all segments
	next      int64     // offset of the next record; all before are durable
	released  int64     // offsets before may be removed: they were part of the last two commits
	committed int64     // negative before the first commit
	grown     chan struct{}
	queue     []*request
	queued    int64 // bytes
	closed    bool

	committing sync.Mutex // held while the file of the commit is written

	wake chan struct{} // something is in the queue, or was released, or the log is closed
	done chan struct{} // closed when run has returned
	writer
}

// request is one append.
type request struct {
	records int
	body    []byte
	done    chan result // of one result
}

type result struct {
	first int64
	err   error
}

// Open opens a log, and makes it if the directory has none. It removes a write that was not finished, which no append
// has confirmed. The error is ErrDamaged if intact records follow one that is not, and datadir.ErrLocked while another
// process has the log open.
func Open(o Options) (*Log, error) {
	if o.disk == nil {
		o.disk = osDisk{}
	}
	if o.now == nil {
		o.now = time.Now
	}
	if err := os.MkdirAll(o.Directory, 0o750); err != nil {
		return nil, fmt.Errorf("creating the local log directory: %w", err)
	}
	held, err := datadir.Lock(o.Directory)
	if err != nil {
		return nil, fmt.Errorf("opening the local log: %w", err)
	}
	l := &Log{
		o: o, lock: held,
		grown: make(chan struct{}), wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	if err := l.restore(); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the local log: %w", err), l.close(), held.Close())
	}
	l.metrics = newMetrics(l)
	go l.run()
	return l, nil
}

// restore finds the end of the log, and cuts off a write that was not finished.
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
		return nil // the first append begins the first segment
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
	// What was written but not confirmed must be durable before it is read.
	if l.active, err = l.o.disk.open(last.path); err != nil {
		return err
	}
	return errors.Join(l.active.Sync(), datadir.Sync(l.o.Directory))
}

// cut removes the unfinished write at the end of a segment.
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

// Append appends records, in order and without others between them, and returns the offset of the first. All of them
// are durable then. After an error of the disk or ErrFull none of them is in the log; if ctx ends they may be.
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
		return 0, fmt.Errorf("appending to the log: %w", ctx.Err())
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
	default: // it will look anyway
	}
}

// take removes appends from the queue that are written together: the first, and others up to groupBytes.
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

// Ends returns the offset of the first record of the log, and that of the next one to be appended.
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

// Grown returns a channel that is closed once the log holds the record of an offset.
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

// Close writes what was handed to Append before, and lets another process open the log.
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
		return fmt.Errorf("closing the log: %w", err)
	}
	return nil
}
