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
)

// How long it is remembered that an alert was told, as long as Alertmanager remembers its own notifications, and from how
// many lines on, at least, the log is rewritten without what is older or was told otherwise since.
const (
	notesKept    = 120 * time.Hour
	notesRewrite = 1000
)

// Notes remembers, over restarts, what every Alertmanager has been told of each alert: a service that reads telemetry a
// second time after a crash must not page a second time for what has resolved meanwhile. It is a file of one JSON object a
// line, each behind its checksum, to which a line is added and synced when an Alertmanager accepts an alert in a new state.
// A nil *Notes remembers nothing. Its methods may be called by several goroutines.
type Notes struct {
	path string

	mu    sync.Mutex
	file  *os.File
	held  map[noteKey]note
	lines int  // in the file
	torn  bool // a write has failed: the file may end within a line, which would spoil the next one
}

// noteKey is who was told of which alert.
type noteKey struct {
	Receiver string `json:"receiver"` // URL
	Alert    string `json:"alert"`    // key of the alert
}

// note is what was told last.
type note struct {
	noteKey
	Identity string    `json:"identity"` // which firing of the alert it was
	Resolved bool      `json:"resolved"`
	Summary  string    `json:"summary"`
	At       time.Time `json:"at"`
}

// OpenNotes reads the log in a file, or begins one. A line that a crash has cut short, or that is damaged, is left out: the
// worst of it is that its alert is told again.
func OpenNotes(path string) (*Notes, error) {
	n := &Notes{path: path, held: map[noteKey]note{}}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open the log of notifications: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if told, whole := parseNote(strings.TrimSuffix(line, "\n")); whole {
			n.held[told.noteKey] = told
		}
	}
	if err := n.rewrite(time.Now()); err != nil {
		return nil, fmt.Errorf("open the log of notifications: %w", err)
	}
	return n, nil
}

func (t *note) line() []byte {
	text, _ := json.Marshal(t) // texts, a truth value and a time: it cannot fail
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

// last gives what a receiver was told last of this firing of an alert, and false where it was told nothing of it.
func (n *Notes) last(receiver, alert, identity string) (note, bool) {
	if n == nil {
		return note{}, false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	told, any := n.held[noteKey{receiver, alert}]
	return told, any && told.Identity == identity
}

// add remembers what was told. It returns when that is on the disk.
func (n *Notes) add(told ...note) error {
	if n == nil || len(told) == 0 {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	var text []byte
	for i := range told {
		n.held[told[i].noteKey] = told[i]
		text = append(text, told[i].line()...)
	}
	n.lines += len(told)
	var err error
	if !n.torn {
		_, err = n.file.Write(text)
		err = errors.Join(err, n.file.Sync())
		n.torn = err != nil
	} else if err = n.rewrite(time.Now()); err == nil {
		n.torn = false
	}
	if !n.torn && n.lines > max(notesRewrite, 2*len(n.held)) {
		err = n.rewrite(time.Now())
	}
	if err != nil {
		return fmt.Errorf("add to the log of notifications: %w", err)
	}
	return nil
}

// rewrite puts a file with nothing but what is still to be remembered in the place of the present one.
func (n *Notes) rewrite(now time.Time) error {
	var text []byte
	n.lines = 0
	for key, told := range n.held {
		if now.Sub(told.At) > notesKept {
			delete(n.held, key)
			continue
		}
		text = append(text, told.line()...)
		n.lines++
	}
	f, err := os.OpenFile(n.path+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) // one name, so that a crash leaves one at most
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync()); err == nil {
		err = errors.Join(os.Rename(f.Name(), n.path), syncDirectory(filepath.Dir(n.path)))
	}
	if err != nil {
		return errors.Join(err, f.Close(), os.RemoveAll(f.Name()))
	}
	if n.file != nil {
		_ = n.file.Close() // all that it held is in the new one
	}
	n.file = f
	return nil
}

// syncDirectory makes a rename last.
func syncDirectory(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Close closes the file.
func (n *Notes) Close() error {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.file.Close()
}

// note is what a receiver has been told with an offer that it has accepted.
func (o *offer) note(receiver string) note {
	return note{
		noteKey: noteKey{receiver, o.key}, Identity: o.identity, Resolved: o.resolved,
		Summary: o.message.Annotations["summary"], At: o.at,
	}
}
