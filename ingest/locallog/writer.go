package locallog

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest/datadir"
)

// disk creates and opens segments. Tests replace it, for example with a full disk.
type disk interface {
	// open opens a segment for appending. It creates an empty one if it is missing.
	open(path string) (file, error)
}

// file is a segment that is written to. Writes always go to its end.
type file interface {
	Write(b []byte) (int, error)
	Sync() error
	Truncate(size int64) error
	Close() error
}

type osDisk struct{}

func (osDisk) open(path string) (file, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o640)
}

// writer is the state that only the goroutine of run may access.
type writer struct {
	active file  // the last segment; nil before the first one, and if the next one could not be started
	failed bool  // whether active may have bytes after its durable end
	begun  int64 // time of its first frame in Unix milliseconds; 0 if there is none
	time   int64 // time of the last frame of the log
	buffer []byte
}

func (w *writer) close() error {
	if w.active == nil {
		return nil
	}
	return w.active.Close()
}

// run writes appends until the log is closed.
func (l *Log) run() {
	defer close(l.done)
	tidy := time.NewTicker(tidyEvery)
	defer tidy.Stop()
	for {
		select {
		case <-l.wake:
		case <-tidy.C:
			l.age()
		}
		for {
			group, closed := l.take()
			if len(group) == 0 && closed {
				return
			}
			if len(group) == 0 {
				break
			}
			l.commit(group)
		}
		l.retain(0)
	}
}

// commit writes a group of appends as one frame, and responds to them once it is durable. Either all or none of them
// are in the log.
func (l *Log) commit(group []*request) {
	begun := time.Now()
	first, err := l.write(group)
	if err == nil {
		l.metrics.duration.Observe(time.Since(begun).Seconds())
	}
	for _, r := range group {
		if err != nil {
			r.done <- result{err: err}
			continue
		}
		r.done <- result{first: first}
		first += int64(r.records)
	}
}

func (l *Log) write(group []*request) (first int64, err error) {
	size, records := int64(frameHead), 0
	bodies := make([][]byte, len(group))
	for i, r := range group {
		bodies[i] = r.body
		size += int64(len(r.body))
		records += r.records
	}
	if !l.retain(size) {
		l.metrics.full.Inc()
		return 0, ErrFull
	}
	if err := l.ready(); err != nil {
		l.metrics.disk.Inc()
		return 0, fmt.Errorf("append to the log: %w", err)
	}
	first = l.next // only this goroutine changes it
	l.time = max(l.time, l.o.now().UnixMilli())
	l.buffer = appendFrame(l.buffer[:0], first, l.time, records, bodies...)
	if err := l.durable(l.buffer, l.last().size); err != nil {
		l.metrics.disk.Inc()
		return 0, fmt.Errorf("append to the log: %w", err)
	}
	if cap(l.buffer) > keptMemory {
		l.buffer = nil
	}
	if l.begun == 0 {
		l.begun = l.time
	}
	l.extend(size, records)
	return first, nil
}

// extend makes written records visible to readers.
func (l *Log) extend(size int64, records int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := &l.segments[len(l.segments)-1]
	last.size, last.written = last.size+size, l.o.now()
	l.size, l.next = l.size+size, l.next+int64(records)
	close(l.grown)
	l.grown = make(chan struct{})
}

// ready prepares the last segment for the next frame. It removes the remains of a failed write, and starts the next
// segment if this one is full.
func (l *Log) ready() error {
	if l.failed {
		if err := l.rewind(l.last().size); err != nil {
			return err
		}
	}
	if l.active != nil && l.last().size >= l.o.SegmentSize {
		return l.roll()
	}
	if l.active == nil {
		return l.begin()
	}
	return nil
}

// last returns the segment that is written to.
func (l *Log) last() segment {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.segments[len(l.segments)-1]
}

// durable writes a frame after the durable end of the segment. If this fails, it removes the partial frame.
func (w *writer) durable(frame []byte, end int64) error {
	_, err := w.active.Write(frame)
	if err == nil {
		err = w.active.Sync()
	}
	if err == nil {
		return nil
	}
	w.failed = true
	return errors.Join(err, w.rewind(end))
}

// rewind removes everything after the durable end of the segment. Nothing may be appended until this succeeds, because
// a frame after an incomplete one could never be read.
func (w *writer) rewind(end int64) error {
	if err := w.active.Truncate(end); err != nil {
		return fmt.Errorf("remove an unfinished write: %w", err)
	}
	if err := w.active.Sync(); err != nil {
		return fmt.Errorf("remove an unfinished write: %w", err)
	}
	w.failed = false
	return nil
}

// roll starts the next segment.
func (l *Log) roll() error {
	full := l.active
	l.active = nil
	return errors.Join(full.Close(), l.begin()) // all its bytes are durable
}

// begin starts a segment. If a file with its name exists, it is empty and from an earlier attempt.
func (l *Log) begin() error {
	path := segmentPath(l.o.Directory, l.next)
	made, err := l.o.disk.open(path)
	if err != nil {
		return err
	}
	if err := datadir.Sync(l.o.Directory); err != nil {
		return errors.Join(err, made.Close())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.active, l.begun = made, 0
	l.segments = append(l.segments, segment{path: path, first: l.next, written: l.o.now()})
	return nil
}

// age ends a segment that has been written to for a long time, so that it can become too old.
func (l *Log) age() {
	if l.active == nil || l.failed || l.begun == 0 || l.o.now().Sub(time.UnixMilli(l.begun)) < segmentAge {
		return
	}
	if err := l.roll(); err != nil {
		l.o.Log.Error().Err(err).Msg("failed to start a new log segment, retrying with the next record")
	}
}

// retain removes released segments, oldest first, until there is room for a segment and the given number of further
// bytes. It also removes segments that are too old. It reports whether there is room for the bytes.
func (l *Log) retain(more int64) (room bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.segments) > 1 && l.segments[1].first <= l.released {
		oldest := l.segments[0]
		full := l.size+more+l.o.SegmentSize > l.o.MaxSize
		old := l.o.MaxAge > 0 && l.o.now().Sub(oldest.written) > l.o.MaxAge
		if !full && !old {
			break
		}
		if err := os.Remove(oldest.path); err != nil && !errors.Is(err, os.ErrNotExist) {
			l.o.Log.Error().Err(err).Msg("failed to remove a log segment")
			break
		}
		l.segments, l.size = l.segments[1:], l.size-oldest.size
		l.metrics.removed.Add(float64(oldest.size))
	}
	return l.size+more <= l.o.MaxSize
}
