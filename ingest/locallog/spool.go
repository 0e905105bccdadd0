package locallog

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest/datadir"
)

// Spool is a log whose writer decides when records become durable, and which of them may be removed. It is meant for
// records that a checkpoint refers to by their offsets. Each process that opens it starts a new segment after all
// offsets that were ever used. So records that an earlier process wrote after its last checkpoint are never confused
// with those that follow the checkpoint now, and nothing that an older checkpoint refers to is overwritten.
//
// Only one goroutine may use a Spool, and only one process may use its directory.
type Spool struct {
	directory   string
	segmentSize int64 // size in bytes at which the next segment is started; a single flush may exceed it
	disk        disk

	listed   bool
	segments []segment // oldest first
	size     int64     // of all segments in bytes
	next     int64     // offset of the next record
	held     []byte    // frames that are not durable yet
	first    int64     // offset of the first record in held
	writer
}

// NewSpool returns the spool in a directory. The directory is created with the first record.
func NewSpool(directory string, segmentSize int64) *Spool {
	return &Spool{directory: directory, segmentSize: segmentSize, disk: osDisk{}}
}

// list finds the segments of earlier processes. Offsets begin at the current time in microseconds, or after any offset
// that those segments can contain. So offsets are never reused, even in a directory that was emptied.
func (s *Spool) list() (err error) {
	if s.listed {
		return nil
	}
	s.segments, err = list(s.directory)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("open the local log: %w", err)
	}
	s.listed, s.next = true, time.Now().UnixMicro()
	for _, old := range s.segments {
		s.size += old.size
		s.next = max(s.next, old.first+old.size+1) // every record takes several bytes
	}
	return nil
}

// Append adds a record, and returns its offset. The record becomes durable with the next successful Flush.
func (s *Spool) Append(value []byte) (offset int64, err error) {
	if err := s.list(); err != nil {
		return 0, err
	}
	if len(s.held) == 0 {
		s.first = s.next
	}
	record := Record{Value: value}
	s.time = max(s.time, time.Now().UnixMilli())
	s.held = appendFrame(s.held, s.next, s.time, 1, record.append(nil))
	s.next++
	return s.next - 1, nil
}

// Held returns the number of bytes that are not durable yet.
func (s *Spool) Held() int { return len(s.held) }

// Size returns the size of all segments in bytes.
func (s *Spool) Size() int64 { return s.size }

// Flush makes all records durable. After an error, none of the new records are in the log, and a later Flush may
// succeed.
func (s *Spool) Flush() error {
	if len(s.held) == 0 {
		return nil
	}
	if err := s.ready(); err != nil {
		return fmt.Errorf("write to the log: %w", err)
	}
	last := &s.segments[len(s.segments)-1]
	if err := s.durable(s.held, last.size); err != nil {
		return fmt.Errorf("write to the log: %w", err)
	}
	last.size, s.size = last.size+int64(len(s.held)), s.size+int64(len(s.held))
	if s.held = s.held[:0]; cap(s.held) > 2*keptMemory {
		s.held = nil
	}
	return nil
}

// ready prepares the last segment for the next write.
func (s *Spool) ready() error {
	if s.active != nil && s.failed {
		if err := s.rewind(s.segments[len(s.segments)-1].size); err != nil {
			return err
		}
	}
	if s.active != nil && s.segments[len(s.segments)-1].size < s.segmentSize {
		return nil
	}
	if s.active != nil {
		full := s.active
		s.active = nil
		if err := full.Close(); err != nil {
			return err
		}
	}
	return s.begin()
}

// begin starts a segment. If a file with its name exists, it is empty and from an earlier attempt.
func (s *Spool) begin() error {
	if err := os.MkdirAll(s.directory, 0o750); err != nil {
		return err
	}
	path := segmentPath(s.directory, s.first)
	made, err := s.disk.open(path)
	if err != nil {
		return err
	}
	for _, directory := range []string{filepath.Dir(s.directory), s.directory} {
		if err := datadir.Sync(directory); err != nil {
			return errors.Join(err, made.Close())
		}
	}
	s.active = made
	s.segments = append(s.segments, segment{path: path, first: s.first, written: time.Now()})
	return nil
}

// Read passes the durable records with offsets in [from, to) to each, which must not retain their memory. If a record
// is missing or damaged, the error is ErrDamaged.
func (s *Spool) Read(from, to int64, each func(offset int64, value []byte) error) (err error) {
	if err := s.list(); err != nil {
		return err
	}
	r := &Reader{of: s, next: from, remedy: spoolRemedy}
	defer func() { err = errors.Join(err, r.Close()) }()
	for next := from; next < to; {
		records, err := r.Next()
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, io.EOF) {
			return s.missing(next, to)
		}
		if err != nil {
			return err
		}
		for _, record := range records {
			if record.Offset != next {
				return s.missing(next, min(to, record.Offset))
			}
			if next == to {
				break
			}
			if err := each(next, record.Value); err != nil {
				return err
			}
			next++
		}
	}
	return nil
}

// spoolRemedy is the remedy for a damaged spool. Its records are part of a checkpoint.
const spoolRemedy = "move it aside together with all files of its checkpoint"

func (s *Spool) missing(from, to int64) error {
	return fmt.Errorf("%w: %s lacks the offsets %d to %d; restore its files, or continue without these records: %s",
		ErrDamaged, s.directory, from, to-1, spoolRemedy)
}

// Remove removes the segments that are not needed. needed reports whether a record with an offset in [from, to) is
// needed.
func (s *Spool) Remove(needed func(from, to int64) bool) error {
	if err := s.list(); err != nil {
		return err
	}
	for i := 0; i < len(s.segments); {
		if needed(s.segments[i].first, s.end(i)) {
			i++
			continue
		}
		if i == len(s.segments)-1 && s.active != nil {
			last := s.active
			s.active, s.failed = nil, false
			if err := last.Close(); err != nil {
				return fmt.Errorf("remove a log segment: %w", err)
			}
		}
		if err := os.Remove(s.segments[i].path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove a log segment: %w", err)
		}
		s.size -= s.segments[i].size
		s.segments = slices.Delete(s.segments, i, i+1)
	}
	return nil
}

// Behind returns the offset after all records in the segment of a record, which are removed together.
func (s *Spool) Behind(offset int64) int64 {
	if len(s.held) > 0 && offset >= s.first {
		return s.next
	}
	for i := range s.segments {
		if end := s.end(i); offset < end {
			return end
		}
	}
	return s.next
}

// end returns the offset after any record that a segment can contain.
func (s *Spool) end(i int) int64 {
	switch {
	case i+1 < len(s.segments):
		return s.segments[i+1].first
	case len(s.held) > 0:
		return s.first
	}
	return s.next
}

// Close lets another spool open the directory. It drops records that are not durable.
func (s *Spool) Close() error {
	err := s.close()
	s.active, s.held = nil, nil
	return err
}

// holding implements catalog.
func (s *Spool) holding(offset int64) (segment, bool) { return holding(s.segments, offset) }

// state implements catalog.
func (s *Spool) state(first int64) (size int64, following segment, followed bool) {
	return state(s.segments, first)
}
