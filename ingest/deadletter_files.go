package ingest

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

	"github.com/rs/zerolog"
)

const (
	deadLetterPrefix = "dead-letters-"
	deadLetterSuffix = ".ndjson"
	// deadLetterFiles is into how many files the size is divided: one in so many letters goes at once when it is full.
	deadLetterFiles = 8
)

// FileDeadLetters keeps dead letters in NDJSON files, dead-letters-<number>.ndjson, the raw bytes in base64. All files
// together never grow above a size: the oldest goes first. They survive the process, but letters of the last moments
// may be lost with the machine, as they are not synced.
type FileDeadLetters struct {
	dir     string
	maxSize int64
	log     zerolog.Logger

	mu     sync.Mutex
	closed bool
	files  []deadLetterFile // oldest first; the last is the one written to
	total  int64            // bytes of all files
	file   *os.File         // open for the last of files; nil before the first letter and after a failure
}

type deadLetterFile struct {
	number, size int64
}

// NewFileDeadLetters continues the files in dir, which is made where it is missing. It removes the oldest files where
// they are larger than maxSize together.
func NewFileDeadLetters(dir string, maxSize ByteSize, log zerolog.Logger) (*FileDeadLetters, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("making the directory for dead letters: %w", err)
	}
	f := &FileDeadLetters{dir: dir, maxSize: int64(maxSize), log: log}
	if err := f.list(); err != nil {
		return nil, fmt.Errorf("listing dead letters: %w", err)
	}
	if err := f.makeRoom(0); err != nil {
		return nil, err
	}
	return f, nil
}

// list finds the files of earlier runs.
func (f *FileDeadLetters) list() error {
	entries, err := os.ReadDir(f.dir) // by name, and the numbers have leading zeros: oldest first
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

func (f *FileDeadLetters) path(number int64) string {
	return filepath.Join(f.dir, fmt.Sprintf("%s%012d%s", deadLetterPrefix, number, deadLetterSuffix))
}

// deadLetterLine is a dead letter as it is written.
type deadLetterLine struct {
	Time      time.Time `json:"time"`
	Topic     string    `json:"topic,omitempty"`
	Partition int32     `json:"partition"`
	Offset    int64     `json:"offset"`
	Record    int32     `json:"record"`
	Reason    Reason    `json:"reason"`
	Message   string    `json:"message"`
	Size      int64     `json:"size"`
	Truncated bool      `json:"truncated"`
	Raw       []byte    `json:"raw"`
}

// Keep writes a letter. After an error the letter is lost, and the next one tries anew.
func (f *FileDeadLetters) Keep(_ context.Context, l DeadLetter) error {
	line, err := json.Marshal(deadLetterLine{
		Time: l.Time, Topic: l.Topic, Partition: l.Pos.Partition, Offset: l.Pos.Offset, Record: l.Pos.Record,
		Reason: l.Reason, Message: l.Msg, Size: l.Size, Truncated: l.Truncated, Raw: l.Raw,
	})
	if err != nil {
		return fmt.Errorf("encoding a dead letter: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return fmt.Errorf("keeping a dead letter: %w", os.ErrClosed)
	}
	return f.write(append(line, '\n'))
}

func (f *FileDeadLetters) write(line []byte) error {
	size := int64(len(line))
	if size > f.maxSize {
		return fmt.Errorf("keeping a dead letter: its %d bytes are above the size of all of them, %d", size, f.maxSize)
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
		f.file.Close() // the error of the write is the one to tell
		f.file = nil
		return fmt.Errorf("writing a dead letter: %w", err)
	}
	return nil
}

// open makes the file ready that size more bytes are written to.
func (f *FileDeadLetters) open(size int64) error {
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
		f.log.Warn().Err(err).Msg("Closing a file of dead letters")
	}
	if err := os.MkdirAll(f.dir, 0o750); err != nil { // it may have been removed since
		return fmt.Errorf("making the directory for dead letters: %w", err)
	}
	file, err := os.OpenFile(f.path(number), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return fmt.Errorf("opening a file for dead letters: %w", err)
	}
	f.file = file
	if len(f.files) == 0 || f.files[len(f.files)-1].number != number {
		f.files = append(f.files, deadLetterFile{number: number})
	}
	return nil
}

// endsWhole says whether a file that another run or a failed write left ends in a whole line, so that the next letter
// can follow.
func (f *FileDeadLetters) endsWhole(last deadLetterFile) bool {
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
func (f *FileDeadLetters) makeRoom(size int64) error {
	for f.total+size > f.maxSize && len(f.files) > 0 {
		oldest := f.files[0]
		if err := os.Remove(f.path(oldest.number)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("removing the oldest dead letters: %w", err)
		}
		f.log.Warn().Str("file", f.path(oldest.number)).Int64("bytes", oldest.size).
			Msg("Removed the oldest dead letters to stay below their maximum size")
		f.files = f.files[1:]
		f.total -= oldest.size
	}
	return nil
}

func (f *FileDeadLetters) closeFile() error {
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	f.file = nil
	return err
}

// Close ends the writing; letters that come after it are lost.
func (f *FileDeadLetters) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	if err := f.closeFile(); err != nil {
		return fmt.Errorf("closing the dead letters: %w", err)
	}
	return nil
}
