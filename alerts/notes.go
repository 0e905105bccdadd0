package alerts

import (
	"encoding/json"
	"errors"
	"sync"
	"time"
)

// A note that nothing confirms is kept for notesKept, as long as Alertmanager keeps its own notification log. The note
// of an alert that still fires is confirmed every notesConfirmed.
const (
	notesKept      = 120 * time.Hour
	notesConfirmed = 24 * time.Hour
)

// Notes records, across restarts, which state of each alert was sent to every Alertmanager. Without it, a service that
// reads telemetry a second time after a crash would page again for alerts that have resolved since. OpenNotes keeps the
// notes of a single instance in a file. NewNotes serves several instances: each finds the notes of the policies that it
// takes over. A nil *Notes keeps nothing. Its methods may be called by several goroutines.
type Notes struct {
	partition func(policy string) int32
	close     func() error

	mu        sync.Mutex
	notebooks map[int32]notebook // of the partitions that are judged here
}

// notebook keeps the notes of some policies. Its methods may be called by several goroutines.
type notebook interface {
	last(key noteKey) (note, bool)
	add(told ...note) error // returns once they are durable
	lost() bool             // another instance judges the policies, as far as that can be determined now
}

// noteKey identifies a receiver and an alert.
type noteKey struct {
	Receiver string `json:"receiver"` // URL
	Alert    string `json:"alert"`    // key of the alert
}

// note is the last state of an alert that was sent to a receiver.
type note struct {
	noteKey
	Identity string    `json:"identity"` // of the firing of the alert
	Resolved bool      `json:"resolved"`
	Summary  string    `json:"summary"`
	At       time.Time `json:"at"`

	policy string // whose alert it is
}

func (t *note) text() []byte {
	text, _ := json.Marshal(t) // strings, a bool and a time: it cannot fail
	return text
}

// NewNotes returns the notes of one of several instances, each of which judges the policies of some partitions of a
// topic. It has no notes of a policy before Join.
func NewNotes(partition func(policy string) int32) *Notes {
	return &Notes{partition: partition, close: func() error { return nil }, notebooks: map[int32]notebook{}}
}

// join loads the notes of a partition.
func (n *Notes) join(partition int32, journal Journal) {
	b := openNoteJournal(journal)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.notebooks[partition] = b
}

// leave drops the notes of a partition.
func (n *Notes) leave(partition int32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.notebooks, partition)
}

// here reports whether this instance judges a policy.
func (n *Notes) here(policy string) bool { return n == nil || n.of(policy) != nil }

// of returns the notebook of a policy, or nil if this instance does not judge it.
func (n *Notes) of(policy string) notebook {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.notebooks[n.partition(policy)]
}

// last returns the last state of this firing of an alert that a receiver was sent, and false if it was sent none.
func (n *Notes) last(receiver, alert, policy, identity string) (note, bool) {
	if n == nil {
		return note{}, false
	}
	b := n.of(policy)
	if b == nil {
		return note{}, false
	}
	told, any := b.last(noteKey{receiver, alert})
	return told, any && told.Identity == identity
}

// add records what was sent, except for policies that this instance no longer judges. It returns once the notes are
// durable.
func (n *Notes) add(told []note) error {
	if n == nil {
		return nil
	}
	of := map[notebook][]note{}
	for _, t := range told {
		if b := n.of(t.policy); b != nil {
			of[b] = append(of[b], t)
		}
	}
	errs := make(chan error, len(of))
	for b, notes := range of { // concurrently: each may have to wait for a broker
		go func() { errs <- b.add(notes...) }()
	}
	var err error
	for range of {
		err = errors.Join(err, <-errs)
	}
	return err
}

// check leaves the partitions of the policies that another instance has taken over. This can happen while the process
// is suspended.
func (n *Notes) check(policies []string) {
	if n == nil {
		return
	}
	asked := map[int32]notebook{}
	for _, policy := range policies {
		if b := n.of(policy); b != nil {
			asked[n.partition(policy)] = b
		}
	}
	var asking sync.WaitGroup
	for partition, b := range asked { // concurrently, as in add
		asking.Go(func() {
			if !b.lost() {
				return
			}
			n.mu.Lock()
			defer n.mu.Unlock()
			if n.notebooks[partition] == b { // otherwise the partition has come back since
				delete(n.notebooks, partition)
			}
		})
	}
	asking.Wait()
}

// Close closes the file of OpenNotes.
func (n *Notes) Close() error {
	if n == nil {
		return nil
	}
	return n.close()
}

// heldNotes are notes in memory.
type heldNotes map[noteKey]note

// take stores the notes that differ from the held ones, or that confirm a held one after notesConfirmed, and returns
// them.
func (h heldNotes) take(told []note) []note {
	var news []note
	for _, t := range told {
		if !h[t.noteKey].says(&t) {
			h[t.noteKey] = t
			news = append(news, t)
		}
	}
	return news
}

// says reports whether the note already says what another one says, so that the other need not be written.
func (t note) says(other *note) bool {
	return t.Identity == other.Identity && t.Resolved == other.Resolved && t.Summary == other.Summary &&
		other.At.Sub(t.At) < notesConfirmed
}

// expire drops the notes that nothing has confirmed for notesKept, and returns their keys.
func (h heldNotes) expire(now time.Time) []noteKey {
	var gone []noteKey
	for key, told := range h {
		if now.Sub(told.At) > notesKept {
			delete(h, key)
			gone = append(gone, key)
		}
	}
	return gone
}

// note returns the note of an offer that a receiver has accepted.
func (o *offer) note(receiver string) note {
	return note{
		noteKey: noteKey{receiver, o.key}, Identity: o.identity, Resolved: o.resolved,
		Summary: o.message.Annotations["summary"], At: o.at, policy: o.policy(),
	}
}
