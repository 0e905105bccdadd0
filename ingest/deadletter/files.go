package deadletter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rs/zerolog"
)

const (
	deadLetterPrefix = "dead-letters-"
	deadLetterSuffix = ".ndjson"
	// deadLetterFiles is the number of files into which the maximum size is divided. When it is reached, one of them is
	// removed.
	deadLetterFiles = 8
)

// Files stores dead letters in NDJSON files, dead-letters-<number>.ndjson, with the raw bytes in base64. The total size
// of the files never exceeds a maximum, because the oldest file is removed first. The files survive the process, but a
// machine crash may lose the latest letters, because they are not synced.
type Files struct {
	dir     string
	maxSize int64
	log     zerolog.Logger

	mu     sync.Mutex
	closed bool
	files  []deadLetterFile // oldest first; the last one is written to
	total  int64            // of all files, in bytes
	file   *os.File         // open for the last of files; nil before the first letter and after a failure
}

type deadLetterFile struct {
	number, size int64
}

// NewFiles returns a Files that continues the files in dir, which it creates if it is missing. It removes the oldest
// files if their total size exceeds maxSize.
func NewFiles(dir string, maxSize ingest.ByteSize, log zerolog.Logger) (*Files, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("create the dead-letter directory: %w", err)
	}
	f := &Files{dir: dir, maxSize: int64(maxSize), log: log}
	if err := f.list(); err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	if err := f.makeRoom(0); err != nil {
		return nil, err
	}
	return f, nil
}

// list lists the files of earlier processes.
func (f *Files) list() error {
	entries, err := os.ReadDir(f.dir) // sorted by name, which means oldest first, because numbers have leading zeros
	if err != nil {
		return err
	}
	for _, e := range entries {
		number, ok := deadLetterNumber(e.Name())
		if !ok {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		f.files = append(f.files, deadLetterFile{number, info.Size()})
		f.total += info.Size()
	}
	return nil
}

func deadLetterNumber(name string) (number int64, ok bool) {
	digits, isOurs := strings.CutPrefix(name, deadLetterPrefix)
	digits, ends := strings.CutSuffix(digits, deadLetterSuffix)
	number, err := strconv.ParseInt(digits, 10, 64)
	return number, isOurs && ends && err == nil
}

func (f *Files) path(number int64) string {
	return filepath.Join(f.dir, fmt.Sprintf("%s%012d%s", deadLetterPrefix, number, deadLetterSuffix))
}

// deadLetterLine is a line of the files.
type deadLetterLine struct {
	Time      time.Time     `json:"time"`
	Topic     string        `json:"topic,omitempty"`
	Partition int32         `json:"partition"`
	Offset    int64         `json:"offset"`
	Record    int32         `json:"record"`
	Reason    ingest.Reason `json:"reason"`
	Message   string        `json:"message"`
	Size      int64         `json:"size"`
	Truncated bool          `json:"truncated"`
	Raw       []byte        `json:"raw"`
}

// Keep writes a letter. After an error, the letter is lost, and the next Keep tries to write again.
func (f *Files) Keep(_ context.Context, l Letter) error {
	line, err := json.Marshal(deadLetterLine{
		Time: l.Time, Topic: l.Topic, Partition: l.Pos.Partition.Number(), Offset: l.Pos.Offset, Record: l.Pos.Record,
		Reason: l.Reason, Message: l.Msg, Size: l.Size, Truncated: l.Truncated, Raw: l.Raw,
	})
	if err != nil {
		return fmt.Errorf("encode a dead letter: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return fmt.Errorf("store a dead letter: %w", os.ErrClosed)
	}
	return f.write(append(line, '\n'))
}

func (f *Files) write(line []byte) error {
	size := int64(len(line))
	if size > f.maxSize {
		return fmt.Errorf("store a dead letter: its size of %d bytes exceeds the total limit of %d", size, f.maxSize)
	}
	if err := f.open(size); err != nil {
		return err
	}
	if err := f.makeRoom(size); err != nil {
		return err
	}
	n, err := f.file.Write(line)
	f.files[len(f.files)-1].size += int64(n)
	f.total += int64(n)
	if err != nil {
		f.file.Close() // the write error is more important
		f.file = nil
		return fmt.Errorf("write a dead letter: %w", err)
	}
	return nil
}

// open opens a file to which size more bytes can be written.
func (f *Files) open(size int64) error {
	number := int64(0)
	if len(f.files) > 0 {
		last := f.files[len(f.files)-1]
		full := last.size > 0 && last.size+size > f.maxSize/deadLetterFiles
		if !full && f.file != nil {
			return nil
		}
		if number = last.number; full || !f.endsWhole(last) {
			number++
		}
	}
	if err := f.closeFile(); err != nil {
		f.log.Warn().Err(err).Msg("failed to close a dead-letter file")
	}
	if err := os.MkdirAll(f.dir, 0o750); err != nil { // it may have been removed in the meantime
		return fmt.Errorf("create the dead-letter directory: %w", err)
	}
	file, err := os.OpenFile(f.path(number), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return fmt.Errorf("open a dead-letter file: %w", err)
	}
	f.file = file
	if len(f.files) == 0 || f.files[len(f.files)-1].number != number {
		f.files = append(f.files, deadLetterFile{number: number})
	}
	return nil
}

// endsWhole reports whether a file from an earlier process or after a failed write ends with a complete line, so that
// the next letter can follow.
func (f *Files) endsWhole(last deadLetterFile) bool {
	if last.size == 0 {
		return true
	}
	file, err := os.Open(f.path(last.number))
	if err != nil {
		return false
	}
	defer file.Close()
	var end [1]byte
	_, err = file.ReadAt(end[:], last.size-1)
	return err == nil && end[0] == '\n'
}

// makeRoom removes the oldest files until size more bytes fit.
func (f *Files) makeRoom(size int64) error {
	for f.total+size > f.maxSize && len(f.files) > 0 {
		oldest := f.files[0]
		if err := os.Remove(f.path(oldest.number)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove the oldest dead letters: %w", err)
		}
		f.log.Warn().Str("file", f.path(oldest.number)).Int64("bytes", oldest.size).
			Msg("removed the oldest dead letters to stay within the size limit")
		f.files = f.files[1:]
		f.total -= oldest.size
	}
	return nil
}

func (f *Files) closeFile() error {
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	f.file = nil
	return err
}

// Close closes the file. Later letters are lost.
func (f *Files) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	if err := f.closeFile(); err != nil {
		return fmt.Errorf("close the dead letters: %w", err)
	}
	return nil
}
