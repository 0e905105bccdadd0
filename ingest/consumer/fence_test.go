package consumer_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/consumer"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
	"github.com/rewardwatch/rewardwatch/ingest/telemetry"
)

// claims is a Stores in which only the last one to open a partition may save it.
type claims struct {
	*ingesttest.Store
	mu     sync.Mutex
	owners map[int32]int
	refuse int // openings that will still be refused
}

func newClaims(s *ingesttest.Store) *claims { return &claims{Store: s, owners: map[int32]int{}} }

var errTaken = fmt.Errorf("%w: epoch 7", ingest.ErrFenced)

func (c *claims) Open(_ context.Context, _ string, partition int32, owner func() error) (ingest.CheckpointStore, error) {
	if err := owner(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refuse > 0 {
		c.refuse--
		return nil, errTaken
	}
	return &claim{c, partition, c.take(partition)}, nil
}

// take turns all owners of the partition so far into former owners. mu must be held.
func (c *claims) take(partition int32) (owner int) {
	c.owners[partition]++
	return c.owners[partition]
}

// takeOver is like take, for another process.
func (c *claims) takeOver(partition int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.take(partition)
}

// refuseNext refuses the next openings of any partition.
func (c *claims) refuseNext(openings int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refuse = openings
}

// claim is the store of one owner.
type claim struct {
	*claims
	partition int32
	owner     int
}

func (c *claim) Save(name string, changed ingest.Parts, gone []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.owners[c.partition] != c.owner {
		return errTaken
	}
	return c.Store.Save(name, changed, gone)
}

// If the checkpoints of a partition have a later owner, the partition is dropped, and read again from the saved state.
func TestALaterOwnerTakesAPartition(t *testing.T) {
	b := newBench(t, 2)
	c := newClaims(b.store)
	b.stores = c
	m := b.join()
	b.produce(0, 10)
	b.produce(1, 10)
	m.awaitAll(0, 1)
	b.awaitSaved(0, 10)
	b.awaitSaved(1, 10)
	before := len(m.Calls())
	c.takeOver(0)
	b.produce(0, 10)
	b.produce(1, 10)
	m.await("the next generation", func() bool {
		return strings.Count(strings.Join(m.Calls(), " "), "assign 0") == 2
	})
	m.awaitAll(0, 1)
	if after := m.Calls()[before:]; after[0] != "ending" {
		t.Errorf("after the partition was taken over the Handler was told %q", after)
	}
	b.awaitSaved(0, 20)
	b.awaitSaved(1, 20)
	m.stop()
}

// Records that a dropped partition has read since its last save are neither saved nor committed.
func TestALaterOwnerFindsWhatWasSavedBefore(t *testing.T) {
	b := newBench(t, 2)
	c := newClaims(b.store)
	b.stores = c
	m := b.join()
	b.produce(0, 10)
	m.awaitAll(0, 1)
	b.awaitSaved(0, 10)
	b.awaitSaved(1, 0)
	c.takeOver(0)
	joins := b.broker.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.JoinGroup}, Observe: true, Count: -1})
	b.produce(1, 10)
	m.awaitAll(1)
	c.refuseNext(1 << 30) // it does not get it back
	b.produce(0, 10)
	hits(t, joins, 1)
	m.stop()
	if saved, committed := b.saved(0), b.committed(0); saved != 10 || committed != 10 {
		t.Errorf("checkpoint at %d, committed %d, want 10 both, as the later owner knows them", saved, committed)
	}
	if saved, committed := b.saved(1), b.committed(1); saved != 10 || committed != 10 {
		t.Errorf("checkpoint of the other partition at %d, committed %d, want 10 both", saved, committed)
	}
}

// If the saves of a state find a later owner, all of its methods return the same error.
func TestAStateFindsALaterOwner(t *testing.T) {
	for _, method := range []string{"Process", "Idle", "Snapshot", "Restore", "Assign"} {
		t.Run(method, func(t *testing.T) {
			b := newBench(t, 1)
			b.produce(0, 10)
			first := b.join()
			first.awaitAll(0)
			first.stop()
			f := &fencedState{Recorder: ingesttest.NewRecorder(), method: method}
			f.times.Store(3)
			consumer, err := consumer.New(b.cfg, consumer.Options{
				Stores: b.store, CheckpointEvery: 10 * time.Millisecond, Format: telemetry.V1{}, DeadLetters: b.letters, Handler: f,
				Log: zerolog.Nop(), Registerer: prometheus.NewRegistry(),
			})
			if err != nil {
				t.Fatal(err)
			}
			consumer.Hurry()
			b.produce(0, 10)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- consumer.Run(ctx) }()
			if err := f.Await(waitContext(t), func() bool { return f.times.Load() < 0 && len(f.Events(0)) == 20 }); err != nil {
				t.Fatalf("%v: %d events, %d errors to come", err, len(f.Events(0)), f.times.Load())
			}
			b.awaitSaved(0, 20)
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			checkCalls(t, f.Calls())
		})
	}
}

// fencedState is a Handler whose states find a later owner in one of their methods, a number of times.
type fencedState struct {
	*ingesttest.Recorder
	method string
	times  atomic.Int32
}

// instead calls do, unless the method finds a later owner.
func (f *fencedState) instead(method string, do func() error) error {
	if method == f.method && f.times.Add(-1) >= 0 {
		return errTaken
	}
	return do()
}

func (f *fencedState) Assign(partition int32, store ingest.CheckpointStore) (s ingest.State, err error) {
	err = f.instead("Assign", func() error {
		s, err = f.Recorder.Assign(partition, store)
		s = &fencedProcessor{s.(ingest.Processor), f}
		return err
	})
	return s, err
}

type fencedProcessor struct {
	ingest.Processor
	f *fencedState
}

func (p *fencedProcessor) Process(ctx context.Context, batch []ingest.Event) error {
	return p.f.instead("Process", func() error { return p.Processor.Process(ctx, batch) })
}

func (p *fencedProcessor) Idle(ctx context.Context, at time.Time) error {
	return p.f.instead("Idle", func() error { return p.Processor.Idle(ctx, at) })
}

func (p *fencedProcessor) Snapshot(w io.Writer) error {
	return p.f.instead("Snapshot", func() error { return p.Processor.Snapshot(w) })
}

func (p *fencedProcessor) Restore(r io.Reader) error {
	return p.f.instead("Restore", func() error { return p.Processor.Restore(r) })
}

// Two processes that both get a partition from the group must not repeatedly take it from each other.
func TestAPartitionThatIsTakenAgainAndAgain(t *testing.T) {
	b := newBench(t, 1)
	c := newClaims(b.store)
	c.refuseNext(10)
	b.stores = c
	b.produce(0, 10)
	began := time.Now()
	m := b.join()
	m.awaitAll(0)
	// Half of 5, 10, 20 and 40 milliseconds, and six times half of 50, at least.
	if took := time.Since(began); took < 187*time.Millisecond {
		t.Errorf("it was opened 11 times within %v", took)
	}
	m.stop()
}
