package audit

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// rotated matches the suffixes that log rotation appends to the name of a file: numbers and dates.
var rotated = regexp.MustCompile(`^[-.][0-9][0-9.-]*$`)

// headBytes is the maximum number of bytes at the beginning of a file that are used to identify it.
const headBytes = 4 << 10

// file is the current log, or a former log that has been renamed.
type file struct {
	path    string
	inode   uint64
	head    string // hash of its first line, "" before it has one: an inode may be used again after its file was removed
	size    int64
	changed time.Time
}

// files returns the files in the order of their entries; the current log is the last. It omits compressed files. A
// listing during a rotation may miss a file, so two listings must agree.
func (l *Log) files() (all []file, err error) {
	for range 5 {
		before := all
		if all, err = l.list(); err == nil && before != nil && slices.EqualFunc(all, before, sameFile) {
			return all, nil
		}
	}
	if err == nil {
		err = errors.New("the files are being renamed too often")
	}
	return nil, fmt.Errorf("%w: list %s: %w", ErrLog, l.path, err)
}

func sameFile(a, b file) bool { return a.path == b.path && a.inode == b.inode }

func (l *Log) list() ([]file, error) {
	path, err := filepath.EvalSymlinks(l.path)
	if errors.Is(err, fs.ErrNotExist) { // renamed, and nothing has been appended since
		path, err = l.path, nil
	}
	if err != nil {
		return nil, err
	}
	directory, base := filepath.Split(path)
	entries, err := os.ReadDir(filepath.Clean(directory))
	if err != nil {
		return nil, err
	}
	all := []file{}
	for _, e := range entries {
		if rest, is := strings.CutPrefix(e.Name(), base); is && rotated.MatchString(rest) && e.Type().IsRegular() {
			f, err := look(directory + e.Name())
			if err != nil {
				return nil, err
			}
			all = append(all, f)
		}
	}
	slices.SortStableFunc(all, func(a, b file) int { return a.changed.Compare(b.changed) })
	f, err := look(path)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	return append(all, f), err
}

// look returns the file at a path.
func look(path string) (file, error) {
	f, err := os.Open(path)
	if err != nil {
		return file{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return file{}, err
	}
	out := file{path: path, size: info.Size(), changed: info.ModTime()}
	if status, is := info.Sys().(*syscall.Stat_t); is {
		out.inode = status.Ino
	}
	line, err := bufio.NewReaderSize(f, headBytes).ReadSlice('\n')
	if err == nil || errors.Is(err, bufio.ErrBufferFull) {
		sum := sha256.Sum256(line)
		out.head, err = hex.EncodeToString(sum[:8]), nil
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return out, err
}

// errMoved is the error for a file that has been renamed meanwhile.
var errMoved = errors.New("was renamed")

// lines returns whole lines from an offset on, with their line breaks: about atLeast bytes, and at least one line if
// there is one. It fails with errMoved if another file has the name by now.
func (f *file) lines(offset int64, atLeast int) (lines [][]byte, err error) {
	now, err := look(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		err = errMoved
	}
	if err == nil && (now.inode != f.inode || now.head != f.head && f.head != "") {
		err = errMoved
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrLog, f.path, err)
	}
	in, err := os.Open(f.path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLog, err)
	}
	defer in.Close()
	if _, err := in.Seek(offset, io.SeekStart); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLog, err)
	}
	reader := bufio.NewReader(in)
	for size := 0; size < atLeast; {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) { // an incomplete line is still being written
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrLog, err)
		}
		size += len(line)
		lines = append(lines, line)
	}
	return lines, nil
}

func sizeOf(files []file) (n int64) {
	for i := range files {
		n += files[i].size
	}
	return n
}
