package alerts

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest/datadir"
)

// notesRewrite is the minimum number of lines at which a file is rewritten without outdated and replaced notes.
const notesRewrite = 1000

// noteFile is a notebook in a file with one JSON object per line, each preceded by its checksum. A line is appended and
// synced when an Alertmanager accepts an alert in a new state.
type noteFile struct {
	path string

	mu    sync.Mutex
	file  *os.File
	held  heldNotes
	lines int  // in the file
	torn  bool // a write has failed: the file may end within a line, which would corrupt the next one
}

// OpenNotes reads the notes in a file, or creates the file. It skips lines that are damaged or were cut short by a
// crash; at worst, the alert of such a line is sent again.
func OpenNotes(path string) (*Notes, error) {
	f, err := openNoteFile(path)
	if err != nil {
		return nil, fmt.Errorf("open the notification log: %w", err)
	}
	n := NewNotes(func(string) int32 { return 0 })
	n.notebooks[0], n.close = f, f.close
	return n, nil
}

func openNoteFile(path string) (*noteFile, error) {
	f := &noteFile{path: path, held: heldNotes{}}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		if told, whole := parseNote(strings.TrimSuffix(line, "\n")); whole {
			f.held[told.noteKey] = told
		}
	}
	return f, f.rewrite(time.Now())
}

func (t *note) line() []byte {
	text := t.text()
	return fmt.Appendf(nil, "%08x %s\n", crc32.ChecksumIEEE(text), text)
}

func parseNote(line string) (told note, whole bool) {
	sum, text, _ := strings.Cut(line, " ")
	if sum != fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(text))) {
		return note{}, false
	}
	err := json.Unmarshal([]byte(text), &told)
	return told, err == nil
}

// last implements notebook.
func (f *noteFile) last(key noteKey) (note, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	told, any := f.held[key]
	return told, any
}

// add implements notebook. It returns once the notes are on disk.
func (f *noteFile) add(told ...note) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	news := f.held.take(told)
	if len(news) == 0 && !f.torn {
		return nil
	}
	var text []byte
	for i := range news {
		text = append(text, news[i].line()...)
	}
	f.lines += len(news)
	var err error
	if !f.torn {
		_, err = f.file.Write(text)
		err = errors.Join(err, f.file.Sync())
		f.torn = err != nil
	} else if err = f.rewrite(time.Now()); err == nil {
		f.torn = false
	}
	if !f.torn && f.lines > max(notesRewrite, 2*len(f.held)) {
		err = f.rewrite(time.Now())
	}
	if err != nil {
		return fmt.Errorf("write to the notification log: %w", err)
	}
	return nil
}

// lost implements notebook.
func (f *noteFile) lost() bool { return false }

// rewrite replaces the file with one that holds only the notes still needed.
func (f *noteFile) rewrite(now time.Time) error {
	f.held.expire(now)
	var text []byte
	for _, told := range f.held {
		text = append(text, told.line()...)
	}
	f.lines = len(f.held)
	tmp, err := os.OpenFile(f.path+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) // a fixed name, so that crashes leave at most one such file
	if err != nil {
		return err
	}
	_, err = tmp.Write(text)
	if err = errors.Join(err, tmp.Sync()); err == nil {
		err = errors.Join(os.Rename(tmp.Name(), f.path), datadir.Sync(filepath.Dir(f.path)))
	}
	if err != nil {
		return errors.Join(err, tmp.Close(), os.RemoveAll(tmp.Name()))
	}
	if f.file != nil {
		_ = f.file.Close() // the new file has all of its notes
	}
	f.file = tmp
	return nil
}

func (f *noteFile) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.file.Close()
}
