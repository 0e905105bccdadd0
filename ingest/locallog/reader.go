package locallog

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// Reader reads the records of a log in order. It is not safe for concurrent use.
type Reader struct {
	of      catalog
	next    int64  // offset of the next record to return
	remedy  string // how to continue without the records of a damaged segment
	file    *os.File
	segment segment // the segment in file
	at      int64   // position of the next frame in file
	offset  int64   // first offset of the next frame
	frame   []byte
	records []Record
}

// catalog provides the segments of a log.
type catalog interface {
	// holding returns the segment that contains an offset or, if there is none, the first one after it.
	holding(offset int64) (segment, bool)
	// state returns the durable size of the segment that begins with an offset, or gone if it was removed, and the
	// following segment.
	state(first int64) (size int64, following segment, followed bool)
}

// gone is the size of a segment that was removed.
const gone = -1

// NewReader returns a reader for the records starting at the offset from. It also reads records that are appended
// later.
func (l *Log) NewReader(from int64) *Reader { return &Reader{of: l, next: from, remedy: moveAway} }

// moveAway is the remedy for logs in which records may be missing.
const moveAway = "move it aside"

// Next returns the records of the next write. There is at least one, and they are valid until the next call. At the end
// of the log, the error is io.EOF, and Next can be called again once there are more records. Missing offsets are
// skipped if retention has removed their segments. If a frame cannot be read, the error is ErrDamaged.
func (r *Reader) Next() ([]Record, error) {
	for {
		if err := r.settle(); err != nil {
			return nil, err
		}
		h, err := r.read()
		if err != nil {
			return nil, err
		}
		r.at, r.offset = r.at+h.size(), h.next()
		if r.offset <= r.next {
			continue
		}
		if r.records, err = h.decode(r.records[:0], r.frame[frameHead:]); err != nil {
			return nil, r.damaged(r.at-h.size(), h.first, err)
		}
		wanted := r.records[max(0, r.next-h.first):]
		r.next = r.offset
		return wanted, nil
	}
}

// settle opens the segment of the next frame if it is not open. If there is no frame yet, the error is io.EOF.
func (r *Reader) settle() error {
	if r.file == nil {
		s, found := r.of.holding(r.next)
		if !found {
			return io.EOF
		}
		if err := r.open(s); err != nil {
			return err
		}
	}
	for {
		size, following, followed := r.of.state(r.segment.first)
		if size == gone { // a removed segment was complete
			info, err := r.file.Stat()
			if err != nil {
				return fmt.Errorf("read the local log: %w", err)
			}
			size = info.Size()
		}
		if r.segment.size = size; r.at < size {
			return nil
		}
		if !followed {
			return io.EOF
		}
		if following.first < r.offset {
			return following.damaged(0, following.first, fmt.Errorf("%w: the previous segment ends at offset %d", errFrame, r.offset-1), r.remedy)
		}
		if err := errors.Join(r.Close(), r.open(following)); err != nil {
			return err
		}
	}
}

// open opens a segment to read it from its beginning.
func (r *Reader) open(s segment) error {
	f, err := os.Open(s.path)
	if err != nil {
		return fmt.Errorf("read the local log: %w", err)
	}
	r.file, r.segment, r.at, r.offset = f, s, 0, s.first
	return nil
}

// read reads the next frame. If it only contains records before r.next, read reads only its header.
func (r *Reader) read() (head, error) {
	if cap(r.frame) > keptMemory {
		r.frame = nil
	}
	if r.next > r.offset {
		if h, err := r.segment.headAt(r.file, r.at); err == nil && h.first == r.offset && h.next() <= r.next {
			return h, nil
		}
	}
	h, err := readFrame(io.NewSectionReader(r.file, r.at, r.segment.size-r.at), &r.frame, r.offset)
	if err != nil {
		return h, r.damaged(r.at, r.offset, err)
	}
	return h, nil
}

func (r *Reader) damaged(at, offset int64, err error) error {
	if !errors.Is(err, errFrame) {
		return fmt.Errorf("read the log: %s: %w", r.segment.path, err)
	}
	return r.segment.damaged(at, offset, err, r.remedy)
}

// Close closes the open file. The reader can still be used afterwards.
func (r *Reader) Close() error {
	if r.file == nil {
		return nil
	}
	err := r.file.Close()
	r.file = nil
	return err
}

// holding implements catalog.
func (l *Log) holding(offset int64) (segment, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return holding(l.segments, offset)
}

// holding returns the last segment that begins at or before an offset, or the first one after it.
func holding(segments []segment, offset int64) (segment, bool) {
	if len(segments) == 0 {
		return segment{}, false
	}
	behind, found := slices.BinarySearchFunc(segments, offset, func(s segment, offset int64) int {
		return int(max(-1, min(1, s.first-offset)))
	})
	if !found && behind > 0 {
		behind--
	}
	return segments[behind], true
}

// state implements catalog.
func (l *Log) state(first int64) (size int64, following segment, followed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return state(l.segments, first)
}

func state(segments []segment, first int64) (size int64, following segment, followed bool) {
	for _, s := range slices.Backward(segments) {
		switch {
		case s.first == first:
			return s.size, following, followed
		case s.first < first:
			return gone, following, followed
		}
		following, followed = s, true
	}
	return gone, following, followed
}
