package locallog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const suffix = ".log"

// segment is a file of a log.
type segment struct {
	path    string
	first   int64     // offset of its first record, which is part of its name
	size    int64     // durable size in bytes
	written time.Time // time of the last write
}

// segmentPath returns the path of the segment that begins with the given offset.
func segmentPath(directory string, first int64) string {
	return filepath.Join(directory, fmt.Sprintf("%020d%s", first, suffix))
}

// list returns the segments in a directory, oldest first.
func list(directory string) ([]segment, error) {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return nil, err
	}
	var segments []segment
	for _, e := range entries {
		digits, ends := strings.CutSuffix(e.Name(), suffix)
		first, err := strconv.ParseInt(digits, 10, 64)
		if !ends || err != nil || first < 0 || len(digits) != 20 {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, os.ErrNotExist) {
			continue // removed in the meantime by the process that owns the log
		}
		if err != nil {
			return nil, err
		}
		segments = append(segments, segment{filepath.Join(directory, e.Name()), first, info.Size(), info.ModTime()})
	}
	slices.SortFunc(segments, func(a, b segment) int { return int(max(-1, min(1, a.first-b.first))) })
	return segments, nil
}

// ErrDamaged means that records of a log cannot be read although they were durable. The records after them are intact.
var ErrDamaged = errors.New("the log is damaged")

// damaged returns ErrDamaged for a frame of the segment.
func (s *segment) damaged(at, offset int64, err error, remedy string) error {
	return fmt.Errorf("%w: %s, from byte %d (offset %d): %w; restore the file, or continue without these records: %s",
		ErrDamaged, s.path, at, offset, err, remedy)
}

// scanned is the result of a scan.
type scanned struct {
	end   int64 // size in bytes up to the last complete frame
	next  int64 // offset after the last record
	begun int64 // time of the first frame in Unix milliseconds; 0 if there is none
	time  int64 // time of the last frame
	torn  error // why the following bytes are not a frame; nil if there are none
}

// scan reads a segment up to its end, or to the first frame that is incomplete or damaged.
func (s *segment) scan() (scanned, error) {
	found := scanned{next: s.first}
	f, err := os.Open(s.path)
	if err != nil {
		return found, err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 256<<10)
	var frame []byte
	for {
		h, err := readFrame(in, &frame, found.next)
		switch {
		case errors.Is(err, io.EOF):
			return found, nil
		case errors.Is(err, errFrame):
			found.torn = err
			return found, nil
		case err != nil:
			return found, fmt.Errorf("read %s: %w", s.path, err)
		}
		if found.begun == 0 {
			found.begun = h.time
		}
		found.end, found.next, found.time = found.end+h.size(), h.next(), h.time
	}
}

// headAt reads the header of the frame at the given position. The frame must be complete.
func (s *segment) headAt(f io.ReaderAt, at int64) (head, error) {
	var b [frameHead]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		return head{}, err
	}
	h, err := readHead(b[:])
	if err == nil && h.size() > s.size-at {
		err = fmt.Errorf("%w: truncated to %d bytes", errFrame, s.size-at)
	}
	return h, err
}

// readFrame reads the next frame into memory that it enlarges as needed. The frame must begin with the given offset.
// The error is errFrame if the frame is truncated or damaged, and io.EOF if there is none.
func readFrame(in io.Reader, frame *[]byte, offset int64) (head, error) {
	*frame = slices.Grow((*frame)[:0], frameHead)[:frameHead]
	if n, err := io.ReadFull(in, *frame); err != nil {
		return head{}, cutShort(err, n)
	}
	h, err := readHead(*frame)
	if err != nil {
		return h, err
	}
	if h.first != offset {
		return h, fmt.Errorf("%w: it starts at offset %d instead of %d", errFrame, h.first, offset)
	}
	*frame = slices.Grow(*frame, h.length)[:h.size()]
	if n, err := io.ReadFull(in, (*frame)[frameHead:]); err != nil {
		return h, cutShort(err, n+frameHead)
	}
	return h, h.intact(*frame)
}

// cutShort returns errFrame for a frame of which only n bytes exist.
func cutShort(err error, n int) error {
	if n > 0 && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) {
		return fmt.Errorf("%w: truncated to %d bytes", errFrame, n)
	}
	return err
}

// unfinished returns ErrDamaged if a scan did not end at an incomplete last write, because an intact frame follows.
func (s *segment) unfinished(found scanned) error {
	at, behind, err := s.frameBehind(found.end, found.next)
	if err == nil && behind {
		err = s.damaged(found.end, found.next, fmt.Errorf("%w (an intact frame follows at byte %d)", found.torn, at),
			fmt.Sprintf("truncate it with: truncate -s %d %s", found.end, s.path))
	}
	return err
}

// frameBehind returns the position of an intact frame after the given position, and true if there is one. Its offsets
// must be greater than next.
func (s *segment) frameBehind(at, next int64) (int64, bool, error) {
	f, err := os.Open(s.path)
	if err != nil {
		return 0, false, err
	}
	defer f.Close()
	rest, err := io.ReadAll(io.NewSectionReader(f, at+1, s.size-at))
	if err != nil {
		return 0, false, fmt.Errorf("read %s: %w", s.path, err)
	}
	for from := 0; ; from++ {
		i := bytes.Index(rest[from:], []byte(magic))
		if i < 0 || len(rest)-from-i < frameHead {
			return 0, false, nil
		}
		from += i
		h, err := readHead(rest[from:])
		if err != nil || h.first <= next || h.size() > int64(len(rest)-from) {
			continue
		}
		if h.intact(rest[from:from+int(h.size())]) == nil {
			return at + 1 + int64(from), true, nil
		}
	}
}
