package consumer_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// asking is a Stores that requests a proof of ownership, like a store that several processes share.
type asking struct {
	ingest.CheckpointStore
	mu     sync.Mutex
	fails  int     // openings that will still fail
	proofs []error // results of requesting proofs
	owners []func() error
}

func (a *asking) Open(_ context.Context, _ string, _ int32, owner func() error) (ingest.CheckpointStore, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fails > 0 {
		a.fails--
		return nil, errors.New("not yet")
	}
	err := owner()
	a.proofs, a.owners = append(a.proofs, err), append(a.owners, owner)
	if err != nil {
		return nil, err
	}
	return a.CheckpointStore, nil
}

func (a *asking) asked() []error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]error(nil), a.proofs...)
}

func TestAPartitionProvesItsOwnerAndIsOpenedUntilItWorks(t *testing.T) {
	b := newBench(t, 1)
	a := &asking{CheckpointStore: b.store, fails: 3}
	b.stores = a
	b.produce(0, 30)
	if err := b.broker.DeleteRecords(0, 10); err != nil {
		t.Fatal(err)
	}
	b.store.Fill() // so that only the proof is committed
	commits := b.broker.Fail(kmsg.OffsetCommit, kerr.IllegalGeneration, 1)
	m := b.join()
	hits(t, commits, 1)
	m.await("the partition", func() bool { return len(m.Assigned()) == 1 })
	if got := b.committed(0); got != 10 {
		t.Errorf("the proof has committed %d, want the start of the log, 10", got)
	}
	b.store.Free()
	m.await("20 events", func() bool { return m.Count() >= 20 })
	m.check(0, 10, 30)
	m.stop()
	if got := a.asked(); len(got) != 2 || !errors.Is(got[0], kafka.IllegalGeneration) || got[1] != nil {
		t.Errorf("the proofs gave %v, want that the generation has ended, then none", got)
	}
	// The committed offset does not change.
	m = b.join()
	m.await("the partition", func() bool { return len(m.Assigned()) == 1 })
	m.stop()
	if got := b.committed(0); got != 30 {
		t.Errorf("committed %d, want 30 as before", got)
	}
}

// Once another generation has begun, a partition no longer belongs to this member.
func TestAnOwnerOfOldCannotProveIt(t *testing.T) {
	b := newBench(t, 1)
	a := &asking{CheckpointStore: b.store}
	b.stores = a
	commit(t, b, 0, 0)
	m := b.join()
	m.await("the partition", func() bool { return len(m.Assigned()) == 1 })
	m.stop()
	if err := a.owners[0](); err == nil {
		t.Error("a member that has left the group proves that a partition is its own")
	}
}

// A stop does not wait for a store that cannot be opened, and the Handler is not called.
func TestStopsWhileAStoreCannotBeOpened(t *testing.T) {
	b := newBench(t, 1)
	a := &asking{CheckpointStore: b.store, fails: 1 << 30}
	b.stores = a
	joined := b.broker.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetFetch}, Observe: true, Count: -1})
	m := b.join()
	hits(t, joined, 1)
	m.stop()
	if calls := m.Calls(); len(calls) > 0 {
		t.Errorf("the Handler was told %q", calls)
	}
}
