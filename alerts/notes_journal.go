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

// ownerKey is the key under which the owner of a journal writes the time when it asks whether it is still the owner.
const ownerKey = "owner"

// expireEvery is how often outdated notes are removed from a journal.
const expireEvery = time.Hour

// journalPatience is how long a value may take to become durable. A caller waits at most twice as long, so that alerts
// are pushed again before Alertmanager resolves them, even while the brokers are unavailable.
const journalPatience = 5 * time.Second

// Journal keeps values for the next instance that judges the policies of a partition.
type Journal interface {
	// Append makes a value durable as the newest of its key; nil removes the key. It fails with ingest.ErrFenced if
	// another instance has taken over the partition, and fails if ctx ends first. It is called by one goroutine at a
	// time.
	Append(ctx context.Context, key string, value []byte) error
	// Read calls a function with the newest value of each key, in any order. A value is valid until that function returns.
	Read(func(key string, value []byte))
}

// noteJournal is a notebook in a journal.
type noteJournal struct {
	writing chan struct{} // full during an append, so that the newest note of a key is its newest value
	journal Journal
	failed  error     // the error of the last append
	began   time.Time // when the last append began

	mu      sync.Mutex
	held    heldNotes
	owed    map[noteKey]bool // not in the journal yet
	expired time.Time        // when held was last checked for outdated notes
}

// openNoteJournal reads a journal. It ignores values that are not notes.
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

// key returns the key of a note's value in a journal.
func (k noteKey) key() string { return "told " + k.Receiver + " " + k.Alert }

// last implements notebook.
func (j *noteJournal) last(key noteKey) (note, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	told, any := j.held[key]
	return told, any
}

// add implements notebook. Notes that could not be appended are tried again with the next ones. If another instance has
// taken over the partition, its notes are left to that instance.
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
			return fmt.Errorf("write to the notification log: %w", err)
		}
	}
}

// lost implements notebook. It tries to append, which a former owner cannot do. Without a broker it returns false,
// because no other instance can take over either.
func (j *noteJournal) lost() bool {
	asked := time.Now()
	defer j.write()()
	return errors.Is(j.append(asked, ownerKey, asked.UTC().AppendFormat(nil, time.RFC3339)), ingest.ErrFenced)
}

// write waits for the caller's turn to append. The turn lasts until the returned function is called.
func (j *noteJournal) write() (end func()) {
	j.writing <- struct{}{}
	return func() { <-j.writing }
}

// append makes a value durable. If an append that began after this one was requested has failed, it returns the same
// error: while the brokers are away, only one of the waiting callers tries them. It must be the caller's turn.
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

// owe adds notes to the held ones and to those that must be appended.
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

// expire drops outdated notes. The caller holds the lock, or has the journal to itself.
func (j *noteJournal) expire(now time.Time) {
	j.expired = now
	for _, key := range j.held.expire(now) {
		j.owed[key] = true
	}
}

// nextOwed takes one key that must be appended; the value is nil if the key is to be removed.
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
