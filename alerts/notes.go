package alerts

import (
	"encoding/json"
	"errors"
	"sync"
	"time"
)

// How long a note is kept that nothing has confirmed, as long as Alertmanager remembers its own notifications, and after
// which time it is confirmed that an alert still fires.
const (
	notesKept      = 120 * time.Hour
	notesConfirmed = 24 * time.Hour
)

// Notes remembers, over restarts, what every Alertmanager has been told of each alert: a service that reads telemetry a
// second time after a crash must not page a second time for what has resolved meanwhile. OpenNotes keeps those of one
// instance in a file; NewNotes those of several where each finds the notes of the policies that it takes over. A nil *Notes
// remembers nothing. Its methods may be called by several goroutines.
type Notes struct {
	partition func(policy string) int32
	close     func() error

	mu        sync.Mutex
	notebooks map[int32]notebook // of the partitions that are judged here
}

// notebook keeps the notes of some policies. Its methods may be called by several goroutines.
type notebook interface {
	last(key noteKey) (note, bool)
	add(told ...note) error // it returns when they are durable
	lost() bool             // the policies are judged by another instance, as far as that can be found out now
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

	policy string // whose alert it is
}

func (t *note) text() []byte {
	text, _ := json.Marshal(t) // texts, a truth value and a time: it cannot fail
	return text
}

// NewNotes makes the notes of one of several instances, each of which judges the policies of some partitions of a topic. It
// remembers nothing of a policy before Join.
func NewNotes(partition func(policy string) int32) *Notes {
	return &Notes{partition: partition, close: func() error { return nil }, notebooks: map[int32]notebook{}}
}

// join takes up the notes of a partition.
func (n *Notes) join(partition int32, journal Journal) {
	b := openNoteJournal(journal)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.notebooks[partition] = b
}

// leave forgets the notes of a partition.
func (n *Notes) leave(partition int32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.notebooks, partition)
}

// here reports whether a policy is judged by this instance.
func (n *Notes) here(policy string) bool { return n == nil || n.of(policy) != nil }

// of finds the notebook of a policy; nil where it is not judged here.
func (n *Notes) of(policy string) notebook {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.notebooks[n.partition(policy)]
}

// last gives what a receiver was told last of this firing of an alert, and false where it was told nothing of it.
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

// add remembers what was told, but of policies that are not judged here any more. It returns when that is durable.
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
	for b, notes := range of { // at once: each may have to wait for a broker
		go func() { errs <- b.add(notes...) }()
	}
	var err error
	for range of {
		err = errors.Join(err, <-errs)
	}
	return err
}

// check makes sure of each partition of some policies that it has not gone to another instance, as while the process was
// stopped, and leaves those that have.
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
	for partition, b := range asked { // at once, as in add
		asking.Go(func() {
			if !b.lost() {
				return
			}
			n.mu.Lock()
			defer n.mu.Unlock()
			if n.notebooks[partition] == b { // or it has come back meanwhile
				delete(n.notebooks, partition)
			}
		})
	}
	asking.Wait()
}

// Close closes what OpenNotes has opened.
func (n *Notes) Close() error {
	if n == nil {
		return nil
	}
	return n.close()
}

// heldNotes are notes in memory.
type heldNotes map[noteKey]note

// take takes over those notes that say something else than what is held, or that confirm it after a while, and gives them.
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

// says reports whether there is no need to write another note beside this one.
func (t note) says(other *note) bool {
	return t.Identity == other.Identity && t.Resolved == other.Resolved && t.Summary == other.Summary &&
		other.At.Sub(t.At) < notesConfirmed
}

// expire drops the notes that nothing has confirmed for too long, and gives their keys.
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

// note is what a receiver has been told with an offer that it has accepted.
func (o *offer) note(receiver string) note {
	return note{
		noteKey: noteKey{receiver, o.key}, Identity: o.identity, Resolved: o.resolved,
		Summary: o.message.Annotations["summary"], At: o.at, policy: o.policy(),
	}
}
