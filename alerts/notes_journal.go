package alerts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// ownerKey is where the owner of a journal writes the time when it asks whether it still is the owner.
const ownerKey = "owner"

// expireEvery is how often the notes of a journal are looked through for those that are too old.
const expireEvery = time.Hour

// journalPatience is how long a value may take to be durable. Nobody waits for more than two of them, so that alerts are pushed
// again before Alertmanager takes them for resolved, also while the brokers are away.
const journalPatience = 5 * time.Second

// Journal keeps values where whoever judges the policies of a partition next finds them.
type Journal interface {
	// Append makes a value durable as the newest of its key; nil removes the key. It fails with ingest.ErrFenced where the
	// partition has gone to another instance, and where ctx ends before. It is called by one goroutine at a time.
	Append(ctx context.Context, key string, value []byte) error
	// Read gives the newest value of each key, in any order. A value is valid until the function that it is given to
	// returns.
	Read(func(key string, value []byte))
}

// noteJournal is a notebook in a journal.
type noteJournal struct {
	writing chan struct{} // full while something is appended, so that the newest note of a key is its newest value
	journal Journal
	failed  error     // of the last value, nil where it is durable
	began   time.Time // when the last one was appended

	mu      sync.Mutex
	held    heldNotes
	owed    map[noteKey]bool // what the journal does not say yet
	expired time.Time        // when held was last looked through
}

// openNoteJournal reads a journal. A value that is no note is left alone.
func openNoteJournal(journal Journal) *noteJournal {
	j := &noteJournal{journal: journal, writing: make(chan struct{}, 1), held: heldNotes{}, owed: map[noteKey]bool{}}
	journal.Read(func(key string, value []byte) {
		var told note
		if err := json.Unmarshal(value, &told); err == nil && told.key() == key {
			j.held[told.noteKey] = told
		}
	})
	j.expire(time.Now())
	return j
}

// key is that of a note's value in a journal.
func (k noteKey) key() string { return "told " + k.Receiver + " " + k.Alert }

// last implements notebook.
func (j *noteJournal) last(key noteKey) (note, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	told, any := j.held[key]
	return told, any
}

// add implements notebook. What could not be appended is tried again with the next notes; of a partition that has gone to
// another instance it is for that one to remember.
func (j *noteJournal) add(told ...note) error {
	asked := time.Now()
	j.owe(told, asked)
	defer j.write()()
	for {
		key, value, any := j.nextOwed()
		if !any {
			return nil
		}
		err := j.append(asked, key.key(), value)
		if errors.Is(err, ingest.ErrFenced) {
			return nil
		}
		if err != nil {
			j.mu.Lock()
			j.owed[key] = true
			j.mu.Unlock()
			return fmt.Errorf("add to the log of notifications: %w", err)
		}
	}
}

// lost implements notebook: a former owner cannot append. Without a broker nobody can take over either.
func (j *noteJournal) lost() bool {
	asked := time.Now()
	defer j.write()()
	return errors.Is(j.append(asked, ownerKey, asked.UTC().AppendFormat(nil, time.RFC3339)), ingest.ErrFenced)
}

// write waits for the caller's turn to append, which ends with what it gives.
func (j *noteJournal) write() (end func()) {
	j.writing <- struct{}{}
	return func() { <-j.writing }
}

// append makes a value durable. Where an append has failed that began since this was asked for, it fails with the same
// error: of all that wait for brokers that are away, one asks them. It is the caller's turn.
func (j *noteJournal) append(asked time.Time, key string, value []byte) error {
	if j.failed != nil && j.began.After(asked) {
		return j.failed
	}
	j.began = time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), journalPatience)
	defer cancel()
	j.failed = j.journal.Append(ctx, key, value)
	return j.failed
}

// owe takes notes over into memory.
func (j *noteJournal) owe(told []note, now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, t := range j.held.take(told) {
		j.owed[t.noteKey] = true
	}
	if now.Sub(j.expired) >= expireEvery {
		j.expire(now)
	}
}

// expire forgets what is too old. The caller holds the lock, or is alone.
func (j *noteJournal) expire(now time.Time) {
	j.expired = now
	for _, key := range j.held.expire(now) {
		j.owed[key] = true
	}
}

// nextOwed takes one note that is to be appended; its value is nil where it is to be forgotten.
func (j *noteJournal) nextOwed() (key noteKey, value []byte, any bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for key = range j.owed {
		delete(j.owed, key)
		if told, held := j.held[key]; held {
			value = told.text()
		}
		return key, value, true
	}
	return noteKey{}, nil, false
}
