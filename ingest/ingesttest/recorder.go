package ingesttest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/deadletter"
)

// Seen is an event or a whole message as recorded by a Recorder.
type Seen struct {
	Pos    ingest.Position
	Policy string
	Reward float64
	Value  string // of a message
}

// Recorder is a Handler whose states record every event. The records are part of the snapshots, so after a restart they
// contain the events of the checkpoint and those read since. Tests can therefore detect events that are lost or counted
// twice.
type Recorder struct {
	mu         sync.Mutex
	changed    chan struct{} // closed and replaced at every change
	events     map[int32][]Seen
	idle       map[int32]int
	partitions int           // of the topic
	confirmed  time.Time     // time of the last Confirm
	calls      []string      // of Handler methods
	messages   bool          // whether to receive messages instead of events
	assigned   map[int32]int // assignments minus revocations
	processed  int           // number of batches
	failing    error
	panics     any
	gate       chan struct{}
	resting    chan struct{}     // receives whenever a Process call waits at the gate
	atEnding   func()            // called by Ending
	order      []ingest.Position // for all partitions
}

// NewRecorder returns an empty Recorder.
func NewRecorder() *Recorder {
	return &Recorder{
		changed: make(chan struct{}), events: map[int32][]Seen{}, idle: map[int32]int{}, assigned: map[int32]int{},
	}
}

// NewMessageRecorder returns an empty Recorder of whole messages.
func NewMessageRecorder() *Recorder {
	r := NewRecorder()
	r.messages = true
	return r
}

func (r *Recorder) change(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
	close(r.changed)
	r.changed = make(chan struct{})
}

// Await waits until a condition holds. It checks the condition again after every change.
func (r *Recorder) Await(ctx context.Context, condition func() bool) error {
	for {
		r.mu.Lock()
		changed := r.changed
		r.mu.Unlock()
		if condition() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Events returns the events in the state of a partition.
func (r *Recorder) Events(partition int32) []Seen {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Seen(nil), r.events[partition]...)
}

// Order returns the positions of all processed events or messages in all partitions, in processing order.
func (r *Recorder) Order() []ingest.Position {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.order)
}

// Count returns the number of events in the state of all partitions.
func (r *Recorder) Count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, e := range r.events {
		n += len(e)
	}
	return n
}

// Idle returns the number of times that a partition was reported as read to its end.
func (r *Recorder) Idle(partition int32) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.idle[partition]
}

// Assigned returns the assigned partitions, and how often each of them is currently assigned.
func (r *Recorder) Assigned() map[int32]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[int32]int{}
	for p, n := range r.assigned {
		if n != 0 {
			out[p] = n
		}
	}
	return out
}

// Fail makes Process return an error from now on.
func (r *Recorder) Fail(err error) { r.change(func() { r.failing = err }) }

// Panic makes Process panic from now on.
func (r *Recorder) Panic(value any) { r.change(func() { r.panics = value }) }

// Pause makes Process calls wait. resting receives whenever a call starts waiting. resume lets them continue.
func (r *Recorder) Pause() (resting <-chan struct{}, resume func()) {
	gate, rest := make(chan struct{}), make(chan struct{}, 64)
	r.change(func() { r.gate, r.resting = gate, rest })
	return rest, func() {
		r.change(func() { r.gate, r.resting = nil, nil })
		close(gate)
	}
}

// PauseUntilEnding is like Pause, but calls resume when the generation ends.
func (r *Recorder) PauseUntilEnding() (resting <-chan struct{}) {
	resting, resume := r.Pause()
	r.change(func() { r.atEnding = resume })
	return resting
}

// Begin implements ingest.Handler.
func (r *Recorder) Begin(partitions int) {
	r.change(func() {
		r.partitions = partitions
		r.calls = append(r.calls, fmt.Sprint("begin ", partitions))
	})
}

// Confirm implements ingest.Handler.
func (r *Recorder) Confirm(at time.Time) {
	r.change(func() { r.confirmed = at })
}

// Confirmed returns the time of the last Confirm.
func (r *Recorder) Confirmed() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.confirmed
}

// Partitions returns the number of partitions of the topic in the current generation.
func (r *Recorder) Partitions() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.partitions
}

// Assign implements ingest.Handler.
func (r *Recorder) Assign(partition int32, _ ingest.CheckpointStore) (ingest.State, error) {
	r.change(func() {
		r.calls = append(r.calls, fmt.Sprint("assign ", partition))
		r.assigned[partition]++
		r.events[partition] = nil
	})
	s := recording{recorder: r, partition: partition}
	if r.messages {
		return &messages{s}, nil
	}
	return &events{s}, nil
}

// Ending implements ingest.Handler.
func (r *Recorder) Ending() {
	r.mu.Lock()
	do := r.atEnding
	r.mu.Unlock()
	if do != nil {
		do()
	}
	r.change(func() {
		r.atEnding = nil
		r.calls = append(r.calls, "ending")
	})
}

// Revoke implements ingest.Handler.
func (r *Recorder) Revoke(partition int32) {
	r.change(func() {
		r.assigned[partition]--
		r.calls = append(r.calls, fmt.Sprint("revoke ", partition))
	})
}

// Calls returns the calls of Handler methods so far, such as "begin 4", "assign 0", "ending" and "revoke 0".
func (r *Recorder) Calls() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

// kept is the wire form of Seen.
type kept struct {
	Seen
	Partition int32 // with the topic
}

func keptOf(s Seen) kept { return kept{s, int32(s.Pos.Partition)} }

type recording struct {
	recorder  *Recorder
	partition int32
}

// take records a batch of n events or messages.
func (p *recording) take(n int, seen func(i int) Seen) error {
	r := p.recorder
	r.mu.Lock()
	gate, resting, failing, panics := r.gate, r.resting, r.failing, r.panics
	r.mu.Unlock()
	if gate != nil {
		resting <- struct{}{}
		<-gate
	}
	if panics != nil {
		panic(panics)
	}
	if failing != nil {
		return failing
	}
	r.change(func() {
		for i := range n {
			r.events[p.partition] = append(r.events[p.partition], seen(i))
			r.order = append(r.order, seen(i).Pos)
		}
		r.processed++
	})
	return nil
}

type events struct{ recording }

func (p *events) Process(_ context.Context, batch []ingest.Event) error {
	return p.take(len(batch), func(i int) Seen {
		e := &batch[i]
		return Seen{Pos: e.Pos, Policy: e.Policy, Reward: e.Reward}
	})
}

type messages struct{ recording }

func (p *messages) ProcessMessages(_ context.Context, batch []ingest.Message) error {
	return p.take(len(batch), func(i int) Seen { return Seen{Pos: batch[i].Pos, Value: string(batch[i].Value)} })
}

func (p *recording) Idle(context.Context, time.Time) error {
	p.recorder.change(func() { p.recorder.idle[p.partition]++ })
	return nil
}

func (p *recording) Snapshot(w io.Writer) error {
	all := []kept{}
	for _, e := range p.recorder.Events(p.partition) {
		all = append(all, keptOf(e))
	}
	return json.NewEncoder(w).Encode(all)
}

func (p *recording) Restore(from io.Reader) error {
	var all []kept
	if err := json.NewDecoder(from).Decode(&all); err != nil {
		return fmt.Errorf("restore the recorder: %w", err)
	}
	var seen []Seen
	for _, k := range all {
		k.Pos.Partition = ingest.Partition(k.Partition)
		seen = append(seen, k.Seen)
	}
	p.recorder.change(func() { p.recorder.events[p.partition] = seen })
	return nil
}

// Store keeps the last save of each checkpoint in memory.
type Store struct {
	mu      sync.Mutex
	saved   map[string]ingest.Parts
	saves   int
	failing error
	changed chan struct{}
}

// NewStore returns an empty Store.
func NewStore() *Store {
	return &Store{saved: map[string]ingest.Parts{}, changed: make(chan struct{})}
}

// Open implements ingest.Stores. All partitions share the store.
func (s *Store) Open(context.Context, string, int32, func() error) (ingest.CheckpointStore, error) {
	return s, nil
}

// Load implements ingest.CheckpointStore.
func (s *Store) Load(name string) (ingest.Parts, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	parts, ok := s.saved[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return maps.Clone(parts), nil
}

// LoadParts implements ingest.CheckpointStore.
func (s *Store) LoadParts(name string, parts []string) (ingest.Parts, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := ingest.Parts{}
	for _, part := range parts {
		data, ok := s.saved[name][part]
		if !ok {
			return nil, fmt.Errorf("part %s of %s: %w", part, name, fs.ErrNotExist)
		}
		out[part] = data
	}
	return out, nil
}

// Save implements ingest.CheckpointStore.
func (s *Store) Save(name string, changed ingest.Parts, gone []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
	if s.failing != nil {
		return s.failing
	}
	s.put(name, changed)
	for _, part := range gone {
		delete(s.saved[name], part)
	}
	s.saves++
	return nil
}

func (s *Store) put(name string, parts ingest.Parts) {
	if s.saved[name] == nil {
		s.saved[name] = ingest.Parts{}
	}
	for part, data := range parts {
		s.saved[name][part] = bytes.Clone(data)
	}
}

// Put saves parts, even after Fill.
func (s *Store) Put(name string, parts ingest.Parts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(name, parts)
}

// ErrDiskFull is the error that Save returns after Fill.
var ErrDiskFull = errors.New("no space left on device")

// Fill makes Save fail from now on. Free reverts it.
func (s *Store) Fill() { s.fail(ErrDiskFull) }

// Free reverts Fill.
func (s *Store) Free() { s.fail(nil) }

func (s *Store) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing = err
}

// Saves returns the number of saves.
func (s *Store) Saves() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.saves
}

// Await waits until a condition holds. It checks the condition again after every attempt to save.
func (s *Store) Await(ctx context.Context, condition func() bool) error {
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if condition() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Letters is a deadletter.Keeper that records its letters.
type Letters struct {
	mu      sync.Mutex
	kept    []deadletter.Letter
	failing error
}

// Keep implements deadletter.Keeper.
func (l *Letters) Keep(_ context.Context, letter deadletter.Letter) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failing != nil {
		return l.failing
	}
	letter.Raw = bytes.Clone(letter.Raw)
	l.kept = append(l.kept, letter)
	return nil
}

// Fail makes Keep return an error from now on.
func (l *Letters) Fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failing = err
}

// Kept returns the letters so far.
func (l *Letters) Kept() []deadletter.Letter {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]deadletter.Letter(nil), l.kept...)
}

// Close implements deadletter.Keeper.
func (l *Letters) Close() error { return nil }
