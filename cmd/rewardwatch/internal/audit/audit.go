// Package audit keeps a log of changes that people and programs make over HTTP, and of failed attempts, and sends it to
// Kafka.
package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// ErrLog is the error for a log that cannot be written, for errors.Is.
var ErrLog = errors.New("audit log")

// Limits on entries for requests without a valid token or password: how many are kept in a burst, and how often another
// one is. The rest is only counted, so that guesses from many addresses cannot fill the disk.
const (
	refusedBurst = 100
	refusedEvery = time.Second
)

// maxEntry limits an entry, in bytes, so that brokers accept it. A larger entry contains tooLarge instead of the
// states.
const (
	maxEntry = 256 << 10
	tooLarge = "too large"
)

// Entry is one line of the log.
type Entry struct {
	Time    time.Time         `json:"time"`
	Who     string            `json:"who"`              // the name that a person entered or logged in with, "" if unknown
	As      string            `json:"as"`               // what permitted the request: token, status token, telemetry token, session, login, link, local, or nothing
	Tenant  string            `json:"tenant,omitempty"` // tenant to which the person or program is confined, "" for none
	From    string            `json:"from"`             // address and port
	What    string            `json:"what"`             // method and route
	Object  map[string]string `json:"object"`           // the variables of the route, such as the id of an incident
	Asked   any               `json:"asked"`            // the body, without secrets; null without one
	Before  any               `json:"before"`           // the state of the object
	After   any               `json:"after"`            // the state of the object afterwards
	Result  string            `json:"result"`           // done, or refused
	Status  int               `json:"status"`           // HTTP status
	Error   string            `json:"error"`            // why it was refused
	Omitted int               `json:"omitted"`          // refused requests without an entry since the previous entry
}

// Log appends entries to a file. Its methods are safe for concurrent use.
type Log struct {
	path string

	mu      sync.Mutex
	refused float64 // decreases by one each refusedEvery
	at      time.Time
	omitted int
}

// Open returns a log, and creates its file if there is none. Its errors are ErrLog.
func Open(path string) (*Log, error) {
	l := &Log{path: path}
	return l, l.Writable()
}

// Writable returns why the file cannot be written, or nil.
func (l *Log) Writable() error {
	f, err := l.open()
	if err != nil {
		return err
	}
	return closed(f)
}

// open opens the file, once for each entry, so that it can be moved in between.
func (l *Log) open() (*os.File, error) {
	f, err := os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLog, err)
	}
	return f, nil
}

func closed(f *os.File) error {
	if err := f.Close(); err != nil {
		return fmt.Errorf("%w: %w", ErrLog, err)
	}
	return nil
}

// Append appends an entry, which is durable when Append returns. unknown means that the client has shown no valid token
// or password.
func (l *Log) Append(e Entry, unknown bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if unknown && !l.room(e.Time) {
		l.omitted++
		return nil
	}
	e.Omitted = l.omitted
	line, err := json.Marshal(e)
	if err == nil && len(line) > maxEntry {
		e.Before, e.After = tooLarge, tooLarge
		line, err = json.Marshal(e)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLog, err)
	}
	f, err := l.open()
	if err != nil {
		return err
	}
	if err := write(f, append(line, '\n')); err != nil {
		return errors.Join(fmt.Errorf("%w: %w", ErrLog, err), closed(f))
	}
	l.omitted = 0
	return closed(f)
}

// write appends a line durably. If only a part of the line fits, it removes that part, so that the next line is whole.
func write(f *os.File, line []byte) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if _, err := f.Write(line); err != nil {
		return errors.Join(err, f.Truncate(info.Size()))
	}
	return f.Sync()
}

// room reports whether one more entry of an unknown client is kept.
func (l *Log) room(now time.Time) bool {
	l.refused = max(0, l.refused-float64(now.Sub(l.at))/float64(refusedEvery))
	l.at = now
	if l.refused >= refusedBurst {
		return false
	}
	l.refused++
	return true
}
