package consumer

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"sync"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rs/zerolog"
)

// shrinking is a state that has become smaller a number of times.
type shrinking struct {
	ingest.State
	size, times int
	restored    []byte
	renewed     bool
}

func (s *shrinking) Snapshot(w io.Writer) error {
	_, err := w.Write(bytes.Repeat([]byte{7}, s.size))
	return err
}

func (s *shrinking) Restore(r io.Reader) (err error) {
	s.restored, err = io.ReadAll(r)
	return err
}

func (s *shrinking) Shrunk() bool {
	s.times--
	return s.times >= 0
}

func (s *shrinking) Renewed() bool { return s.renewed }

// oneCheckpoint is a store for one checkpoint.
type oneCheckpoint struct {
	ingest.CheckpointStore
	parts   ingest.Parts
	saves   int
	failing error // of Save
}

func (o *oneCheckpoint) Load(string) (ingest.Parts, error) {
	if o.parts == nil {
		return nil, fs.ErrNotExist
	}
	loaded := ingest.Parts{}
	for name, part := range o.parts {
		loaded[name] = part
	}
	return loaded, nil
}

func (o *oneCheckpoint) Save(_ string, changed ingest.Parts, gone []string) error {
	if o.failing != nil {
		return o.failing
	}
	o.saves++
	if o.parts == nil {
		o.parts = ingest.Parts{}
	}
	for name, part := range changed {
		o.parts[name] = bytes.Clone(part)
	}
	for _, name := range gone {
		delete(o.parts, name)
	}
	return nil
}

func checkpointed(state ingest.State, store ingest.CheckpointStore) *partition {
	t := &topic{Topic: ingest.Topic{Name: "agents"}}
	c := &Consumer{topics: []*topic{t}, now: time.Now, opts: Options{Log: zerolog.Nop()}}
	p := &partition{turn: newTurns(), c: c, state: state, store: store, name: "p", log: zerolog.Nop()}
	p.readers = []*reader{{
		partition: p, topic: t, next: 5, saved: 5, committed: 5, mark: mark{offset: unknown}, progress: newProgress(time.Now()),
	}}
	return p
}

// If the content of a state has become durable elsewhere, the state is saved although nothing was read. It is saved
// twice, because the large snapshot would otherwise remain as the previous one. In other cases, an idle partition is
// not saved again.
func TestAStateThatShrinksIsSaved(t *testing.T) {
	store := &oneCheckpoint{}
	state := &shrinking{size: 3*imageBlock + 17}
	p := checkpointed(state, store)
	p.readers[0].saved = 4
	for i, want := range []int{1, 1, 3, 3} {
		if i == 2 {
			state.times, state.size = 1, 10
		}
		if err := p.checkpoint(); err != nil || store.saves != want {
			t.Fatalf("%d saves after %d looks, want %d: %v", store.saves, i+1, want, err)
		}
		if i == 0 && len(store.parts) != 4 || i > 1 && len(store.parts) != 1 {
			t.Errorf("%d parts after %d looks", len(store.parts), i+1)
		}
	}
}

// The save of a state that has shrunk is retried until it succeeds, although nothing is read and Shrunk returns true
// only once.
func TestASaveOfAStateThatShrinksIsTriedAgain(t *testing.T) {
	store := &oneCheckpoint{failing: errors.New("no room")}
	p := checkpointed(&shrinking{times: 1}, store)
	for i, want := range []int{0, 0, 2, 2} {
		if i == 2 {
			store.failing = nil
		}
		if err := p.checkpoint(); err != nil || store.saves != want {
			t.Fatalf("%d saves after %d looks, want %d: %v", store.saves, i+1, want, err)
		}
	}
}

// A renewed state is saved before anything is read. It is saved twice, because the old one could otherwise be restored.
func TestARenewedStateIsSavedBeforeItIsRead(t *testing.T) {
	store := &oneCheckpoint{}
	before := checkpointed(&shrinking{size: 3}, store)
	before.readers[0].saved = 4
	if err := before.checkpoint(); err != nil {
		t.Fatal(err)
	}
	for _, renewed := range []bool{false, true} {
		store.saves, store.failing = 0, errors.New("no room")
		p := checkpointed(&shrinking{renewed: renewed}, store)
		r := p.readers[0]
		r.saved = unknown
		if err := p.restore(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := p.checkpoint(); err != nil || r.isSaved() == renewed {
			t.Errorf("renewed %t: saved %t before it is, %v", renewed, r.isSaved(), err)
		}
		store.failing = nil
		want := 0
		if renewed {
			want = 2
		}
		if err := p.checkpoint(); err != nil || !r.isSaved() || store.saves != want {
			t.Errorf("renewed %t: saved %t after %d saves, want %d, %v", renewed, r.isSaved(), store.saves, want, err)
		}
	}
}

// A state is restored correctly, regardless of its blocks, and smaller states leave nothing from larger ones.
func TestAStateOfManyBlocksComesBack(t *testing.T) {
	store := &oneCheckpoint{}
	for _, size := range []int{0, 100, imageBlock - 40, imageBlock, 2*imageBlock + 1, 5 * imageBlock, 3} {
		p := checkpointed(&shrinking{size: size}, store)
		if len(store.parts) > 0 {
			p.parts = len(store.parts)
		}
		p.readers[0].saved = 0
		if err := p.checkpoint(); err != nil {
			t.Fatal(err)
		}
		back := &shrinking{}
		if err := checkpointed(back, store).restore(t.Context()); err != nil || len(back.restored) != size {
			t.Errorf("%d bytes came back of %d: %v", len(back.restored), size, err)
		}
	}
}

// Large states take turns. Small ones do not wait.
func TestLargeStatesTakeTurns(t *testing.T) {
	var turn sync.Mutex
	first, second, small := image{turn: &turn}, image{turn: &turn}, image{turn: &turn}
	large := make([]byte, imageBlock+1)
	_, _ = first.Write(large)
	_, _ = small.Write(large[:100])
	small.done()
	written := make(chan struct{})
	go func() {
		_, _ = second.Write(large)
		close(written)
	}()
	select {
	case <-written:
		t.Error("two large states are written at once")
	case <-time.After(50 * time.Millisecond):
	}
	first.done()
	<-written
	second.done()
}
