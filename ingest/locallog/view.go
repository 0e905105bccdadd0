package locallog

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// ErrNoLog means that a directory has no log.
var ErrNoLog = errors.New("log not found")

// View is a log as it was when the view was opened. The log may belong to another process, which may append to it and
// remove old segments in the meantime.
type View struct {
	segments []segment
	next     int64
}

// IsLog reports whether a path is the directory of a log.
func IsLog(path string) bool {
	segments, err := list(path)
	return err == nil && len(segments) > 0
}

// OpenView opens the log in a directory for reading, and does not modify it. The error is ErrNoLog if there is none.
func OpenView(directory string) (*View, error) {
	segments, err := list(directory)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read the local log: %w", err)
	}
	if len(segments) == 0 {
		return nil, fmt.Errorf("%w in %s", ErrNoLog, directory)
	}
	last := &segments[len(segments)-1]
	found, err := last.scan()
	if err == nil && found.torn != nil {
		err = last.unfinished(found)
	}
	if err != nil {
		return nil, fmt.Errorf("read the local log: %w", err)
	}
	last.size = found.end // further data is still being written
	return &View{segments: segments, next: found.next}, nil
}

// Ends returns the offset of the first record, and the offset after the last record.
func (v *View) Ends() (first, next int64) { return v.segments[0].first, v.next }

// Size returns the size of the log in bytes.
func (v *View) Size() (bytes int64) {
	for _, s := range v.segments {
		bytes += s.size
	}
	return bytes
}

// NewReader returns a reader for the records starting at the offset from.
func (v *View) NewReader(from int64) *Reader { return &Reader{of: v, next: from, remedy: moveAway} }

// Until returns the offset after the last record that was appended before a time.
func (v *View) Until(t time.Time) (int64, error) {
	ms := t.UnixMilli()
	r := v.NewReader(v.segments[0].first)
	for i := range v.segments { // finds the last one that begins before the time
		begun, err := v.segments[i].begun()
		if err != nil {
			return 0, err
		}
		if begun != 0 && begun < ms {
			r.next = v.segments[i].first
		}
	}
	defer r.Close() // it was only read
	for r.next < v.next {
		records, err := r.Next()
		if err != nil {
			return 0, err
		}
		if records[0].Time >= ms {
			return records[0].Offset, nil
		}
	}
	return v.next, nil
}

// begun returns the time of the first frame of a segment, or 0 if it is empty.
func (s *segment) begun() (ms int64, err error) {
	if s.size == 0 {
		return 0, nil
	}
	f, err := os.Open(s.path)
	if err != nil {
		return 0, fmt.Errorf("read the local log: %w", err)
	}
	defer f.Close()
	h, err := s.headAt(f, 0)
	if err != nil {
		return 0, s.damaged(0, s.first, err, moveAway)
	}
	return h.time, nil
}

// holding implements catalog.
func (v *View) holding(offset int64) (segment, bool) { return holding(v.segments, offset) }

// state implements catalog.
func (v *View) state(first int64) (size int64, following segment, followed bool) {
	return state(v.segments, first)
}
